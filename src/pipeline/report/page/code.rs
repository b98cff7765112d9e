//! Machine code of champions: facts and opcode counts beside the metrics of a profile. Knows the document.

use super::html::Html;
use super::listings::{self, Listings};
use super::seat::Seat;
use super::units::number;
use crate::report::text::facts;
use kforge_types::record::metric::metric;

/// The part of a kernel about its machine code; at most `most` opcodes and metrics. The disassembly is on the page beside it.
pub(super) fn code(h: &mut Html, seat: &Seat<'_>, listings: Option<&Listings>, most: usize) {
    let target = seat.target;
    let metrics = || target.rooflines.iter().filter(|found| !found.roofline.metrics.is_empty());
    if target.machine.is_empty() && metrics().next().is_none() {
        return;
    }
    h.leaf("h4", &[], "Machine code and metrics");
    if let Some(listings) = listings {
        listings::links(h, seat, listings);
    }
    h.open("div", &[("class", &"b")], |h| {
        h.open("div", &[], |h| {
            for machine in &target.machine {
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
        });
        h.open("div", &[], |h| {
            for found in metrics() {
                let shape = found.shape.as_deref().unwrap_or("unknown");
                h.open("p", &[], |h| {
                    h.text(format!("Metrics at {shape}, ")).label(crate::report::text::variant(&found.variant));
                });
                let shown = found.roofline.metrics.iter().map(|(name, value)| {
                    let unit = metric(name).map_or("", |metric| metric.unit.symbol());
                    (name.as_str(), format!("{} {unit}", number(*value)).trim_end().to_string())
                });
                list(h, shown, most);
            }
        });
    });
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
