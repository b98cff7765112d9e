//! When metrics support a method. Knows names and bounds of metrics; does not take or derive them.
//!
//! A trigger is a ramp over one metric, or the strongest (`any`) or weakest (`all`) of several. A ramp is 0 at its good end and beyond, 1 at its bad end and
//! beyond, and linear between them. The order of the ends says whether high or low values are bad. A metric that was not measured is unknown, which is neither
//! 0 nor 1: `any` is known if one known part is already 1, `all` if one is already 0.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// An expression over metrics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Trigger {
    /// One metric between a good and a bad value.
    #[serde(rename_all = "snake_case")]
    Ramp(Ramp),
    /// The strongest of several.
    Any(Any),
    /// The weakest of several.
    All(All),
}

/// One metric between a good and a bad value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Its name among [`kforge_types::record::metric::METRICS`].
    pub metric: String,
    /// The value at which nothing is wrong.
    pub good: f64,
    /// The value at which the method is needed most.
    pub bad: f64,
}

/// The strongest of several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Any {
    /// The parts.
    pub any: Vec<Trigger>,
}

/// The weakest of several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct All {
    /// The parts.
    pub all: Vec<Trigger>,
}

/// How strongly metrics support a method.
#[derive(Debug, Clone, PartialEq)]
pub enum Strength {
    /// From 0, not at all, to 1.
    Known(f64),
    /// Unknown, because these metrics are missing.
    Unknown(BTreeSet<String>),
}

impl Strength {
    /// Whether the trigger is known to hold.
    pub fn holds(&self) -> bool {
        matches!(self, Strength::Known(s) if *s > 0.0)
    }
}

impl Trigger {
    /// The strength under these metrics, by name; those not measured are absent. A value that is not a number counts as not measured.
    pub fn strength(&self, metrics: &BTreeMap<String, f64>) -> Strength {
        match self {
            Trigger::Ramp(ramp) => match metrics.get(&ramp.metric).filter(|v| v.is_finite()) {
                Some(value) => Strength::Known(((value - ramp.good) / (ramp.bad - ramp.good)).clamp(0.0, 1.0)),
                None => Strength::Unknown([ramp.metric.clone()].into()),
            },
            Trigger::Any(any) => joined(any.any.iter().map(|t| t.strength(metrics)), 1.0, f64::max),
            Trigger::All(all) => joined(all.all.iter().map(|t| t.strength(metrics)), 0.0, f64::min),
        }
    }

    /// The names of its metrics.
    pub fn metrics(&self) -> BTreeSet<&str> {
        self.ramps().into_iter().map(|r| r.metric.as_str()).collect()
    }

    /// Its ramps, in order.
    pub fn ramps(&self) -> Vec<&Ramp> {
        match self {
            Trigger::Ramp(ramp) => vec![ramp],
            Trigger::Any(Any { any: parts }) | Trigger::All(All { all: parts }) => {
                parts.iter().flat_map(Trigger::ramps).collect()
            }
        }
    }
}

/// Combines parts by `of`. Once the combined value is `decided`, unknown parts cannot change it.
fn joined(parts: impl Iterator<Item = Strength>, decided: f64, of: fn(f64, f64) -> f64) -> Strength {
    let (mut known, mut missing) = (1.0 - decided, BTreeSet::new());
    for part in parts {
        match part {
            Strength::Known(value) => known = of(known, value),
            Strength::Unknown(names) => missing.extend(names),
        }
    }
    if missing.is_empty() || known == decided { Strength::Known(known) } else { Strength::Unknown(missing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(metric: &str, good: f64, bad: f64) -> Trigger {
        Trigger::Ramp(Ramp { metric: metric.into(), good, bad })
    }

    fn at(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(n, v)| (n.to_string(), *v)).collect()
    }

    #[test]
    fn a_ramp_goes_from_its_good_to_its_bad_end_either_way() {
        let high = ramp("stall_barrier", 5.0, 30.0);
        let low = ramp("pipe_tensor", 60.0, 20.0);
        for (value, strength) in [(0.0, 0.0), (5.0, 0.0), (17.5, 0.5), (30.0, 1.0), (90.0, 1.0)] {
            assert_eq!(high.strength(&at(&[("stall_barrier", value)])), Strength::Known(strength), "{value}");
        }
        for (value, strength) in [(80.0, 0.0), (60.0, 0.0), (40.0, 0.5), (20.0, 1.0), (0.0, 1.0)] {
            assert_eq!(low.strength(&at(&[("pipe_tensor", value)])), Strength::Known(strength), "{value}");
        }
        assert!(!high.strength(&at(&[("stall_barrier", 5.0)])).holds());
        assert!(high.strength(&at(&[("stall_barrier", 5.1)])).holds());
    }

    #[test]
    fn what_was_not_measured_is_unknown_and_not_zero() {
        let trigger = ramp("stall_barrier", 5.0, 30.0);
        for metrics in [at(&[]), at(&[("stall_barrier", f64::NAN)])] {
            let strength = trigger.strength(&metrics);
            assert_eq!(strength, Strength::Unknown(["stall_barrier".to_string()].into()));
            assert!(!strength.holds());
        }
    }

    #[test]
    fn any_and_all_are_known_once_nothing_missing_can_change_them() {
        let parts = || vec![ramp("a", 0.0, 1.0), ramp("b", 0.0, 1.0)];
        let (any, all) = (Trigger::Any(Any { any: parts() }), Trigger::All(All { all: parts() }));
        let missing = || Strength::Unknown(["b".to_string()].into());
        assert_eq!(any.strength(&at(&[("a", 0.25), ("b", 0.75)])), Strength::Known(0.75));
        assert_eq!(all.strength(&at(&[("a", 0.25), ("b", 0.75)])), Strength::Known(0.25));
        assert_eq!((any.strength(&at(&[("a", 0.5)])), all.strength(&at(&[("a", 0.5)]))), (missing(), missing()));
        assert_eq!(
            (any.strength(&at(&[("a", 1.0)])), all.strength(&at(&[("a", 1.0)]))),
            (Strength::Known(1.0), missing())
        );
        assert_eq!(
            (any.strength(&at(&[("a", 0.0)])), all.strength(&at(&[("a", 0.0)]))),
            (missing(), Strength::Known(0.0))
        );
    }
}
