//! What kforge's commands do, for programs: one file for each operation, a function from a request to a result. An operation prints nothing, knows no exit code
//! and reads no environment: a [`Session`] holds what it works with. It reports through an [`Observer`] while it runs, and returns an [`Error`] that says by its
//! variant what happened.
//!
//! A program that builds kernels opens a [`Session`], names an installed kforge as its [`Worker`], and calls [`build::build`]; `examples/embed.rs` shows it.

pub mod accept;
pub mod build;
pub mod cache;
pub mod candidates;
pub mod clean;
pub mod compare;
pub mod doctor;
pub mod edit;
pub mod error;
pub mod event;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod implementation;
pub mod locate;
pub mod metadata;
pub mod new;
pub mod optimize;
pub mod report;
pub mod run;
pub mod session;
pub mod toolchain;
pub mod tree;
pub mod update;

pub use error::Error;
pub use event::{Event, Observer};
pub use session::{Options, Session, Worker};
