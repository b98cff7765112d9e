//! Machine code of champions: facts and opcode counts beside the metrics of a profile. Knows the document.

use std::collections::BTreeMap;

use super::html::Html;
use super::listings::{self, Listings};
use super::seat::Seat;
use super::units::number;
use crate::report::text::facts;
use kforge_types::record::metric::metric;

/// What the shares of use mean, beside those of peaks.
const USED: &str = "By counters: of all that the launches did in a profile of their own. By timing: of what the operator requires, as in the roofline.";

/// Metrics that are a share or a rate of others: without any of these, they say nothing.
const SHARES: [(&str, &[&str]); 4] = [
    ("bank_conflict_rate", &["shared_loads", "shared_stores"]),
    ("shared_load_conflicts", &["shared_loads"]),
    ("shared_store_conflicts", &["shared_stores"]),
    ("xu_share", &["instructions"]),
];

/// The part of a kernel about its machine code; at most `most` opcodes and metrics. Source and disassembly are on the page beside it.
pub(super) fn code(h: &mut Html, seat: &Seat<'_>, listings: Option<&Listings>, most: usize) {
    if !is_any(seat) {
        return;
    }
    h.leaf("h4", &[], "Machine code and metrics");
    if let Some(listings) = listings {
        listings::links(h, seat, listings);
    }
    h.open("div", &[("class", &"b")], |h| {
        h.open("div", &[], |h| opcodes(h, seat, most));
        h.open("div", &[], |h| metrics(h, seat, most));
    });
}

/// Whether anything is known of its machine code, or of what bounds it.
fn is_any(seat: &Seat<'_>) -> bool {
    !seat.target.machine.is_empty() || seat.target.rooflines.iter().any(|found| found.bound().is_some())
}

/// Why there are no opcodes: no step of a build needs them.
const NOT_COUNTED: &str = "Builds count opcodes of kernels with methods; `kforge diff` counts them for any kernel.";

/// The facts of each function, and at most `most` of its opcodes.
pub(super) fn opcodes(h: &mut Html, seat: &Seat<'_>, most: usize) {
    for machine in &seat.target.machine {
        for function in &machine.functions {
            let name = format!("{} ({})", function.entry, machine.architectures.join(", "));
            h.open("p", &[], |h| {
                h.leaf("code", &[], name);
                h.leaf("small", &[], facts(function));
            });
            let mut opcodes: Vec<(&String, &u64)> = function.opcodes.iter().collect();
            opcodes.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
            list(h, opcodes.into_iter().map(|(name, count)| (name.as_str(), count.to_string())), most);
        }
    }
    let mut functions = seat.target.machine.iter().flat_map(|machine| &machine.functions).peekable();
    if functions.peek().is_some() && functions.all(|function| function.opcodes.is_empty()) {
        h.leaf("p", &[("class", &"s")], NOT_COUNTED);
    }
}

/// What bounds each champion, and at most `most` metrics of its profile.
pub(super) fn metrics(h: &mut Html, seat: &Seat<'_>, most: usize) {
    let mut bounds = false;
    for found in &seat.target.rooflines {
        let Some(bound) = found.bound() else { continue };
        h.open("p", &[], |h| {
            h.text(found.shape.as_ref().map_or(String::new(), |shape| format!("At {shape}, ")))
                .label(crate::report::text::variant(&found.variant));
            h.leaf("small", &[], bound);
        });
        bounds = true;
        let (told, zero) = telling(&found.roofline.metrics);
        let shown = told.into_iter().map(|(name, value)| {
            let unit = metric(name).map_or("", |metric| metric.unit.symbol());
            // A count is exact as it is.
            let digits = if value.fract() == 0.0 && value.abs() < 1e4 { value.to_string() } else { number(value) };
            (name, format!("{digits} {unit}").trim_end().to_string())
        });
        list(h, shown.collect::<Vec<_>>().into_iter(), most);
        if !zero.is_empty() {
            h.leaf("small", &[], format!("zero: {}", zero.join(", ")));
        }
    }
    if bounds {
        h.leaf("p", &[("class", &"s")], USED);
    }
}

/// The metrics with a value, and the names of those that are zero. What is a share of nothing is in neither.
fn telling(all: &BTreeMap<String, f64>) -> (Vec<(&str, f64)>, Vec<&str>) {
    let is_zero = |name: &str| all.get(name).is_some_and(|value| *value == 0.0);
    let of_nothing = |(_, bases): &(&str, &[&str])| bases.iter().all(|base| is_zero(base));
    let is_of_nothing = |name: &str| SHARES.iter().filter(|(of, _)| *of == name).any(of_nothing);
    let known = all.iter().map(|(name, value)| (name.as_str(), *value));
    let known = known.filter(|(name, value)| value.is_finite() && !is_of_nothing(name));
    let (zero, told): (Vec<_>, Vec<_>) = known.partition(|(name, _)| is_zero(name));
    (told, zero.into_iter().map(|(name, _)| name).collect())
}

fn list<'a>(h: &mut Html, all: impl ExactSizeIterator<Item = (&'a str, String)>, most: usize) {
    let more = all.len().saturating_sub(most);
    if all.len() == 0 {
        return;
    }
    h.open("dl", &[("class", &"kv")], |h| {
        for (name, value) in all.take(most) {
            h.leaf("dt", &[], name);
            h.leaf("dd", &[], value);
        }
    });
    if more > 0 {
        h.leaf("small", &[], format!("and {more} more in report.json"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_only_named_and_shares_of_nothing_are_left_out() {
        let all = |shared: f64| -> BTreeMap<String, f64> {
            let of = [
                ("bank_conflict_rate", 0.0),
                ("shared_loads", shared),
                ("shared_stores", 0.0),
                ("l1_hit", 0.0),
                ("l2_hit", 51.8),
                ("ipc", f64::NAN),
            ];
            of.map(|(name, value)| (name.to_string(), value)).into()
        };
        let of = |shared: f64| {
            let all = all(shared);
            let (told, zero) = telling(&all);
            format!("{told:?} {zero:?}")
        };
        assert_eq!(of(0.0), "[(\"l2_hit\", 51.8)] [\"l1_hit\", \"shared_loads\", \"shared_stores\"]");
        let conflicts =
            "[(\"l2_hit\", 51.8), (\"shared_loads\", 8.0)] [\"bank_conflict_rate\", \"l1_hit\", \"shared_stores\"]";
        assert_eq!(of(8.0), conflicts, "no conflict is a result");
    }
}
