//! The `kforge` program: runs one command and maps its outcome to an exit code. Knows nothing of what commands do.

use std::process::ExitCode;

fn main() -> ExitCode {
    kforge::cli::run()
}
