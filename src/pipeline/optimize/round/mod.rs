//! What a round of the optimization loop tries: the deciding half of section 9 of docs/design.md. Knows gaps, the registry and the results of methods; plans,
//! runs and asks nothing.
//!
//! | part | does |
//! |---|---|
//! | [`budget`] | from gaps to three slots over the axes |
//! | [`choose`] | from slots to methods, each with its reason, and the methods passed over with theirs |
//! | [`decide`] | one round: what is settled, the budget, the methods, or why the rounds end |
//! | [`branches`] | from methods to variants of a declared space: the answer of the agent `rules` |

pub mod branches;
pub mod budget;
pub mod choose;
pub mod decide;
#[cfg(test)]
mod tests;

pub use branches::{Branches, branches};
pub use budget::slots;
pub use decide::decide;
