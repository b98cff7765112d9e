//! `kforge report`: what the last build found.

use std::path::Path;

use super::print_json;
use crate::cli::args::{ReportArgs, ReportFormat, ScoreForm, Select};
use crate::cli::exit::Exit;
use crate::cli::session::certificate::{BEGUN, CUT_SHORT, SINCE};
use crate::cli::session::{Context, Opened};
use crate::engine::lock::{Lock, LockError, Mode, Wait};
use crate::measure::score::Form;
use crate::record::event::VerdictCounts;
use crate::report::text::Failures;
use crate::report::{self, Report, score};
use crate::workspace::Workspace;

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> Result<Exit, Exit> {
    let workspace = context.workspace()?;
    let target = context.target(&workspace);
    let (cut_short, since) = (is_cut_short(&target), std::fs::read_to_string(target.join(SINCE)).ok());
    let mut report = last(context, &workspace).inspect_err(|_| {
        if let Some(what) = cut_short {
            let goes_on = if what == UNDER_WAY { "" } else { "; the next one goes on where it was" };
            context.console.err(&format!("help: {what}{goes_on}\n"));
        }
        since.iter().for_each(|found| context.console.err(&format!("help: {found}\n")));
    })?;
    if let Some(what) = cut_short {
        context.console.warn(&format!("{what}: this is what the one before it found"));
    }
    if let Some(found) = since {
        context.console.warn("this is what the last build found, and something changed since");
        context.console.err(&format!("help: {found}\n"));
    }
    narrow(context, &workspace, &mut report, &args.select)?;
    if let Some(form) = args.score {
        return scores(context, args, &report, form);
    }
    match args.format {
        ReportFormat::Text => context.console.out_fitted(&report::text::text(&report, Failures::Why)),
        ReportFormat::Markdown => context.console.out(&report::markdown::markdown(&report)),
        ReportFormat::Json => return print_json(context, &report),
    }
    Ok(Exit::Done)
}

const UNDER_WAY: &str = "a build is under way";

/// What became of a build after the one that is reported, if there was one that did not end.
fn is_cut_short(target: &Path) -> Option<&'static str> {
    if std::fs::read(target.join(CUT_SHORT)).ok()? != BEGUN {
        return Some("the last build was interrupted");
    }
    // It runs for as long as it holds the workspace.
    match Lock::acquire(&target.join(".lock"), Mode::Shared, Wait::No) {
        Err(LockError::Busy(_)) => Some(UNDER_WAY),
        _ => Some("the last build was killed before it ended"),
    }
}

/// Leaves what the command line selects: without words the package at hand.
fn narrow(context: &Context, workspace: &Workspace, report: &mut Report, words: &Select) -> Result<(), Exit> {
    let selected = context.select(workspace, words)?;
    let members: Vec<&str> = selected.members.iter().map(|i| workspace.members[*i].package.name.as_str()).collect();
    let built = names(report.packages.iter().map(|p| p.name.as_str()));
    report.packages.retain(|package| members.contains(&package.name.as_str()));
    if report.packages.is_empty() {
        let asked = match members.as_slice() {
            [one] => format!("`{one}` was not built"),
            _ => format!("none of {} was built", names(members.iter().copied())),
        };
        let last = if built.is_empty() { "of nothing".into() } else { format!("of {built}") };
        context.fail(&format!("{asked}: the last build was {last}"));
        context.console.err("help: build it first; `--workspace` shows all that the last build found\n");
        return Err(Exit::NothingSelected);
    }
    // What is said of a package's operators stays where nothing within packages is asked for.
    if [&words.kernel, &words.operator, &words.shape, &words.target].iter().all(|words| words.is_empty()) {
        return Ok(());
    }
    let takes = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    report.retain(&|_, kernel, operator, target| {
        takes(&selected.kernels, kernel) && takes(&selected.operators, operator) && takes(&selected.targets, target)
    });
    for target in report.packages.iter_mut().flat_map(|p| &mut p.kernels).flat_map(|k| &mut k.targets) {
        target.shapes.retain(|s| takes(&selected.shapes, &s.shape));
        target.times.retain(|t| takes(&selected.shapes, &t.shape));
    }
    if report.packages.is_empty() {
        context.fail("the last build had nothing of what is selected");
        context.console.err("help: build it first, or select less narrowly\n");
        return Err(Exit::NothingSelected);
    }
    Ok(())
}

