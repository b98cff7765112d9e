//! What could make a kernel, and make it faster: templates that make one from its operator, the registry of methods, what a round of the optimisation loop tries,
//! agents, and which earlier candidates they are shown. Knows what each method is for, when it applies and what shows it, what each template serves, and what an agent is
//! told and must answer; does not plan, run or measure anything. Pure, but for [`agents::ask`].

pub mod agents;
pub mod contract;
pub mod exemplars;
pub mod holdout;
pub mod kind;
pub mod memory;
pub mod methods;
pub mod next;
pub mod round;
pub mod templates;
