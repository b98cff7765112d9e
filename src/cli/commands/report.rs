//! `kforge report`: what the last build found.

use super::print_json;
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::report::text::Failures;
use crate::report::{self, Report};
use crate::workspace::Workspace;

/// Runs the command.
pub fn run(context: &Context, args: &ReportArgs) -> Result<Exit, Exit> {
    let workspace = context.workspace()?;
    let report = last(context, &workspace)?;
    match args.format {
        ReportFormat::Text => context.console.out_fitted(&report::text::text(&report, Failures::Why)),
        ReportFormat::Markdown => context.console.out(&report::markdown::markdown(&report)),
        ReportFormat::Json => return print_json(context, &report),
    }
    Ok(Exit::Done)
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
