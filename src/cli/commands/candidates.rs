//! `kforge candidates`: searches the remembered candidates of the workspace, or prints the source of one.

use super::CommandResult;
use crate::cli::args::{CandidatesArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::Error;
use kforge_ops::candidates::{Filter, search, source};
use kforge_pipeline::report::candidates::text;

/// Runs the command.
pub fn run(context: &Context, args: &CandidatesArgs) -> CommandResult {
    let console = &context.console;
    if let Some(id) = &args.source {
        let text = source(&context.session, id)?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        console.source(&format!("{text}{end}"));
        return Ok(Exit::Done);
    }
    let filter = Filter {
        packages: args.package.clone(),
        kernels: args.kernel.clone(),
        operators: args.operator.clone(),
        targets: args.target.clone(),
        patterns: args.pattern.iter().map(|pattern| pattern.pattern()).collect(),
        levels: args.level.clone(),
        correct: args.correct,
    };
    let found = search(&context.session, &filter)?;
    match args.message_format {
        MessageFormat::Human => console.out_fitted(&text(&found.candidates)),
        MessageFormat::Json => {
            for one in &found.candidates {
                let line = serde_json::to_string(one).map_err(Error::from)?;
                console.out(&format!("{line}\n"));
            }
        }
    }
    let shown = found.candidates.len();
    let rest = if shown == found.all { String::new() } else { format!(", of {}", found.all) };
    console.status("Found", &format!("{}{rest}", count(shown as u64, "candidate")));
    Ok(Exit::Done)
}
