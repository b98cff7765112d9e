//! Decides one round before any agent is asked: what is settled, which methods the round tries, or why the rounds end. Knows documents of earlier steps; writes
//! no kernel.

use std::collections::BTreeMap;

use super::budget::slots;
use super::choose::{ChoiceInputs, choose};
use crate::optimize::methods::{Registry, registry};
use kforge_types::record::params::{Attribution, Fate};
use kforge_types::record::profile::Roofline;
use kforge_types::record::round::{Decision, RoundParams, SettledMethod, Slots};

/// Decides a round from the roofline of the champion so far, the attributions of its methods, and the previous round's decision. Any of them may be missing.
pub fn decide(
    params: &RoundParams,
    roofline: Option<&Roofline>,
    attributions: &BTreeMap<String, Attribution>,
    before: Option<&Decision>,
) -> Decision {
    decide_by(registry(), params, roofline, attributions, before)
}

/// As [`decide`], by another registry.
pub fn decide_by(
    registry: &Registry,
    params: &RoundParams,
    roofline: Option<&Roofline>,
    attributions: &BTreeMap<String, Attribution>,
    before: Option<&Decision>,
) -> Decision {
    let none = Roofline::default();
    let seen = roofline.unwrap_or(&none);
    let settled = settled(params.round, attributions, before);
    let decision = Decision {
        round: params.round,
        gaps: seen.gaps,
        degraded: seen.gaps.is_degraded(),
        budget: Slots::default(),
        methods: vec![],
        passed: vec![],
        settled,
        stop: None,
    };
    if params.from_nothing {
        return decision;
    }
    if seen.near_peak {
        return Decision { stop: Some(format!("near the peak: {}", seen.gaps.text(&|_| None))), ..decision };
    }
    let (budget, degraded) = slots(&seen.gaps);
    let from = ChoiceInputs { registry, params, metrics: &seen.metrics, settled: &decision.settled };
    let (methods, passed) = choose(&from, &budget, &seen.gaps);
    let stop = methods.is_empty().then(|| {
        let open = params.methods.iter().filter(|m| m.possible).count();
        match open {
            0 => "no method is left: no agent of this run can add another".to_string(),
            n => format!("no method is left: each of the {n} that could be added was passed over"),
        }
    });
    Decision { degraded, budget, methods, passed, stop, ..decision }
}

/// The results of methods up to the champion so far. For a method of the champion the newest attribution counts, unless it is inconclusive and an earlier
/// round's was not. An attribution that has not changed keeps its round.
fn settled(
    round: u32,
    attributions: &BTreeMap<String, Attribution>,
    before: Option<&Decision>,
) -> BTreeMap<String, SettledMethod> {
    let mut settled = before.map(|b| b.settled.clone()).unwrap_or_default();
    // That a champion does not use a method settles nothing about the method.
    for (id, attribution) in attributions.iter().filter(|(_, attribution)| attribution.fate != Fate::NotUsed) {
        let old = settled.get(id);
        let same = old.is_some_and(|old| old.attribution == *attribution);
        let worse = old.is_some_and(|old| old.fate != Fate::Inconclusive) && attribution.fate == Fate::Inconclusive;
        if !same && !worse {
            let new = SettledMethod {
                round: round.saturating_sub(1),
                fate: attribution.fate,
                attribution: attribution.clone(),
            };
            settled.insert(id.clone(), new);
        }
    }
    settled
}
