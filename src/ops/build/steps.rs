//! Executes the steps of a build and passes their events to the observer.

use crate::event::{Purpose, Steps, Warning};
use crate::session::build::{Packages, Ready};
use crate::session::places::Places;
use crate::session::{Opened, Session};
use kforge_engine::{Blobs, BuildOutcome, Done, Graph, GraphError, Node};
use kforge_foundation::base::Severity;
use kforge_pipeline::step::judge::{JUDGED, VALUES};
use kforge_types::record::event::{Event, StepFinished};
use kforge_types::record::{Note, Outcome, StepKind, Unknown, Verdict};

/// Executes the plan. `timed` collects the steps that ran, as they end.
pub fn execute(
    session: &Session,
    opened: &Opened,
    ready: &mut Ready<'_>,
    packages: &Packages,
    purpose: Purpose,
    mut timed: Option<&mut Vec<StepFinished>>,
) -> BuildOutcome {
    // The engine takes the graph and returns it in the outcome.
    let graph = std::mem::take(&mut ready.graph);
    let ready = &*ready;
    let places = Places::new(&graph, &ready.journal, &*ready.leaves);
    let log = |id: &str| log_of(ready, id);
    let observer = session.reporter.observer();
    let mut watch = observer.watch(Steps { packages, purpose, log: &log, gauge: &ready.options.gauge }, &graph);
    let mut on_event = |event: Event| {
        let event = places.event(event);
        match &event {
            Event::StepFinished(step) => {
                if let Some(timed) = timed.as_mut().filter(|_| step.started_ms.is_some()) {
                    timed.push((**step).clone());
                }
            }
            Event::Diagnostic { message, .. } => session.reporter.warn(Warning::Store { text: message.clone() }),
            _ => {}
        }
        watch.event(&event);
    };
    let outcome = ready.with_services(session, opened, |services| {
        kforge_engine::build(graph, &ready.options, services, &mut on_event)
    });
    watch.ended();
    // Without a key nothing counts, which has been said.
    if ready.machine_key.is_some() {
        let (results, observations) = (ready.authentication.refused(), ready.findings().claimed.len() as u64);
        if results + observations > 0 {
            session.reporter.warn(Warning::NotOwn { results, observations });
        }
    }
    outcome
}

/// The graph of a build that has ended. Failed steps become unavailable: otherwise they would be tried again, and steps that can do without them would count as
/// unknown.
pub(crate) fn ended(outcome: BuildOutcome) -> Result<Graph, GraphError> {
    if outcome.counts.failed == 0 {
        return Ok(outcome.graph);
    }
    let ended = |(node, done): (&Node, &Done)| match &done.outcome {
        Outcome::Failed(why) => Node { unavailable: Some(why.clone()), ..node.clone() },
        _ => node.clone(),
    };
    Graph::new(outcome.graph.nodes().zip(&outcome.steps).map(ended).collect())
}

/// The compiler's output in a compile step, from this run or the last one.
fn log_of(ready: &Ready<'_>, id: &str) -> String {
    let log = ready.journal.last(id).and_then(|row| row.result?.outputs.get("log").copied());
    let bytes = log.and_then(|digest| ready.leaves.get(&digest).ok().flatten()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a note of a judgement warns of a likely mistake in a kernel that passed.
pub fn is_doubt(note: &Note) -> bool {
    note.code == JUDGED && note.severity == Severity::Warning
}

/// Whether a failed judgement knows only of wrong values, and not of what the kernel did to make them so.
pub fn is_about_values(note: &Note) -> bool {
    note.code == VALUES
}

/// Whether a step of a successful build has a message that kforge must repeat in every build.
pub(super) fn complains(outcome: &BuildOutcome) -> bool {
    let steps = outcome.graph.nodes().zip(&outcome.steps);
    let own = |node: &Node| node.kind != StepKind::Match && node.labels.method.is_none() && node.labels.round.is_none();
    steps.filter(|(node, _)| own(node)).filter_map(|(node, done)| Some((node, done.result.as_ref()?))).any(
        |(node, result)| {
            matches!(result.verdict, Some(Verdict::Fail(_) | Verdict::Unknown(Unknown::Indecisive(_))))
                || node.kind == StepKind::Judge && result.notes.iter().any(is_doubt)
        },
    )
}
