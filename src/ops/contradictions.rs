//! Evidence that contradicts other evidence. Knows the outcome of a build and the records behind it; decides no verdict.
//!
//! | what contradicts | where it is looked for |
//! |---|---|
//! | two records of one question that disagree (one passes, one fails): the build took one and could have taken the other | at each verification of a device that a record answered |
//! | a claimed pass, where the emulator says that the same variant fails at the same shape | at each judgement of a device, if the plan has the emulated one too |
//!
//! Both mean that somebody's evidence is wrong, so they are errors and not verdicts: a build must not choose whom to believe.
//!
//! * Records are compared by what the same tolerance concludes from them, not by their bytes: a kernel that is correct and not deterministic is observed
//!   differently each time.
//! * An unknown contradicts nothing.
//! * Trials that the question does not determine, such as those of a fresh seed, are left out: only equal inputs can contradict each other.
//! * Records of one origin do not contradict each other. Whoever measures again replaces what he measured before.
//! * A signed or an own pass may differ from the emulator: hardware decides, and the emulator's failure is a verdict of its own.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::Session;
use crate::event::Event;
use crate::session::build::Ready;
use kforge_engine::evidence::{HERE, HOME, IndexedRecord};
use kforge_engine::{Blobs, BuildOutcome, Done, Node, Source};
use kforge_foundation::base::Diagnostic;
use kforge_numerics::measure::judge::judge;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{JudgeParams, VerifyParams};
use kforge_types::record::{Standing, StepKind, Verdict, VerifyObservation};

/// Evidence that contradicts other evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// Two records of one question.
    Records {
        /// A step that asks it.
        step: String,
        /// The record that answered.
        answer: Witnessed,
        /// The other record.
        other: Witnessed,
    },
    /// A claimed pass of a variant that the emulator says is wrong.
    Emulator {
        /// The judgement that passes.
        step: String,
        /// Who claims the observation.
        origin: String,
        /// The judgement of the emulated variant.
        emulated: String,
    },
}

/// A record, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witnessed {
    /// The digest of the record, shortened.
    pub record: String,
    /// The bundle that brought it, or [`HERE`] or [`HOME`].
    pub origin: String,
    /// When it was measured.
    pub measured_at: String,
    /// Whether it passes; otherwise it fails.
    pub passes: bool,
}

impl Contradiction {
    /// The bundle that must be wrong, because this machine observed the opposite or emulates it; none if nobody can tell which of two is wrong.
    pub fn refused(&self) -> Option<&str> {
        match self {
            Contradiction::Records { answer, other, .. } if answer.origin == HERE => Some(&other.origin),
            Contradiction::Records { .. } => None,
            Contradiction::Emulator { origin, .. } => Some(origin),
        }
    }

    /// The contradiction as an error with advice.
    pub fn diagnostic(&self) -> Diagnostic {
        let advice = match self.refused() {
            Some(HOME) => "only another measurement on a machine with the device decides which is right".to_string(),
            Some(origin) => {
                format!("`{origin}` is refused as a whole: remove it, or have it recorded again by somebody you trust")
            }
            None => "one of the bundles is wrong: only another measurement on a machine with the device decides".into(),
        };
        Diagnostic::error("evidence.contradiction", self.to_string()).hint(advice)
    }
}

fn origin(origin: &str) -> String {
    match origin {
        HERE => "observed here".into(),
        HOME => "from the home".into(),
        bundle => format!("from `{bundle}`"),
    }
}

impl fmt::Display for Witnessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passes { "passes" } else { "fails" };
        write!(f, "record {} of {}, {}, {verdict}", self.record, self.measured_at, origin(&self.origin))
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::Records { step, answer, other } => {
                write!(f, "evidence contradicts itself at `{step}`: {answer}; {other}")
            }
            Contradiction::Emulator { step, origin, emulated } => write!(
                f,
                "evidence contradicts the emulator: `{step}` passes, as `{origin}` claims, and `{emulated}` fails"
            ),
        }
    }
}

/// The contradictions in the evidence of a build, in the order of the plan. Reports each as an error.
pub(crate) fn report(session: &Session, ready: &Ready<'_>, outcome: &BuildOutcome) -> Vec<Contradiction> {
    let all = find(ready, outcome);
    all.iter().for_each(|found| session.reporter.event(&Event::Diagnostic(&found.diagnostic())));
    all
}

