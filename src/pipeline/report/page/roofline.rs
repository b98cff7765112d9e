//! The roofline: a point for each bench shape of each champion, and those that cannot fill the device marked. Knows what champions achieve; measures nothing.
//!
//! Kernels use different units, and peaks depend on the mix of reads and writes. So the plot is relative to the peaks of each point: its height is the share of
//! the peak of its unit, and its place is its intensity over the intensity at which memory and that unit are equally busy. All points then share one roof.

use std::collections::BTreeMap;

use super::super::reach::Fills;
use super::html::Html;
use super::plot::Axis;
use super::seat::Seat;
use super::table::{folded, number, section, sorted, table};
use super::units::{coordinate, digits, per_cent, rate};
use crate::report::duration::duration;
use kforge_types::record::profile::{Achieved, Share};

/// A champion at a bench shape.
struct Point<'r> {
    seat: &'r Seat<'r>,
    shape: &'r str,
    achieved: &'r Achieved,
    fills: Fills,
}

impl Point<'_> {
    /// The shares of the two peaks, if both are known.
    fn shares(&self) -> Option<(f64, f64)> {
        let known = |share: Option<Share>| share.map(|of| of.share).filter(|share| *share > 0.0);
        Some((known(self.achieved.memory)?, known(self.achieved.compute)?))
    }
}

/// What the champions of a kernel reach, slowest first.
fn points<'r>(seat: &'r Seat<'r>) -> Vec<Point<'r>> {
    let mut all: Vec<Point<'r>> = vec![];
    for roofline in &seat.target.rooflines {
        let mine = |shape: &&String| seat.champion(shape) == Some(&roofline.variant);
        all.extend(roofline.achieved.keys().filter(mine).map(|shape| {
            let achieved = &roofline.achieved[shape];
            Point { seat, shape, achieved, fills: Fills::of(roofline, shape, achieved) }
        }));
    }
    all.sort_by(|a, b| b.achieved.time_ns.total_cmp(&a.achieved.time_ns).then_with(|| a.shape.cmp(b.shape)));
    all
}

