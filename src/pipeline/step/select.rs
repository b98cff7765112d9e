//! select: chooses the variant for each class of shapes, or, before that, the variants that are close enough to the best to be timed in full or in pairs.

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::Severity;
use kforge_numerics::measure::select::{SelectInputs, finalists, nominate, select};
use kforge_types::record::Verdict;
use kforge_types::record::inspection::Inspection;
use kforge_types::record::kind::calls::documents::CallsObserved;
use kforge_types::record::params::{Attribution, Fate, Judgement, Nomination, Nominees, SelectParams};
use kforge_types::record::timing::{BenchObserved, Series};

use super::io;

/// The call times of a contender, as a series of cold times: that of a bench and of calls are never in one selection.
fn times(seen: CallsObserved) -> Option<BenchObserved> {
    let series = Series { samples_ns: seen.call_ns, dropped: seen.dropped };
    let cold = Some(series).filter(|series| !series.samples_ns.is_empty() && seen.untimed.is_none());
    cold.map(|cold| BenchObserved { cold: Some(cold), verified: true, ..BenchObserved::default() })
}

/// Takes what timed calls gave into account: wrong ones fail the contender, and unless they are known to be correct, their times do not count.
fn believe(known: &mut SelectInputs, contender: u32, other: Option<u32>, shape: u32, judgement: Judgement) {
    if judgement.verdict == Verdict::Pass {
        return;
    }
    match other {
        Some(other) => {
            known.pairs.remove(&(contender, other, shape));
            known.pairs.remove(&(other, contender, shape));
        }
        None => drop(known.benches.remove(&(contender, shape))),
    }
    if matches!(judgement.verdict, Verdict::Fail(_)) {
        known.judgements.insert((contender, shape), judgement);
    }
}

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: SelectParams = io::params(job)?;
    let mut known = SelectInputs::default();
    let mut harmful: Vec<u32> = vec![];
    // What calls of kernels in PyTorch gave while they were timed: the contender, with whom it was paired, the shape.
    let mut calls: Vec<(u32, Option<u32>, u32, Judgement)> = vec![];
    for name in job.spec.inputs.keys() {
        let (kind, numbers) = io::numbered(name);
        match (kind, &numbers[..]) {
            ("built", [v]) => {
                let inspection: Option<Inspection> = io::document(job, name)?;
                if inspection.is_none_or(|seen| !seen.refused.is_empty()) {
                    known.unbuilt.insert(*v);
                }
            }
            ("judgement", [v, s]) => drop(io::document(job, name)?.map(|d| known.judgements.insert((*v, *s), d))),
            ("emulated", [v, s]) => drop(io::document(job, name)?.map(|d| known.emulated.insert((*v, *s), d))),
            ("called", [v, s]) => {
                let called: Option<CallsObserved> = io::document(job, name)?;
                drop(called.and_then(times).map(|seen| known.benches.insert((*v, *s), seen)));
            }
            ("confirmed", [v, s]) => calls.extend(io::document(job, name)?.map(|d| (*v, None, *s, d))),
            ("sound", [v, other, s]) => calls.extend(io::document(job, name)?.map(|d| (*v, Some(*other), *s, d))),
            ("bench", [v, s]) => drop(io::document(job, name)?.map(|d| known.benches.insert((*v, *s), d))),
            ("attribution", [i]) => {
                let found: Option<Attribution> = io::document(job, name)?;
                harmful.extend(found.filter(|found| found.fate == Fate::Harmful).map(|_| *i));
            }
            ("few", [v, s]) => drop(io::document(job, name)?.map(|d| known.few.insert((*v, *s), d))),
            ("pairs", [a, b, s]) => drop(io::document(job, name)?.map(|d| known.pairs.insert((*a, *b, *s), d))),
            _ => return Err(io::failed(format!("BUG: select does not know input `{name}`"))),
        }
    }
    for (contender, other, shape, judgement) in calls {
        believe(&mut known, contender, other, shape, judgement);
    }
    if params.challenge {
        harmful.sort_unstable();
        let summary = format!("{} of the champions' methods cost time", harmful.len());
        let class = Nominees { class: String::new(), best: None, near: harmful, shapes: vec![] };
        return io::one(job, "nomination", &Nomination { classes: vec![class] }, summary);
    }
    if let Some(finals) = &params.finals {
        let nomination = finalists(&params, finals, &known);
        let near: usize = nomination.classes.iter().map(|c| c.near.len()).sum();
        return io::one(job, "nomination", &nomination, format!("{near} to be timed in full"));
    }
    if let Some(shortlist) = &params.shortlist {
        let nomination = nominate(&params, shortlist, &known);
        let near: usize = nomination.classes.iter().map(|c| c.near.len()).sum();
        let with = if shortlist.splits { "the champions of their classes" } else { "the best" };
        return io::one(job, "nomination", &nomination, format!("{near} to be paired with {with}"));
    }
    let selection = select(&params, &known);
    let lines: Vec<String> = selection.champions.iter().map(|c| format!("{}: {}", c.class, c.because)).collect();
    let mut ran = io::one(job, "selection", &selection, lines.join("; "))?;
    for champion in selection.champions.iter().filter(|c| c.variant.is_none()) {
        let text = format!("no champion: {}", champion.because);
        // An unknown variant may be correct, and one that could not be built here may be built elsewhere.
        let all_wrong =
            !selection.wrong.is_empty() && selection.wrong.len() + known.unbuilt.len() >= params.candidates.len();
        if params.answers && all_wrong {
            ran.verdict.get_or_insert_with(|| Verdict::Fail(text.clone()));
        }
        ran.notes.push(io::note(Severity::Error, "select.none", text));
    }
    Ok(ran)
}
