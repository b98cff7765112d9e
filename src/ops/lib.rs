//! What kforge's commands do, for programs: one module per operation, a function from a request to a result. An operation prints nothing, knows no exit code
//! and does not read the environment: a [`Session`] holds everything that it works with. It reports to an [`Observer`] while it runs, and returns an [`Error`]
//! whose variant states what happened.
//!
//! A program that builds kernels opens a [`Session`], names an installed kforge as its [`Worker`], and calls [`build::build`]. See `examples/embed.rs`.

pub mod accept;
pub mod affected;
pub mod bindings;
pub mod bots;
pub mod build;
pub mod cache;
pub mod candidates;
pub mod ci;
pub mod clean;
pub mod compare;
pub mod contradictions;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod elsewhere;
pub mod error;
pub mod event;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod history;
pub mod implementation;
pub mod import;
pub mod install;
pub mod locate;
pub mod metadata;
pub mod names;
pub mod new;
pub mod optimize;
pub mod package;
mod pen;
pub mod publish;
pub mod published;
pub mod rebuild;
pub mod remote_server;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod session;
pub mod toolchain;
pub mod tree;
pub mod update;
pub mod verify_artifact;
pub mod worker_key;

pub use error::Error;
pub use event::{Event, Observer};
pub use pen::Passphrase;
pub use session::{Options, Session, Worker};
