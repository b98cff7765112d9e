//! What a round of the optimisation loop tries: the deciding half of section 9 of docs/design.md. Knows gaps, the registry and the results of methods; plans, runs and asks nothing.
//!
//! | part | does |
//! |---|---|
//! | [`budget`] | gaps to three slots over the axes |
//! | [`choose`] | slots to methods, each with its reason, and those passed over with theirs |
//! | [`decide`] | one round: what is settled, the budget, the methods, or why there is nothing more to do |
//! | [`branches`] | methods to variants of a declared space: what the agent `rules` answers with |

pub mod branches;
pub mod budget;
pub mod choose;
pub mod decide;
#[cfg(test)]
mod tests;

pub use branches::{Branches, branches};
pub use budget::slots;
pub use decide::decide;
