//! `kforge locate-project`: the path of the current manifest.

use serde_json::json;

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::{LocateArgs, LocateFormat};
use crate::cli::exit::Exit;
use kforge_ops::locate;

/// Runs the command.
pub fn run(context: &Context, args: &LocateArgs) -> CommandResult {
    let path = match args.workspace {
        true => locate::root_manifest(&context.session)?,
        false => locate::manifest(&context.session)?,
    };
    match args.message_format {
        LocateFormat::Plain => context.console.out(&format!("{}\n", path.display())),
        LocateFormat::Json => context.console.out(&format!("{}\n", json!({"root": path.display().to_string()}))),
    }
    Ok(Exit::Done)
}
