//! Built-in operators: f64 oracle, cost, input generators and null candidates. Pure: knows no files or processes, no kernels and no tolerances.
//!
//! [`signature`] returns a built-in's name and slots, [`check`] checks whether a problem fits it, [`generate`] generates inputs, [`oracle`] computes the
//! expectation, [`nulls`] the answers that must not pass, [`cost`] the work, and [`float`] converts to the bytes of every dtype.

mod bind;
mod builtin;
mod check;
pub mod cost;
mod error;
mod extreme;
mod formula;
pub mod float;
pub mod fresh;
mod gemm;
pub mod generate;
pub mod nulls;
mod ops;
pub mod oracle;
pub mod philox;
mod registry;
mod rows;
#[cfg(test)]
mod tests;
mod values;

pub use bind::Bound;
pub use builtin::{Builtin, Kind, Setting, SettingKind, Slot, Use};
pub use check::check;
pub use error::{Error, ExpressionError, ExpressionFault, Factor, Misfits, NotExtreme, Range};
pub use extreme::{Extreme, extreme};
pub use formula::{Element, Formula, formula};
pub use gemm::{Matrix, Product, ProductBackend, product};
pub use oracle::has_scale;
pub use registry::{builtins, names, signature};
pub use values::{Values, logical_len, logical_shape, per_element};
