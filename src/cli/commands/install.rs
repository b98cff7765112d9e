//! `kforge install`: installs artifacts for whoever uses them.

use serde::Serialize;

use super::{CommandResult, print_line};
use crate::cli::args::{InstallArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words;
use kforge_foundation::base::count;
use kforge_ops::install::{InstallRequest, InstallStatus, Installed, install};
use kforge_pipeline::release::install_lock::{FILE_NAME, InstalledPackage};

/// An installed artifact, for programs.
#[derive(Serialize)]
struct InstalledView<'a> {
    #[serde(flatten)]
    package: &'a InstalledPackage,
    kernels: u64,
    status: &'static str,
    /// The source that the lockfile named before, if it was another place.
    source_before: Option<&'a str>,
    written: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &InstallArgs) -> CommandResult {
    let request = InstallRequest {
        sources: args.sources.clone(),
        into: args.into.clone(),
        allow_untrusted: args.allow_untrusted,
        update: args.update,
        plain_http: args.plain_http,
        dry_run: args.dry_run,
    };
    context.interrupts()?;
    let installed = install(&context.session, &request)?;
    if args.message_format == MessageFormat::Json {
        for one in &installed {
            print_line(context, "installed", &view(one, !args.dry_run))?;
        }
        return Ok(Exit::Done);
    }
    for one in &installed {
        let InstalledPackage { name, version, folder, signed_by, .. } = &one.package;
        let by = words::signed_by(signed_by.as_deref(), one.distrusted.as_ref());
        let text = format!("{name} {version} ({}, {by}) in `{folder}`", count(one.kernels, "kernel"));
        let place = match one.replaced.as_deref() {
            Some(before) if before == version => format!(", in place of other contents of {before}"),
            Some(before) => format!(", in place of {before}"),
            None => String::new(),
        };
        let (word, text) = match (one.status, args.dry_run) {
            (InstallStatus::Present, _) => ("Fresh", text),
            (InstallStatus::Added, false) => ("Installed", text),
            (InstallStatus::Replaced, false) => ("Installed", format!("{text}{place}")),
            (InstallStatus::Added, true) => ("", format!("would install {text}")),
            (InstallStatus::Replaced, true) => ("", format!("would install {text}{place}")),
        };
        context.console.status(word, &text);
        if let Some(before) = &one.source_before {
            let names = if args.dry_run { "would name" } else { "now names" };
            context.console.warn(&format!(
                "`{FILE_NAME}` {names} another source of {name}: `{}`; it was `{before}`",
                one.package.source
            ));
        }
        if let Some(before) = &one.signed_before {
            let now = signed_by.as_deref().unwrap_or_default();
            context.console.warn(&format!(
                "{name} was signed by {before} before, and {version} is signed with another key, by {now}"
            ));
        }
    }
    Ok(Exit::Done)
}

fn view(one: &Installed, written: bool) -> InstalledView<'_> {
    InstalledView {
        package: &one.package,
        kernels: one.kernels,
        source_before: one.source_before.as_deref(),
        status: match one.status {
            InstallStatus::Added => "added",
            InstallStatus::Replaced => "replaced",
            InstallStatus::Present => "present",
        },
        written,
    }
}
