//! `kforge add` and `kforge remove`: edit the manifest at hand.

use super::Ran;
use crate::cli::args::{AddArgs, Item, RemoveArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::edit;
use kforge_project::workspace::edit::Thing;
use kforge_project::workspace::find::MANIFEST;

/// Runs `kforge add`.
pub fn add(context: &Context, args: &AddArgs) -> Ran {
    let thing = thing(args.item);
    edit::add(&context.session, thing, &args.name, &args.fields)?;
    context.console.status("Added", &format!("{} `{}` to {MANIFEST}", thing.word(), args.name));
    Ok(Exit::Done)
}

/// Runs `kforge remove`.
pub fn remove(context: &Context, args: &RemoveArgs) -> Ran {
    let thing = thing(args.item);
    edit::remove(&context.session, thing, &args.name)?;
    context.console.status("Removed", &format!("{} `{}` from {MANIFEST}", thing.word(), args.name));
    Ok(Exit::Done)
}

fn thing(item: Item) -> Thing {
    match item {
        Item::Target => Thing::Target,
        Item::Shape => Thing::Shape,
        Item::Dependency => Thing::Dependency,
        Item::Kernel => Thing::Kernel,
        Item::Operator => Thing::Operator,
    }
}
