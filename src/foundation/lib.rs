//! The basis of every package of kforge. Does not know kernels.
//!
//! The rooms are listed in their order of import: a room uses only rooms above its own.

pub mod base;
pub mod process;
pub mod config;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
