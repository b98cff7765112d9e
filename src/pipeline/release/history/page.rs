//! A history as an HTML page: for each kernel, target and shape, the times of its champions along commits, each plot with its numbers as a table. Knows the
//! document and how pages are written; reads no repository.
//!
//! A plot is as wide as the page. Places along commits are in per cent, so it is never scaled, and neither are its marks or texts.

use std::collections::HashMap;

use super::{History, HistoryPoint, HistorySeries, OddBundle, PointChange, abbreviated};
use crate::report::duration::scale;
use crate::report::page::frame;
use crate::report::page::html::Html;
use crate::report::page::plot::Axis;
use crate::report::page::table::{number, section, table};
use crate::report::page::units::{coordinate, digits, number as shown, place};
use crate::report::text::variant;
use kforge_types::record::Standing;

/// The size of a page in bytes up to which it shows plots.
const LARGEST: usize = 290_000;
/// The most rows of the table of present champions.
const ROWS: usize = 300;
/// The most plots that are open when the page is opened.
const OPEN: usize = 12;
/// The most rows of a list of bundles.
const BUNDLES: usize = 100;
/// The most letters of a commit's subject.
const SUBJECT: usize = 100;
/// The upper and the lower end of a plot's times, and the height of the plot, in pixels.
const TOP: f64 = 10.0;
const BOTTOM: f64 = 100.0;
const HEIGHT: f64 = 122.0;

/// The page.
pub fn page(history: &History) -> String {
    frame(&format!("{}: kforge history", title(history)), |h| {
        let mut sections = Html::default();
        champions(&mut sections, history);
        let mut last = Html::default();
        commits(&mut last, history);
        bundles(&mut last, "unread", "Bundles that were not read", &history.unread);
        bundles(&mut last, "distrusted", "Signatures that do not count", &history.distrusted);
        let used = h.len() + sections.len() + last.len();
        plots(&mut sections, history, LARGEST.saturating_sub(used));
        sections.part(last);
        h.open("header", &[], |h| {
            h.leaf("h1", &[], title(history));
            h.leaf("p", &[("class", &"s")], about(history));
            for notice in history.notices() {
                h.open("p", &[("class", &"v open")], |h| {
                    h.leaf("b", &[], "!");
                    h.text(format!(" {notice}"));
                });
            }
            h.open("nav", &[("aria-label", &"sections")], |h| {
                for (id, title) in sections.sections() {
                    h.leaf("a", &[("href", &format!("#{id}"))], title);
                    h.text(" ");
                }
            });
        });
        h.open("main", &[], |h| h.part(sections));
    })
}

fn title(history: &History) -> String {
    let mut names: Vec<&str> = history.series.iter().map(|series| series.seat.package.as_str()).collect();
    names.dedup();
    match names.as_slice() {
        [] => "Champions over commits".into(),
        [a, b, c, rest @ ..] if !rest.is_empty() => {
            format!("Champions of {a}, {b}, {c} and {} more over commits", rest.len())
        }
        names => format!("Champions of {} over commits", names.join(", ")),
    }
}

fn about(history: &History) -> String {
    let days = |commit: &super::HistoryCommit| day(&commit.at).to_string();
    let span = match (history.commits.first(), history.commits.last()) {
        (Some(first), Some(last)) if days(first) != days(last) => format!(", {} to {}", days(first), days(last)),
        (Some(first), _) => format!(", {}", days(first)),
        _ => String::new(),
    };
    let folder = history.folder.as_ref().map_or_else(String::new, |folder| format!(" below {folder}"));
    format!(
        "bundles of evidence in {} of the first parents of {}{folder}{span}, by kforge {}",
        match history.commits.len() {
            1 => "1 commit".to_string(),
            n => format!("{n} commits"),
        },
        abbreviated(&history.head),
        history.kforge
    )
}

/// The day of a time.
fn day(at: &str) -> &str {
    at.split('T').next().unwrap_or(at)
}

/// How far a point is trusted.
fn standing(point: &HistoryPoint) -> String {
    match (point.standing, &point.signer) {
        (Standing::Signed, Some(signer)) => format!("signed by `{signer}`"),
        (standing, _) => standing.name().into(),
    }
}

/// The commit at which the last champion took its place.
fn since(series: &HistorySeries) -> Option<&String> {
    let takes = |point: &&HistoryPoint| matches!(point.change, PointChange::First | PointChange::Champion);
    series.points.iter().rev().find(takes).map(|point| &point.commit)
}

