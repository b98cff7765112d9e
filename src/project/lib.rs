//! What is on the user's machine: sources as text ([`source`]), workspaces and their lockfiles ([`workspace`]), compilers and interpreters ([`toolchain`]).
//!
//! The rooms are listed in their order of import: a room uses only rooms above its own.

pub mod source;
pub mod workspace;
pub mod toolchain;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
