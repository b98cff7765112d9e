//! The results of a kernel's rounds: the bottleneck from round to round, the candidates as a tree, the result of each method, and what was spent. Knows
//! answers, documents and labels of steps; decides nothing.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::assemble::{Reader, StepView};
use super::document::{Report, TargetReport};
use crate::plan::challenge::{MOST, challenge_name};
use kforge_types::model::Axis;
use kforge_types::record::answer::Answer;
pub use kforge_types::record::candidate::Became;
use kforge_types::record::params::{Attribution, Fate, Judgement, Selection, detailed};
use kforge_types::record::profile::{Gaps, Roofline};
use kforge_types::record::round::Decision;
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

/// The rounds of a kernel on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoundsReport {
    /// The bench shape whose times are shown: the champion's slowest one; none if nothing was timed.
    pub shape: Option<String>,
    /// The rounds. The first has number 0 and is the start.
    pub rounds: Vec<RoundReport>,
    /// Every candidate, in the order in which they were tried.
    pub candidates: Vec<CandidateReport>,
    /// The result of every method that was tried or that a champion had.
    pub methods: Vec<FateReport>,
    /// The requests to each agent, and their cost.
    pub spent: Vec<SpentReport>,
    /// Why there is no further round, if a decision says so.
    pub over: Option<String>,
}

/// One round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoundReport {
    /// Its number; 0 for the start.
    pub round: u32,
    /// The methods that were tried.
    pub methods: Vec<String>,
    /// The gaps that the decision used: those of the champion before the round. None if no decision is known.
    pub gaps: Option<Gaps>,
    /// What bounded the champion before the round.
    pub bound: Option<Axis>,
    /// The champion after the round; none if no candidate is correct.
    pub champion: Option<String>,
    /// Its median time in nanoseconds.
    pub time_ns: Option<f64>,
    /// Its speedup over the champion before the round.
    pub gain: Option<f64>,
    /// The numbers of its candidates that are correct, wrong, and refused by a compiler or a launch's limits.
    pub counts: (u32, u32, u32),
    /// The number of repairs.
    pub repairs: u32,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CandidateReport {
    /// The round that tried it; 0 for declared variants.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The variant; none if no part of an answer could be tried.
    pub variant: Option<String>,
    /// The champion that it descends from; none for a start, or if there was no champion.
    pub parent: Option<String>,
    /// Its result.
    pub became: Became,
    /// Why it is not correct, if so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Its median time in nanoseconds.
    pub time_ns: Option<f64>,
    /// The rounds after which it was champion.
    pub champion_after: Vec<u32>,
    /// Its source, if an answer proposed one. Candidates of one answer have the same source, and the first of them has it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The result of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FateReport {
    /// Its id.
    pub method: String,
    /// The rounds that tried it.
    pub tried: Vec<u32>,
    /// Its result; none if no champion has used it.
    pub fate: Option<Fate>,
    /// Why, in a line that names no shape.
    pub because: String,
    /// What a verdict adds to the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl FateReport {
    /// The reason with its detail, as text.
    pub(super) fn reason(&self) -> String {
        detailed(&self.because, self.detail.as_deref())
    }

    fn settle(&mut self, fate: Fate, attribution: &Attribution) {
        let Attribution { because, detail, .. } = attribution.clone();
        (self.fate, self.because, self.detail) = (Some(fate), because, detail);
    }
}

/// The requests to an agent, and their cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpentReport {
    /// The agent: what distinguishes it from other agents, without its key.
    pub agent: String,
    /// Requests.
    pub requests: u32,
    /// Tokens of prompts and replies; none if the agent reports none.
    pub tokens: Option<(u64, u64)>,
    /// The cost at its declared prices; none if it declares none.
    pub money: Option<f64>,
    /// Seconds until it answered, in total.
    pub seconds: f64,
}

/// The rounds of a seat, as recorded and planned.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Package, kernel, types, target.
    pub seat: [String; 4],
    /// The answers.
    pub answers: Vec<Answer>,
    /// By position of an answer: why nothing in it can be tried.
    pub refused: BTreeMap<usize, String>,
    /// The candidates in order: label, round, attempt.
    pub candidates: Vec<(String, u32, u32)>,
}

