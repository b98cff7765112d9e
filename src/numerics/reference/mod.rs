//! Built-in operators: f64 oracle, cost, input generators and null candidates. Pure: knows neither files nor processes, no kernels and no tolerances.
//!
//! [`signature`] says what a built-in is called and takes, [`check`] whether a problem fits it, [`generate`] makes inputs, [`oracle`] the
//! expectation, [`nulls`] what must not pass for it, [`cost`] what it costs, [`float`] the bytes of every dtype.

mod bind;
mod builtin;
mod check;
pub mod cost;
mod error;
mod expr;
mod extreme;
mod formula;
pub mod float;
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
pub use formula::{Formula, formula};
pub use gemm::{Matrix, Product, ProductBackend, product};
pub use oracle::has_scale;
pub use registry::{builtins, names, signature};
pub use values::{Values, logical_len, logical_shape, per_element};
