//! Agents that write kernels: what they are told, what they must answer, and asking them. What is decided before and after is the driver's.
//!
//! | part | knows |
//! |---|---|
//! | [`briefing`] | all that an agent may be told |
//! | [`metrics`] | which few metrics matter |
//! | [`prompt`] | the words, from `templates/prompts/` |
//! | [`reply`] | what a reply must be: schemas, and what makes it no good |
//! | [`ask`] | transports, clock, budgets, records: the half that touches the world |

pub mod ask;
pub mod briefing;
pub mod metrics;
pub mod prompt;
pub mod reply;

pub use briefing::Briefing;
pub use reply::{Expected, ReplyError, parse_reply};
