//! What was tried before: merges new results into the recorded candidates, and selects the earlier candidates that a prompt shows. Knows records of candidates;
//! does not know where they or their sources are stored, and reads no clock: the same records give the same prompt.
//!
//! # What is shown
//!
//! Only correct candidates in the kernel's language are shown. First those of the same contract, then of the same operator under other types, then of the same pattern and level, then
//! of the same pattern; others teach nothing. Among equals, those for the same architecture come first, then faster ones by their own measurement (untimed ones
//! last), then champions. No source and no kernel is shown twice, because a second one would teach nothing more. A candidate that is too long for the remaining
//! space is skipped in favor of the next.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::kind::Kind;
use kforge_foundation::base::Digest;
use kforge_types::model::Language;
use kforge_types::model::agent::Scope;
use kforge_types::record::candidate::{Became, Candidate};

/// The number of earlier candidates of other rounds and kernels that a prompt shows.
pub const SHOWN: usize = 2;

/// The recorded candidates after `found`. For each kernel, choice of types and target in `found`, new declared candidates replace the old ones, and candidates
/// of rounds are added to the recorded ones. What cannot be measured now, because its device is not available, keeps its recorded value.
pub fn merged(before: Vec<Candidate>, found: Vec<Candidate>) -> Vec<Candidate> {
    let is_replaced = |old: &Candidate| old.chain.is_none() && found.iter().any(|new| new.is_beside(old));
    let mut all: Vec<Candidate> = before.into_iter().filter(|old| !is_replaced(old)).collect();
    for new in found {
        match all.iter_mut().find(|old| old.is_beside(&new) && old.id() == new.id()) {
            Some(old) => *old = newer(old, new),
            None => all.push(new),
        }
    }
    all.sort_by(|a, b| order(a).cmp(&order(b)));
    all
}

fn newer(old: &Candidate, new: Candidate) -> Candidate {
    if new.became == Became::Undecided && old.became != Became::Undecided {
        return old.clone();
    }
    if new.became == old.became && new.time_ns.is_none() {
        return Candidate { time_ns: old.time_ns, speedup: old.speedup, ..new };
    }
    new
}

/// The order of recorded candidates: by kernel, types and target, then in the order in which they were tried.
fn order(c: &Candidate) -> impl Ord + use<'_> {
    (&c.package, &c.kernel, &c.types, &c.target, c.chain.map(|chain| chain.hex()), c.round, c.attempt, &c.variant)
}

/// The problem for which exemplars are selected.
#[derive(Debug, Clone, Copy)]
pub struct ExemplarQuery<'a> {
    /// The package.
    pub package: &'a str,
    /// The kernel.
    pub kernel: &'a str,
    /// The choice of types.
    pub types: &'a str,
    /// The target.
    pub target: &'a str,
    /// Its architecture.
    pub arch: &'a str,
    /// What the kernel is written in. Only candidates in the same language are shown.
    pub language: Language,
    /// The operator.
    pub operator: &'a str,
    /// Its contract under these types.
    pub contract: Digest,
    /// The kind of work of the operator.
    pub kind: Kind,
    /// The current chain of rounds. Its candidates are excluded here: they are drawn separately, from current results.
    pub chain: Digest,
    /// The packages and kernels whose candidates may be shown.
    pub scope: Scope,
}

/// How similar a candidate is to the query, most similar first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// Of the same contract.
    Contract,
    /// Of the same operator, under other types.
    Operator,
    /// Of an operator of the same pattern and level.
    Level,
    /// Of an operator of the same pattern.
    Pattern,
}

impl Likeness {
    /// The similarity in words, as in a prompt.
    pub fn words(self) -> &'static str {
        match self {
            Likeness::Contract => "for the same contract",
            Likeness::Operator => "for the same operator under other types",
            Likeness::Level | Likeness::Pattern => "for an operator of the same pattern",
        }
    }
}

impl ExemplarQuery<'_> {
    /// How similar a candidate is; none if it must not be shown.
    pub fn likeness(&self, c: &Candidate) -> Option<Likeness> {
        let is_own = (c.package.as_str(), c.kernel.as_str()) == (self.package, self.kernel);
        let may = match self.scope {
            Scope::Workspace => true,
            Scope::Package => c.package == self.package,
            Scope::Kernel => is_own,
        };
        let goes_on = match c.chain {
            Some(chain) => chain == self.chain,
            None => is_own && (c.types.as_str(), c.target.as_str()) == (self.types, self.target),
        };
        if !may || goes_on || c.language != self.language || c.became != Became::Correct || c.source.is_none() {
            return None;
        }
        let pattern = c.pattern.is_some() && c.pattern == self.kind.pattern;
        match () {
            () if c.contract == self.contract => Some(Likeness::Contract),
            () if (c.package.as_str(), c.operator.as_str()) == (self.package, self.operator) => {
                Some(Likeness::Operator)
            }
            () if pattern && c.level == self.kind.level => Some(Likeness::Level),
            () if pattern => Some(Likeness::Pattern),
            () => None,
        }
    }

    /// The candidates that may be shown, most similar first, each with its similarity.
    pub fn ranked<'c>(&self, candidates: &'c [Candidate]) -> Vec<(Likeness, &'c Candidate)> {
        let mut all: Vec<(Likeness, &Candidate)> =
            candidates.iter().filter_map(|c| Some((self.likeness(c)?, c))).collect();
        // A speedup is above zero, and the bits of positive floats sort as their values do.
        let fast = |c: &Candidate| c.speedup.filter(|s| s.is_finite() && *s > 0.0).map_or(0, f64::to_bits);
        all.sort_by_cached_key(|(like, c)| {
            (*like, c.arch != self.arch, Reverse(fast(c)), !c.champion, c.package.clone(), c.kernel.clone(), c.id())
        });
        all
    }

    /// The earlier candidates that a prompt shows: at most `most`, with at most `room` characters together. `shown` are sources that the prompt shows anyway.
    /// `text` returns a source, or none if it no longer exists or must not be shown.
    pub fn draw<'c>(
        &self,
        candidates: &'c [Candidate],
        (most, room): (usize, usize),
        shown: &BTreeSet<Digest>,
        text: &mut dyn FnMut(&Candidate) -> Option<String>,
    ) -> Vec<(Likeness, &'c Candidate, String)> {
        let (mut sources, mut kernels) = (shown.clone(), BTreeSet::new());
        let (mut left, mut drawn) = (room, vec![]);
        for (like, candidate) in self.ranked(candidates) {
            if drawn.len() == most {
                break;
            }
            let kernel = (&candidate.package, &candidate.kernel);
            if kernels.contains(&kernel) || candidate.source.is_none_or(|source| sources.contains(&source)) {
                continue;
            }
            let Some(text) = text(candidate) else { continue };
            let long = text.chars().count();
            if long > left {
                continue;
            }
            left -= long;
            sources.extend(candidate.source);
            kernels.insert(kernel);
            drawn.push((like, candidate, text));
        }
        drawn
    }
}

#[cfg(test)]
#[path = "memory/tests.rs"]
mod tests;
