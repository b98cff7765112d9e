//! The space of tunables as it was measured: a heat map of two axes, strips of each axis beyond, a table, and the visits of a search in order. Knows labels and
//! times of variants; searches nothing.

use std::fmt::Display;

use super::html::Html;
use super::plot::{self, Axis, Dot};
use super::seat::Seat;
use super::table::{Column, folded, forest, number, sorted, table};
use super::units::{coordinate, digits, number as shown};
use crate::report::duration::{duration, scale};
use crate::report::search::{SearchReport, VisitFate};
use crate::report::text::variant;

/// A table of so few rows is left out if the heat map has its numbers.
const FEW: usize = 8;

/// The widest and the highest heat map, in cells.
const CELLS: usize = 16;

/// A variant that was timed at the shape, or that is wrong.
struct Point<'r> {
    variant: &'r str,
    /// For each axis, the position of its value.
    at: Vec<usize>,
    /// Its time; none if it is wrong.
    ns: Option<f64>,
    few: bool,
}

/// The measured part of a space.
struct Space<'r> {
    shape: &'r str,
    /// Each tunable that has several values, with the values in order.
    axes: Vec<(&'r str, Vec<&'r str>)>,
    points: Vec<Point<'r>>,
    best: f64,
}

/// The tunables of a label: `BLOCK=256,VEC=4`. A part without `=`, such as the name of a round, is a value of its own axis.
fn tunables(label: &str) -> Vec<(&str, &str)> {
    label.split(',').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or(("", part))).collect()
}

/// Values in order: numbers by size, before other texts.
fn in_order(values: &mut Vec<&str>) {
    let key = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
    values.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.cmp(b)));
    values.dedup();
}

impl<'r> Space<'r> {
    /// The space at the shape where the champion takes longest; none if fewer than two variants are known there.
    fn of(seat: &Seat<'r>) -> Option<Self> {
        let hot = seat.hot();
        let shape = seat.times().first().map(|(time, _)| time.shape.as_str())?;
        let mut known: Vec<(&str, Option<f64>, bool)> = vec![];
        for time in seat.target.times.iter().filter(|time| time.shape == shape) {
            let ns = time.ns(hot).filter(|ns| *ns > 0.0 && !seat.target.fails(&time.variant));
            known.push((&time.variant, ns, time.few));
        }
        for wrong in seat.target.shapes.iter().filter(|of| seat.target.fails(&of.variant)) {
            if !known.iter().any(|(variant, ..)| *variant == wrong.variant) {
                known.push((&wrong.variant, None, false));
            }
        }
        // A median of few samples is the best only where there is no other.
        let least = |few: bool| known.iter().filter(|of| of.2 == few).filter_map(|(_, ns, _)| *ns).reduce(f64::min);
        let best = least(false).or_else(|| least(true))?;
        let mut axes: Vec<(&str, Vec<&str>)> = vec![];
        for (name, value) in known.iter().flat_map(|(variant, ..)| tunables(variant)) {
            match axes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => axes.push((name, vec![value])),
            }
        }
        axes.iter_mut().for_each(|(_, values)| in_order(values));
        axes.retain(|(_, values)| values.len() > 1);
        let place = |variant: &str| {
            let of = tunables(variant);
            let at = |(name, values): &(&str, Vec<&str>)| {
                let value = of.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
                values.iter().position(|known| Some(*known) == value).unwrap_or(usize::MAX)
            };
            axes.iter().map(at).collect()
        };
        let points = known.into_iter().map(|(variant, ns, few)| Point { variant, at: place(variant), ns, few });
        let mut points: Vec<Point<'_>> = points.collect();
        points.sort_by(|a, b| a.ns.unwrap_or(f64::INFINITY).total_cmp(&b.ns.unwrap_or(f64::INFINITY)));
        (points.len() > 1).then_some(Space { shape, axes, points, best })
    }

    /// Whether each cell of the heat map is one variant that was timed in full or is wrong.
    fn is_one_to_one(&self) -> bool {
        let mut cells: Vec<&[usize]> = self.points.iter().map(|point| point.at.as_slice()).collect();
        cells.sort_unstable();
        cells.dedup();
        self.axes.len() == 2 && cells.len() == self.points.len() && self.points.iter().all(|point| !point.few)
    }

    fn ratio(&self, point: &Point<'_>) -> Option<f64> {
        Some(point.ns? / self.best)
    }
}