fn find(ready: &Ready<'_>, outcome: &BuildOutcome) -> Vec<Contradiction> {
    let rivals = ready.findings().rivals;
    let steps = || outcome.graph.nodes().zip(&outcome.steps);
    let emulated: HashMap<Subject<'_>, &Node> = steps()
        .filter(|(node, done)| {
            node.kind == StepKind::Judge && fails(done) && !observed(outcome, node).is_some_and(is_device)
        })
        .filter_map(|(node, _)| Some((subject(&node.labels)?, node)))
        .collect();
    let (mut all, mut known) = (vec![], BTreeSet::new());
    for (node, done) in steps().filter(|(node, _)| node.kind == StepKind::Judge) {
        let Some((verify, seen)) = observed(outcome, node) else { continue };
        if let Some(key) = seen.key.filter(|key| rivals.contains_key(key) && known.insert(*key)) {
            let (answer, others) = &rivals[&key];
            all.extend(others.iter().filter_map(|other| contradict(ready, (node, verify), answer, other)));
        }
        let claimed = seen.evidence.as_ref().filter(|evidence| evidence.standing == Standing::Claimed);
        let passes = matches!(done.result.as_ref().and_then(|r| r.verdict.as_ref()), Some(Verdict::Pass));
        if let (Some(evidence), true) = (claimed, passes)
            && let Some(other) = subject(&node.labels).and_then(|subject| emulated.get(&subject))
        {
            let (step, emulated) = (node.id.clone(), other.id.clone());
            all.push(Contradiction::Emulator { step, origin: evidence.origin.clone(), emulated });
        }
    }
    all
}

/// What two judgements have in common that are about the same code at the same shape on different targets.
type Subject<'l> = (&'l str, &'l str, &'l str, &'l str, Option<u32>, Option<&'l str>);

fn subject(labels: &Labels) -> Option<Subject<'_>> {
    let Labels { package, kernel, variant, shape, round, method, .. } = labels;
    Some((package, kernel.as_deref()?, variant.as_deref()?, shape.as_deref()?, *round, method.as_deref()))
}

fn fails(done: &Done) -> bool {
    matches!(done.result.as_ref().and_then(|result| result.verdict.as_ref()), Some(Verdict::Fail(_)))
}

fn is_device((verify, _): (&Node, &Done)) -> bool {
    verify.resources.device.is_some()
}

/// The verification that a judgement reads.
fn observed<'o>(outcome: &'o BuildOutcome, judgement: &Node) -> Option<(&'o Node, &'o Done)> {
    let verify = judgement.inputs.values().find_map(|input| match &input.source {
        Source::Output { node, name, .. } if name == "observation" => Some(node),
        _ => None,
    })?;
    let index = outcome.graph.find(verify)?;
    Some((outcome.graph.node(index), outcome.steps.get(index as usize)?))
}

/// Whether two records of one question contradict each other.
fn contradict(
    ready: &Ready<'_>,
    (judgement, verify): (&Node, &Node),
    answer: &IndexedRecord,
    other: &IndexedRecord,
) -> Option<Contradiction> {
    // A judgement whose parameters cannot be read has no verdict either.
    let params: JudgeParams = serde_json::from_value(judgement.params.clone()).ok()?;
    let asked: VerifyParams = serde_json::from_value(verify.params.clone()).ok()?;
    let passes = |of: &IndexedRecord| seen(ready, of).of_the_question(&asked).passes(&params);
    let (a, b) = (passes(answer)?, passes(other)?);
    let of = |seen: &IndexedRecord, passes| Witnessed {
        record: seen.digest.short(),
        origin: seen.origin.clone(),
        measured_at: seen.record.provenance.measured_at.clone(),
        passes,
    };
    (a != b).then(|| Contradiction::Records { step: verify.id.clone(), answer: of(answer, a), other: of(other, b) })
}

/// What a record of a verification says.
enum Seen {
    /// The verdict of a run that compared nothing: a crash.
    Ended(Option<Verdict>),
    /// What was compared.
    Observed(Box<VerifyObservation>),
}

impl Seen {
    /// The same without trials that the question does not determine: their inputs may differ from one record to the next.
    fn of_the_question(self, asked: &VerifyParams) -> Seen {
        match self {
            Seen::Observed(mut observation) => {
                observation.trials.retain(|seen| asked.trials.iter().any(|trial| trial.trial == seen.trial));
                observation.asked = observation.asked.min(asked.trials.len() as u32);
                Seen::Observed(observation)
            }
            ended => ended,
        }
    }

    /// Whether it passes; none if that is unknown.
    fn passes(&self, params: &JudgeParams) -> Option<bool> {
        let verdict = match self {
            Seen::Ended(verdict) => verdict.clone()?,
            Seen::Observed(observation) => judge(observation, &params.tolerance).verdict,
        };
        match verdict {
            Verdict::Pass => Some(true),
            Verdict::Fail(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }
}

fn seen(ready: &Ready<'_>, seen: &IndexedRecord) -> Seen {
    let observation = seen.record.result.outputs.get("observation");
    let bytes = observation.and_then(|digest| ready.leaves.get(digest).ok().flatten());
    match bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        Some(observation) => Seen::Observed(Box::new(observation)),
        None => Seen::Ended(seen.record.result.verdict.clone()),
    }
}
