//! Pairs of champions of two states: measured if there is a device, else looked up among records. Knows stores and the engine; makes its decisions only through
//! [`Decision`].

use super::CompareError;
use super::sides::{Side, Stood};
use crate::event::{Event as Reported, Warning};
use crate::{Error, Session};
use kforge_engine::evidence::Record;
use kforge_engine::{Blobs, BuildOptions, Graph, Node, Source};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::regression::ChampionPair;
use kforge_pipeline::release::comparison::{Decision, Seat};
use kforge_pipeline::release::{Bundle, evidence_list};
use kforge_types::record::event::Event;
use kforge_types::record::timing::{BenchObserved, PairsObserved, Series};
use kforge_types::record::{Outcome, StepKind};

/// The pair, marked as unavailable if one of its inputs is missing here. Records of the pair still count.
pub(super) fn whole(side: &Side<'_, '_>, pair: ChampionPair) -> ChampionPair {
    let lost = pair.node.inputs.iter().find(|(_, input)| match &input.source {
        Source::Blob(digest) => !side.ready.leaves.has(digest),
        Source::Output { .. } => false,
    });
    let name = |name: &str| name.rsplit_once(':').map_or(name, |(what, _)| what).to_string();
    let why = lost.map(|(input, _)| format!("the base's `{}` is not in the store", name(input)));
    let ChampionPair { node, turned } = pair;
    ChampionPair { node: Node { unavailable: node.unavailable.clone().or(why), ..node }, turned }
}

/// The observed pairs, with the head as A, and their origin; or why there are none.
pub(super) type PairResult = Result<(PairsObserved, String), String>;

/// Measures pairs where possible, and looks up records of the others.
pub(super) fn paired(
    session: &Session,
    side: &Side<'_, '_>,
    pairs: Vec<ChampionPair>,
    base: Option<&Bundle>,
) -> Result<Vec<PairResult>, Error> {
    if pairs.is_empty() {
        return Ok(vec![]);
    }
    let Side { opened, ready, .. } = side;
    session.reporter.event(&Reported::Comparing(pairs.len()));
    let pairs = in_known_order(side, pairs)?;
    let graph = Graph::new(pairs.iter().map(|pair| pair.node.clone()).collect())?;
    let options = BuildOptions { keep_going: true, ..ready.options.clone() };
    let mut on_event = |event| {
        if let Event::Diagnostic { message, .. } = event {
            session.reporter.warn(Warning::Store { text: message });
        }
    };
    let outcome =
        ready.with_services(session, opened, |services| kforge_engine::build(graph, &options, services, &mut on_event));
    ready.journal.flush()?;
    if outcome.interrupted {
        return Err(CompareError::Interrupted.into());
    }
    let read = |digest: &Digest| ready.leaves.get(digest).ok().flatten();
    let mut all = vec![];
    for pair in &pairs {
        let turn = |seen: PairsObserved, turned: bool| if turned { seen.turned() } else { seen };
        let done = outcome.step(&pair.node.id);
        let result = done.and_then(|done| done.result.as_ref());
        let seen = result.and_then(|result| serde_json::from_slice(&read(result.outputs.get("observation")?)?).ok());
        if let (Some(seen), Some(from)) = (seen, done.and_then(|done| done.evidence.as_ref())) {
            all.push(Ok((turn(seen, pair.turned), evidence_list::source(from))));
            continue;
        }
        // Records in the bundle, in either order.
        let brought = || {
            let bundle = base?;
            [pair.clone(), pair.exchanged()].into_iter().find_map(|pair| {
                let question = bundle.questions.iter().find(|q| q.key == pair.spec().key())?;
                let newest =
                    question.records.iter().max_by_key(|r| r.provenance.measured_at.parse::<jiff::Timestamp>().ok())?;
                let seen = observed(newest, |digest| bundle.contents.get(digest).cloned())?;
                Some((turn(seen, pair.turned), about(newest)))
            })
        };
        let why = match done.map(|done| &done.outcome) {
            Some(Outcome::Unavailable(why) | Outcome::Failed(why) | Outcome::Skipped(why)) => why.clone(),
            _ => "nothing was observed".to_string(),
        };
        all.push(brought().ok_or(why));
    }
    Ok(all)
}

/// The pairs, each in the order in which it was already observed. Champions that launch the same are ordered by their binaries here, and by their compilations
/// in a plan, where they may have been variants of one kernel.
fn in_known_order(side: &Side<'_, '_>, pairs: Vec<ChampionPair>) -> Result<Vec<ChampionPair>, Error> {
    let evidence = side.ready.evidence(side.opened);
    let is_known = |pair: &ChampionPair| -> Result<bool, Error> {
        let spec = pair.spec();
        Ok(evidence.seen(&spec.key(), &spec, pair.node.product.as_deref())?.is_some())
    };
    let mut all = vec![];
    for pair in pairs {
        let other = pair.exchanged();
        all.push(if !is_known(&pair)? && is_known(&other)? { other } else { pair });
    }
    Ok(all)
}

fn observed(record: &Record, read: impl Fn(&Digest) -> Option<Vec<u8>>) -> Option<PairsObserved> {
    serde_json::from_slice(&read(record.result.outputs.get("observation")?)?).ok()
}

fn about(record: &Record) -> String {
    format!("{}, {}", record.provenance.device, record.provenance.measured_at)
}

/// Decides from separate benches of both variants on one class of devices, if there are no pairs.
pub(super) fn apart(side: &Side<'_, '_>, seat: &Seat, head: &Stood, base: &Stood, margin: f64, why: &str) -> Decision {
    let hot = side.champions.iter().any(|c| Seat::of(&c.timed) == *seat && c.timed.hot);
    for (class, a) in &head.benches {
        for (_, b) in base.benches.iter().filter(|(other, _)| other == class) {
            let series =
                |seen: &BenchObserved| -> Option<Series> { if hot { seen.hot.clone() } else { seen.cold.clone() } };
            if let (Some(a), Some(b)) = (series(a), series(b)) {
                return Decision::by_benches(&a.samples_ns, &b.samples_ns, margin, &class.to_string());
            }
        }
    }
    Decision::unknown(format!("no {}: {why}", StepKind::Pairs))
}