/// The kind of times of a series.
fn kind(series: &HistorySeries) -> &'static str {
    if series.hot { "hot times" } else { "cold times" }
}

/// Whether the newest commit has no time of a series.
fn is_gone(series: &HistorySeries, at: &HashMap<&str, usize>) -> bool {
    let place = |commit: &String| at.get(commit.as_str()).copied();
    series.absent.last().and_then(place) > series.points.last().map(|point| &point.commit).and_then(place)
}

/// The places of commits, oldest first.
fn places(history: &History) -> HashMap<&str, usize> {
    history.commits.iter().enumerate().map(|(at, commit)| (commit.commit.as_str(), at)).collect()
}

/// The champions of the newest commit, and how often each changed.
fn champions(h: &mut Html, history: &History) {
    let about = "The champion of each kernel, target, shape and device at the newest commit, the commit that made it champion, and how often another variant became champion.";
    let at = places(history);
    section(h, "champions", "Champions", about, |h| {
        if history.series.len() > ROWS {
            let only = format!(
                "The first {ROWS} of {}; `kforge report --html --history --kernel NAME` shows others.",
                history.series.len()
            );
            h.leaf("p", &[("class", &"s")], only);
        }
        let columns = [
            ("kernel", false),
            ("champion", false),
            ("time", true),
            ("95 %", true),
            ("since", false),
            ("changes", true),
        ];
        table(h, "r a", "champions at the newest commit", &columns, |h| {
            for (series, position) in history.series.iter().zip(0usize..).take(ROWS) {
                let Some(point) = series.points.last() else { continue };
                h.open("tr", &[], |h| {
                    h.open("th", &[("scope", &"row")], |h| {
                        h.open("a", &[("href", &format!("#h{position}"))], |h| {
                            h.name(&series.seat.to_string());
                        });
                        h.leaf("small", &[], format!("{}, {}", series.device, kind(series)));
                    });
                    if is_gone(series, &at) {
                        h.leaf("td", &[], "none");
                        number(h, "");
                        number(h, "");
                    } else {
                        h.open("td", &[], |h| label(h, &point.variant));
                        time(h, point);
                    }
                    let since = if is_gone(series, &at) { series.absent.last() } else { since(series) };
                    h.leaf("td", &[], since.map_or("", |commit| abbreviated(commit)));
                    number(h, series.points.iter().filter(|point| point.change == PointChange::Champion).count());
                });
            }
        });
    });
}

/// The cells of a time: the median, and its interval in the same unit.
fn time(h: &mut Html, point: &HistoryPoint) {
    let (per, unit) = scale(point.median_ns);
    number(h, format!("{} {unit}", shown(point.median_ns / per)));
    let ends = point.interval_ns.map(|(low, high)| format!("{} to {} {unit}", shown(low / per), shown(high / per)));
    number(h, ends.unwrap_or_else(|| "unknown".into()));
}

