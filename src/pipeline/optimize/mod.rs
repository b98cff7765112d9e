//! What writes kernels and makes them faster: templates that write a kernel from its operator, the registry of methods, what a round of the optimization loop
//! tries, agents, and which earlier candidates they see. Knows what each method is for, when it applies and what shows it, what each template serves, and what
//! an agent gets and must answer; does not plan, run or measure anything. Pure, except for [`agents::ask`].

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
