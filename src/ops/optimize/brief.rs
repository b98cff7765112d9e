//! Briefs an agent about a kernel's rounds, from their results. Knows both; asks no agent. No briefing reveals a holdout shape.

use std::collections::BTreeMap;

use super::results::{Became, Results};
use crate::session::rounds::{About, Recorded};
use kforge_foundation::base::Digest;
use kforge_pipeline::optimize::agents::briefing::{
    Branch, Briefing, Exemplar, FailedAttempt, Hardware, MethodToTry, Parent, PastRound, Visible,
};
use kforge_pipeline::optimize::exemplars::{TAU, exemplars as draw};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_types::model::limits::{REGISTERS_OF_A_BLOCK, shared_of_a_block};
use kforge_types::model::{Operator, ShapeRole, Target, Tolerance, TypeChoice};
use kforge_types::record::round::Decision;

/// The briefing of an agent before an attempt at a round. `decision` states what the round tries.
pub(super) fn briefing(
    about: About<'_>,
    recorded: &Recorded,
    results: &Results<'_, '_>,
    decision: Option<&Decision>,
    (round, attempt, branches): (u32, u32, u32),
) -> Briefing {
    let About { kernel, operator, choice, target, .. } = about;
    let roofline = results.champion().and_then(|champion| results.roofline(champion));
    let briefing = Briefing {
        kernel: kernel.name.clone(),
        language: kernel.language,
        contract: recorded.contract.clone(),
        tolerance: tolerance(operator, choice),
        shapes: operator.shapes.iter().filter_map(Visible::of).collect(),
        target: Hardware { arch: target.arch.name().into(), product: target.device.clone(), limits: limits(target) },
        round,
        attempt,
        branches,
        methods: decision
            .iter()
            .flat_map(|d| &d.methods)
            .map(|method| MethodToTry::of(method, kernel.language))
            .collect(),
        parent: parent(about, recorded, results, roofline.as_ref().and_then(|r| r.time_ns)),
        failed: (attempt > 0).then(|| failed(about, recorded, results, round)).flatten(),
        history: (1..round).map(|round| past(about, recorded, results, round)).collect(),
        exemplars: exemplars(recorded, results, roofline.as_ref().and_then(|r| r.shape), round),
        ..Briefing::default()
    };
    match &roofline {
        Some(roofline) => briefing.measured(roofline),
        None => briefing,
    }
}

/// The digest of the source from which the next candidates descend.
pub(super) fn parent_digest(recorded: &Recorded, results: &Results<'_, '_>) -> Option<Digest> {
    source_of(recorded, results.champion()).map(|(source, _)| Digest::of(source.as_bytes()))
}

/// The source and declaration of a variant; those of the rounds' start if there is no champion.
fn source_of(recorded: &Recorded, build: Option<&PlannedVariant>) -> Option<(String, String)> {
    match build.and_then(|b| b.written.as_ref()).and_then(|w| w.kernel.made()) {
        Some(made) => Some((made.source.to_string(), made.declaration.to_string())),
        None => Some((recorded.source.clone()?, recorded.declaration.clone())),
    }
}

fn parent(about: About<'_>, recorded: &Recorded, results: &Results<'_, '_>, time_ns: Option<f64>) -> Option<Parent> {
    let champion = results.champion();
    let (source, declaration) = source_of(recorded, champion)?;
    let tunables = champion.map(|b| b.variant.values.clone()).unwrap_or_default();
    // A champion may be undecided, and therefore not known to be correct.
    let verified = champion.is_some_and(|build| results.became(about.operator, build) == Became::Correct);
    Some(Parent { source, declaration, tunables, time_ns, verified })
}

/// The results of the last attempt at a round.
fn failed(about: About<'_>, recorded: &Recorded, results: &Results<'_, '_>, round: u32) -> Option<FailedAttempt> {
    let at = recorded.answers.iter().rposition(|answer| answer.question.round == round)?;
    let proposal = recorded.answers[at].proposal.as_ref();
    let mut out = FailedAttempt {
        source: proposal.and_then(|p| p.source.clone()),
        declaration: proposal.and_then(|p| p.declaration.clone()),
        branches: vec![],
    };
    if let Some(why) = recorded.refused.get(&at) {
        out.branches.push(Branch::new(BTreeMap::new(), &hide(about.operator, why)));
        return Some(out);
    }
    let written = recorded.attempts[at].written.as_ref().map(|kernel| &kernel.source);
    for (build, became) in results.of_round(about.operator, round) {
        if build.written.as_ref().map(|w| &w.kernel.source) != written {
            continue;
        }
        let tunables = build.variant.values.clone();
        out.branches.push(match became {
            Became::Refused(log) => {
                Branch::new(tunables, &hide(about.operator, &format!("it does not compile:\n{log}")))
            }
            Became::Wrong(how) => Branch::new(tunables, &hide(about.operator, &how)),
            Became::Hidden => Branch::hidden(tunables),
            Became::Idle => Branch::new(tunables, "`requires` excludes every shown shape"),
            Became::Correct | Became::Undecided => continue,
        });
    }
    Some(out)
}

