//! `kforge ci`: what CI checks, in one command with one exit code.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::build::{say_outdated, say_reused};
use super::{CommandResult, collect, passphrase};
use crate::cli::args::CiArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::{bytes, say_missing, summary};
use kforge_foundation::base::count;
use kforge_numerics::measure::paired::percent;
use kforge_ops::Error;
use kforge_ops::build::Finished;
use kforge_ops::ci::{Ci, CiRequest, ci, write_diagnostics, write_reports};
use kforge_pipeline::release::ci::{CiArtifact, CiReport, Conclusion, SkippedDevice};
use kforge_types::record::Standing;

/// Runs the command.
pub fn run(context: &Context, args: &CiArgs) -> CommandResult {
    let began = Instant::now();
    context.interrupts()?;
    let request = CiRequest {
        base: args.base.clone(),
        words: args.select.words(),
        margin: args.margin,
        standing: Standing::from(args.require_evidence),
        allow_missing: args.allow_missing_evidence,
        artifacts: args.artifacts,
        sign_key: args.sign_key.clone(),
        output: args.output.clone(),
        jobs: args.jobs,
    };
    let mut done = match ci(&context.session, &request, &passphrase) {
        // Errors of manifests are results too, which code hosts show at their lines.
        Err(Error::Wrong(found)) => {
            let written = write_diagnostics(&context.session, &request, &found);
            let _ = say_written(context, written);
            return Err(Error::Wrong(found).into());
        }
        done => done?,
    };
    let exit = done.refused.as_ref().map_or_else(|| Exit::from(done.report.conclusion), Exit::from);
    done.report.exit = exit as u8;
    say(context, &done, began);
    // How the run ended says more than that its documents could not be written.
    let unwritten = say_written(context, write_reports(&context.session, &done)).err();
    if done.finished.is_some() {
        collect(context);
    }
    Ok(unwritten.filter(|_| exit == Exit::Done).unwrap_or(exit))
}

/// Says which documents were written; the error is the exit code if some could not be.
fn say_written(context: &Context, written: Result<Vec<PathBuf>, Error>) -> Result<(), Exit> {
    let written = written.map_err(|error| context.failed(&error))?;
    if let Some(folder) = written.first().and_then(|path| path.parent()) {
        let documents = count(written.len() as u64, "document");
        context.console.status("Wrote", &format!("{documents} to {}", folder.display()));
    }
    Ok(())
}

fn say(context: &Context, Ci { report, finished, refused, folder, .. }: &Ci, began: Instant) {
    let console = &context.console;
    let Some(finished) = finished else {
        return console.status("Finished", "no selected kernel is affected by the changes");
    };
    if !console.quiet() {
        console.fitted(&finished.text);
        say_reused(context, &finished.reused);
        say_outdated(context, &finished.outdated);
    }
    if let Some(found) = &report.comparison {
        console.out_fitted(&found.text());
        for unbuilt in &found.unbuilt {
            console.warn(&unbuilt.to_string());
        }
    }
    if let Some(why) = &report.not_compared {
        console.warn(&format!("champions are not compared: {why}"));
    }
    report.skipped.iter().for_each(|skipped| console.warn(&not_observed(skipped)));
    for artifact in report.artifacts.iter().flatten() {
        say_artifact(context, artifact, folder);
    }
    if report.artifacts.as_ref().is_some_and(Vec::is_empty) {
        console.status("", "nothing to package: no kernel is for a GPU");
    }
    conclude(context, report, finished, began);
    if let Some(error) = refused {
        context.failed(error);
    }
}

fn say_artifact(context: &Context, artifact: &CiArtifact, folder: &Path) {
    let CiArtifact { package, version, root, archive, signed_by, .. } = artifact;
    let kernels = count(artifact.kernels, "kernel");
    let place = folder.join(archive);
    let text = format!("{package} {version} ({kernels}, {}) to `{}`", bytes(artifact.bytes), place.display());
    context.console.status("Packaged", &text);
    context.console.status("", &format!("root {root}"));
    match signed_by {
        Some(fingerprint) => context.console.status("Signed", &format!("with {fingerprint}")),
        None => context.console.status("", "not signed; `--sign-key KEY` signs it"),
    }
    if artifact.claimed {
        context.console.warn(&format!("some evidence of {package} is only claimed, and the artifact says so"));
    }
}

/// What is said of a target that is skipped.
fn not_observed(SkippedDevice { package, target }: &SkippedDevice) -> String {
    let device =
        target.device.as_ref().map_or_else(|| target.arch.clone(), |device| format!("{device}, {}", target.arch));
    format!(
        "`{}` of `{package}` is skipped: there is no observation of a device of it ({device}) in either state",
        target.target
    )
}

/// Says how the run ended.
fn conclude(context: &Context, report: &CiReport, finished: &Finished, began: Instant) {
    let console = &context.console;
    let steps = summary(&finished.steps, (&finished.verdicts, &finished.unknown), began);
    let compared = report.comparison.as_ref().map_or_else(String::new, |found| {
        format!("; champions at a margin of {}: {}", percent(found.margin), found.conclusion())
    });
    let missing = &report.missing_evidence;
    let lacking = || say_missing(console, missing.iter().map(|of| (of.step.as_str(), of.why.as_str())));
    let text = format!("{steps}{compared}");
    match report.conclusion {
        Conclusion::Done => {
            if !missing.is_empty() {
                console.warn(&format!(
                    "{} no evidence:",
                    if missing.len() == 1 {
                        "1 step has".into()
                    } else {
                        format!("{} have", count(missing.len() as u64, "step"))
                    }
                ));
                lacking();
            }
            console.status("Finished", &text);
        }
        Conclusion::NotBuilt => console.error(&text),
        conclusion @ (Conclusion::Interrupted
        | Conclusion::Contradicted
        | Conclusion::Wrong
        | Conclusion::Slower
        | Conclusion::NotPackaged) => console.error(&format!("{}; {text}", conclusion.text())),
        Conclusion::NoEvidence => {
            console.error(&format!("{}; {text}", Conclusion::NoEvidence.text()));
            lacking();
            console.err(
                "help: on a machine with the device, run `kforge build`, `kforge evidence export` and `kforge evidence sign`, and commit the bundle; \
                 `--allow-missing-evidence` accepts what is missing\n",
            );
        }
    }
}
