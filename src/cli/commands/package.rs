//! `kforge package`: packs champions with their sources and evidence.

use serde::Serialize;

use super::{CommandResult, passphrase, print_line};
use crate::cli::args::{MessageFormat, PackageArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_engine::ClaimsOption;
use kforge_foundation::base::count;
use kforge_ops::package::{PackageRequest, Packaged, package};

/// An artifact, for programs.
#[derive(Serialize)]
struct PackagedView<'a> {
    package: &'a str,
    version: &'a str,
    root: &'a str,
    folder: String,
    archive: String,
    bytes: u64,
    kernels: u64,
    signed_by: Option<&'a str>,
    claimed: bool,
    written: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &PackageArgs) -> CommandResult {
    let request = PackageRequest {
        words: args.select.words(),
        output: args.output.clone(),
        key: args.sign_key.clone(),
        allow_claimed: args.allow_claimed,
        claims: ClaimsOption::AllowClaimed,
        jobs: args.jobs,
        dry_run: args.dry_run,
    };
    context.interrupts()?;
    let packaged = package(&context.session, &request, &passphrase)?;
    if args.message_format == MessageFormat::Json {
        for one in &packaged {
            print_line(context, "packaged", &view(one, !args.dry_run))?;
        }
        return Ok(Exit::Done);
    }
    for one in &packaged {
        let word = if args.dry_run { "Packaging" } else { "Packaged" };
        let text = format!(
            "{} {} ({}, {}, {}) to `{}`",
            one.index.package,
            one.index.version,
            count(one.kernels, "kernel"),
            count(one.index.files.len() as u64, "file"),
            bytes(one.bytes),
            one.archive.display()
        );
        context.console.status(word, &text);
        context.console.status("", &format!("root {}", one.index.root));
        match &one.signed_by {
            Some(fingerprint) => context.console.status("Signed", &format!("with {fingerprint}")),
            None => context.console.status("", "not signed; `--sign-key KEY` signs it"),
        }
        if one.claimed {
            context
                .console
                .warn(&format!("some evidence of {} is only claimed, and the artifact says so", one.index.package));
        }
    }
    Ok(Exit::Done)
}

fn view(one: &Packaged, written: bool) -> PackagedView<'_> {
    PackagedView {
        package: &one.index.package,
        version: &one.index.version,
        root: &one.index.root,
        folder: one.folder.display().to_string(),
        archive: one.archive.display().to_string(),
        bytes: one.bytes,
        kernels: one.kernels,
        signed_by: one.signed_by.as_deref(),
        claimed: one.claimed,
        written,
    }
}