/// The section; nothing if nothing was timed. Of more than `most` points, each kernel has only the one where its champion takes longest.
pub(super) fn roofline(h: &mut Html, seats: &[Seat<'_>], most: usize) {
    let mut all: Vec<Vec<Point<'_>>> = seats.iter().map(points).collect();
    let is_short = all.iter().map(Vec::len).sum::<usize>() > most;
    if is_short {
        all.iter_mut().for_each(|points| points.truncate(1));
    }
    let mut targets: BTreeMap<&str, Vec<Point<'_>>> = BTreeMap::new();
    for point in all.into_iter().flatten() {
        targets.entry(&point.seat.target.target).or_default().push(point);
    }
    if targets.is_empty() {
        return;
    }
    let about = "What champions reach at each bench shape. Up is the share of the peak of the arithmetic unit; to the right, more operations per byte, 1 where \
                 memory and the unit are equally busy. ○ is too small to fill the device, so that its distance from the roof says little; ● is not, as far \
                 as is known: the table says by what.";
    section(h, "roofline", "Roofline", about, |h| {
        if is_short {
            let only = "Only the bench shapes where champions take longest; report.json has all.";
            h.leaf("p", &[("class", &"s")], only);
        }
        for (target, points) in &targets {
            figure(h, target, points);
            let columns = [
                ("kernel", false),
                ("at", false),
                ("time", true),
                ("bytes/s", true),
                ("of memory", true),
                ("operations/s", true),
                ("unit", false),
                ("of unit", true),
                ("fills the device", false),
            ];
            folded(h, format!("{target} as a table"), |h| {
                table(h, "r", "what champions reach", &columns, |h| points.iter().for_each(|point| row(h, point)));
            });
        }
    });
}

fn row(h: &mut Html, point: &Point<'_>) {
    let Achieved { time_ns, bytes_per_s, memory, ops_per_s, unit, compute, .. } = point.achieved;
    let share = |of: &Option<Share>| of.map_or("unknown".into(), |of| per_cent(of.share));
    h.open("tr", &[], |h| {
        h.leaf("th", &[("scope", &"row")], point.seat.name());
        h.leaf("td", &[], point.shape);
        sorted(h, *time_ns, duration(*time_ns));
        sorted(h, *bytes_per_s, rate(*bytes_per_s));
        number(h, share(memory));
        match ops_per_s {
            Some(ops) => {
                sorted(h, *ops, rate(*ops));
                h.leaf("td", &[], unit);
                number(h, share(compute));
            }
            None => h.leaf("td", &[("colspan", &3)], "operations not stated"),
        }
        let because = point.fills.because();
        let told = match point.fills {
            Fills::Unknown => because,
            _ if point.fills.is_too_small() => format!("no: {because}"),
            _ => format!("yes: {because}"),
        };
        h.leaf("td", &[], told);
    });
}

fn figure(h: &mut Html, target: &str, points: &[Point<'_>]) {
    let known: Vec<(&Point<'_>, f64, f64)> =
        points.iter().filter_map(|point| point.shares().map(|(memory, compute)| (point, memory, compute))).collect();
    if known.is_empty() {
        return;
    }
    let across = Axis::logarithmic(known.iter().map(|(_, memory, compute)| compute / memory).chain([0.1, 10.0]), 1.0);
    let up = Axis::logarithmic(known.iter().map(|(_, _, compute)| *compute).chain([0.01]), 1.0);
    let (left, top, width, height) = (48.0, 8.0, 304.0, 190.0);
    let x = |intensity: f64| left + width * across.share(intensity);
    let y = |share: f64| top + height * (1.0 - up.share(share));
    let label = format!("roofline of {target}: {} points, whose numbers are in the table below", known.len());
    h.open("figure", &[], |h| {
        h.open("svg", &[("class", &"d"), ("viewBox", &"0 0 360 232"), ("role", &"img"), ("aria-label", &label)], |h| {
            for tick in up.ticks() {
                let at = coordinate(y(tick));
                h.empty("path", &[("class", &"r"), ("d", &format!("M{left} {at}h{width}"))]);
                let text =
                    [("x", &(left - 4.0) as &dyn std::fmt::Display), ("y", &at), ("dy", &3), ("text-anchor", &"end")];
                h.leaf("text", &text, format!("{} %", digits(tick * 100.0, 1)));
            }
            for tick in across.ticks() {
                let text: [(&'static str, &dyn std::fmt::Display); 3] =
                    [("x", &coordinate(x(tick))), ("y", &211), ("text-anchor", &"middle")];
                h.leaf("text", &text, digits(tick, 1));
            }
            let roof = roof(&x, &y, left, top + height, width);
            h.empty("path", &[("class", &"roof"), ("d", &roof)]);
            // One path for each form: a point is a line without length and with round ends.
            for small in [true, false] {
                let mine = known.iter().filter(|(point, ..)| point.fills.is_too_small() == small);
                let path: String = mine
                    .map(|(_, memory, compute)| {
                        format!("M{} {}h0", coordinate(x(compute / memory)), coordinate(y(*compute)))
                    })
                    .collect();
                if path.is_empty() {
                    continue;
                }
                match small {
                    true => {
                        h.empty("path", &[("class", &"p o"), ("d", &path)]);
                        h.empty("path", &[("class", &"p i"), ("d", &path)]);
                    }
                    false => h.empty("path", &[("class", &"p"), ("d", &path)]),
                }
            }
            let text =
                [("x", &(left + width / 2.0) as &dyn std::fmt::Display), ("y", &227), ("text-anchor", &"middle")];
            h.leaf("text", &text, "operations per byte, relative to the ridge");
        });
        let left_out = points.len() - known.len();
        let rest = match left_out {
            0 => String::new(),
            n => format!("; {n} whose operations or peaks are unknown are only in the table"),
        };
        h.leaf("figcaption", &[], format!("{target}: share of the peak of the unit{rest}"));
    });
}

/// The roof: memory's limit up to the ridge, the unit's after it.
fn roof(x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64, left: f64, bottom: f64, width: f64) -> String {
    // Both axes are logarithmic, so memory's limit is a straight line. It begins where it enters the plot.
    let (ridge_x, ridge_y) = (x(1.0), y(1.0));
    let slope = (y(0.1) - ridge_y) / (ridge_x - x(0.1));
    let at_left = ridge_y + slope * (ridge_x - left);
    let start = if at_left <= bottom { (left, at_left) } else { (ridge_x - (bottom - ridge_y) / slope, bottom) };
    let [x0, y0, x1, y1, x2] = [start.0, start.1, ridge_x, ridge_y, left + width].map(coordinate);
    format!("M{x0} {y0}L{x1} {y1}H{x2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roof_rises_to_the_ridge_and_enters_at_an_edge() {
        let x = |v: f64| 100.0 + 50.0 * v.log10();
        let y = |v: f64| 10.0 - 50.0 * v.log10();
        assert_eq!(roof(&x, &y, 50.0, 200.0, 100.0), "M50 60L100 10H150");
        assert_eq!(roof(&x, &y, 0.0, 60.0, 150.0), "M50 60L100 10H150", "it enters at the bottom");
    }
}
