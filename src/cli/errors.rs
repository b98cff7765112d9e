//! Errors of operations as text: the message, its details, and help.

mod diff;
mod run;

use super::console::Console;
use super::words::{champion, listed};
use kforge_engine::ClaimsOption;
use kforge_foundation::base::{Diagnostic, Severity};
use kforge_ops::Error;
use kforge_ops::accept::AcceptError;
use kforge_ops::build::report::ReportError;
use kforge_ops::candidates::CandidatesError;
use kforge_ops::compare::CompareError;
use kforge_ops::edit::EditError;
use kforge_ops::event::Blocked;
use kforge_ops::evidence::EvidenceError;
use kforge_ops::evidence::sign::SignError;
use kforge_ops::explain::NoStep;
use kforge_ops::export::NoTrajectories;
use kforge_ops::export::traces::TracesError;
use kforge_ops::history::HistoryError;
use kforge_ops::import::ImportError;
use kforge_ops::install::{InstallError, Unexpected};
use kforge_ops::new::NewError;
use kforge_ops::optimize::OptimizeError;
use kforge_ops::package::{Ground, PackageError, Refusal, RefusalReason};
use kforge_ops::publish::PublishError;
use kforge_ops::report::NotShown;
use kforge_ops::run::RunError;
use kforge_ops::verify_artifact::VerifyArtifactError;
use kforge_pipeline::release::history::NoHistory;
use kforge_pipeline::release::registry::RegistryError;
use kforge_project::toolchain;
use kforge_project::workspace::edit;

/// The most steps that are listed if a name is ambiguous.
const LISTED: usize = 20;

/// Prints an error with its details and help.
pub(super) fn say(console: &Console, error: &Error) {
    match error {
        Error::Wrong(found) => {
            found.iter().for_each(|d| console.diagnostic(d));
            let wrong = found.iter().filter(|d| d.severity == Severity::Error).count();
            if wrong > 1 {
                console.error(&format!("{wrong} errors; nothing was done"));
            }
        }
        Error::NoManifest(diagnostic) => console.diagnostic(diagnostic),
        Error::Selection(found) => found.iter().for_each(|d| console.diagnostic(d)),
        Error::Compare(CompareError::Of { error, .. }) => say(console, error),
        Error::Edit(EditError::NotEdited(why @ edit::EditError::NotThere { name, there, .. })) => {
            let mut error =
                Diagnostic::error("edit.not-there", why.to_string()).suggest(name, there.iter().map(String::as_str));
            if !there.is_empty() {
                let listed: Vec<String> = there.iter().map(|n| format!("`{n}`")).collect();
                error = error.expected(format!("one of {}", listed.join(", ")));
            }
            console.diagnostic(&error);
        }
        Error::Candidates(CandidatesError::NoMatch { word, known, .. }) => {
            let listed: Vec<String> = known.iter().take(12).map(|name| format!("`{name}`")).collect();
            let error = Diagnostic::error("select.nothing", error.to_string());
            let error = error.expected(format!("one of {}", listed.join(", ")));
            console.diagnostic(&error.suggest(word, known.iter().map(String::as_str)));
        }
        Error::Edit(EditError::Wrong { found, .. }) | Error::Accept(AcceptError::Wrong { found, .. }) => {
            found.iter().for_each(|d| console.diagnostic(d));
            console.error(&error.to_string());
        }
        Error::NotShown(NotShown::Interrupted(error)) => say(console, error),
        // The user knows about the interruption; the other errors were printed when they occurred.
        Error::Interrupted | Error::Refused | Error::Run(RunError::Failed) => {}
        Error::Busy(Blocked::Cache) => console.error("the shared cache is being collected, and --no-wait was given"),
        Error::Run(error) => match run::diagnostic(error) {
            Some(diagnostic) => console.diagnostic(&diagnostic),
            None => console.error(&error.to_string()),
        },
        Error::Diff(error) => console.diagnostic(&diff::diagnostic(error)),
        error => console.error(&error.to_string()),
    }
    details(error).iter().for_each(|line| console.err(&format!("  {line}\n")));
    helps(error).iter().for_each(|help| console.err(&format!("help: {help}\n")));
}

