//! Asks agents: the part of the room with side effects. Neighboring modules decide what to ask and which answers are usable.
//!
//! | part | does |
//! |---|---|
//! | [`asking`] | from a briefing to an answer: advisor, coder, repetitions, records |
//! | [`command`] | asks a program |
//! | [`http`] | asks an endpoint |
//! | [`ledger`] | what was spent, and when each request may start |
//! | [`clock`] | time, and waits that an interruption ends |
//! | [`key`] | keys, which are never printed |
//! | [`permitted`] | which keys may go to which hosts |
//! | [`event`] | what happens while an agent is asked, and why there is no answer |

pub mod asking;
pub mod clock;
mod command;
pub mod event;
mod http;
mod key;
mod ledger;
mod permitted;

pub use asking::{Asking, Surroundings};
pub use clock::{Clock, SystemClock};
pub use event::{AskError, AskEvent};
pub use http::NotProxy;
pub(crate) use http::{proxy, seconds};
pub use ledger::{Ledger, Spent};
pub(crate) use permitted::is_here;
pub use permitted::{NotSent, PermittedKeys, SETTING as PERMITTED_KEYS};

/// The raw reply of an agent.
#[derive(Debug, Clone, PartialEq)]
struct RawReply {
    /// Its text.
    reply: String,
    /// Tokens of prompt and reply, if the agent reports them.
    tokens: Option<(u64, u64)>,
    /// Whether the reply was cut off before its end.
    cut: bool,
}

impl RawReply {
    /// The text that replaces a reply that is too long to read.
    fn flood(bytes: u64) -> String {
        format!("[more than {} MiB, not kept]", bytes >> 20)
    }
}

/// Why an agent gave no reply.
#[derive(Debug, Clone, PartialEq)]
enum Failure {
    /// A later try may succeed.
    Again {
        /// Why.
        why: String,
        /// The pause in seconds that the agent asks for, if any.
        after_s: Option<u64>,
        /// Whether the agent is overloaded, so that its other requests should wait too.
        busy: bool,
    },
    /// A repetition would not help: the request or the agent is faulty.
    Never(String),
    /// The user interrupted.
    Interrupted,
}
