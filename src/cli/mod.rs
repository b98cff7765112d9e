//! The command line: one thin file a command; the only room that prints.

/// Runs the command line of this process.
pub fn run() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
