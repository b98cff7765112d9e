//! `kforge report`: the results of the last build.

use std::path::{Path, PathBuf};

use super::CommandResult;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::{ReportArgs, ReportFormat, ScoreForm};
use crate::cli::browser;
use crate::cli::exit::Exit;
use kforge_foundation::base::Diagnostic;
use kforge_numerics::measure::score::Form;
use kforge_ops::Error;
use kforge_ops::history::{self, HistoryRequest};
use kforge_ops::report::{MetricsRequest, ReportRequest, ScoreRequest, Shown, write_page};
use kforge_pipeline::release;
use kforge_pipeline::report::exports::{ExportFormat, export};
use kforge_pipeline::report::text::Failures;
use kforge_pipeline::report::{self, Report, kernelbench as metrics_of, score};

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> CommandResult {
    if let (Some(place), true) = (&args.html, args.history) {
        let found = history::history(&context.session, &HistoryRequest { words: args.select.words() })?;
        let write = |path: Option<&Path>| history::write(&context.session, &found, path);
        return html(context, place.as_deref(), args.open, || release::history::page(&found), write);
    }
    let exported = args.format.exported();
    if args.score.is_some() && exported.is_some() {
        context.console.error("scores have no such format: expected `--format text`, `markdown` or `json`");
        return Err(Exit::Usage.into());
    }
    let score = args.score.and_then(form).map(|form| ScoreRequest {
        form,
        baseline: args.baseline.clone().unwrap_or_else(|| score::DECLARED.into()),
        fast_p: args.fast_p.clone().unwrap_or_else(|| vec![1.0]),
    });
    let kernelbench = args
        .score
        .filter(|form| *form == ScoreForm::Kernelbench)
        .map(|_| MetricsRequest { baseline: args.baseline.clone(), fast_p: args.fast_p.clone() });
    let request = ReportRequest { words: args.select.words(), score, kernelbench };
    let shown = kforge_ops::report::report(&context.session, &request);
    // Errors of manifests are results too, which code hosts show at their lines.
    if let (Err(Error::Wrong(found)), Some(format)) = (&shown, exported.filter(|format| format.has_diagnostics())) {
        print(context, &kforge_ops::report::unbuilt(&context.session), found, format)?;
    }
    let Shown { report, scores, kernelbench, diagnostics } = shown?;
    if let Some(place) = &args.html {
        let write = |path: Option<&Path>| write_page(&context.session, &report, path);
        return html(context, place.as_deref(), args.open, || report::page::page(&report), write);
    }
    if let Some(format) = exported {
        return print(context, &report, &diagnostics, format);
    }
    // A clock before 1970 or far in the future gives no meaningful ages.
    let now = jiff::Timestamp::try_from(context.session.began).ok();
    if let Some(metrics) = &kernelbench {
        match args.format {
            ReportFormat::Markdown => context.console.out(&metrics_of::markdown(metrics)),
            ReportFormat::Json => return print_json(context, metrics),
            _ => context.console.out_fitted(&metrics_of::text(metrics)),
        }
        return Ok(Exit::Done);
    }
    match (&scores, args.format) {
        (None, ReportFormat::Markdown) => context.console.out(&report::markdown::markdown(&report, now)),
        (None, ReportFormat::Json) => return print_json(context, &report),
        (None, _) if !args.select.kernel.is_empty() => {
            context.console.out_fitted(&report::text::detailed(&report, now));
        }
        (None, _) => context.console.out_fitted(&report::text::text(&report, Failures::Why, now)),
        (Some(scores), ReportFormat::Markdown) => context.console.out(&score::markdown(scores)),
        (Some(scores), ReportFormat::Json) => return print_json(context, scores),
        (Some(scores), _) => context.console.out_fitted(&score::text(scores)),
    }
    Ok(Exit::Done)
}

/// Writes a page, or prints it, and opens it if asked to.
fn html(
    context: &Context,
    place: Option<&Path>,
    open: bool,
    page: impl FnOnce() -> String,
    write: impl FnOnce(Option<&Path>) -> Result<PathBuf, Error>,
) -> CommandResult {
    if place == Some(Path::new("-")) {
        if open {
            context.console.error("`--open` opens a file, and `--html -` writes none");
            return Err(Exit::Usage.into());
        }
        context.console.out(&page());
        return Ok(Exit::Done);
    }
    let path = write(place)?;
    context.console.status("Wrote", &path.display().to_string());
    if open { browser::open(context, &path) } else { Ok(Exit::Done) }
}

/// Prints results in the format of another tool.
fn print(context: &Context, report: &Report, diagnostics: &[Diagnostic], format: ExportFormat) -> CommandResult {
    let text = export(report, diagnostics, format).map_err(|error| context.fail(&error))?;
    context.console.out(&text);
    Ok(Exit::Done)
}

/// The form of a score; none for KernelBench's metrics.
fn form(score: ScoreForm) -> Option<Form> {
    match score {
        ScoreForm::Speedup => Some(Form::Speedup),
        ScoreForm::Logistic => Some(Form::Logistic),
        ScoreForm::Weighted => Some(Form::Weighted),
        ScoreForm::Kernelbench => None,
    }
}
