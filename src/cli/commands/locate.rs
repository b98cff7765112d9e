//! `kforge locate-project`: the path of the manifest at hand.

use serde_json::json;

use super::Ran;
use crate::cli::Context;
use crate::cli::args::{LocateArgs, LocateFormat};
use crate::cli::exit::Exit;
use kforge_project::workspace::find::{MANIFEST, tidy};

/// Runs the command.
pub fn run(context: &Context, args: &LocateArgs) -> Ran {
    let path = if args.workspace {
        context.session.workspace()?.root.join(MANIFEST)
    } else {
        tidy(&context.session.manifest()?)
    };
    match args.message_format {
        LocateFormat::Plain => context.console.out(&format!("{}\n", path.display())),
        LocateFormat::Json => context.console.out(&format!("{}\n", json!({"root": path.display().to_string()}))),
    }
    Ok(Exit::Done)
}