/// The lines below a message.
fn details(error: &Error) -> Vec<String> {
    match error {
        Error::Accept(AcceptError::DifferentSources { champions, .. }) => {
            champions.iter().map(|(accepted, round)| champion(accepted, &format!("of round {round}"))).collect()
        }
        Error::Step(NoStep::Several { ids, .. }) => listed(ids, LISTED),
        Error::Package(PackageError::Refused { reasons, .. }) if reasons.len() > 1 => {
            reasons.iter().map(ToString::to_string).collect()
        }
        Error::VerifyArtifact(VerifyArtifactError::Claims { claims, .. }) if claims.len() > 1 => {
            claims.iter().map(ToString::to_string).collect()
        }
        _ => vec![],
    }
}

/// The help lines of an error.
fn helps(error: &Error) -> Vec<String> {
    match error {
        Error::Accept(error) => accepting(error).into_iter().collect(),
        Error::Candidates(CandidatesError::None) => {
            vec!["builds record champions, and rounds their candidates".into()]
        }
        Error::NoResults(_) => vec!["`kforge build` times the variants of a kernel on a GPU".into()],
        Error::Traces(TracesError::NoDefinitions) => {
            vec!["`kforge import flashinfer-trace` writes such packages".into()]
        }
        Error::NoTrajectories(NoTrajectories::NothingRecorded) => vec!["`kforge optimize` records attempts".into()],
        Error::Compare(CompareError::Of { name, .. }) => vec![format!("the error is about `{name}`")],
        Error::Evidence(EvidenceError::Open { .. }) => {
            vec!["run `kforge build` with the same selection, then export".into()]
        }
        Error::Sign(SignError::Signed { .. }) => vec!["`--replace` signs it in place of that signature".into()],
        Error::Package(PackageError::Refused { reasons, claims, .. }) => packaging(reasons, *claims),
        Error::VerifyArtifact(VerifyArtifactError::Unsigned(_)) => {
            vec!["`--allow-untrusted` verifies all else; `kforge package --sign-key KEY` signs".into()]
        }
        Error::Publish(PublishError::Unsigned(_)) => {
            vec!["`kforge package --sign-key KEY` signs; `--allow-unsigned` publishes it all the same".into()]
        }
        Error::Publish(PublishError::Taken { .. }) => {
            vec!["publish another version, or another folder; `--replace` puts this artifact there".into()]
        }
        Error::Publish(PublishError::Foreign { .. }) => {
            vec!["move away what you want to keep, and the folder with it".into()]
        }
        Error::Registry(RegistryError::Taken { .. }) => vec![
            "publish another version, or another tag with `--tag`; `--replace` makes the tag name this artifact".into(),
        ],
        Error::Registry(RegistryError::Plain(_)) => {
            vec!["`--plain-http` permits it; contents are still checked against their digests, but tags are not".into()]
        }
        Error::Install(InstallError::Unexpected { why: Unexpected::Asked, .. }) => {
            vec!["`--update` installs it in place of what is there".into()]
        }
        Error::Install(InstallError::Moved { .. } | InstallError::Unexpected { .. }) => {
            vec!["ask whoever publishes it; `--update` accepts what is there now".into()]
        }
        Error::Home { .. } => vec!["set KFORGE_HOME to a folder that can be written".into()],
        Error::Report(ReportError::NotBuilt(_)) => vec!["run `kforge build` first".into()],
        Error::Report(ReportError::Malformed { .. }) => vec!["run `kforge build` to write it again".into()],
        Error::NotShown(NotShown::Interrupted(_)) => {
            vec!["the last build was interrupted; the next build continues from there".into()]
        }
        Error::NotShown(NotShown::NotBuilt { .. }) => {
            vec!["build it first; `--workspace` shows all results of the last build".into()]
        }
        Error::NotShown(NotShown::Foreign(_)) => {
            vec!["name another file with `--html PATH`, or remove this one".into()]
        }
        Error::NotShown(NotShown::Nothing) => vec!["build it first, or widen the selection".into()],
        Error::History(HistoryError::None(NoHistory::NoBundle | NoHistory::NoCommit)) => {
            vec!["`kforge evidence export` writes a bundle beside a manifest; commit it".into()]
        }
        Error::History(HistoryError::Nothing(_)) => {
            vec!["widen the selection; `--workspace` shows all packages".into()]
        }
        Error::Toolchain(toolchain::Error::TooOld { .. }) => {
            vec!["install another, or set its path with the setting `toolchain.cxx`".into()]
        }
        Error::New(NewError::FolderExists(_)) => {
            vec!["`kforge init` creates a package in an existing folder".into()]
        }
        Error::Import(ImportError::FileExists(_)) => {
            vec!["`--output FILE` writes another file, `--stdout` prints the manifest".into()]
        }
        Error::Import(ImportError::NoKernels { skipped, left_out, .. }) => {
            let unread = skipped.iter().map(|file| format!("`{}` was not read: {}", file.path.display(), file.why));
            unread.chain(left_out.iter().map(|(file, why)| format!("`{file}` was left out: {why}"))).collect()
        }
        // The refusals were said one by one.
        Error::Import(ImportError::NoTasks { skipped, .. }) => {
            skipped.iter().map(|file| format!("`{}` was not read: {}", file.path.display(), file.why)).collect()
        }
        Error::New(NewError::Name { given: false, .. }) => {
            vec!["give the package another name with `--name`".into()]
        }
        Error::Optimize(OptimizeError::NoAgent { .. }) => vec![
            "name one in kernel.toml, `generate = { agent = \"rules\" }`, or one of your own under `[agents]`".into(),
        ],
        Error::Step(NoStep::Gone(_)) => {
            vec!["`kforge build` runs the steps that decide whether there is such a step; `kforge explain` says what it was".into()]
        }
        Error::Step(NoStep::Unknown { closest, .. }) => {
            let meant = closest.iter().map(|best| format!("did you mean `{best}`?"));
            meant.chain(["`kforge tree` lists every step, docs/methods.md every method".into()]).collect()
        }
        _ => vec![],
    }
}