/// Adds the results of rounds.
pub fn add(report: &mut Report, steps: &[StepView<'_>], all: &[Recorded], reader: &Reader<'_>) {
    for recorded in all {
        let [package, kernel, types, target] = &recorded.seat;
        let kernels = report.packages.iter_mut().filter(|p| p.name == *package).flat_map(|p| &mut p.kernels);
        let mut targets = kernels.filter(|k| k.name == *kernel).flat_map(|k| &mut k.targets);
        let Some(into) = targets.find(|t| t.target == *target && t.types == *types) else { continue };
        let mine = |step: &&StepView<'_>| {
            step.labels.package == *package
                && step.labels.kernel.as_ref() == Some(kernel)
                && step.labels.target.as_ref() == Some(target)
                && step.labels.method.is_none()
        };
        let of_seat = Seat { recorded, steps: steps.iter().filter(mine).collect(), target: into, reader };
        let found = of_seat.report();
        into.rounds = found;
    }
}

/// The steps of one seat.
struct Seat<'a> {
    recorded: &'a Recorded,
    steps: Vec<&'a StepView<'a>>,
    target: &'a TargetReport,
    reader: &'a Reader<'a>,
}

impl Seat<'_> {
    fn report(&self) -> Option<RoundsReport> {
        let Recorded { answers, candidates, .. } = self.recorded;
        if answers.is_empty() {
            return None;
        }
        let last = answers.last().map_or(0, |answer| answer.question.round);
        let ids: HashMap<&str, &StepView<'_>> = self.steps.iter().map(|step| (step.id, *step)).collect();
        let champions: Vec<Option<String>> = (0..=last).map(|round| self.champion(&ids, round, last)).collect();
        let decisions: Vec<Option<Decision>> = (1..=last + 1).map(|round| self.decision(&ids, round)).collect();
        let shape = self.shape(champions.last().and_then(Option::as_deref));
        let time = |label: &str| shape.as_ref().and_then(|shape| self.time(label, shape));
        let after = |label: &str| (0..=last).filter(|r| champions[*r as usize].as_deref() == Some(label)).collect();
        let mut all: Vec<CandidateReport> = vec![];
        for (label, round, attempt) in candidates {
            let (became, because) = self.became(label);
            all.push(CandidateReport {
                round: *round,
                attempt: *attempt,
                variant: Some(label.clone()),
                parent: round.checked_sub(1).and_then(|before| champions[before as usize].clone()),
                became,
                because,
                time_ns: time(label),
                champion_after: after(label),
                source: answers
                    .iter()
                    .find(|answer| (answer.question.round, answer.question.attempt) == (*round, *attempt))
                    .filter(|_| !all.iter().any(|other| (other.round, other.attempt) == (*round, *attempt)))
                    .and_then(|answer| answer.proposal.as_ref()?.source.clone()),
            });
        }
        for (at, why) in &self.recorded.refused {
            let Some(question) = answers.get(*at).map(|answer| &answer.question) else { continue };
            all.push(CandidateReport {
                round: question.round,
                attempt: question.attempt,
                variant: None,
                parent: question.round.checked_sub(1).and_then(|before| champions[before as usize].clone()),
                became: Became::Refused,
                because: why.clone(),
                time_ns: None,
                champion_after: vec![],
                source: None,
            });
        }
        all.sort_by_key(|c| (c.round, c.attempt));
        let rounds = (0..=last).map(|round| {
            let of = |became| all.iter().filter(|c| c.round == round && c.became == became).count() as u32;
            let asked = || answers.iter().filter(move |answer| answer.question.round == round);
            let decision = round.checked_sub(1).and_then(|at| decisions[at as usize].as_ref());
            let champion = champions[round as usize].clone();
            let before = round.checked_sub(1).and_then(|before| time(champions[before as usize].as_deref()?));
            let time_ns = champion.as_deref().and_then(time);
            RoundReport {
                round,
                methods: asked().next().map(|answer| answer.question.methods.clone()).unwrap_or_default(),
                gaps: decision.map(|d| d.gaps),
                bound: round.checked_sub(1).and_then(|at| self.bound(champions[at as usize].as_deref()?)),
                gain: before.zip(time_ns).map(|(before, after)| before / after),
                champion,
                time_ns,
                counts: (of(Became::Correct), of(Became::Wrong), of(Became::Refused)),
                repairs: asked().map(|answer| answer.question.attempt).max().unwrap_or(0),
            }
        });
        let rounds = rounds.collect();
        let methods = self.fates(&decisions);
        let over = decisions.last().and_then(Option::as_ref).and_then(|d| d.stop.clone());
        Some(RoundsReport { shape, rounds, candidates: all, methods, spent: spent(answers), over })
    }

    fn id(&self, part: &str, kind: StepKind) -> String {
        let [package, kernel, types, target] = &self.recorded.seat;
        let parts = [package.as_str(), kernel, types, target, part, kind.name()];
        parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
    }

    fn champion(&self, ids: &HashMap<&str, &StepView<'_>>, round: u32, last: u32) -> Option<String> {
        let step = match round == last {
            false => ids.get(self.id(&format!("r{round}"), StepKind::Select).as_str())?,
            // A selection after a challenge takes the place of the one before it.
            true => {
                let parts = (1..=MOST).rev().map(challenge_name).chain([String::new()]);
                parts.into_iter().find_map(|part| ids.get(self.id(&part, StepKind::Select).as_str()))?
            }
        };
        let selection: Selection = self.reader.document(step.result, "selection")?;
        let order = selection.champions.iter().find_map(|c| c.variant)?;
        self.recorded.candidates.get(order as usize).map(|c| c.0.clone())
    }

    fn decision(&self, ids: &HashMap<&str, &StepView<'_>>, round: u32) -> Option<Decision> {
        let step = ids.get(self.id(&format!("r{round}"), StepKind::Round).as_str())?;
        self.reader.document(step.result, "decision")
    }

    /// The shape at which a champion is slowest.
    fn shape(&self, champion: Option<&str>) -> Option<String> {
        let times = self.target.times.iter().filter(|t| Some(t.variant.as_str()) == champion);
        let longest = times.filter_map(|t| Some((self.of(t)?, &t.shape))).max_by(|a, b| a.0.total_cmp(&b.0));
        longest.map(|(_, shape)| shape.clone())
    }

    fn time(&self, label: &str, shape: &str) -> Option<f64> {
        self.target.times.iter().find(|t| t.variant == label && t.shape == shape).and_then(|t| self.of(t))
    }

    /// The time by which variants are selected.
    fn of(&self, time: &super::document::TimeReport) -> Option<f64> {
        if self.target.basis.as_ref().is_some_and(|basis| basis.hot) { time.hot_ns } else { time.cold_ns }
    }

    fn bound(&self, label: &str) -> Option<Axis> {
        let steps = self.steps.iter().filter(|s| s.kind == StepKind::Roofline);
        let found = steps.filter(|s| s.labels.variant.as_deref() == Some(label));
        found.filter_map(|s| self.reader.document::<Roofline>(s.result, "roofline")).find_map(|r| r.bound)
    }

    /// The result of a candidate, and why it is not correct, if so.
    fn became(&self, label: &str) -> (Became, String) {
        let of = |kinds: &'static [StepKind]| {
            self.steps.iter().filter(|s| s.labels.variant.as_deref() == Some(label) && kinds.contains(&s.kind))
        };
        for step in of(&[StepKind::Compile, StepKind::Inspect]) {
            if let Outcome::Failed(why) = step.outcome {
                return (Became::Refused, why.clone());
            }
            if let Some(Verdict::Fail(why)) = step.result.and_then(|r| r.verdict.as_ref()) {
                return (Became::Refused, why.clone());
            }
        }
        let (mut judged, mut unknown) = (false, None);
        // A shape that tells nothing counts for nothing beside one that does.
        let verdict = |step: &StepView<'_>| step.result.and_then(|r| r.verdict.clone());
        let passes = of(&[StepKind::Judge]).any(|step| verdict(step) == Some(Verdict::Pass));
        for step in of(&[StepKind::Judge]) {
            judged = true;
            let shape = step.labels.shape.clone().unwrap_or_default();
            match step.result.and_then(|r| r.verdict.as_ref()) {
                Some(Verdict::Pass) => {}
                Some(Verdict::Fail(why)) => {
                    let told = self.reader.document::<Judgement>(step.result, "judgement");
                    let told = told.map(|j| j.explanation).filter(|text| !text.is_empty());
                    let told = (self.reader.places)(step.id, &told.unwrap_or_else(|| why.clone()));
                    return (Became::Wrong, format!("at {shape}: {told}"));
                }
                // A champion whose confirmation is missing is as correct as it was when it was selected.
                _ if step.labels.confirms => {}
                Some(Verdict::Unknown(Unknown::Indecisive(_))) if passes => {}
                Some(Verdict::Unknown(why)) => {
                    let told = || (self.reader.places)(step.id, &why.to_string());
                    unknown.get_or_insert_with(|| format!("at {shape}: {}", told()));
                }
                None => drop(unknown.get_or_insert_with(|| format!("at {shape}: no verdict"))),
            }
        }
        match (judged, unknown) {
            (true, None) => (Became::Correct, String::new()),
            (true, Some(why)) => (Became::Undecided, why),
            (false, _) => (Became::Undecided, "it accepts none of the shapes".into()),
        }
    }

    /// The result of every method that was tried or settled.
    fn fates(&self, decisions: &[Option<Decision>]) -> Vec<FateReport> {
        let mut all: BTreeMap<String, FateReport> = BTreeMap::new();
        let blank = |method: &str| FateReport {
            method: method.into(),
            tried: vec![],
            fate: None,
            because: "no champion has used it".into(),
            detail: None,
        };
        for answer in &self.recorded.answers {
            for method in &answer.question.methods {
                let of = all.entry(method.clone()).or_insert_with(|| blank(method));
                if !of.tried.contains(&answer.question.round) {
                    of.tried.push(answer.question.round);
                }
            }
        }
        for (method, settled) in decisions.iter().flatten().flat_map(|d| &d.settled) {
            let of = all.entry(method.clone()).or_insert_with(|| blank(method));
            of.settle(settled.fate, &settled.attribution);
        }
        // No round was decided by the last champion's attributions, so they are added here.
        for found in &self.target.methods {
            if let Some(attribution) = &found.attribution {
                let of = all.entry(found.method.clone()).or_insert_with(|| blank(&found.method));
                if of.fate.is_none() {
                    of.settle(attribution.fate, attribution);
                }
            }
        }
        all.into_values().collect()
    }
}

