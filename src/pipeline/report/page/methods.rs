//! What methods are worth: what each champion would lose without it, as dots with intervals. One method is left out at a time, so the savings do not add up,
//! and no waterfall shows them. Knows attributions of the document.

use super::html::Html;
use super::plot::{self, Axis, Dot};
use super::seat::Seat;
use super::table::{forest, number, section};
use super::units::digits;
use crate::plan::kernels::MARGIN;
use crate::report::document::{MethodReport, MethodShapeReport};
use kforge_numerics::measure::attribute::WITHOUT;
use kforge_numerics::measure::paired::answer_of;
use kforge_types::record::params::{Fate, Shown};

/// The section; nothing if no champion uses a method. At most so many shapes of each method are shown, and none where that is one.
pub(super) fn methods(h: &mut Html, seats: &[Seat<'_>], most: usize) {
    let mut rows: Vec<(&Seat<'_>, &MethodReport)> = seats
        .iter()
        .flat_map(|seat| seat.target.methods_of_champions().map(move |method| (seat, method)))
        .filter(|(_, method)| !method.is_unused())
        .collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| (&a.1.method, a.0.at).cmp(&(&b.1.method, b.0.at)));
    let shapes = |method: &'_ MethodReport| if method.shapes.len() < 2 || most < 2 { 0 } else { most };
    let of_all = rows.iter().filter_map(|(_, method)| method.attribution.as_ref()?.saving);
    let of_shapes = rows.iter().flat_map(|(_, method)| method.shapes.iter().take(shapes(method)).map(|one| one.saving));
    let savings = of_all.chain(of_shapes);
    let axis = Axis::linear(savings.flat_map(|(median, low, high)| [median, low, high]), 0.0);
    let about = "The time that each champion would lose without the method, from pairs, with intervals of 95 %; the line is no difference. Methods are left out \
                 one at a time, so savings do not add up. ● effective, which is more than 2 %, ○ any other result, ◆ at one shape; only all shapes together decide. In a reason, + means that \
                 the kernel without the method is slower than the champion, - that it is faster, and brackets hold the interval.";
    section(h, "methods", "Methods", about, |h| {
        let columns = [
            ("kernel", false),
            ("saves", true),
            ("95 %", true),
            ("result", false),
            ("machine code", false),
            ("plot", false),
        ];
        forest(h, &plot::line_at(&axis, 0.0), "methods of champions", &columns, |h| {
            h.open("tr", &[("class", &"x")], |h| {
                h.leaf("td", &[("colspan", &5)], "");
                h.open("td", &[], |h| plot::axis(h, &axis, 0.01, " %"));
            });
            let mut last = "";
            for (seat, method) in rows {
                if method.method != last {
                    last = &method.method;
                    h.open("tr", &[], |h| h.leaf("th", &[("scope", &"rowgroup"), ("colspan", &6)], last));
                }
                h.open("tr", &[], |h| row(h, &axis, seat, method));
                for one in method.shapes.iter().take(shapes(method)) {
                    h.open("tr", &[], |h| at_shape(h, &axis, one));
                }
            }
        });
    });
}

fn row(h: &mut Html, axis: &Axis, seat: &Seat<'_>, method: &MethodReport) {
    h.leaf("td", &[], seat.full());
    let attribution = method.attribution.as_ref();
    let saving = attribution.and_then(|found| found.saving);
    let share = |value: f64| digits(100.0 * value, 3);
    number(h, saving.map_or("unknown".into(), |(median, ..)| format!("{} %", share(median))));
    number(h, saving.map_or(String::new(), |(_, low, high)| format!("{} to {} %", share(low), share(high))));
    h.open("td", &[("class", &"why")], |h| {
        if let Some(found) = attribution {
            h.text(found.fate.name());
            // The interval beside it says why.
            if found.fate != Fate::Effective {
                h.leaf("small", &[], found.reason());
            }
        }
    });
    h.open("td", &[("class", &"why")], |h| {
        h.text(match method.matched.as_ref().map(|matched| &matched.shown) {
            Some(Shown::Shown) => "shows it".to_string(),
            Some(Shown::NotShown) => "does not show it".into(),
            Some(Shown::Unknown(why)) => format!("unknown: {why}"),
            None => "unknown".into(),
        });
        for (pattern, with, without) in method.matched.iter().flat_map(|matched| &matched.counts) {
            if (*with, *without) != (0, 0) {
                h.leaf("small", &[], format!("{pattern}: {with} with it, {without} without"));
            }
        }
    });
    h.open("td", &[], |h| {
        if let Some((median, low, high)) = saving {
            let dot = if attribution.is_some_and(|a| a.fate == Fate::Effective) { Dot::Filled } else { Dot::Hollow };
            plot::interval(h, axis, median, Some((low, high)), dot);
        }
    });
}

/// What the method of the row above saves at a shape.
fn at_shape(h: &mut Html, axis: &Axis, one: &MethodShapeReport) {
    let (median, low, high) = one.saving;
    let share = |value: f64| digits(100.0 * value, 3);
    h.leaf("td", &[], format!("at {}", one.shape));
    number(h, format!("{} %", share(median)));
    number(h, format!("{} to {} %", share(low), share(high)));
    let disagree = one.orders_disagree.is_some();
    let why = if disagree { ", because the two orders disagree" } else { "" };
    let answer = answer_of(median, (low, high), disagree, MARGIN).name();
    h.leaf("td", &[("colspan", &2)], format!("{WITHOUT}{answer}{why}"));
    h.open("td", &[], |h| plot::interval(h, axis, median, Some((low, high)), Dot::Diamond));
}
