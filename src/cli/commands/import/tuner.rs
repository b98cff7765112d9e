//! `kforge import kernel-tuner`: the hints of a cache, and what of it is none.

use super::super::CommandResult;
use crate::cli::args::ImportTunerArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::import::tuner::{TunerRequest, kernel_tuner};

/// Runs the command.
pub(super) fn run(context: &Context, args: &ImportTunerArgs) -> CommandResult {
    let request = TunerRequest {
        path: args.path.clone(),
        kernel: args.kernel.clone(),
        renamed: args.map.clone(),
        most: args.most,
        dry_run: args.dry_run,
    };
    let done = kernel_tuner(&context.session, &request)?;
    let (console, hints) = (&context.console, &done.hints);
    for parameter in &hints.unknown {
        console.warn(&format!("`{parameter}` is no tunable of `{}`, and is left out of its hints", args.kernel));
    }
    let parts = [(hints.outside, "outside of the space of the kernel"), (hints.untimed, "without a time")];
    let rest = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {n} {what}")).collect::<String>();
    let (device, kernel) = &done.of;
    let what = format!("{} of `{kernel}` on {device}{rest}", count(hints.hints.len() as u64, "hint"));
    console.status(if args.dry_run { "Found" } else { "Imported" }, &what);
    if !console.quiet() {
        console.err("help: a search visits them first; each variant is verified and timed as if there was no cache\n");
    }
    Ok(Exit::Done)
}
