//! What a search over tunables reads and keeps: the space, the policy, the trail of variants visited. Values only; what is done next is decided in
//! `kforge_numerics::measure::search`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::TuneValue;
use crate::model::limits::Limits;
use crate::model::search::{Budget, Strategy};

/// The space of a kernel on a target: input `space` of every search step of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchSpace {
    /// Each tunable's values in declared order.
    pub tunables: Vec<Vec<TuneValue>>,
    /// Each variant, in declared order: for each tunable the position of its value.
    pub points: Vec<Vec<u32>>,
    /// Sets of shapes, by position in [`SearchParams::shapes`].
    pub domains: Vec<Vec<u32>>,
    /// For each variant the set of shapes that it serves.
    pub serves: Vec<u32>,
}

/// A launch of a variant as far as limits of the architecture are concerned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Block {
    /// The entry.
    pub entry: String,
    /// Threads of a block.
    pub threads: u64,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u64,
}

/// search. Inputs: `space`, a [`SearchSpace`]; `trail`, the [`Trail`] that the search step before gave, absent for the first; of what that step asked for,
/// `inspection:V` of variant V, `judgement:V:S` and `few:V:S` (a bench of few samples) at shape S, and `bench:V:S`, absent where there is none.
/// Outputs: `trail`, a [`Trail`]; `search`, a [`Searched`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchParams {
    /// Which variants are visited.
    pub strategy: Strategy,
    /// What random choices follow from.
    pub seed: u64,
    /// When it ends.
    pub budget: Budget,
    /// Variants that are compiled side by side.
    pub batch: u32,
    /// Times the best at which a variant is dropped after few samples (1.3: thirty per cent slower).
    pub within: f64,
    /// What the architecture allows; none where that is not known.
    pub limits: Option<Limits>,
    /// The class of each shape, as for select.
    pub shapes: Vec<String>,
    /// Which shapes are benched, by position.
    pub bench: Vec<u32>,
    /// Whether hot times count rather than cold ones.
    pub hot: bool,
    /// Whether anything is timed; where nothing is, a search has nothing to go by and its first step ends it.
    pub timed: bool,
    /// What the variants launch whose inspections are read.
    pub launches: BTreeMap<u32, Vec<Block>>,
}

/// How far a visited variant has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Being compiled and inspected.
    Compiling,
    /// Being verified and timed with few samples.
    Sampling,
    /// Being timed in full.
    Timing,
    /// Correct, and timed at every bench shape.
    Timed,
    /// Correct, and dropped after few samples because it was too slow.
    Slow,
    /// It gave no binary.
    Unbuilt,
    /// Dropped because of its machine code; why.
    Discarded(String),
    /// Its outputs are wrong.
    Wrong,
    /// It is not known to be correct, or gave no time: a time-out, a crash, or all samples dropped.
    Failed,
    /// Nothing of it was observed: there is no device here, and no evidence.
    Unrecorded,
}

/// A variant that was visited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Its position in declared order.
    pub variant: u32,
    /// The chain of annealing that proposed it.
    pub chain: u32,
    /// Share of the budget that was spent when it was proposed.
    pub spent: f64,
    /// How far it has come.
    pub stage: Stage,
    /// Bytes that a thread spills, stores and loads together, of its worst entry; none where that is not known.
    pub spills: Option<u64>,
    /// Medians of few samples in nanoseconds, by shape.
    pub few: BTreeMap<u32, f64>,
    /// Medians of full benches in nanoseconds, by shape.
    pub full: BTreeMap<u32, f64>,
    /// Seconds that its timings held the device.
    pub took_s: f64,
}

/// What a search knows: every variant visited, in the order of visits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trail {
    /// The visits.
    pub visits: Vec<Visit>,
    /// How often variants were proposed: classes of shapes take turns.
    pub turns: u32,
}

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// As many variants as the budget allows were visited.
    Variants,
    /// Its timings took as many seconds as the budget allows.
    Seconds,
    /// Every variant was visited.
    Exhausted,
    /// The measurements that it needs are not recorded, and there is no device here.
    Unrecorded,
    /// The target does not time, or nothing is benched: a seeded sample stands for the space.
    Untimed,
}

/// The best variant of a class so far, and which visit found it, counted from one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BestVisit {
    /// The class, by its key in select's parameters; in reports its name.
    pub class: String,
    /// Its position in declared order.
    pub variant: u32,
    /// The number of the visit.
    pub visit: u32,
}

/// The result of a search so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tally {
    /// Which variants were visited.
    pub strategy: Strategy,
    /// How many.
    pub visited: u32,
    /// Of how many.
    pub of: u32,
    /// Dropped by what the machine code says, or not built.
    pub on_facts: u32,
    /// Dropped after few samples: slow, wrong, or without a time.
    pub on_samples: u32,
    /// Seconds that its timings held the device, as they were counted when they were taken.
    pub took_s: f64,
    /// The best of each class that is timed.
    pub best: Vec<BestVisit>,
    /// Why it is over; none while it is not.
    pub over: Option<Over>,
}

/// What a search step decides: what is to be known next, or that it is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// Variants to compile and inspect.
    pub compile: Vec<u32>,
    /// Variants to verify and to time with few samples.
    pub sample: Vec<u32>,
    /// Variants to time in full.
    pub time: Vec<u32>,
    /// Variants dropped by this step, and why.
    pub dropped: Vec<(u32, String)>,
    /// The result so far.
    pub tally: Tally,
}

impl Over {
    /// The same in words.
    pub fn why(self) -> &'static str {
        match self {
            Over::Variants => "the budget of variants is spent",
            Over::Seconds => "the budget of seconds is spent",
            Over::Exhausted => "every variant was visited",
            Over::Unrecorded => "the measurements that it needs next are not recorded, and there is no device here",
            Over::Untimed => "this target is not timed",
        }
    }
}