/// Names for a message: `a`, `b` and 7 more.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<String> = all.map(|name| format!("`{name}`")).collect();
    let shown = all.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > 6 { format!("{shown} and {} more", all.len() - 6) } else { shown }
}

/// Shows scores in place of the report.
fn scores(context: &Context, args: &ReportArgs, report: &Report, form: ScoreForm) -> Result<Exit, Exit> {
    let form = match form {
        ScoreForm::Speedup => Form::Speedup,
        ScoreForm::Logistic => Form::Logistic,
        ScoreForm::Weighted => Form::Weighted,
    };
    if let Some(p) = args.fast_p.iter().find(|p| !p.is_finite() || **p < 0.0) {
        context.fail(&format!("`--fast-p {p}` is no speed-up: expected a number of 0 or more, such as 1.2"));
        return Err(Exit::Usage);
    }
    let scores = match score::scores(report, form, &args.baseline, &args.fast_p) {
        Ok(scores) => scores,
        Err(why) => {
            context.fail(&why);
            return Err(Exit::NothingSelected);
        }
    };
    match args.format {
        ReportFormat::Text => context.console.out_fitted(&score::text(&scores)),
        ReportFormat::Markdown => context.console.out(&score::markdown(&scores)),
        ReportFormat::Json => return print_json(context, &scores),
    }
    Ok(Exit::Done)
}

/// Notes that a build has begun. Where it is killed the note stays.
pub fn begun(context: &Context, opened: &Opened) {
    note(context, opened, CUT_SHORT, BEGUN);
}

/// Notes that a build was interrupted: what it found stands in no report.
pub fn cut_short(context: &Context, opened: &Opened) {
    note(context, opened, CUT_SHORT, b"");
}

/// Notes what a shorter build found, where that is not what the last build found.
pub fn since(context: &Context, opened: &Opened, command: &str, v: &VerdictCounts) {
    let found = format!("{} pass, {} fail, {} unknown", v.pass, v.fail, v.unknown);
    let text = format!("`kforge {command}` found {found}; `kforge build` brings the report up to date");
    note(context, opened, SINCE, text.as_bytes());
}

fn note(context: &Context, opened: &Opened, name: &str, bytes: &[u8]) {
    let place = opened.target.join(name);
    if let Err(e) = crate::base::files::write_if_changed(&place, bytes) {
        context.console.warn(&format!("cannot write `{}`: {e}", place.display()));
    }
}

/// Notes that a build has ended, and that its report says all that was found.
pub fn whole(context: &Context, opened: &Opened) -> Result<(), Exit> {
    for name in [SINCE, CUT_SHORT] {
        let place = opened.target.join(name);
        match std::fs::remove_file(&place) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(context.fail(&format!("cannot remove `{}`: {e}", place.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The report of the last build.
pub fn last(context: &Context, workspace: &Workspace) -> Result<Report, Exit> {
    let place = context.target(workspace).join("report.json");
    let bytes = match std::fs::read(&place) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let exit = context.fail(&format!("there is no report: nothing was built here yet (`{}`)", place.display()));
            context.console.err("help: run `kforge build` first\n");
            return Err(exit);
        }
        Err(e) => return Err(context.fail(&format!("cannot read `{}`: {e}", place.display()))),
    };
    let report: Report = serde_json::from_slice(&bytes).map_err(|e| {
        let exit = context.fail(&format!("`{}` is not a report: {e}", place.display()));
        context.console.err("help: run `kforge build` to have it written anew\n");
        exit
    })?;
    if report.format_version > crate::record::FORMAT_VERSION {
        return Err(context.fail(&format!(
            "`{}` is of format {}, which a later kforge wrote: expected at most {}",
            place.display(),
            report.format_version,
            crate::record::FORMAT_VERSION
        )));
    }
    Ok(report)
}
