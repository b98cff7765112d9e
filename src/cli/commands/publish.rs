//! `kforge publish`: publishes an artifact to a folder, a registry or a repository for Hugging Face `kernels`.

use serde::Serialize;

use super::{CommandResult, print_line};
use crate::cli::args::{MessageFormat, PublishArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_ops::publish::{PublishRequest, Published, publish};
use kforge_pipeline::release::registry::Status;

/// A publication, for programs.
#[derive(Serialize)]
struct PublishedView<'a> {
    package: &'a str,
    version: &'a str,
    root: &'a str,
    destination: &'a str,
    tag: Option<&'a str>,
    manifest: Option<String>,
    signed_by: Option<&'a str>,
    bytes: u64,
    status: &'static str,
    written: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &PublishArgs) -> CommandResult {
    let request = PublishRequest {
        artifact: args.artifact.clone(),
        destination: args.destination.clone(),
        tag: args.tag.clone(),
        replace: args.replace,
        allow_unsigned: args.allow_unsigned,
        plain_http: args.plain_http,
        dry_run: args.dry_run,
    };
    context.interrupts()?;
    let published = publish(&context.session, &request)?;
    if args.message_format == MessageFormat::Json {
        return print_line(context, "published", &view(&published, !args.dry_run));
    }
    say(context, &published, args.dry_run);
    Ok(Exit::Done)
}

fn say(context: &Context, published: &Published, dry_run: bool) {
    let Published { index, destination, tag, manifest, signed_by, status, .. } = published;
    let tagged = tag.as_ref().map_or_else(String::new, |tag| format!(" as `{tag}`"));
    let what = format!("{} {}{tagged} in `{destination}`", index.package, index.version);
    let console = &context.console;
    match (status, dry_run) {
        (Status::Present, _) => console.status("Published", &format!("{what} before; nothing changes")),
        (Status::SignatureAdded, false) => {
            console.status("Published", &format!("{what} before; its signature is added"))
        }
        (Status::SignatureAdded, true) => {
            console.status("Published", &format!("{what} before; its signature would be added"));
        }
        (Status::Added, false) => console.status("Published", &format!("{what} ({})", bytes(published.bytes))),
        (Status::Added, true) => console.status("", &format!("would publish {what} ({})", bytes(published.bytes))),
        (Status::Replaced, false) => console.status("Published", &format!("{what}, in place of another artifact")),
        (Status::Replaced, true) => console.status("", &format!("would publish {what}, in place of another artifact")),
    }
    if let Some(manifest) = manifest {
        console.status("", &format!("manifest {manifest}"));
    }
    if published.keeps_card {
        console.status("", "its README.md is yours, and stays as it is");
    }
    match signed_by {
        // Whoever loads it with `kernels` sees no signature.
        None if manifest.is_none() => console.warn("the artifact is not signed"),
        Some(fingerprint) => console.status("", &format!("signed with {fingerprint}")),
        None => console.warn("the artifact is not signed: whoever installs it needs `--allow-untrusted`"),
    }
}

fn view(published: &Published, written: bool) -> PublishedView<'_> {
    PublishedView {
        package: &published.index.package,
        version: &published.index.version,
        root: &published.index.root,
        destination: &published.destination,
        tag: published.tag.as_deref(),
        manifest: published.manifest.as_ref().map(ToString::to_string),
        signed_by: published.signed_by.as_deref(),
        bytes: published.bytes,
        status: match published.status {
            Status::Added => "added",
            Status::Replaced => "replaced",
            Status::SignatureAdded => "signature-added",
            Status::Present => "present",
        },
        written,
    }
}
