//! Values without behaviour of their own: what `kernel.toml` declares ([`model`]), and what steps read, write and report ([`record`]).
//! Pure: no files, clock, environment or processes.
//!
//! The rooms are listed in their order of import: a room uses only rooms above its own.

pub mod model;
pub mod record;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
