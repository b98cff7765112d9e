//! `kforge new` and `kforge init`: a package to start from. Never overwrites anything.

use std::path::{Path, PathBuf};

use super::templates::{self, File};
use crate::cli::args::{InitArgs, NewArgs, Template};
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::workspace::find::{MANIFEST, tidy};
use kforge_project::workspace::join::{EnclosingWorkspace, Joined};

/// Runs `kforge new`.
pub fn new(context: &Context, args: &NewArgs) -> Result<Exit, Exit> {
    let folder = tidy(&context.cwd.join(&args.path));
    if folder.exists() {
        let exit = context.fail(&format!("`{}` exists already", folder.display()));
        context.console.err("help: `kforge init` makes a package in a folder that is there\n");
        return Err(exit);
    }
    make(context, &folder, args.name.as_deref(), args.template)
}

/// Runs `kforge init`.
pub fn init(context: &Context, args: &InitArgs) -> Result<Exit, Exit> {
    let folder = tidy(&std::path::absolute(&context.cwd).unwrap_or_else(|_| context.cwd.clone()));
    if folder.join(MANIFEST).exists() {
        return Err(context.fail(&format!("`{}` is there already", folder.join(MANIFEST).display())));
    }
    make(context, &folder, args.name.as_deref(), args.template)
}

fn make(context: &Context, folder: &Path, name: Option<&str>, template: Template) -> Result<Exit, Exit> {
    let console = &context.console;
    let given = match name {
        Some(name) => name.to_string(),
        None => folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    if let Some(why) = refuse(&given) {
        let exit = context.fail(&why);
        if name.is_none() {
            console.err("help: give the package another name with `--name`\n");
        }
        return Err(exit);
    }
    let around = EnclosingWorkspace::find(folder);
    if let Some(around) = around.as_ref().filter(|a| a.names(&TEMPLATES).contains(&given)) {
        return Err(context.fail(&format!(
            "the workspace of `{}` has a package `{given}` already: choose another name with `--name`",
            around.manifest.display()
        )));
    }
    let files = templates::of(template);
    let places: Vec<(PathBuf, &File)> =
        files.iter().map(|f| (folder.join(f.name.replace("{{name}}", &given)), f)).collect();
    // What is there stays: a README or .gitignore serves as it is, but a source would not fit the manifest.
    if let Some((path, _)) = places.iter().find(|(path, file)| path.exists() && !file.is_optional()) {
        return Err(context.fail(&format!("`{}` is there already, and kforge overwrites nothing", path.display())));
    }
    for (path, file) in &places {
        if path.exists() {
            console.status("Keeping", &format!("{}, which is there already", path.display()));
            continue;
        }
        let text = file.text.replace("{{name}}", &given);
        kforge_foundation::base::files::write_atomically(path, text.as_bytes(), false)
            .map_err(|e| context.fail(&format!("cannot write `{}`: {e}", path.display())))?;
    }
    if let Some(around) = around {
        match around.join(folder).map_err(|e| context.fail(&e))? {
            Joined::Added(path) => {
                console.status("Adding", &format!("`{path}` to the members in {}", around.manifest.display()));
            }
            Joined::Excluded => {
                console.status("Excluded", &format!("by the workspace in {}", around.manifest.display()))
            }
            Joined::Already => {}
        }
    }
    console.status("Created", &format!("package `{given}` from template `{}`", templates::word(template)));
    let there = folder.strip_prefix(&context.cwd).unwrap_or(folder);
    let change = if there.as_os_str().is_empty() { String::new() } else { format!("cd {} && ", there.display()) };
    if !console.quiet() {
        console.err(&format!("help: build it with `{change}kforge build`\n"));
    }
    Ok(Exit::Done)
}

/// Why this is no package's name; none if it is one.
fn refuse(name: &str) -> Option<String> {
    let word = "letters, digits, `_` and `-`, starting with a letter";
    if name.is_empty() {
        return Some(format!("there is no name for the package: expected {word}"));
    }
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    (!plain).then(|| format!("`{name}` is no package's name: expected {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for good in ["norms", "rms_norm", "flash-attention", "K2"] {
            assert_eq!(refuse(good), None, "{good}");
        }
        for bad in ["", "2fast", "a b", "../x", "-x", "é", "a.b", "a/b"] {
            assert!(refuse(bad).is_some(), "{bad}");
        }
    }
}
