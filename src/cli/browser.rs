//! Opens a file in a browser: the program of `$BROWSER`, or the desktop's opener. Knows how openers are named; does not know what is in the file.

use std::path::Path;
use std::process::{Command, Stdio};

use super::commands::CommandResult;
use crate::cli::Context;
use crate::cli::exit::Exit;

/// The variable that names a browser, as other tools read it: a program with its arguments, or several separated by colons; kforge takes the first.
const VARIABLE: &str = "BROWSER";

/// The opener of a desktop.
const OPENER: &str = "xdg-open";

/// Opens the file and does not wait for the browser to end.
pub(super) fn open(context: &Context, path: &Path) -> CommandResult {
    let named = context.session.environment.get(VARIABLE);
    let words: Vec<&str> =
        named.map_or(vec![OPENER], |all| all.split(':').next().unwrap_or(all).split_whitespace().collect());
    let [program, arguments @ ..] = words.as_slice() else { return Err(Exit::Usage.into()) };
    let mut command = Command::new(program);
    command.args(arguments).arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(_) => Ok(Exit::Done),
        Err(error) => {
            let help = if named.is_some() { "" } else { "; set $BROWSER to the program that shows it" };
            Err(context.fail(&format!("cannot start `{program}`: {error}{help}")).into())
        }
    }
}
