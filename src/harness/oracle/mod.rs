//! Inputs and expected values of a trial: drawn and computed by a built-in operator, or made by functions of the package in Python, PyTorch or C++ in confined
//! processes of their own. Knows problems and trials; never loads or sees candidate code, and does not read tolerances, except as `nulls` states.

pub(crate) mod call;
mod cpp;
mod nulls;
pub mod python;
mod scratch;
mod shared;
mod source;
mod step;
pub mod stored;
pub(crate) mod torch;
mod torch_inputs;

pub use scratch::Scratch;
pub use shared::TrialValues;
pub use source::{Named, Source};
pub use step::run;
