//! `kforge verify-artifact`: verifies an artifact, and on request builds it or runs its champions again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CommandResult, print_line};
use crate::cli::args::{MessageFormat, VerifyArtifactArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::signed_by;
use kforge_foundation::base::count;
use kforge_ops::verify_artifact::{
    Cause, Finding, Rebuilt, Rerun, RerunFault, VerifiedArtifact, VerifyArtifactRequest, verify_artifact,
};
use kforge_types::record::Standing;

/// A verified artifact, for programs.
#[derive(Serialize)]
struct VerifiedView<'a> {
    package: &'a str,
    version: &'a str,
    root: &'a str,
    signed_by: Option<&'a str>,
    kernels: u64,
    shapes: u64,
    records: &'a BTreeMap<Standing, u64>,
    rebuilt: Option<RebuiltView<'a>>,
    rerun: Option<RerunView<'a>>,
}

/// What was observed again, for programs.
#[derive(Serialize)]
struct RerunView<'a> {
    shapes: u64,
    passing: u64,
    times: u64,
    holding: u64,
    not_run: u64,
    findings: Vec<FindingView<'a>>,
}

/// Something that does not hold or is unknown, for programs.
#[derive(Serialize)]
struct FindingView<'a> {
    place: &'a str,
    because: String,
    /// Whether nothing is known, and nothing is wrong.
    unknown: bool,
}

/// A rebuild, for programs.
#[derive(Serialize)]
struct RebuiltView<'a> {
    equal: u64,
    differences: Vec<DifferenceView<'a>>,
    lacking: &'a [String],
    unknown: u64,
}

/// A binary that differs, for programs.
#[derive(Serialize)]
struct DifferenceView<'a> {
    place: &'a str,
    binary: &'a str,
    first: Option<u64>,
    because: String,
    /// Whether only the compiler varied.
    compiler: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &VerifyArtifactArgs) -> CommandResult {
    context.interrupts()?;
    let request = VerifyArtifactRequest {
        path: args.path.clone(),
        allow_untrusted: args.allow_untrusted,
        rebuild: args.rebuild,
        rerun: args.rerun,
    };
    let verified = verify_artifact(&context.session, &request)?;
    match args.message_format {
        MessageFormat::Json => drop(print_line(context, "artifact-verified", &view(&verified))?),
        MessageFormat::Human => say(context, args, &verified),
    }
    let found = [verified.rebuilt.as_ref().map(exit), verified.rerun.as_ref().map(exit_of)];
    let all = [Exit::NotBuilt, Exit::Wrong, Exit::Slower, Exit::NoEvidence];
    Ok(all.into_iter().find(|exit| found.contains(&Some(*exit))).unwrap_or(Exit::Done))
}

/// A champion that fails here is wrong, a time that does not hold is slower, and what is unknown is missing evidence.
fn exit_of(rerun: &Rerun) -> Exit {
    let code = |finding: &Finding| match &finding.what {
        RerunFault::Refused(why) => Exit::of_grounds([why.ground()].into_iter()),
        RerunFault::Slower { .. } => Exit::Slower,
        RerunFault::NoDevice { .. }
        | RerunFault::OtherCode
        | RerunFault::NotVerified
        | RerunFault::OtherDevices { .. } => Exit::NoEvidence,
    };
    let found: Vec<Exit> = rerun.findings.iter().map(code).collect();
    let all = [Exit::NotBuilt, Exit::Wrong, Exit::Slower, Exit::NoEvidence];
    all.into_iter().find(|exit| found.contains(exit)).unwrap_or(Exit::Done)
}

/// A difference with a cause in the inputs means that the artifact is not of its sources; one of the compiler shows nothing.
fn exit(rebuilt: &Rebuilt) -> Exit {
    let is_other = rebuilt.differences.iter().any(|difference| difference.cause != Cause::Compiler);
    match (is_other, rebuilt.differences.is_empty() && rebuilt.lacking.is_empty() && rebuilt.unknown == 0) {
        (true, _) => Exit::NotBuilt,
        (false, false) => Exit::NoEvidence,
        (false, true) => Exit::Done,
    }
}

