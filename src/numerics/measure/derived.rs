//! Metrics that are computed from others: the [`Set::Derived`](kforge_types::record::metric::Set::Derived) metrics of [`kforge_types::record::metric`], by the
//! formulas given there. If a part is unknown, so is the metric.

use std::collections::BTreeMap;

/// What the operator and its verification state, in addition to the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Bytes that the operator must move at this shape: inputs once, outputs once, unless the operator states otherwise.
    pub bytes: Option<f64>,
    /// Bytes of the tensors that the operator writes.
    pub written: Option<f64>,
    /// The largest relative error that verify saw.
    pub relative_error: Option<f64>,
}

/// The derived metrics that are known, by name.
pub fn derived(measured: &BTreeMap<String, f64>, work: Work) -> BTreeMap<String, f64> {
    let of = |name: &str| measured.get(name).copied().filter(|v| v.is_finite());
    let sum = |a: &str, b: &str| Some(of(a)? + of(b)?);
    let over = |part: Option<f64>, whole: Option<f64>| Some(part? / whole.filter(|w| *w > 0.0)?);
    let conflicts = match sum("shared_loads", "shared_stores") {
        Some(0.0) => Some(0.0),
        accesses => over(sum("shared_load_conflicts", "shared_store_conflicts"), accesses),
    };
    let others = of("limit_blocks").zip(of("limit_shared")).map(|(a, b)| a.min(b));
    let tail = of("waves").filter(|w| *w > 0.0).map(|waves| 100.0 * (1.0 - waves / waves.ceil()));
    let all = [
        ("traffic_excess", over(sum("dram_read", "dram_write"), work.bytes)),
        ("write_excess", over(of("dram_write"), work.written)),
        ("bank_conflict_rate", conflicts),
        ("xu_share", over(of("special_instructions"), of("instructions"))),
        ("register_limit", over(of("limit_registers"), others)),
        ("wave_tail", tail),
        ("relative_error", work.relative_error),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::metric::{METRICS, Set};

    fn measured(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(n, v)| (n.to_string(), *v)).collect()
    }

    #[test]
    fn every_derived_metric_is_made_of_measured_ones_by_its_formula() {
        let measured = measured(&[
            ("dram_read", 900.0),
            ("dram_write", 600.0),
            ("shared_load_conflicts", 30.0),
            ("shared_store_conflicts", 10.0),
            ("shared_loads", 60.0),
            ("shared_stores", 20.0),
            ("special_instructions", 5.0),
            ("instructions", 50.0),
            ("limit_blocks", 32.0),
            ("limit_registers", 4.0),
            ("limit_shared", 8.0),
            ("waves", 1.25),
        ]);
        let work = Work { bytes: Some(1000.0), written: Some(500.0), relative_error: Some(0.01) };
        let got = derived(&measured, work);
        let want = [
            ("bank_conflict_rate", 0.5),
            ("register_limit", 0.5),
            ("relative_error", 0.01),
            ("traffic_excess", 1.5),
            ("wave_tail", 37.5),
            ("write_excess", 1.2),
            ("xu_share", 0.1),
        ];
        assert_eq!(got, want.map(|(n, v)| (n.to_string(), v)).into());
        let names = METRICS.iter().filter(|m| m.set == Set::Derived).map(|m| m.name.to_string()).collect();
        assert_eq!(got.into_keys().collect::<std::collections::BTreeSet<_>>(), names);
    }

    #[test]
    fn what_lacks_a_part_is_not_there() {
        assert!(derived(&measured(&[]), Work::default()).is_empty());
        let some = measured(&[
            ("dram_read", 1.0),
            ("dram_write", f64::NAN),
            ("instructions", 0.0),
            ("special_instructions", 0.0),
        ]);
        assert!(derived(&some, Work { bytes: Some(1.0), ..Work::default() }).is_empty());
        let unused = measured(&[("shared_loads", 0.0), ("shared_stores", 0.0)]);
        assert_eq!(derived(&unused, Work::default()), measured(&[("bank_conflict_rate", 0.0)]));
        assert_eq!(derived(&measured(&[("waves", 2.0)]), Work::default()), measured(&[("wave_tail", 0.0)]));
    }
}
