//! The command line: one thin file per command, which parses arguments, calls an operation and renders its result. Only this room prints and knows exit codes.

pub mod args;
mod agent_progress;
mod screen;
mod bar;
mod browser;
pub mod commands;
mod complete;
pub mod console;
mod context;
pub mod dispatch;
mod errors;
mod events;
pub mod exit;
mod failures;
mod rounds;
mod watch;
mod words;

pub use args::Cli;
pub use context::Context;
pub use dispatch::run;
