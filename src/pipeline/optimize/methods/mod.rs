//! The registry of methods: named optimisations with their axis, priority, least architecture, trigger, preconditions, signature and advice.
//!
//! | part | is |
//! |---|---|
//! | `compute.toml`, `memory.toml`, `latency.toml` | the methods themselves, as data |
//! | [`registry`] | all methods, typed and checked |
//! | [`trigger`] | how strongly metrics support a method, or that this is unknown |
//! | [`fact`] | what must hold of operator, kernel and machine code before a method makes sense |
//! | [`feature`] | what hardware a method needs, and which architectures have it |
//! | [`explain`] | a method as text |
//!
//! Signatures were read from disassembly, not from documentation: PTX names such as `cp.async` or `setmaxnreg` do not occur in machine code. Each signature is
//! tested on every architecture that the toolchain compiles for, by kernels with and without the method (`tests/toolchain_network/methods.rs`).

pub mod explain;
pub mod fact;
pub mod feature;
pub mod registry;
mod row;
#[cfg(test)]
mod tests;
pub mod trigger;

pub use explain::{explain, explain_in};
pub use fact::{Fact, Facts};
pub use feature::Feature;
pub use registry::{Entry, Fit, Registry, has_form, registry, signatures};
pub use trigger::{Strength, Trigger};
