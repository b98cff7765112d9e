//! What happens while agents are asked, and why there is no answer. Knows messages; prints nothing.

use std::io;

use kforge_types::record::answer::Role;

/// A message for whoever waits.
#[derive(Debug, Clone, PartialEq)]
pub enum AskEvent {
    /// A request starts.
    Asking {
        /// In which role.
        role: Role,
        /// The agent's name.
        agent: String,
    },
    /// An earlier recorded reply is used; no request is made.
    Recalled {
        /// In which role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Whether the prompt would read differently today.
        differs: bool,
    },
    /// No request may start yet: for the agent's rate, or because it asks for a pause.
    Waiting {
        /// The agent's name.
        agent: String,
        /// For this many seconds.
        for_s: f64,
    },
    /// A request found no good answer and is repeated.
    Retrying {
        /// In which role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Why.
        why: String,
        /// In this many seconds; 0 after a reply that was no good.
        in_s: f64,
    },
    /// A reply came.
    Answered {
        /// In which role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// Tokens of prompt and reply, where the agent says.
        tokens: Option<(u64, u64)>,
        /// What they cost, where prices are stated.
        money: Option<f64>,
        /// Milliseconds from request to reply.
        took_ms: u64,
    },
    /// No reply was usable, and no further one is requested.
    Refused {
        /// In which role.
        role: Role,
        /// The agent's name.
        agent: String,
        /// What was wrong with the last one.
        why: String,
    },
}

/// Why there is no answer. What was answered before is recorded, and is not asked for again.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The environment variable that holds the key is not set, or holds what cannot be sent.
    #[error("agent `{agent}` needs a key: {why}")]
    NoKey {
        /// The agent's name.
        agent: String,
        /// What about the variable, by its name.
        why: String,
    },
    /// The network is not to be used.
    #[error(
        "agent `{0}` is an endpoint and kforge is offline: run kforge without `--offline` and `net.offline` to ask it"
    )]
    Offline(String),
    /// The budget is spent.
    #[error("agent `{agent}` has spent its budget of this run: {what}")]
    Spent {
        /// The agent's name.
        agent: String,
        /// Which part of it, and how much of it is spent.
        what: String,
    },
    /// It did not answer, even after repeated requests.
    #[error("agent `{agent}` does not answer: {why}")]
    Unreachable {
        /// The agent's name.
        agent: String,
        /// What happened the last time.
        why: String,
    },
    /// It answered that it will not, or cannot be started.
    #[error("agent `{agent}` cannot be asked: {why}")]
    Denied {
        /// The agent's name.
        agent: String,
        /// What it said.
        why: String,
    },
    /// The user interrupted.
    #[error("interrupted while an agent was asked")]
    Interrupted,
    /// What was answered could not be recorded, or records not be read.
    #[error("cannot record what agents answer: {0}")]
    Store(#[from] io::Error),
}
