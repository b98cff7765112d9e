//! Search over tunables: which variants of a space are worth compiling, verifying and timing next. Pure functions of what is known: the same seed and the same
//! results give the same path. So a search that was interrupted, or that is repeated over recorded results without a device, follows the same path.
//!
//! | file | does |
//! |---|---|
//! | `draws` | random numbers that follow from a seed |
//! | `space` | points, their neighbours, and the shapes they serve |
//! | `propose` | the next variants: at random, or by one of the next two |
//! | `annealing` | chains that walk along the tunables' lists |
//! | `forest`, `model` | regression trees over the times, and the variants that they predict to be fastest |
//! | `facts` | reasons against a variant from its machine code only |
//! | `walk` | the order of events: compile, drop by facts, sample, drop the slow, time, propose, end |
//!
//! Times are compared as logarithms. A variant that does not work counts as half as fast as the slowest that does ([`NOT_WORKING`]), so that strategies turn
//! away from its neighborhood without a wall in the numbers.

mod annealing;
mod draws;
mod facts;
mod forest;
mod model;
mod propose;
mod space;
mod walk;

#[cfg(test)]
mod tests;

pub use propose::sample;
pub use walk::{WaveResults, walk};

/// The amount added to the logarithm of the slowest time for a variant that does not work: the logarithm of two.
pub const NOT_WORKING: f64 = std::f64::consts::LN_2;