fn say(context: &Context, args: &VerifyArtifactArgs, verified: &VerifiedArtifact) {
    let console = &context.console;
    let VerifiedArtifact { index, signer, distrusted, kernels, shapes, records, rebuilt, rerun } = verified;
    let signer = signer.as_ref().map(|signer| format!("{} ({})", signer.principals, signer.fingerprint));
    let by = signed_by(signer.as_deref(), distrusted.as_ref());
    console.status("Verified", &format!("{} {}, {by}", index.package, index.version));
    let standing = |standing: &Standing| match standing {
        Standing::Here => "observed by whoever packaged it, as it says",
        Standing::Signed => "signed, according to the packager",
        Standing::Claimed => "only claimed",
    };
    let records: Vec<String> = records.iter().map(|(of, n)| format!("{n} {}", standing(of))).collect();
    let text = format!(
        "{}, {}; {} of evidence: {}",
        count(*kernels, "kernel"),
        count(*shapes, "passing shape"),
        count(verified.records.values().sum::<u64>(), "record"),
        records.join(", ")
    );
    console.status("", &text);
    if let Some(rebuilt) = rebuilt {
        say_rebuilt(context, args, rebuilt);
    }
    if let Some(rerun) = rerun {
        say_rerun(context, rerun);
    }
}

fn say_rerun(context: &Context, rerun: &Rerun) {
    let Rerun { shapes, passing, times, holding, not_run, findings } = rerun;
    let ran = format!("{passing} of {} pass, {holding} of {} hold", count(*shapes, "shape"), count(*times, "time"));
    let text = match (shapes, not_run) {
        (_, 0) => format!("on this machine: {ran}"),
        (0, n) => format!("nothing on this machine: {} unknown", shapes_are(*n)),
        (_, n) => format!("on this machine: {ran}; {} not run and unknown", shapes_are(*n)),
    };
    context.console.status("Reran", &text);
    for finding in findings {
        context.console.warn(&format!("{}: {}", finding.place, finding.what));
    }
}

fn say_rebuilt(context: &Context, args: &VerifyArtifactArgs, rebuilt: &Rebuilt) {
    let console = &context.console;
    let all = rebuilt.equal + rebuilt.differences.len() as u64;
    console.status("Rebuilt", &format!("{} of {} with equal bytes", rebuilt.equal, count(all, "binary")));
    for difference in &rebuilt.differences {
        let at = difference.first.map_or_else(String::new, |at| format!(", first at byte {at}"));
        console.warn(&format!("`{}` of {} differs{at}: {}", difference.binary, difference.place, difference.cause));
    }
    if rebuilt.unknown > 0 {
        console.warn(&format!("{} unknown when its sources are built here", is_are(rebuilt.unknown)));
    }
    for step in &rebuilt.lacking {
        console.warn(&format!("the evidence of `{}` does not answer `{step}` here", args.path.display()));
    }
}

/// `1 shape is`, `3 shapes are`.
fn shapes_are(n: u64) -> String {
    format!("{} {}", count(n, "shape"), if n == 1 { "is" } else { "are" })
}

/// `1 verdict is`, `3 verdicts are`.
fn is_are(n: u64) -> String {
    format!("{} {}", count(n, "verdict"), if n == 1 { "is" } else { "are" })
}

fn view(verified: &VerifiedArtifact) -> VerifiedView<'_> {
    let rebuilt = verified.rebuilt.as_ref().map(|rebuilt| RebuiltView {
        equal: rebuilt.equal,
        lacking: &rebuilt.lacking,
        unknown: rebuilt.unknown,
        differences: rebuilt
            .differences
            .iter()
            .map(|difference| DifferenceView {
                place: &difference.place,
                binary: &difference.binary,
                first: difference.first,
                because: difference.cause.to_string(),
                compiler: difference.cause == Cause::Compiler,
            })
            .collect(),
    });
    VerifiedView {
        package: &verified.index.package,
        version: &verified.index.version,
        root: &verified.index.root,
        signed_by: verified.signer.as_ref().map(|signer| signer.principals.as_str()),
        kernels: verified.kernels,
        shapes: verified.shapes,
        records: &verified.records,
        rebuilt,
        rerun: verified.rerun.as_ref().map(|rerun| RerunView {
            shapes: rerun.shapes,
            passing: rerun.passing,
            times: rerun.times,
            holding: rerun.holding,
            not_run: rerun.not_run,
            findings: rerun
                .findings
                .iter()
                .map(|finding| FindingView {
                    place: &finding.place,
                    because: finding.what.to_string(),
                    unknown: finding.what.is_unknown(),
                })
                .collect(),
        }),
    }
}
