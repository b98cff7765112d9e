//! What an agent was asked and what it answered: the record with which a build replays a round without asking again. Knows formats; does not ask agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::TuneValue;
use kforge_foundation::base::Digest;

/// The version of the format of [`Answer`]. Other versions are not read.
pub const ANSWER_FORMAT: u32 = 1;

/// The role in which an agent is asked.
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

/// The question that a recorded answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Question {
    /// The digest of the operator's contract under its types, and of the architecture.
    pub contract: Digest,
    /// The source from which the candidates descend; none if there is no source yet.
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
    /// About a champion: what limits it, one method, and how to apply the method.
    #[serde(rename_all = "snake_case")]
    Diagnosis {
        /// What limits the champion.
        bottleneck: String,
        /// The one method to try first.
        method: String,
        /// How to apply the method.
        plan: String,
    },
    /// About candidates that are all wrong: what is wrong, why it matters, and the smallest fix.
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
    /// The source. None if the proposal consists of other variants of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The declaration that belongs to the source, in the format of a template's `template.toml`: launches, tunables, methods with their switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<String>,
    /// The tunables of each variant to try, in order of preference. A tunable that is not named has its first value.
    pub branches: Vec<BTreeMap<String, TuneValue>>,
    /// What the coder notes about the proposal, for later rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// One request and its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Exchange {
    /// The role in which the agent was asked.
    pub role: Role,
    /// The agent asked, as in [`Question::agent`].
    pub agent: String,
    /// The whole prompt.
    pub prompt: Prompt,
    /// The whole reply.
    pub reply: String,
    /// Why the reply was unusable and was requested again, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Tokens of prompt and reply, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u64, u64)>,
    /// The cost of the tokens, if prices are stated and tokens are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
    /// Milliseconds from request to reply.
    pub took_ms: u64,
}

/// A prompt, as it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prompt {
    /// The role that the agent is to take.
    pub system: String,
    /// The task of the agent.
    pub user: String,
}

/// One attempt at a round as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// [`ANSWER_FORMAT`].
    pub format: u32,
    /// The question.
    pub question: Question,
    /// When it was answered, as RFC 3339 in UTC.
    pub answered_at: String,
    /// What the advisor said, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// What the coder proposed; none if no reply was usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// Why there is no proposal, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Every request and reply, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}
