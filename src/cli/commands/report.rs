//! `kforge report`: the results of the last build.

use super::CommandResult;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::{ReportArgs, ReportFormat, ScoreForm};
use crate::cli::exit::Exit;
use kforge_numerics::measure::score::Form;
use kforge_ops::report::{ReportRequest, ScoreRequest, Shown};
use kforge_pipeline::report::text::Failures;
use kforge_pipeline::report::{self, score};

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> CommandResult {
    let score = args.score.map(|score| ScoreRequest {
        form: form(score),
        baseline: args.baseline.clone(),
        fast_p: args.fast_p.clone(),
    });
    let Shown { report, scores } =
        kforge_ops::report::report(&context.session, &ReportRequest { words: args.select.words(), score })?;
    // A clock before 1970 or far in the future gives no meaningful ages.
    let now = jiff::Timestamp::try_from(context.session.began).ok();
    match (&scores, args.format) {
        (None, ReportFormat::Text) if !args.select.kernel.is_empty() => {
            context.console.out_fitted(&report::text::detailed(&report, now));
        }
        (None, ReportFormat::Text) => context.console.out_fitted(&report::text::text(&report, Failures::Why, now)),
        (None, ReportFormat::Markdown) => context.console.out(&report::markdown::markdown(&report, now)),
        (None, ReportFormat::Json) => return print_json(context, &report),
        (Some(scores), ReportFormat::Text) => context.console.out_fitted(&score::text(scores)),
        (Some(scores), ReportFormat::Markdown) => context.console.out(&score::markdown(scores)),
        (Some(scores), ReportFormat::Json) => return print_json(context, scores),
    }
    Ok(Exit::Done)
}

fn form(score: ScoreForm) -> Form {
    match score {
        ScoreForm::Speedup => Form::Speedup,
        ScoreForm::Logistic => Form::Logistic,
        ScoreForm::Weighted => Form::Weighted,
    }
}