/// The text of another program, or nothing if it names a holdout shape.
fn hide(operator: &Operator, text: &str) -> String {
    let held = operator.shapes.iter().filter(|shape| shape.role == ShapeRole::Holdout);
    let probe = Briefing { contract: text.into(), ..Briefing::default() };
    match probe.reveals(held.map(|shape| shape.name.as_str())).is_empty() {
        true => text.into(),
        false => "it is wrong for a holdout shape".into(),
    }
}

/// The results of an earlier round.
fn past(about: About<'_>, recorded: &Recorded, results: &Results<'_, '_>, round: u32) -> PastRound {
    let last = recorded.attempts.iter().rfind(|a| a.round == round);
    let methods = last.map(|a| a.methods.clone()).unwrap_or_default();
    // The number of correct variants, over many rounds, would reveal holdout shapes.
    let any = results.of_round(about.operator, round).iter().any(|(_, became)| *became == Became::Correct);
    let mut became = vec![if any { "a variant was correct" } else { "no variant was correct" }.to_string()];
    // The decision of the next round knows what this round's champion showed of its methods.
    let settled = results.decision(round + 1).map(|d| d.settled).unwrap_or_default();
    for method in &methods {
        became.push(match settled.get(method) {
            None => format!("{method}: no champion has used it"),
            Some(settled) => {
                format!("{method}: {}: {}", settled.fate.name(), settled.attribution.because)
            }
        });
    }
    PastRound { round, methods, became }
}

/// Two variants of these rounds with different scores, chosen among the fastest variant of each source. A score is the speedup over the start of the rounds.
/// Empty without times.
fn exemplars(recorded: &Recorded, results: &Results<'_, '_>, shape: Option<u32>, round: u32) -> Vec<Exemplar> {
    let Some(selected) = &results.selected else { return vec![] };
    let times = shape.map(|at| results.times(at)).unwrap_or_default();
    let Some(first) = selected.builds.first().and_then(|b| times.get(&b.label)) else { return vec![] };
    let champion = results.champion().map(|b| &b.label);
    let mut all: Vec<Exemplar> = vec![];
    for build in selected.builds.iter().filter(|b| b.round > 0 && b.written.is_some() && Some(&b.label) != champion) {
        let (Some(time), Some((source, declaration))) = (times.get(&build.label), source_of(recorded, Some(build)))
        else {
            continue;
        };
        let note = format!("round {}, {}", build.round, build.name());
        let score = first / time;
        let exemplar = Exemplar { source, declaration: Some(declaration), score: Some(score), note };
        match all.iter_mut().find(|other| other.source == exemplar.source) {
            Some(other) if other.score.is_some_and(|other| other < score) => *other = exemplar,
            Some(_) => {}
            None => all.push(exemplar),
        }
    }
    let scores: Vec<f64> = all.iter().filter_map(|exemplar| exemplar.score).collect();
    // The same prompt always gets the same draw.
    let seed = u64::from_be_bytes(std::array::from_fn(|at| recorded.chain.hash()[at]));
    let drawn = draw(&scores, TAU, seed ^ u64::from(round));
    drawn.into_iter().filter_map(|at| all.get(at).cloned()).collect()
}

/// The tolerance at shapes that are shown.
fn tolerance(operator: &Operator, choice: &TypeChoice) -> String {
    let mut lines: Vec<String> = vec![];
    for shape in operator.shapes.iter().filter(|shape| shape.role != ShapeRole::Holdout) {
        let line = match operator.tolerances(choice, shape) {
            None => "derived from the dtype and the length of the longest sum".to_string(),
            Some(all) => all.iter().map(|(name, t)| format!("{name}: {}", terms(t))).collect::<Vec<_>>().join("; "),
        };
        let line = match shape.tolerance {
            None => line,
            Some(_) => format!("at shape {}: {line}", shape.name),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The nonzero terms of a tolerance.
fn terms(tolerance: &Tolerance) -> String {
    let of = [("atol", tolerance.atol), ("rtol", tolerance.rtol), ("ulp", tolerance.ulp), ("scaled", tolerance.scaled)];
    let mut out: Vec<String> = of.iter().filter(|(_, v)| *v != 0.0).map(|(name, v)| format!("{name} = {v}")).collect();
    if tolerance.matched < 1.0 {
        out.push(format!("for a share of {}", tolerance.matched));
    }
    if out.is_empty() { "exact".into() } else { out.join(", ") }
}

/// The limits of a block on an architecture.
fn limits(target: &Target) -> Vec<(String, String)> {
    let mut out = vec![("threads of a block".to_string(), "1024".to_string())];
    let digits: String = target.arch.name().chars().filter(char::is_ascii_digit).collect();
    if let Some(shared) = digits.parse().ok().and_then(shared_of_a_block) {
        out.push(("shared memory of a block".into(), format!("{shared} bytes")));
        out.push(("registers of a block".into(), REGISTERS_OF_A_BLOCK.to_string()));
    }
    out
}
