//! Agents that write kernels: what they get to see, what they must answer, and asking them. Decides nothing before or after that.
//!
//! | part | knows |
//! |---|---|
//! | [`briefing`] | everything that an agent may see |
//! | [`metrics`] | which few metrics matter |
//! | [`prompt`] | the text, from `templates/prompts/` |
//! | [`reply`] | the form of a reply: schemas, and what makes a reply unusable |
//! | [`ask`] | transports, clock, budgets, records: the part with side effects |

pub mod ask;
pub mod briefing;
pub mod metrics;
pub mod prompt;
pub mod reply;

pub use briefing::Briefing;
pub use reply::{Expected, ReplyError, parse_reply};
