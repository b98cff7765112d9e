//! Speed-ups of champions over the declared start, rivals, other kernels of the operator and baselines, as dots with intervals. Knows comparisons of the document; compares medians only where
//! no pairs were taken, and says so.

use super::super::leaders::LeaderReport;
use super::html::Html;
use super::plot::{self, Axis, Dot};
use super::seat::Seat;
use super::table::{forest, number, section};
use super::units::number as shown;
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::interval::ratio_interval;
use kforge_numerics::measure::paired::answer_of;
use kforge_types::record::Verdict;

/// The nearest rivals of a champion at a shape that are shown.
const RIVALS: usize = 2;

/// A comparison with a champion at a shape.
struct Comparison {
    shape: String,
    against: String,
    ratio: f64,
    ends: Option<(f64, f64)>,
    how: String,
    dot: Dot,
}

/// The section; nothing without a comparison.
pub(super) fn speedups(h: &mut Html, seats: &[Seat<'_>], most: usize) {
    let all: Vec<(&Seat<'_>, Vec<Comparison>)> =
        seats.iter().map(|seat| (seat, comparisons(seat, most))).filter(|(_, found)| !found.is_empty()).collect();
    if all.is_empty() {
        return;
    }
    let values = all.iter().flat_map(|(_, found)| found).flat_map(|one| {
        let (low, high) = one.ends.unwrap_or((one.ratio, one.ratio));
        [one.ratio, low, high]
    });
    let axis = Axis::logarithmic(values, 1.0);
    let about = "How many times as fast the champion is, with intervals of 95 %. \
                 ● over the declared start, ○ over rivals and other kernels of the operator, ◆ over baselines; the line is parity. Comparisons by medians hold nothing of what differs between \
                 two sessions of measurement; pairs do, and say whether the other is slower, faster or same at a margin of 1 %.";
    section(h, "speedups", "Speed-ups", about, |h| {
        if seats.iter().any(|seat| seat.times().len() > most) {
            let only = "Only the bench shapes where champions take longest; report.json has all.";
            h.leaf("p", &[("class", &"s")], only);
        }
        let columns = [
            ("against", false),
            ("at", false),
            ("times as fast", true),
            ("95 %", true),
            ("by", false),
            ("plot", false),
        ];
        forest(h, &plot::line_at(&axis, 1.0), "speed-ups of champions", &columns, |h| {
            h.open("tr", &[("class", &"x")], |h| {
                h.leaf("td", &[("colspan", &5)], "");
                h.open("td", &[], |h| plot::axis(h, &axis, 1.0, ""));
            });
            for (seat, found) in all {
                h.open("tr", &[], |h| h.leaf("th", &[("scope", &"rowgroup"), ("colspan", &6)], seat.full()));
                for one in found {
                    h.open("tr", &[], |h| row(h, &axis, &one));
                }
            }
        });
    });
}

fn row(h: &mut Html, axis: &Axis, one: &Comparison) {
    h.open("td", &[], |h| {
        h.label(&one.against);
    });
    h.leaf("td", &[], &one.shape);
    number(h, shown(one.ratio));
    number(h, one.ends.map_or("unknown".into(), |(low, high)| format!("{} to {}", shown(low), shown(high))));
    h.leaf("td", &[], &one.how);
    h.open("td", &[], |h| plot::interval(h, axis, one.ratio, one.ends, one.dot));
}

/// The comparisons at the bench shapes at which the champion takes longest, at most `most` of them.
fn comparisons(seat: &Seat<'_>, most: usize) -> Vec<Comparison> {
    let target = seat.target;
    let declared = target.basis.as_ref().map(|basis| basis.declared.as_str());
    let mut found = vec![];
    for (time, _) in seat.times().into_iter().take(most) {
        let shape = time.shape.as_str();
        let versus = target.champion_at(shape).map(|champion| champion.versus.as_slice()).unwrap_or_default();
        let versus: Vec<_> = versus.iter().filter(|one| one.shape == shape).collect();
        let of = |against: String, ratio: f64, ends: Option<(f64, f64)>, how: String, dot: Dot| Comparison {
            shape: shape.into(),
            against,
            ratio,
            ends,
            how,
            dot,
        };
        let how = |ratio: f64, (low, high): (f64, f64), disputed: bool| {
            let answer = answer_of(ratio - 1.0, (low - 1.0, high - 1.0), disputed, MARGIN);
            let why = if disputed { ", because the two orders disagree" } else { "" };
            format!("pairs: {}{why}", answer.name())
        };
        if let Some(start) = declared.filter(|start| *start != time.variant && !target.fails(start)) {
            let name = format!("declared start {start}");
            let paired = versus.iter().find(|one| one.variant == start);
            match paired {
                Some(one) => {
                    let how = how(one.ratio, one.interval, one.orders_disagree.is_some());
                    found.push(of(name, one.ratio, Some(one.interval), how, Dot::Filled));
                }
                None => found.extend(
                    by_medians(seat, shape, start, time)
                        .map(|(ratio, ends)| of(name, ratio, ends, "medians".into(), Dot::Filled)),
                ),
            }
        }
        let mut rivals: Vec<_> = versus.iter().filter(|one| Some(one.variant.as_str()) != declared).collect();
        rivals.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        for one in rivals.into_iter().take(RIVALS) {
            let how = how(one.ratio, one.interval, one.orders_disagree.is_some());
            found.push(of(format!("rival {}", one.variant), one.ratio, Some(one.interval), how, Dot::Hollow));
        }
        let is_here = |leader: &&LeaderReport| {
            (&leader.kernel, &leader.target, &leader.types) == (&seat.kernel.name, &target.target, &target.types)
                && (leader.shape.as_str(), &leader.variant) == (shape, &time.variant)
        };
        for other in seat.package.leaders.iter().filter(is_here).flat_map(|leader| &leader.others) {
            let Some(one) = &other.pairs else { continue };
            let how = how(one.ratio, one.interval, one.orders_disagree.is_some());
            found.push(of(format!("kernel {}", other.kernel), one.ratio, Some(one.interval), how, Dot::Hollow));
        }
        let baselines = target.baselines.iter().filter(|one| one.shape == shape && one.variant == time.variant);
        for one in baselines.filter(|one| !matches!(one.rating.verdict, Verdict::Fail(_))) {
            if let Some(ratio) = one.rating.ratio {
                let ends = (ratio.low, ratio.high);
                let open = if one.unconfirmed().is_some() { " (unconfirmed)" } else { "" };
                found.push(of(
                    format!("baseline {}{open}", one.baseline),
                    ratio.median,
                    Some(ends),
                    how(ratio.median, ends, ratio.disputed),
                    Dot::Diamond,
                ));
            }
        }
    }
    found
}

/// The ratio of two medians with its interval, if both have one.
fn by_medians(
    seat: &Seat<'_>,
    shape: &str,
    over: &str,
    champion: &super::super::document::TimeReport,
) -> Option<(f64, Option<(f64, f64)>)> {
    let hot = seat.hot();
    let over = seat.time(shape, over)?;
    let ratio = over.ns(hot)? / champion.ns(hot)?;
    let ends = over.estimate(hot).zip(champion.estimate(hot)).and_then(|(over, under)| ratio_interval(over, under));
    Some((ratio, ends))
}
