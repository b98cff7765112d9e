//! The result of a step. Knows documents of steps and the positions in their texts.

use super::{RunError, verification};
use crate::session::build::Ready;
use crate::session::places::Places;
use kforge_engine::{Blobs, BuildOutcome, Node};
use kforge_pipeline::step::judge::TOLERATED;
use kforge_types::model::Problem;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{CompileFacts, CompileParams, Judgement, VerifyParams};
use kforge_types::record::{Inspection, Outcome, StepKind, StepResult, Verdict, VerifyObservation};

/// The result of a run.
#[derive(Debug)]
pub enum RunResult {
    /// A variant was judged on a shape.
    Judged(Box<Judged>),
    /// Another step ended.
    Step(Box<StepEnd>),
}

/// The judgement of a variant on a shape. Positions in texts are files and lines.
#[derive(Debug)]
pub struct Judged {
    /// The kernel, its variant, target and shape.
    pub labels: Labels,
    /// The judgement.
    pub judgement: Judgement,
    /// Further notes of the step, one sentence each.
    pub noted: Vec<String>,
    /// The observation; none if nothing could run.
    pub observation: Option<VerifyObservation>,
    /// The operator at that shape.
    pub problem: Option<Problem>,
}

/// The end of a step that compares nothing. Positions in texts are files and lines.
#[derive(Debug)]
pub struct StepEnd {
    /// Its id.
    pub id: String,
    /// The step's outcome.
    pub outcome: Outcome,
    /// The step's output, if it can be shown.
    pub output: Option<Output>,
    /// The step's notes.
    pub notes: Vec<String>,
    /// The step's verdict, if it has one.
    pub verdict: Option<Verdict>,
    /// Whether this step failed, or one that it needs.
    pub failed: bool,
}

/// The output of a step.
#[derive(Debug)]
pub enum Output {
    /// A binary.
    Compiled(Box<CompileFacts>, Box<CompileParams>),
    /// The contents of a binary.
    Inspected(Box<Inspection>),
    /// Its document is no longer in the store.
    Gone,
}

/// The judgement of a judge step.
pub(super) fn judged(ready: &Ready<'_>, outcome: &BuildOutcome, judge: &Node) -> Result<Judged, RunError> {
    let output = |id: &str, name: &str| -> Option<Vec<u8>> {
        ready.leaves.get(outcome.step(id)?.result.as_ref()?.outputs.get(name)?).ok()?
    };
    if outcome.counts.failed > 0 {
        return Err(RunError::Failed);
    }
    let judgement = output(&judge.id, "judgement").and_then(|b| serde_json::from_slice::<Judgement>(&b).ok());
    let Some(mut judgement) = judgement else {
        let why = match outcome.step(&judge.id).map(|s| &s.outcome) {
            Some(Outcome::Unavailable(why)) => why.clone(),
            Some(Outcome::Skipped(root)) => format!("`{root}` gave no result"),
            _ => "its result is gone from the store".into(),
        };
        return Err(RunError::Nothing { step: judge.id.clone(), why });
    };
    let (mut observation, mut problem) = (None, None);
    if let Some(verify) = verification(judge) {
        observation = output(verify, "observation").and_then(|b| serde_json::from_slice::<VerifyObservation>(&b).ok());
        // The observation names positions in the binary; people need lines.
        let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
        judgement.explanation = places.text(verify, &judgement.explanation);
        judgement.verdict = places.verdict(verify, judgement.verdict);
        for finding in observation.iter_mut().flat_map(|o| &mut o.findings) {
            finding.message = places.text(verify, &finding.message);
        }
        let params = outcome.graph.find(verify).map(|i| outcome.graph.node(i).params.clone());
        problem = params.and_then(|p| serde_json::from_value::<VerifyParams>(p).ok()).map(|p| p.problem);
    }
    let notes = outcome.step(&judge.id).and_then(|done| done.result.as_ref()).map_or(&[][..], |r| &r.notes);
    let noted = notes.iter().filter(|n| n.code == TOLERATED).map(|n| n.message.clone()).collect();
    Ok(Judged { labels: judge.labels.clone(), judgement, noted, observation, problem })
}

/// The end of a step that compares nothing.
pub(super) fn ended(ready: &Ready<'_>, outcome: &BuildOutcome, wanted: &Node) -> Result<StepEnd, RunError> {
    let done = outcome.step(&wanted.id).ok_or_else(|| RunError::Lost(wanted.id.clone()))?;
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    let result = done.result.as_ref();
    let verdict = result.and_then(|r| r.verdict.clone());
    Ok(StepEnd {
        id: wanted.id.clone(),
        outcome: done.outcome.clone(),
        output: result.and_then(|result| output(ready, result, wanted)),
        notes: result.iter().flat_map(|r| &r.notes).map(|note| places.text(&wanted.id, &note.message)).collect(),
        verdict: verdict.map(|verdict| places.verdict(&wanted.id, verdict)),
        failed: outcome.counts.failed > 0,
    })
}

/// The output of a compile or an inspect step; none for other steps, and if the step had no output.
fn output(ready: &Ready<'_>, result: &StepResult, wanted: &Node) -> Option<Output> {
    let name = match wanted.kind {
        StepKind::Compile => "facts",
        StepKind::Inspect => "inspection",
        _ => return None,
    };
    let Some(bytes) = ready.leaves.get(result.outputs.get(name)?).ok().flatten() else { return Some(Output::Gone) };
    match wanted.kind {
        StepKind::Compile => {
            let params = serde_json::from_value(wanted.params.clone()).ok()?;
            Some(Output::Compiled(Box::new(serde_json::from_slice(&bytes).ok()?), Box::new(params)))
        }
        _ => Some(Output::Inspected(Box::new(serde_json::from_slice(&bytes).ok()?))),
    }
}
