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
    /// Whether the champion uses it and can turn it off.
    pub on: bool,
    /// Whether the coder of the next candidates can add it. `rules` can only add what the kernel declares and what an untried variant has.
    pub possible: bool,
}

/// round. Inputs, each absent if there is none: `roofline`, a [`super::profile::Roofline`] of the current champion; `attribution:ID`, an [`Attribution`] of
/// each method that the champion uses; `before`, the [`Decision`] of the previous round. Output `decision`: a [`Decision`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundParams {
    /// Its number, from 1.
    pub round: u32,
    /// The architecture, `sm_90a`, or `cpu`.
    pub arch: String,
    /// Whether there is no kernel yet to which a method could be added. A correct kernel comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_nothing: bool,
    /// Which facts hold for operator and kernel, by the names of `optimize::methods::Fact`. A fact that is absent is unknown.
    pub facts: BTreeMap<String, bool>,
    /// All methods, by id.
    pub methods: Vec<OpenMethod>,
    /// The methods that each earlier round tried, from round 1 on.
    pub tried: Vec<Vec<String>>,
}

/// The number of slots by axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slots {
    /// Slots for methods of the compute axis.
    pub compute: u32,
    /// Slots for methods of the memory axis.
    pub memory: u32,
    /// Slots for methods of the latency axis.
    pub latency: u32,
}

impl Slots {
    /// The slots of an axis.
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
    /// How strongly metrics support it, 0 to 1. None if the metrics cannot tell.
    pub strength: Option<f64>,
    /// The reason, in one line.
    pub because: String,
}

/// A method that came before a chosen one and was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PassedMethod {
    /// Its id.
    pub id: String,
    /// Its axis.
    pub axis: Axis,
    /// The reason, in one line.
    pub because: String,
}

/// The conclusion about a method so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettledMethod {
    /// The round whose champion showed it; 0 for the kernel as it was declared.
    pub round: u32,
    /// The conclusion.
    pub fate: Fate,
    /// The attribution, with the reason and the saving.
    pub attribution: Attribution,
}

/// What a round decides before an agent is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// The round.
    pub round: u32,
    /// The gaps on which the decision is based.
    pub gaps: Gaps,
    /// Whether a gap was unknown, so that every axis got a slot.
    pub degraded: bool,
    /// The slots.
    pub budget: Slots,
    /// The methods to try, in the order of axes and priorities.
    pub methods: Vec<ChosenMethod>,
    /// The methods that were passed over.
    pub passed: Vec<PassedMethod>,
    /// The conclusion about every method that a champion has used so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: BTreeMap<String, SettledMethod>,
    /// Why there is nothing more to do: near the peak, or no method left. None if there is more to do.
    pub stop: Option<String>,
}
