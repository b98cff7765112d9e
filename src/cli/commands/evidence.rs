//! `kforge evidence list`: what devices were seen to do.

use std::sync::Arc;

use super::{count, external};
use crate::cli::args::EvidenceCommand;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::engine::blobs::Store;
use crate::engine::evidence::Index;

/// Runs the command.
pub fn run(context: &Context, command: &EvidenceCommand) -> Result<Exit, Exit> {
    match command {
        EvidenceCommand::List => {}
        EvidenceCommand::Export(_) => return Err(external::later(context, "evidence export")),
        EvidenceCommand::Import(_) => return Err(external::later(context, "evidence import")),
    }
    let home = context.home()?;
    let index = Index::new(&home, Arc::new(Store::new(&home)));
    let mut records = index.all().map_err(|e| context.fail(&e.to_string()))?;
    records.sort_by(|a, b| {
        let of = |s: &crate::engine::evidence::Seen| {
            (s.record.provenance.device.clone(), s.record.provenance.measured_at.clone(), s.digest)
        };
        of(a).cmp(&of(b))
    });
    for seen in &records {
        let provenance = &seen.record.provenance;
        context.console.out(&format!(
            "{}  {}  from {}  question {}  {}\n",
            provenance.measured_at,
            provenance.device,
            seen.origin,
            seen.record.question.short(),
            seen.record.result.summary
        ));
    }
    context.console.status("Found", &format!("{} of evidence", count(records.len() as u64, "record")));
    Ok(Exit::Done)
}