/// The cost of the answers, by agent.
fn spent(answers: &[Answer]) -> Vec<SpentReport> {
    let mut all: BTreeMap<&str, SpentReport> = BTreeMap::new();
    for exchange in answers.iter().flat_map(|answer| &answer.exchanges) {
        let of = all.entry(&exchange.agent).or_default();
        of.agent.clone_from(&exchange.agent);
        of.requests += 1;
        of.seconds += exchange.took_ms as f64 / 1000.0;
        if let Some((prompt, reply)) = exchange.tokens {
            let (p, r) = of.tokens.unwrap_or_default();
            of.tokens = Some((p + prompt, r + reply));
        }
        if let Some(money) = exchange.money {
            of.money = Some(of.money.unwrap_or(0.0) + money);
        }
    }
    all.into_values().collect()
}

impl SpentReport {
    /// `command ./agent: 4 requests, 1200 + 300 tokens, 0.0120 at its prices, 3.2 s`.
    pub fn line(&self) -> String {
        let noun = if self.requests == 1 { "request" } else { "requests" };
        let mut line = format!("{}: {} {noun}", self.agent, self.requests);
        if let Some((prompt, reply)) = self.tokens {
            line += &format!(", {prompt} + {reply} tokens");
        }
        if let Some(money) = self.money {
            line += &format!(", {money:.4} at its prices");
        }
        format!("{line}, {:.1} s", self.seconds)
    }
}
