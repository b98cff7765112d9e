//! `kforge add` and `kforge remove`: edit the manifest at hand. What would make it wrong is shown and not written.

use std::path::Path;

use crate::cli::args::{AddArgs, Item, RemoveArgs};
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_foundation::base::{Diagnostic, files};
use kforge_project::workspace::edit::{self, EditError, ManifestEntry};
use kforge_project::workspace::find::{self, MANIFEST};
use kforge_project::workspace::join::EnclosingWorkspace;

/// Runs `kforge add`.
pub fn add(context: &Context, args: &AddArgs) -> Result<Exit, Exit> {
    let thing = thing(args.item);
    let (manifest, text) = read(context)?;
    let edited = edit::add(&text, thing, &args.name, &args.fields).map_err(|why| context.fail(&why))?;
    write(context, &manifest, edited)?;
    context.console.status("Added", &format!("{} `{}` to {MANIFEST}", thing.word(), args.name));
    Ok(Exit::Done)
}

/// Runs `kforge remove`.
pub fn remove(context: &Context, args: &RemoveArgs) -> Result<Exit, Exit> {
    let thing = thing(args.item);
    let (manifest, text) = read(context)?;
    let edited = edit::remove(&text, thing, &args.name).map_err(|why| {
        let there: &[String] = if let EditError::NotThere { there, .. } = &why { there } else { &[] };
        let names = there.iter().map(String::as_str);
        let mut error = Diagnostic::error("edit.not-there", why.to_string()).suggest(&args.name, names);
        if !there.is_empty() {
            let listed: Vec<String> = there.iter().map(|n| format!("`{n}`")).collect();
            error = error.expected(format!("one of {}", listed.join(", ")));
        }
        context.console.diagnostic(&error);
        Exit::NotBuilt
    })?;
    write(context, &manifest, edited)?;
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

fn read(context: &Context) -> Result<(std::path::PathBuf, String), Exit> {
    let manifest = find::tidy(&context.manifest()?);
    let text = std::fs::read_to_string(&manifest)
        .map_err(|e| context.fail(&format!("cannot read `{}`: {e}", manifest.display())))?;
    Ok((manifest, text))
}

fn write(context: &Context, manifest: &Path, text: String) -> Result<(), Exit> {
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let around = EnclosingWorkspace::find(folder).map(|a| a.manifest);
    let root = around.as_deref().and_then(Path::parent).unwrap_or(folder);
    let found = edit::check(manifest, root, text.clone());
    if edit::is_wrong(&found) {
        found.iter().for_each(|d| context.console.diagnostic(d));
        context.console.error(&format!("`{}` would be wrong; it was left as it is", manifest.display()));
        return Err(Exit::NotBuilt);
    }
    files::write_if_changed(manifest, text.as_bytes())
        .map(drop)
        .map_err(|e| context.fail(&format!("cannot write `{}`: {e}", manifest.display())))
}
