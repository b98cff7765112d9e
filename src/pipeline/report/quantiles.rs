//! Of which samples a report keeps quantiles. Knows the document.

use std::collections::{BTreeSet, HashSet};

use super::document::{TargetReport, TimeReport};

/// Keeps quantiles only of champions, of the fastest other variant at each shape, and of the variant that is declared first: of a large space, the others would
/// make most of the report.
pub(super) fn thin(report: &mut TargetReport) {
    let hot = report.basis.as_ref().is_some_and(|basis| basis.hot);
    let declared = report.basis.as_ref().map(|basis| basis.declared.clone());
    let of = |time: &TimeReport| if hot { time.hot_ns } else { time.cold_ns };
    let mut kept: HashSet<(String, String)> = HashSet::new();
    let shapes: BTreeSet<&String> = report.times.iter().map(|time| &time.shape).collect();
    for shape in shapes {
        let champion = report.champion_at(shape).and_then(|champion| champion.variant.clone());
        let others = report.times.iter().filter(|time| {
            time.shape == *shape
                && !time.few
                && Some(&time.variant) != champion.as_ref()
                && !report.fails(&time.variant)
        });
        let rival = others.filter_map(|time| Some((of(time)?, &time.variant))).min_by(|a, b| a.0.total_cmp(&b.0));
        let rival = rival.map(|(_, variant)| variant.clone());
        let variants = [champion, rival, declared.clone()].into_iter().flatten();
        kept.extend(variants.map(|variant| (shape.clone(), variant)));
    }
    for time in &mut report.times {
        let seen = time.seen.iter_mut().filter(|_| !kept.contains(&(time.shape.clone(), time.variant.clone())));
        for spread in seen.flat_map(|seen| [&mut seen.cold, &mut seen.hot]).flatten() {
            spread.quantiles_ns = vec![];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{BasisReport, ChampionReport, SpreadReport, TimeSeenReport};
    use super::*;

    #[test]
    fn quantiles_are_kept_of_the_champion_the_fastest_other_and_the_declared_variant() {
        let time = |variant: &str, ns: f64, few: bool| TimeReport {
            shape: "big".into(),
            variant: variant.into(),
            cold_ns: Some(ns),
            hot_ns: None,
            few,
            by_class: None,
            seen: Some(TimeSeenReport {
                device: "d".into(),
                at: None,
                standing: None,
                clocks_mhz: None,
                temperature_c: None,
                throttle: vec![],
                cold: Some(SpreadReport { samples: 9, interval_ns: None, dropped: 0, quantiles_ns: vec![1.0, 2.0] }),
                hot: None,
            }),
        };
        let mut report = TargetReport {
            basis: Some(BasisReport { declared: "A=9".into(), ..BasisReport::default() }),
            champions: vec![ChampionReport {
                class: "all".into(),
                shapes: vec!["big".into()],
                variant: Some("A=2".into()),
                provisional: false,
                because: String::new(),
                versus: vec![],
            }],
            times: vec![
                time("A=1", 3.0, false),
                time("A=2", 1.0, false),
                time("A=3", 2.0, false),
                time("A=4", 1.5, true),
                time("A=9", 9.0, false),
            ],
            ..TargetReport::default()
        };
        thin(&mut report);
        let has = |time: &TimeReport| !time.seen.as_ref().unwrap().cold.as_ref().unwrap().quantiles_ns.is_empty();
        let kept: Vec<&str> = report.times.iter().filter(|time| has(time)).map(|time| time.variant.as_str()).collect();
        assert_eq!(kept, ["A=2", "A=3", "A=9"]);
    }
}
