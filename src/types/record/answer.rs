//! What an agent was asked and what it answered: the record with which a build replays a round without asking again. Knows formats; asks no agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::TuneValue;
use kforge_foundation::base::Digest;

/// The version of the form of [`Answer`]. Another version is not read.
pub const ANSWER_FORMAT: u32 = 1;

/// In which role an agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Says what is wrong with a candidate, or what limits a champion.
    #[serde(rename = "judge")]
    Advisor,
    /// Writes candidates.
    Coder,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Advisor => "judge",
            Role::Coder => "coder",
        }
    }
}

/// What was asked for: what a recorded answer is an answer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Question {
    /// The digest of the operator's contract under its types, and of the architecture.
    pub contract: Digest,
    /// The source that the candidates descend from; none where there is none yet.
    pub parent: Option<Digest>,
    /// The methods to try, in order.
    pub methods: Vec<String>,
    /// The round, from 1.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// Whose answer it is: `rules`, `http https://host/v1 model`, `command ./agent.py`.
    pub agent: String,
}

/// What an advisor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Of a champion: what holds it back, one method, and how.
    #[serde(rename_all = "snake_case")]
    Diagnosis {
        /// What holds it back.
        bottleneck: String,
        /// The one method to try first.
        method: String,
        /// How.
        plan: String,
    },
    /// Of candidates that are all wrong: what, why, and the smallest fix.
    #[serde(rename_all = "snake_case")]
    Correction {
        /// What is wrong.
        critical_issue: String,
        /// Why it matters.
        why_it_matters: String,
        /// The smallest fix.
        minimal_fix: String,
    },
}

/// What a coder proposes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Proposal {
    /// The source; none for other variants of the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What goes with the source, in the form of a template's `template.toml`: launches, tunables, methods with their switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<String>,
    /// The tunables of each variant to try, in order of preference; those it does not name have their first value.
    pub branches: Vec<BTreeMap<String, TuneValue>>,
    /// What the coder says of it, for those who come after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// One request and its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Exchange {
    /// The role asked.
    pub role: Role,
    /// The agent asked, as in [`Question::agent`].
    pub agent: String,
    /// The prompt, whole: what to be, and what to do.
    pub prompt: Prompt,
    /// The reply, whole.
    pub reply: String,
    /// Why the reply was no good and asked for again, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Tokens of prompt and reply, where the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u64, u64)>,
    /// What they cost, where prices are stated and tokens known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
    /// Milliseconds from request to reply.
    pub took_ms: u64,
}

/// What is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prompt {
    /// What the agent is to be.
    pub system: String,
    /// What it is to do.
    pub user: String,
}

/// One attempt at a round as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// [`ANSWER_FORMAT`].
    pub format: u32,
    /// What was asked for.
    pub question: Question,
    /// When it was answered, as RFC 3339 in UTC.
    pub answered_at: String,
    /// What the advisor said, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// What the coder proposed; none where no reply was good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// Why there is no proposal, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Every request and reply, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}
