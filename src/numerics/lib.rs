//! What kforge computes: expected outputs ([`reference`]), and comparisons, statistics and decisions on what was observed ([`measure`]).
//! Pure: no files, clock, environment or processes.
//!
//! The rooms stand in their order of import: a room uses only rooms above its own.

pub mod reference;
pub mod measure;

/// What of this package's code does steps: name, digest and size of each of its parts, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
