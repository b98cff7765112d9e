//! `kforge report`: what the last build found.

use super::print_json;
use crate::cli::args::{ReportArgs, ReportFormat, ScoreForm, Select};
use crate::cli::exit::Exit;
use crate::cli::session::certificate::CUT_SHORT;
use crate::cli::session::{Context, Opened};
use kforge_numerics::measure::score::Form;
use kforge_pipeline::report::text::Failures;
use kforge_pipeline::report::{self, Report, score};
use kforge_project::workspace::Workspace;

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> Result<Exit, Exit> {
    let workspace = context.workspace()?;
    let is_cut_short = context.target(&workspace).join(CUT_SHORT).exists();
    let mut report = last(context, &workspace).inspect_err(|_| {
        if is_cut_short {
            context.console.err("help: the last build was interrupted; the next one goes on where it was\n");
        }
    })?;
    if is_cut_short {
        context.console.warn("the last build was interrupted: this is what the one before it found");
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

/// Notes that a build was interrupted: what it found stands in no report.
pub fn cut_short(context: &Context, opened: &Opened) {
    let place = opened.target.join(CUT_SHORT);
    if let Err(e) = kforge_foundation::base::files::write_if_changed(&place, b"") {
        context.console.warn(&format!("cannot write `{}`: {e}", place.display()));
    }
}

/// Notes that a build was not.
pub fn whole(context: &Context, opened: &Opened) -> Result<(), Exit> {
    let place = opened.target.join(CUT_SHORT);
    match std::fs::remove_file(&place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(context.fail(&format!("cannot remove `{}`: {e}", place.display())))
        }
        _ => Ok(()),
    }
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
    if report.format_version > kforge_types::record::FORMAT_VERSION {
        return Err(context.fail(&format!(
            "`{}` is of format {}, which a later kforge wrote: expected at most {}",
            place.display(),
            report.format_version,
            kforge_types::record::FORMAT_VERSION
        )));
    }
    Ok(report)
}
