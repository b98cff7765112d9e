//! Which attempts are exported: correct ones, times within a band, each source once, and as many of each level. Knows trajectories; changes no figure of one.
//!
//! | decision | reason |
//! |---|---|
//! | filters apply in the order of the fields of [`Filter`] | an attempt that is left out hides no duplicate of it |
//! | rewards and returns are those of all recorded attempts | what a turn was worth does not depend on what is exported |
//! | of equal sources, the first stays | later ones were written by someone who saw it |
//! | levels are balanced by taking the problems of a level in turn | no problem stands for its level |

use std::collections::{BTreeMap, BTreeSet};

use super::normalised::normalised;
use super::{Trajectory, Tried};
use crate::report::rounds::Became;

/// What is exported.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Filter {
    /// Only correct candidates, and attempts with one.
    pub correct: bool,
    /// Only candidates whose median time lies within this band, and attempts with one.
    pub runtime: Option<Band>,
    /// Each source of a problem once, whatever its comments and white space.
    pub dedup: bool,
    /// The same number of attempts of each level.
    pub balance: Option<Balance>,
}

/// A band of times in nanoseconds, with its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// The shortest.
    pub from_ns: f64,
    /// The longest.
    pub to_ns: f64,
}

/// How many attempts each level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// As many as the level with the fewest.
    Fewest,
    /// At most so many.
    AtMost(usize),
}

impl Filter {
    /// The attempts that pass, in their order.
    pub fn applied(&self, all: Vec<Trajectory>) -> Vec<Trajectory> {
        let mut all = all;
        if self.correct {
            all = having(all, |tried| tried.became == Became::Correct);
        }
        if let Some(band) = self.runtime {
            all = having(all, |tried| tried.time_ns.is_some_and(|ns| (band.from_ns..=band.to_ns).contains(&ns)));
        }
        if self.dedup {
            all = once(all);
        }
        match self.balance {
            None => all,
            Some(balance) => balanced(all, balance),
        }
    }
}

/// The attempts with such a candidate, without their other candidates.
fn having(all: Vec<Trajectory>, takes: impl Fn(&Tried) -> bool) -> Vec<Trajectory> {
    let kept = all.into_iter().map(|mut one| {
        one.candidates.retain(&takes);
        one
    });
    kept.filter(|one| !one.candidates.is_empty()).collect()
}

/// Each source of a problem once. An attempt without a source of its own stays.
fn once(all: Vec<Trajectory>) -> Vec<Trajectory> {
    let mut seen = BTreeSet::new();
    let is_new = |one: &Trajectory| {
        let Some(source) = one.answer.proposal.as_ref().and_then(|p| p.source.as_ref()) else { return true };
        seen.insert((one.groups.problem.clone(), normalised(source, one.language)))
    };
    all.into_iter().filter(is_new).collect()
}

/// As many attempts of each level. Those whose level is unknown are a level of their own.
fn balanced(all: Vec<Trajectory>, balance: Balance) -> Vec<Trajectory> {
    // By level: the positions of the attempts at each problem.
    let mut levels: BTreeMap<Option<u8>, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        levels.entry(one.level).or_default().entry(&one.groups.problem).or_default().push(at);
    }
    let sizes = levels.values().map(|problems| problems.values().map(Vec::len).sum::<usize>());
    let most = match balance {
        Balance::Fewest => sizes.min().unwrap_or(0),
        Balance::AtMost(most) => most,
    };
    let mut taken = BTreeSet::new();
    for problems in levels.values() {
        let turns = (0..).map(|nth| problems.values().filter_map(|of| of.get(nth)).collect::<Vec<_>>());
        taken.extend(turns.take_while(|turn| !turn.is_empty()).flatten().take(most).copied());
    }
    let chosen = all.into_iter().enumerate().filter(|(at, _)| taken.contains(at));
    chosen.map(|(_, one)| one).collect()
}
