//! Events while agents are asked, and why there is no answer. Knows messages; prints nothing.

use std::io;

use super::permitted::NotSent;
use kforge_types::record::answer::Role;

/// A progress message.
#[derive(Debug, Clone, PartialEq)]
pub enum AskEvent {
    /// A request starts.
    Asking {
        /// The agent's role.
        role: Role,
        /// The agent's name.
        agent: String,
    },
    /// An earlier recorded reply is used. No request is made.
    Recalled {
        /// The agent's role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Whether the prompt would be different today.
        differs: bool,
    },
    /// No request may start yet, because of the agent's rate or because the agent asked for a pause.
    Waiting {
        /// The agent's name.
        agent: String,
        /// The wait in seconds.
        for_s: f64,
    },
    /// A request brought no usable answer and is repeated.
    Retrying {
        /// The agent's role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Why.
        why: String,
        /// The wait before the repetition in seconds; 0 after an unusable reply.
        in_s: f64,
    },
    /// A reply came.
    Answered {
        /// The agent's role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Tokens of prompt and reply, if the agent reports them.
        tokens: Option<(u64, u64)>,
        /// Their cost, if prices are declared.
        money: Option<f64>,
        /// Milliseconds from request to reply.
        took_ms: u64,
    },
    /// No reply was usable, and no further one is requested.
    Refused {
        /// The agent's role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// What was wrong with the last reply.
        why: String,
    },
}

/// Why there is no answer. Earlier replies are recorded and are not requested again.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The environment variable that holds the key is not set, or its value cannot be sent.
    #[error("agent `{agent}` needs a key: {why}")]
    NoKey {
        /// The agent's name.
        agent: String,
        /// What is wrong with the variable, which is named.
        why: String,
    },
    /// The key may not be sent to the endpoint.
    #[error("agent `{agent}` gets no key: {why}")]
    KeyRefused {
        /// The agent's name.
        agent: String,
        /// The reason.
        why: NotSent,
    },
    /// kforge is offline.
    #[error(
        "agent `{0}` is an endpoint and kforge is offline: run kforge without `--offline` and `net.offline` to ask it"
    )]
    Offline(String),
    /// The budget is spent.
    #[error("agent `{agent}` has spent its budget of this run: {what}")]
    Spent {
        /// The agent's name.
        agent: String,
        /// Which part of the budget is spent, and how much of it.
        what: String,
    },
    /// The agent did not answer, even after repeated requests.
    #[error("agent `{agent}` does not answer: {why}")]
    Unreachable {
        /// The agent's name.
        agent: String,
        /// What happened the last time.
        why: String,
    },
    /// The agent refused to answer, or cannot be started.
    #[error("agent `{agent}` cannot be asked: {why}")]
    Denied {
        /// The agent's name.
        agent: String,
        /// The agent's message.
        why: String,
    },
    /// The user interrupted.
    #[error("interrupted while an agent was asked")]
    Interrupted,
    /// An answer could not be recorded, or the records could not be read.
    #[error("cannot record what agents answer: {0}")]
    Store(#[from] io::Error),
}
