//! Plans a build without executing it.

use std::collections::HashMap;

use super::BuildRequest;
use crate::Error;
use crate::session::Session;
use kforge_engine::DryRun;
use kforge_types::record::StepKind;

/// The plan of a build.
#[derive(Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: DryRun,
    /// The kinds of the steps that are planned so far.
    pub kinds: HashMap<String, StepKind>,
}

/// Plans a build and looks up stored results. Takes no lock, and writes nothing except the folder in which a base is checked out. The plan is empty if only changes
/// are built and they touch nothing of the selection.
///
/// # Errors
/// The build could not be started.
pub fn plan(session: &Session, request: &BuildRequest) -> Result<Plan, Error> {
    let mut opened = session.open()?;
    let Ok(selected) = request.selected(session, &opened)? else { return Ok(Plan::default()) };
    let asked = request.asked(selected, false);
    let packages = session.packages(&opened, &asked)?;
    let ready = session.ready(&mut opened, &packages, &asked)?;
    let graph = ready.graph.clone();
    let kinds = graph.nodes().map(|n| (n.id.clone(), n.kind)).collect();
    let steps =
        ready.with_services(session, &opened, |services| kforge_engine::dry_run(graph, &ready.options, services));
    Ok(Plan { steps, kinds })
}