/// The parts of a kernel about its space; at most `most` rows of each table.
pub(super) fn space(h: &mut Html, seat: &Seat<'_>, most: usize) {
    if let Some(space) = Space::of(seat) {
        h.leaf("h4", &[], "Tuning space");
        // A map of two axes shows the best of all others.
        let cells = if space.axes.len() > 2 { " a cell is the best over the other tunables," } else { "" };
        let about = format!(
            "Times at {} over the best one, {}:{cells} the champion's has a frame, ✕ is wrong, ~ is a time of few samples.",
            space.shape,
            duration(space.best)
        );
        h.leaf("p", &[("class", &"s")], about);
        let map = match space.axes.as_slice() {
            [a, b, ..] if a.1.len() <= CELLS && b.1.len() <= CELLS => {
                heat_map(h, &space, seat.champion(space.shape));
                2
            }
            _ => 0,
        };
        strips(h, &space, map, most);
        // The heat map has every number already, and the page has to be small.
        if most > FEW || map == 0 || !space.is_one_to_one() {
            rows(h, seat, &space, most);
        }
    }
    if let Some(search) = seat.target.search.as_ref().filter(|search| !search.visits.is_empty()) {
        visits(h, seat, search, most);
    }
}

/// The step of colour for a time over the best one.
fn heat(ratio: f64) -> &'static str {
    match ratio {
        r if r < 1.01 => "h0",
        r if r < 1.03 => "h1",
        r if r < 1.1 => "h2",
        r if r < 1.3 => "h3",
        r if r < 2.0 => "h4",
        _ => "h5",
    }
}

