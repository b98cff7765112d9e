//! A round of the optimisation loop: the inputs of its decision, and the decision. The answers of agents are in `answer`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::params::{Attribution, Fate};
use super::profile::Gaps;
use crate::model::Axis;

/// A method that a round might try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenMethod {
    /// Its id.
    pub id: String,
    /// The resource it relieves.
    pub axis: Axis,
    /// Whether the champion has it and a switch for it.
    pub on: bool,
    /// Whether whoever writes the next candidates can add it: `rules` only what the kernel declares and what a variant has that was not tried yet.
    pub possible: bool,
}

/// round. Inputs, each absent where there is none: `roofline`, a [`super::profile::Roofline`] of the champion so far; `attribution:ID` of each method it has,
/// an [`Attribution`]; `before`, the [`Decision`] of the round before. Output `decision`: a [`Decision`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundParams {
    /// Its number, from 1.
    pub round: u32,
    /// The architecture, `sm_90a`, or `cpu`.
    pub arch: String,
    /// Whether there is no kernel yet that a method could be added to: a correct one comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_nothing: bool,
    /// What holds of operator and kernel and what does not, by the names of `optimize::methods::Fact`; what is absent is unknown.
    pub facts: BTreeMap<String, bool>,
    /// The methods there are, by id.
    pub methods: Vec<OpenMethod>,
    /// The methods that each earlier round tried, from round 1 on.
    pub tried: Vec<Vec<String>>,
}

/// Slots by axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slots {
    /// For methods of compute.
    pub compute: u32,
    /// Of memory.
    pub memory: u32,
    /// Of latency.
    pub latency: u32,
}

impl Slots {
    /// Those of an axis.
    pub fn of(&self, axis: Axis) -> u32 {
        match axis {
            Axis::Compute => self.compute,
            Axis::Memory => self.memory,
            Axis::Latency => self.latency,
        }
    }
}

/// A method that a round is to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChosenMethod {
    /// Its id.
    pub id: String,
    /// Its axis.
    pub axis: Axis,
    /// How strongly metrics speak for it, 0 to 1; none where they cannot tell.
    pub strength: Option<f64>,
    /// The reason, in one line.
    pub because: String,
}

/// A method that stood before a chosen one and was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PassedMethod {
    /// Its id.
    pub id: String,
    /// Its axis.
    pub axis: Axis,
    /// The reason, in one line.
    pub because: String,
}

/// What became of a method so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettledMethod {
    /// The round whose champion showed it; 0 for the kernel as it was declared.
    pub round: u32,
    /// What became of it.
    pub fate: Fate,
    /// Why and how much, as attribute found.
    pub attribution: Attribution,
}

/// What a round decides before an agent is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// The round.
    pub round: u32,
    /// The gaps it is decided by.
    pub gaps: Gaps,
    /// Whether a gap was unknown, so that every axis got a slot.
    pub degraded: bool,
    /// The slots.
    pub budget: Slots,
    /// The methods to try, in the order of axes and priorities.
    pub methods: Vec<ChosenMethod>,
    /// Those passed over.
    pub passed: Vec<PassedMethod>,
    /// What became of every method that a champion had so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: BTreeMap<String, SettledMethod>,
    /// Why there is nothing more to do, if there is not: near the peak, or no method left.
    pub stop: Option<String>,
}
