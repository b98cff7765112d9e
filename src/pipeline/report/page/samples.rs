//! Samples as strips of quantiles: cold and hot, of the champion and of what stands beside it. Knows spreads; estimates nothing.

use super::html::Html;
use super::plot::{self, Axis};
use super::seat::Seat;
use super::table::{forest, number};
use super::units::number as shown;
use crate::report::document::{SpreadReport, TimeReport};
use crate::report::duration::scale;

/// The quantiles that a strip shows, as shares.
const SHOWN: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The values of a spread at the shares of [`SHOWN`]; none if it has no quantiles.
fn five(spread: &SpreadReport) -> Option<[f64; 5]> {
    let all = &spread.quantiles_ns;
    let last = all.len().checked_sub(1).filter(|last| *last > 0)?;
    Some(SHOWN.map(|share| all[(share * last as f64).round() as usize]))
}

/// A variant at a shape, with its samples.
type Sampled<'r> = (&'r TimeReport, &'r SpreadReport, [f64; 5]);

/// The part of a kernel about its samples; at most `most` shapes, slowest first.
pub(super) fn samples(h: &mut Html, seat: &Seat<'_>, most: usize) {
    let hot = seat.hot();
    let has = |time: &TimeReport| time.spread(hot).is_some_and(|spread| five(spread).is_some());
    let shapes: Vec<&str> =
        seat.times().into_iter().filter(|(time, _)| has(time)).map(|(time, _)| time.shape.as_str()).collect();
    if shapes.is_empty() {
        return;
    }
    h.leaf("h4", &[], "Samples");
    let columns = [
        ("samples", false),
        ("5 %", true),
        ("25 %", true),
        ("median", true),
        ("75 %", true),
        ("95 %", true),
        ("plot", false),
    ];
    forest(h, "", "samples", &columns, |h| {
        for shape in shapes.iter().take(most) {
            // Cold and hot times are different quantities: each has its own scale.
            for hot in [hot, !hot] {
                let mine = seat.target.times.iter().filter(|time| time.shape == **shape).filter_map(|time| {
                    let spread = time.spread(hot)?;
                    Some((time, spread, five(spread)?))
                });
                let mine: Vec<Sampled<'_>> = mine.collect();
                series(h, seat, shape, hot, &mine);
            }
        }
    });
    shapes.iter().take(most).for_each(|shape| state(h, seat, shape));
    if let Some(more) = shapes.len().checked_sub(most).filter(|more| *more > 0) {
        h.leaf("p", &[("class", &"s")], format!("{more} more shapes in report.json"));
    }
}

/// The rows of one series at a shape, under a heading.
fn series(h: &mut Html, seat: &Seat<'_>, shape: &str, hot: bool, mine: &[Sampled<'_>]) {
    if mine.is_empty() {
        return;
    }
    let least = mine.iter().map(|(_, _, five)| five[0]).fold(f64::INFINITY, f64::min);
    let axis = Axis::linear(mine.iter().flat_map(|(_, _, five)| [five[0], five[4]]), least);
    let (per, unit) = scale(least);
    let heading = format!("{} at {shape}, in {unit}", if hot { "hot" } else { "cold" });
    h.open("tr", &[("class", &"x")], |h| {
        h.leaf("th", &[("scope", &"rowgroup"), ("colspan", &6)], &heading);
        h.open("td", &[], |h| plot::axis(h, &axis, per, ""));
    });
    for (time, spread, five) in mine {
        h.open("tr", &[], |h| {
            h.open("td", &[], |h| {
                h.label(&role(seat, time));
                let dropped = if spread.dropped == 0 { String::new() } else { format!(", {} dropped", spread.dropped) };
                h.leaf("small", &[], format!("{} samples{dropped}", spread.samples));
            });
            five.iter().for_each(|ns| number(h, shown(ns / per)));
            h.open("td", &[], |h| plot::strip(h, &axis, *five));
        });
    }
}

fn role(seat: &Seat<'_>, time: &TimeReport) -> String {
    let declared = seat.target.basis.as_ref().is_some_and(|basis| basis.declared == time.variant);
    let name = match (seat.champion(&time.shape) == Some(&time.variant), declared) {
        (true, _) => "champion",
        (false, true) => "declared start",
        (false, false) => "rival",
    };
    format!("{name} {}", time.variant)
}

/// Clocks and temperature while the champion was timed.
fn state(h: &mut Html, seat: &Seat<'_>, shape: &str) {
    let champion = seat.champion(shape).and_then(|champion| seat.time(shape, champion));
    let Some(seen) = champion.and_then(|time| time.seen.as_ref()) else { return };
    let mut parts: Vec<String> = vec![format!("{shape}: {}", seen.device)];
    parts.extend(seen.at.clone());
    parts.extend(seen.clocks_mhz.map(|(sm, memory)| format!("SM clock {sm} MHz, memory clock {memory} MHz")));
    parts.extend(seen.temperature_c.map(|c| format!("{c} °C")));
    if !seen.throttle.is_empty() {
        parts.push(format!("clocks held down by {}", seen.throttle.join(", ")));
    }
    h.leaf("p", &[("class", &"s")], parts.join("; "));
}