/// The best time of each pair of values of the first two tunables. The champion's cell has a frame.
fn heat_map(h: &mut Html, space: &Space<'_>, champion: Option<&str>) {
    let [(across, columns), (down, lines), ..] = space.axes.as_slice() else { return };
    let (left, top, wide, high) = (58.0, 30.0, 46.0, 22.0);
    let (width, height) = (left + wide * columns.len() as f64 + 2.0, top + high * lines.len() as f64 + 2.0);
    let label = format!("heat map of {across} and {down}");
    let view = format!("0 0 {width} {height}");
    let attributes: [(&'static str, &dyn Display); 5] =
        [("class", &"d hm"), ("viewBox", &view), ("width", &width), ("role", &"group"), ("aria-label", &label)];
    h.open("svg", &attributes, |h| {
        h.leaf("text", &[("class", &"s"), ("x", &left), ("y", &10)], *across);
        h.leaf("text", &[("class", &"s"), ("x", &0), ("y", &24)], *down);
        for (i, value) in columns.iter().enumerate() {
            let x = left + wide * (i as f64 + 0.5);
            h.leaf("text", &[("x", &x), ("y", &24)], short(value));
        }
        for (j, value) in lines.iter().enumerate() {
            let y = top + high * j as f64 + 15.0;
            h.leaf("text", &[("class", &"s"), ("x", &0), ("y", &y)], short(value));
            for i in 0..columns.len() {
                let mut mine = space.points.iter().filter(|point| point.at[0] == i && point.at[1] == j).peekable();
                if mine.peek().is_none() {
                    continue;
                }
                let framed = mine.clone().any(|point| Some(point.variant) == champion);
                let timed = mine.filter_map(|point| Some((space.ratio(point)?, point.few)));
                let ratio = timed.min_by(|a, b| a.0.total_cmp(&b.0));
                let (x, y) = (left + wide * i as f64, top + high * j as f64);
                let step = ratio.map_or("hx", |(ratio, _)| heat(ratio));
                let class = format!("{step}{}", if framed { " ch" } else { "" });
                h.empty("rect", &[("class", &class), ("x", &x), ("y", &y)]);
                let (x, y) = (x + wide / 2.0, y + 15.0);
                let text = ratio
                    .map_or("✕".into(), |(ratio, few)| format!("{}{}", if few { "~" } else { "" }, digits(ratio, 3)));
                h.leaf("text", &[("x", &x), ("y", &y)], text);
            }
        }
    });
}

/// The first characters of a value, for a narrow place.
fn short(text: &str) -> String {
    text.chars().take(8).collect()
}

/// A row for each value of each axis that the heat map does not show. A dot is one of the fastest `most` variants, as a row of the table is.
fn strips(h: &mut Html, space: &Space<'_>, from: usize, most: usize) {
    let beyond: Vec<_> = space.axes.iter().enumerate().skip(from).collect();
    if beyond.is_empty() {
        return;
    }
    let axis = Axis::logarithmic(space.points.iter().filter_map(|point| space.ratio(point)), 1.0);
    let columns = [("tunable", false), ("value", false), ("best", true), ("plot", false)];
    forest(h, "", "times by the value of each tunable, over the best time", &columns, |h| {
        h.open("tr", &[("class", &"x")], |h| {
            h.leaf("td", &[("colspan", &3)], "");
            h.open("td", &[], |h| plot::axis(h, &axis, 1.0, ""));
        });
        for (at, (name, values)) in beyond {
            for (i, value) in values.iter().enumerate() {
                let mine = space.points.iter().enumerate().filter(|(_, point)| point.at[at] == i);
                let ratios: Vec<(usize, f64)> =
                    mine.filter_map(|(order, point)| Some((order, space.ratio(point)?))).collect();
                h.open("tr", &[], |h| {
                    h.leaf("td", &[], *name);
                    h.leaf("td", &[], *value);
                    let best = ratios.iter().map(|(_, ratio)| *ratio).reduce(f64::min);
                    number(h, best.map_or("wrong".into(), |best| digits(best, 4)));
                    let shown = ratios.iter().filter(|(order, _)| *order < most);
                    let dots: Vec<(f64, Dot)> = shown.map(|(_, ratio)| (*ratio, Dot::Hollow)).collect();
                    h.open("td", &[], |h| plot::dots(h, &axis, &dots));
                });
            }
        }
    });
}

fn rows(h: &mut Html, seat: &Seat<'_>, space: &Space<'_>, most: usize) {
    let (per, unit) = scale(space.best);
    let time = format!("time, {unit}");
    // The tunables name a variant, unless something else does.
    let named = space.axes.is_empty() || space.axes.iter().any(|(name, _)| name.is_empty());
    let mut columns: Vec<Column<'_>> = if named { vec![("variant", false)] } else { vec![] };
    columns.extend(space.axes.iter().map(|(name, _)| (*name, true)));
    columns.extend([(time.as_str(), true), ("over best", true), ("standing", false)]);
    let all = space.points.len();
    let title = match all > most {
        true => format!("The fastest {most} of {all} variants"),
        false => format!("{all} variants"),
    };
    let champion = seat.champion(space.shape);
    folded(h, title, |h| {
        table(h, "r", "variants", &columns, |h| {
            for point in space.points.iter().take(most) {
                h.open("tr", &[], |h| {
                    if named {
                        h.open("td", &[], |h| {
                            h.label(variant(point.variant));
                        });
                    }
                    for (at, (_, values)) in point.at.iter().zip(&space.axes) {
                        number(h, values.get(*at).copied().unwrap_or_default());
                    }
                    number(h, point.ns.map_or(String::new(), |ns| shown(ns / per)));
                    number(h, space.ratio(point).map_or(String::new(), shown));
                    let standing = match (champion == Some(point.variant), point.ns, point.few) {
                        (true, None, _) => "champion, wrong",
                        (true, ..) => "champion",
                        (_, None, _) => "wrong",
                        (.., true) => "few samples",
                        (.., false) => "",
                    };
                    h.leaf("td", &[], standing);
                });
            }
        });
    });
}

/// The visits of a search: times in order, and the best so far.
fn visits(h: &mut Html, seat: &Seat<'_>, search: &SearchReport, most: usize) {
    h.leaf("h4", &[], "Search");
    h.leaf("p", &[("class", &"s")], search.line(seat.target));
    let timed = search.visits.iter().enumerate().filter_map(|(at, visit)| Some((at, visit.ns?, visit.fate)));
    let times: Vec<(usize, f64, VisitFate)> = timed.filter(|(_, ns, _)| *ns > 0.0).collect();
    let least = times.iter().map(|(_, ns, _)| *ns).fold(f64::INFINITY, f64::min);
    if least.is_finite() {
        let up = Axis::logarithmic(times.iter().map(|(_, ns, _)| *ns), least);
        let (left, top, width, height) = (52.0, 6.0, 300.0, 120.0);
        let last = search.visits.len().saturating_sub(1).max(1) as f64;
        let x = |at: usize| left + width * at as f64 / last;
        let y = |ns: f64| top + height * (1.0 - up.share(ns));
        let label = format!("times of {} visited variants in order", times.len());
        h.open("svg", &[("class", &"d"), ("viewBox", &"0 0 360 132"), ("role", &"img"), ("aria-label", &label)], |h| {
            let (per, unit) = scale(least);
            for (tick, text) in plot::labelled(&up.ticks(), per) {
                let at = coordinate(y(tick));
                h.empty("path", &[("class", &"r"), ("d", &format!("M{left} {at}h{width}"))]);
                let place = [("x", &(left - 4.0) as &dyn Display), ("y", &at), ("dy", &3), ("text-anchor", &"end")];
                h.leaf("text", &place, format!("{text} {unit}"));
            }
            let (mut best, mut line) = (f64::INFINITY, String::new());
            for (at, ns, fate) in &times {
                if *fate == VisitFate::Timed && *ns < best {
                    let (to, down) = (coordinate(x(*at)), coordinate(y(*ns)));
                    line += &if line.is_empty() { format!("M{to} {down}") } else { format!("H{to}V{down}") };
                    best = *ns;
                }
            }
            if !line.is_empty() {
                line += &format!("H{}", coordinate(left + width));
                h.empty("path", &[("class", &"c"), ("d", &line)]);
            }
            let dots = |timed: bool| -> String {
                let mine = times.iter().filter(|(.., fate)| (*fate == VisitFate::Timed) == timed);
                mine.map(|(at, ns, _)| format!("M{} {}h0", coordinate(x(*at)), coordinate(y(*ns)))).collect()
            };
            let (timed, few) = (dots(true), dots(false));
            if !timed.is_empty() {
                h.empty("path", &[("class", &"p"), ("d", &timed)]);
            }
            if !few.is_empty() {
                h.empty("path", &[("class", &"p o"), ("d", &few)]);
                h.empty("path", &[("class", &"p i"), ("d", &few)]);
            }
        });
        let legend = "Visits in order: ● timed in full, ○ few samples; the line is the best so far.";
        h.leaf("p", &[("class", &"s")], legend);
    }
    let title = match search.visits.len() > most {
        true => format!("The first {most} of {} visits", search.visits.len()),
        false => "Visits".into(),
    };
    folded(h, title, |h| {
        let columns = [("visit", true), ("variant", false), ("result", false), ("time", true)];
        table(h, "r", "visits of the search", &columns, |h| {
            for (at, visit) in search.visits.iter().enumerate().take(most) {
                h.open("tr", &[], |h| {
                    number(h, at + 1);
                    h.open("td", &[], |h| {
                        h.label(&visit.variant);
                    });
                    h.open("td", &[], |h| {
                        h.text(visit.fate.name());
                        visit.because.iter().for_each(|why| h.leaf("small", &[], why));
                    });
                    match visit.ns {
                        Some(ns) => sorted(h, ns, duration(ns)),
                        None => h.leaf("td", &[], ""),
                    }
                });
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_axes_and_values_in_order() {
        assert_eq!(tunables("T=f16,BLOCK=256"), [("T", "f16"), ("BLOCK", "256")]);
        assert_eq!(tunables("r2,V=1"), [("", "r2"), ("V", "1")]);
        assert!(tunables("").is_empty());
        let mut values = vec!["256", "32", "true", "32", "1024", "false"];
        in_order(&mut values);
        assert_eq!(values, ["32", "256", "1024", "false", "true"]);
    }
}
