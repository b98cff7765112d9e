//! What a search over tunables reads and keeps: the space, the policy, the trail of visited variants. Values only; `kforge_numerics::measure::search` decides
//! what to do next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::params::{is_one, one};
use crate::model::TuneValue;
use crate::model::limits::Limits;
use crate::model::search::{Budget, Strategy};

/// The space of a kernel on a target: input `space` of each of its search steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchSpace {
    /// The values of each tunable in declared order.
    pub tunables: Vec<Vec<TuneValue>>,
    /// Each variant in declared order, as the position of its value in the list of each tunable.
    pub points: Vec<Vec<u32>>,
    /// Sets of shapes, by position in [`SearchParams::shapes`].
    pub domains: Vec<Vec<u32>>,
    /// For each variant, the set of shapes that it serves, by position in `domains`.
    pub serves: Vec<u32>,
}

/// The properties of a variant's launch to which limits of the architecture apply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Block {
    /// The entry.
    pub entry: String,
    /// Threads of a block.
    pub threads: u64,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u64,
}

/// search. Inputs: `space`, a [`SearchSpace`]; `trail`, the [`Trail`] of the previous search step, absent for the first one; for what that step requested:
/// `inspection:V` of variant V, `judgement:V:S` and `few:V:S` (a bench with few samples) at shape S, and `bench:V:S`, absent if there is none. Outputs:
/// `trail`, a [`Trail`]; `search`, a [`Searched`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchParams {
    /// Which variants are visited.
    pub strategy: Strategy,
    /// The seed of random choices.
    pub seed: u64,
    /// When the search ends.
    pub budget: Budget,
    /// How many variants are compiled at once.
    pub batch: u32,
    /// A variant is dropped after few samples if its time exceeds the best time by this factor (1.3: thirty per cent slower).
    pub within: f64,
    /// The limits of the architecture; none if they are not known.
    pub limits: Option<Limits>,
    /// The class of each shape, as for select.
    pub shapes: Vec<String>,
    /// Which shapes are benched, by position.
    pub bench: Vec<u32>,
    /// The most classes that there may be once classes have split, as for select.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub most_classes: u32,
    /// Whether hot times count rather than cold times.
    pub hot: bool,
    /// Whether anything is timed. Without timings a search has no criterion, and its first step ends it.
    pub timed: bool,
    /// Variants that are visited first, in order. They say nothing of a variant: each is compiled, verified and timed like the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<u32>,
    /// The launches of the variants whose inspections are read.
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
    /// It produced no binary.
    Unbuilt,
    /// Dropped because of its machine code; the text says why.
    Discarded(String),
    /// Its outputs are wrong.
    Wrong,
    /// Not known to be correct, or without a time: a time-out, a crash, or all samples dropped.
    Failed,
    /// Not observed, because there is no device here and no evidence.
    Unrecorded,
}

/// A variant that was visited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Its position in declared order.
    pub variant: u32,
    /// The annealing chain that proposed it.
    pub chain: u32,
    /// The share of the budget that was spent when the variant was proposed.
    pub spent: f64,
    /// How far it has come.
    pub stage: Stage,
    /// Bytes that a thread spills, stores and loads together, in the entry that spills most. None if unknown.
    pub spills: Option<u64>,
    /// Medians of few samples in nanoseconds, by shape.
    pub few: BTreeMap<u32, f64>,
    /// Medians of full benches in nanoseconds, by shape.
    pub full: BTreeMap<u32, f64>,
    /// Seconds for which its timings held the device.
    pub took_s: f64,
}

/// What a search knows: all visited variants, in the order of visits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trail {
    /// The visits.
    pub visits: Vec<Visit>,
    /// How many times variants were proposed. Classes of shapes take turns.
    pub turns: u32,
}

/// Why a search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The number of variants that the budget allows was visited.
    Variants,
    /// Its timings took as many seconds as the budget allows.
    Seconds,
    /// Every variant was visited.
    Exhausted,
    /// The measurements that it needs are not recorded, and there is no device here.
    Unrecorded,
    /// The target has no timings, or nothing is benched. A seeded sample represents the space.
    Untimed,
}

/// The best variant of a class so far, and the visit that found it, counted from one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BestVisit {
    /// The class: its key in the parameters of select, or its name in reports.
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
    /// How many variants were visited.
    pub visited: u32,
    /// How many variants there are.
    pub of: u32,
    /// How many were dropped because of their machine code, or were not built.
    pub on_facts: u32,
    /// How many were dropped after few samples: slow, wrong, or without a time.
    pub on_samples: u32,
    /// Seconds for which its timings held the device, as counted when they were measured.
    pub took_s: f64,
    /// The best variant of each class that is timed.
    pub best: Vec<BestVisit>,
    /// Why the search has ended; none while it has not.
    pub over: Option<Over>,
}

/// What a search step decides: what must be measured next, or that the search has ended.
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
    /// The reason as text.
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
