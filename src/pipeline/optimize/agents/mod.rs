//! Agents that write kernels: what they are told, what they must answer, and asking them. Decides nothing before or after that.
//!
//! | part | knows |
//! |---|---|
//! | [`briefing`] | all that an agent may be told |
//! | [`metrics`] | which few metrics matter |
//! | [`prompt`] | the text, from `templates/prompts/` |
//! | [`reply`] | what a reply must be: schemas, and what makes it unusable |
//! | [`ask`] | transports, clock, budgets, records: the part with side effects |

pub mod ask;
pub mod briefing;
pub mod metrics;
pub mod prompt;
pub mod reply;

pub use briefing::Briefing;
pub use reply::{Expected, ReplyError, parse_reply};
