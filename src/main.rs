//! The `kforge` program: runs one command and maps its result to an exit code. Does not know what commands do.

use std::process::ExitCode;

fn main() -> ExitCode {
    kforge::cli::run()
}
