//! `kforge evidence`: exports evidence to bundles, imports bundles and lists records.

use super::CommandResult;
use crate::cli::args::{EvidenceCommand, EvidenceExport, EvidenceList, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_foundation::base::count;
use kforge_ops::Error;
use kforge_ops::evidence::{self, ExportRequest, ListRequest, Listed};
use kforge_pipeline::release::evidence_list;

/// Runs the command.
pub fn run(context: &Context, command: &EvidenceCommand) -> CommandResult {
    match command {
        EvidenceCommand::Export(args) => export(context, args),
        EvidenceCommand::Import(args) => {
            evidence::import(&context.session, &args.files)?;
            Ok(Exit::Done)
        }
        EvidenceCommand::List(args) => list(context, args),
    }
}

fn export(context: &Context, args: &EvidenceExport) -> CommandResult {
    let request = ExportRequest { words: args.select.words(), output: args.output.clone(), all: args.all };
    let exported = evidence::export(&context.session, &request)?;
    let kinds: Vec<String> = exported.records.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let text = format!(
        "{} ({}) to `{}`, {}, unsigned",
        count(exported.records.values().sum::<u64>(), "record"),
        kinds.join(", "),
        exported.path.display(),
        bytes(exported.bytes)
    );
    context.console.status("Exported", &text);
    Ok(Exit::Done)
}

fn list(context: &Context, args: &EvidenceList) -> CommandResult {
    let request = ListRequest { words: args.select.words(), file: args.file.clone(), all: args.all };
    let Listed { held, more, open } = evidence::list(&context.session, &request)?;
    if args.message_format == MessageFormat::Json {
        for holding in &held {
            let line = serde_json::to_string(holding).map_err(Error::from)?;
            context.console.out(&format!("{line}\n"));
        }
    } else {
        let now = jiff::Timestamp::try_from(context.session.began).map_err(|e| context.fail(&e.to_string()))?;
        context.console.out(&evidence_list::text(&held, now));
    }
    let rest = match more {
        0 => String::new(),
        1 if open => "; 1 more belongs to no known step (`--all` lists it)".into(),
        1 => "; 1 more answers no question of this plan (`--all` lists it)".into(),
        n if open => format!("; {n} more belong to no known step (`--all` lists them)"),
        n => format!("; {n} more answer no question of this plan (`--all` lists them)"),
    };
    context.console.status("Found", &format!("{} of evidence{rest}", count(held.len() as u64, "record")));
    if open {
        context.console.status(
            "",
            "some questions of this plan are not known yet: `kforge build` shows which records answer them",
        );
    }
    Ok(Exit::Done)
}
