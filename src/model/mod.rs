//! `kernel.toml` as typed values: the manifest, and what becomes of it when names are bound to numbers. Pure: knows no files, clock or environment.

pub mod bound;
pub mod dtype;
pub mod method;
pub mod tolerance;

pub use bound::{
    Arg, Buffer, Constant, Init, KernelLaunch, Launch, Param, Problem, Reference, Role, Scalar, StructField, Tensor,
};
pub use dtype::DType;
pub use tolerance::{Compare, Nonfinite, Tolerance};
