//! What was tried before: merges new results into the recorded candidates, and selects the earlier candidates that a prompt shows. Knows records of candidates; does not
//! know where they or their sources are stored, and calls no clock: the same records give the same prompt.
//!
//! # What is shown
//!
//! Only correct candidates. First those of the same contract, then of the same operator under other types, then of the same pattern and level, then of the same pattern;
//! others teach nothing. Among equals, those for the same architecture come first, then faster ones by their own measure (untimed ones last), then champions. No source
//! and no kernel is shown twice, because two of a kind teach no more than one. A candidate that is too long for the remaining room is skipped in favour of the next.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::kind::Kind;
use kforge_foundation::base::Digest;
use kforge_types::model::agent::Scope;
use kforge_types::record::candidate::{Became, Candidate};

/// How many earlier candidates of other rounds and kernels a prompt shows.
pub const SHOWN: usize = 2;

/// What is remembered once `found` was found: of every seat in it the declared candidates anew, of rounds what was found beside what is there. What is not known any
/// more, because its device is not at hand, stays as it was known.
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

/// The order of what is remembered: by seat, then as it was tried.
fn order(c: &Candidate) -> impl Ord + use<'_> {
    (&c.package, &c.kernel, &c.types, &c.target, c.chain.map(|chain| chain.hex()), c.round, c.attempt, &c.variant)
}

/// What exemplars are wanted for.
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
    /// The operator.
    pub operator: &'a str,
    /// Its contract under these types.
    pub contract: Digest,
    /// What kind of work it is.
    pub kind: Kind,
    /// The rounds that are going on: their candidates are drawn apart, from what is known now.
    pub chain: Digest,
    /// Whose candidates may be shown.
    pub scope: Scope,
}

/// How like what is wanted a candidate is; the first is the likest.
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
    /// In words, as a prompt has it.
    pub fn words(self) -> &'static str {
        match self {
            Likeness::Contract => "for the same contract",
            Likeness::Operator => "for the same operator under other types",
            Likeness::Level | Likeness::Pattern => "for an operator of the same pattern",
        }
    }
}

impl ExemplarQuery<'_> {
    /// How like it is; none for what is not to be shown.
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
        if !may || goes_on || c.became != Became::Right || c.source.is_none() {
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

    /// The candidates that may be shown, the likest first, each with how like it is.
    pub fn ranked<'c>(&self, candidates: &'c [Candidate]) -> Vec<(Likeness, &'c Candidate)> {
        let mut all: Vec<(Likeness, &Candidate)> =
            candidates.iter().filter_map(|c| Some((self.likeness(c)?, c))).collect();
        // A speed-up is above zero, and among those the order of the bits is that of the numbers.
        let fast = |c: &Candidate| c.speedup.filter(|s| s.is_finite() && *s > 0.0).map_or(0, f64::to_bits);
        all.sort_by_cached_key(|(like, c)| {
            (*like, c.arch != self.arch, Reverse(fast(c)), !c.champion, c.package.clone(), c.kernel.clone(), c.id())
        });
        all
    }

    /// The earlier candidates that a prompt shows, at most `most` of `room` characters together. `shown` are sources that it shows anyway; `text` gives a source, or
    /// none where it is gone or may not be told.
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
