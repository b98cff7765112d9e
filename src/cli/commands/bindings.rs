//! `kforge bindings`: writes loaders of an artifact.

use serde::Serialize;

use super::{CommandResult, print_line};
use crate::cli::args::{BindingsArgs, LoaderLanguage, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::bindings::{BindingsRequest, WrittenBindings, bindings};
use kforge_pipeline::release::bindings::Language;

/// A written loader, for programs.
#[derive(Serialize)]
struct BindingsView<'a> {
    package: &'a str,
    version: &'a str,
    root: &'a str,
    folder: String,
    files: &'a [String],
    functions: &'a [String],
}

/// Runs the command.
pub fn run(context: &Context, args: &BindingsArgs) -> CommandResult {
    let language = match args.language {
        LoaderLanguage::C => Language::C,
        LoaderLanguage::Rust => Language::Rust,
        LoaderLanguage::Python => Language::Python,
    };
    let request = BindingsRequest { path: args.path.clone(), language, output: args.output.clone(), wheel: args.wheel };
    let written = bindings(&context.session, &request)?;
    let WrittenBindings { index, folder, files, functions } = &written;
    if args.message_format == MessageFormat::Json {
        let view = BindingsView {
            package: &index.package,
            version: &index.version,
            root: &index.root,
            folder: folder.display().to_string(),
            files,
            functions,
        };
        return print_line(context, "generated", &view);
    }
    let text = format!(
        "a {} loader of {} {} ({}, {}) in `{}`",
        language.title(),
        index.package,
        index.version,
        count(functions.len() as u64, "function"),
        count(files.len() as u64, "file"),
        folder.display()
    );
    context.console.status("Generated", &text);
    Ok(Exit::Done)
}
