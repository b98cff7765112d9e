//! What kforge computes: expected outputs ([`reference`]), and comparisons, statistics and decisions on observations ([`measure`]).
//! Pure: no files, clock, environment or processes.
//!
//! The rooms are declared in their order of import: a room uses only rooms above it.

pub mod reference;
pub mod measure;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
