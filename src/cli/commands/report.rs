//! `kforge report`: what the last build found.

use super::Ran;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::{ReportArgs, ReportFormat, ScoreForm, Select};
use crate::cli::exit::{Exit, Failure};
use kforge_numerics::measure::score::Form;
use kforge_ops::build::report::{is_interrupted, last};
use kforge_pipeline::report::text::Failures;
use kforge_pipeline::report::{self, Report, score};
use kforge_project::workspace::Workspace;

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> Ran {
    let workspace = context.session.workspace()?;
    let is_cut_short = is_interrupted(&context.session, &workspace);
    let mut report = last(&context.session, &workspace).map_err(|error| {
        let exit = context.failed(&error);
        if is_cut_short {
            context.console.err("help: the last build was interrupted; the next one goes on where it was\n");
        }
        exit
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
fn narrow(context: &Context, workspace: &Workspace, report: &mut Report, words: &Select) -> Result<(), Failure> {
    let selected = context.session.select(workspace, &words.words())?;
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
        return Err(Exit::NothingSelected.into());
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
        return Err(Exit::NothingSelected.into());
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
fn scores(context: &Context, args: &ReportArgs, report: &Report, form: ScoreForm) -> Ran {
    let form = match form {
        ScoreForm::Speedup => Form::Speedup,
        ScoreForm::Logistic => Form::Logistic,
        ScoreForm::Weighted => Form::Weighted,
    };
    if let Some(p) = args.fast_p.iter().find(|p| !p.is_finite() || **p < 0.0) {
        context.fail(&format!("`--fast-p {p}` is no speed-up: expected a number of 0 or more, such as 1.2"));
        return Err(Exit::Usage.into());
    }
    let scores = match score::scores(report, form, &args.baseline, &args.fast_p) {
        Ok(scores) => scores,
        Err(why) => {
            context.fail(&why);
            return Err(Exit::NothingSelected.into());
        }
    };
    match args.format {
        ReportFormat::Text => context.console.out_fitted(&score::text(&scores)),
        ReportFormat::Markdown => context.console.out(&score::markdown(&scores)),
        ReportFormat::Json => return print_json(context, &scores),
    }
    Ok(Exit::Done)
}
