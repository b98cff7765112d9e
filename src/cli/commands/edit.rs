//! `kforge add` and `kforge remove`: edit the manifest of the current package.

use super::CommandResult;
use crate::cli::args::{AddArgs, Item, RemoveArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::edit;
use kforge_project::workspace::edit::ManifestEntry;
use kforge_project::workspace::find::MANIFEST;

/// Runs `kforge add`.
pub fn add(context: &Context, args: &AddArgs) -> CommandResult {
    let thing = thing(args.item);
    edit::add(&context.session, thing, &args.name, &args.fields)?;
    context.console.status("Added", &format!("{} `{}` to {MANIFEST}", thing.word(), args.name));
    Ok(Exit::Done)
}

/// Runs `kforge remove`.
pub fn remove(context: &Context, args: &RemoveArgs) -> CommandResult {
    let thing = thing(args.item);
    edit::remove(&context.session, thing, &args.name)?;
    context.console.status("Removed", &format!("{} `{}` from {MANIFEST}", thing.word(), args.name));
    Ok(Exit::Done)
}

fn thing(item: Item) -> ManifestEntry {
    match item {
        Item::Target => ManifestEntry::Target,
        Item::Shape => ManifestEntry::Shape,
        Item::Dependency => ManifestEntry::Dependency,
        Item::Kernel => ManifestEntry::Kernel,
        Item::Operator => ManifestEntry::Operator,
    }
}