/// Help if a package cannot be packed.
fn packaging(reasons: &[Refusal], claims: ClaimsOption) -> Vec<String> {
    let mut helps = vec![];
    if reasons.iter().any(|reason| matches!(reason.why, RefusalReason::NotBuilt(_))) {
        helps.push("`kforge build --require-evidence` shows what fails".into());
    }
    let lacks_fatbinary = |fetched: bool| {
        let is_such =
            |why: &RefusalReason| matches!(why, RefusalReason::NoFatbin { is_fetched, .. } if *is_fetched == fetched);
        reasons.iter().any(|reason| is_such(&reason.why))
    };
    if lacks_fatbinary(true) {
        helps.push("`kforge fetch` installs what packs fatbins".into());
    }
    if lacks_fatbinary(false) {
        helps.push(
            "install `fatbinary`, which is part of NVIDIA's CUDA toolkit, beside the other tools of this toolkit"
                .into(),
        );
    }
    if reasons.iter().any(|reason| reason.why.ground() == Ground::Wrong) {
        helps.push("`kforge report` shows what is wrong".into());
    }
    if reasons.iter().any(|reason| matches!(reason.why, RefusalReason::Evidence(_) | RefusalReason::Provisional { .. }))
    {
        let takes = claims.name().map_or_else(String::new, |option| format!("; {option} takes claimed evidence"));
        helps.push(
            "evidence comes from a machine with the device: run `kforge build`, `kforge evidence export` and `kforge evidence sign` there, and put the \
             bundle into the package's folder `evidence`"
                .into(),
        );
        helps.push(format!("`--target` leaves out targets without evidence{takes}"));
    }
    helps
}

/// Help if a champion cannot be accepted.
fn accepting(error: &AcceptError) -> Option<String> {
    Some(match error {
        AcceptError::Unknown { seat, has_rounds, .. } => {
            let optimize = if *has_rounds { format!(", or `kforge optimize {}`", seat.kernel) } else { String::new() };
            format!("run `kforge build`{optimize} first")
        }
        AcceptError::NothingToWrite { .. } => "omit `--as` and `--name` to pin the champion".into(),
        // Of one target, the champions differ by shape.
        AcceptError::DifferentSources { champions, .. } if champions.windows(2).all(|of| of[0].0.seat == of[1].0.seat) => {
            "`select = \"one\"` in the manifest keeps one champion for all shapes; build, then accept it".into()
        }
        AcceptError::DifferentSources { .. } => {
            "`--target T` (or `--types`) selects the champion whose source is used for all; with `--name NEW`, it becomes a separate kernel for that target".into()
        }
        AcceptError::NotTimed { .. } => "build on a machine with such a device, or import evidence from one".into(),
        AcceptError::Exists { .. } => "name another file with `--as`, or overwrite it with `--force`".into(),
        _ => return None,
    })
}