/// The plots, in at most about `room` bytes.
fn plots(h: &mut Html, history: &History, mut room: usize) {
    let about = "Medians with intervals of 95 % along commits, oldest left: ● measured, ◆ another champion, ○ the same champion with other machine code. \
                 A dashed line is a time that stayed. Points were measured at different times; only pairs, as `kforge compare` takes them, show small differences.";
    let at = places(history);
    // What stands in place of a plot that is left out: the table of champions leads there.
    let in_place = |(position, series): (usize, &HistorySeries)| {
        let mut line = Html::default();
        if position < ROWS {
            let text = format!("{}: left out, so that the page stays small", series.seat);
            line.leaf("p", &[("class", &"s"), ("id", &format!("h{position}"))], text);
        }
        line
    };
    let lines: Vec<Html> = history.series.iter().enumerate().map(in_place).collect();
    room = room.saturating_sub(lines.iter().map(Html::len).sum());
    let mut left_out = 0;
    section(h, "history", "History", about, |h| {
        for ((position, series), line) in history.series.iter().enumerate().zip(lines) {
            let mut part = Html::default();
            let mut attributes: Vec<(&'static str, &dyn std::fmt::Display)> = vec![("class", &"k")];
            // Of many, those are open in which something happened.
            let is_new = |point: &HistoryPoint| point.change == PointChange::Champion;
            if history.series.len() <= OPEN || series.points.iter().any(is_new) {
                attributes.push(("open", &""));
            }
            part.open("details", &attributes, |h| {
                h.open("summary", &[], |h| {
                    h.open("h3", &[("id", &format!("h{position}"))], |h| {
                        h.name(&series.seat.to_string());
                    });
                    h.leaf("small", &[], format!("{}, {}", series.device, kind(series)));
                });
                plot(h, series, &at, history);
                numbers(h, series, history, &at);
            });
            match (room + line.len()).checked_sub(part.len()) {
                Some(rest) => {
                    room = rest;
                    h.part(part);
                }
                None => {
                    left_out += 1;
                    h.part(line);
                }
            }
        }
        if left_out > 0 {
            h.leaf("p", &[("class", &"s")], "`--kernel NAME` shows what is left out; history.json has all.");
        }
    });
}

fn plot(h: &mut Html, series: &HistorySeries, at: &HashMap<&str, usize>, history: &History) {
    let Some(first) = series.points.first() else { return };
    let ends = series.points.iter().flat_map(|point| {
        let (low, high) = point.interval_ns.unwrap_or((point.median_ns, point.median_ns));
        [low, high, point.median_ns]
    });
    let times = Axis::logarithmic(ends, first.median_ns);
    let y = |ns: f64| BOTTOM - (BOTTOM - TOP) * times.share(ns);
    let count = history.commits.len();
    let along = Axis::linear([0.0, count.saturating_sub(1) as f64], 0.0);
    // A single commit stands in the middle.
    let x = |position: usize| if count < 2 { 0.5 } else { along.share(position as f64) };
    let (per, unit) = scale(first.median_ns);
    let label = format!("times of the champions of {} along commits; the table below has the numbers", series.seat);
    h.open("svg", &[("class", &"y"), ("role", &"img"), ("aria-label", &label), ("height", &HEIGHT)], |h| {
        for tick in times.ticks() {
            let y = coordinate(y(tick));
            h.empty("line", &[("class", &"t"), ("x1", &"0"), ("x2", &"100%"), ("y1", &y), ("y2", &y)]);
            let text: [(&'static str, &dyn std::fmt::Display); 4] =
                [("x", &"-6"), ("y", &y), ("dy", &"4"), ("text-anchor", &"end")];
            h.leaf("text", &text, format!("{} {unit}", digits(tick / per, 3)));
        }
        for (commit, position) in history.commits.iter().zip(0usize..) {
            let anchor = match position {
                0 if count > 1 => "start",
                0 => "middle",
                last if last + 1 == count => "end",
                _ => continue,
            };
            let x = place(x(position));
            let text: [(&'static str, &dyn std::fmt::Display); 3] =
                [("x", &x), ("y", &(HEIGHT - 4.0)), ("text-anchor", &anchor)];
            h.open("text", &text, |h| {
                h.text(abbreviated(&commit.commit));
                // Narrow windows have no room for two days.
                h.leaf("tspan", &[], format!(" {}", day(&commit.at)));
            });
        }
        for (point, next) in series.points.iter().zip(series.points.iter().skip(1).map(Some).chain([None])) {
            let Some(position) = at.get(point.commit.as_str()).copied() else { continue };
            // The time stays until the next point, or until the bundles lack it.
            let until = next.and_then(|next| at.get(next.commit.as_str())).copied().unwrap_or(count - 1);
            let absent = series.absent.iter().filter_map(|commit| at.get(commit.as_str()).copied());
            let until = absent.filter(|gone| *gone > position).fold(until, usize::min);
            mark(h, point, (x(position), x(until)), &y);
        }
    });
}

/// A point of a plot, with the time for which it stays.
fn mark(h: &mut Html, point: &HistoryPoint, (from, until): (f64, f64), y: &dyn Fn(f64) -> f64) {
    let (x, middle) = (place(from), coordinate(y(point.median_ns)));
    if until > from {
        h.empty("line", &[("class", &"z"), ("x1", &x), ("x2", &place(until)), ("y1", &middle), ("y2", &middle)]);
    }
    h.open("g", &[], |h| {
        let (per, unit) = scale(point.median_ns);
        let words = [variant(&point.variant), point.change.name()];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        h.leaf(
            "title",
            &[],
            format!("{}: {} {unit}, {}", abbreviated(&point.commit), shown(point.median_ns / per), words.join(", ")),
        );
        if let Some((low, high)) = point.interval_ns {
            let (high, low) = (coordinate(y(high)), coordinate(y(low)));
            h.empty("line", &[("class", &"e"), ("x1", &x), ("x2", &x), ("y1", &high), ("y2", &low)]);
        }
        match point.change {
            PointChange::Champion => h.open("svg", &[("x", &x), ("y", &middle)], |h| {
                h.empty("path", &[("d", &"M0-6 6 0 0 6-6 0z")]);
            }),
            PointChange::Code => dot(h, &x, &middle, "o"),
            _ => dot(h, &x, &middle, "p"),
        }
    });
}

/// A dot. The style of rows gives dots their height, so a plot of its own must state it in a style.
fn dot(h: &mut Html, x: &str, y: &str, class: &'static str) {
    h.empty("circle", &[("class", &class), ("cx", &x), ("style", &format!("cy:{y}px"))]);
}

/// The numbers of a plot, newest first.
fn numbers(h: &mut Html, series: &HistorySeries, history: &History, at: &HashMap<&str, usize>) {
    let columns = [
        ("commit", false),
        ("champion", false),
        ("change", false),
        ("time", true),
        ("95 %", true),
        ("samples", true),
        ("standing", false),
    ];
    let place = |commit: &str| at.get(commit).copied();
    let mut rows: Vec<(Option<usize>, &str, Option<&HistoryPoint>)> =
        series.points.iter().map(|point| (place(&point.commit), point.commit.as_str(), Some(point))).collect();
    rows.extend(series.absent.iter().map(|commit| (place(commit), commit.as_str(), None)));
    rows.sort_by_key(|(position, ..)| std::cmp::Reverse(*position));
    table(h, "r c", &format!("{} on {}", series.seat, series.device), &columns, |h| {
        for (position, commit, point) in rows {
            let date = position.and_then(|position| history.commits.get(position)).map_or("", |commit| day(&commit.at));
            h.open("tr", &[], |h| {
                h.open("th", &[("scope", &"row")], |h| {
                    h.leaf("code", &[], abbreviated(commit));
                    h.text(format!(" {date}"));
                });
                let Some(point) = point else {
                    h.leaf("td", &[("colspan", &6)], "no bundle has it");
                    return;
                };
                h.open("td", &[], |h| label(h, &point.variant));
                h.leaf("td", &[], point.change.name());
                time(h, point);
                number(h, point.samples);
                h.open("td", &[], |h| {
                    h.text(standing(point));
                    h.leaf("small", &[], format!("measured {}, {}", day(&point.measured_at), point.bundle));
                });
            });
        }
    });
}

/// The commits, newest first.
fn commits(h: &mut Html, history: &History) {
    let about = "Commits that changed a bundle of this workspace, newest first.";
    section(h, "commits", "Commits", about, |h| {
        let columns = [("commit", false), ("subject", false), ("bundles", true)];
        table(h, "r c m", "commits that changed a bundle", &columns, |h| {
            for commit in history.commits.iter().rev() {
                h.open("tr", &[], |h| {
                    h.open("th", &[("scope", &"row")], |h| {
                        h.leaf("code", &[], abbreviated(&commit.commit));
                        h.text(format!(" {}", day(&commit.at)));
                    });
                    h.leaf("td", &[], cut(&commit.subject));
                    number(h, commit.bundles);
                });
            }
        });
    });
}

/// A subject, cut where it is long.
fn cut(subject: &str) -> String {
    match subject.char_indices().nth(SUBJECT) {
        Some((end, _)) => format!("{}…", &subject[..end]),
        None => subject.to_string(),
    }
}

/// A list of bundles; nothing for none.
fn bundles(h: &mut Html, id: &'static str, title: &'static str, all: &[OddBundle]) {
    if all.is_empty() {
        return;
    }
    section(h, id, title, "Each with the oldest commit that holds it.", |h| {
        if all.len() > BUNDLES {
            h.leaf("p", &[("class", &"s")], format!("The first {BUNDLES} of {}; history.json has all.", all.len()));
        }
        table(h, "r e", title, &[("bundle", false), ("commit", false), ("why", false)], |h| {
            for one in all.iter().take(BUNDLES) {
                h.open("tr", &[], |h| {
                    h.leaf("th", &[("scope", &"row")], &one.path);
                    h.open("td", &[], |h| h.leaf("code", &[], abbreviated(&one.commit)));
                    h.leaf("td", &[], &one.why);
                });
            }
        });
    });
}

/// The label of a variant, whose lines break after its tunables.
fn label(h: &mut Html, of: &str) {
    h.open("code", &[], |h| {
        h.label(variant(of));
    });
}
