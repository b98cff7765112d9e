//! What kforge decides: which steps there are ([`plan`]), what a round tries next ([`optimize`]), what pure steps conclude ([`step`]), what people read
//! ([`report`]), and what leaves or enters a workspace ([`release`]).
//!
//! The rooms are listed in their order of import: a room uses only rooms above its own.

pub mod plan;
pub mod optimize;
pub mod step;
pub mod report;
pub mod release;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
