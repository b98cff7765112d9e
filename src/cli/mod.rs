//! The command line: one thin file a command; the only room that prints.

mod args;
mod commands;
mod console;
mod dispatch;
mod exit;
mod session;

pub use args::Cli;
pub use dispatch::run;
