//! The command line: one thin file a command; the only room that prints.

pub mod args;
pub mod commands;
pub mod console;
pub mod dispatch;
pub mod exit;
pub mod session;

pub use args::Cli;
pub use dispatch::run;
