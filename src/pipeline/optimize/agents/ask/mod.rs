//! Asks agents: the part of the room with side effects. Its neighbours decide what to ask and what a good answer is.
//!
//! | part | does |
//! |---|---|
//! | [`asking`] | from a briefing to an answer: advisor, coder, repetitions, records |
//! | [`command`] | asks a program |
//! | [`http`] | asks an endpoint |
//! | [`ledger`] | what was spent, and when each request may start |
//! | [`clock`] | time, and waiting that an interruption ends |
//! | [`key`] | keys, which nothing prints |
//! | [`event`] | what happens while an agent is asked, and why there is no answer |

pub mod asking;
pub mod clock;
mod command;
pub mod event;
mod http;
mod key;
mod ledger;

pub use asking::{Asking, Surroundings};
pub use clock::{Clock, SystemClock};
pub use event::{AskError, AskEvent};
pub use ledger::{Ledger, Spent};

/// What an agent gave back.
#[derive(Debug, Clone, PartialEq)]
struct RawReply {
    /// What it said.
    reply: String,
    /// Tokens of prompt and reply, where it says.
    tokens: Option<(u64, u64)>,
    /// Whether it stopped before the end.
    cut: bool,
}

impl RawReply {
    /// The text that replaces a reply that is too long to read.
    fn flood(bytes: u64) -> String {
        format!("[more than {} MiB, not kept]", bytes >> 20)
    }
}

/// Why an agent gave nothing back.
#[derive(Debug, Clone, PartialEq)]
enum Failure {
    /// It may go better next time.
    Again {
        /// Why.
        why: String,
        /// Seconds that the agent asks for a pause, where it says.
        after_s: Option<u64>,
        /// Whether it is the agent that has too much to do, so that its other requests had better wait, too.
        busy: bool,
    },
    /// A repetition would not help: the request or the agent is at fault.
    Never(String),
    /// The user interrupted.
    Interrupted,
}
