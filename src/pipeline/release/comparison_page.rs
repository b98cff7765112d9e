//! A comparison of two states as one HTML page: a row for each kernel and shape, slower ones first, as dots with intervals. Knows comparisons and how pages are
//! written; compares nothing.

use super::comparison::{Change, Comparison, Row, variants};
use crate::report::page::frame;
use crate::report::page::html::Html;
use crate::report::page::plot::{self, Axis, Dot};
use crate::report::page::table::{forest, number, section};
use crate::report::page::units::digits;

/// The page.
pub fn page(found: &Comparison) -> String {
    frame(&format!("{} with {}: kforge compare", found.head, found.base), |h| {
        h.open("header", &[], |h| {
            h.leaf("h1", &[], format!("{} with {}", found.head, found.base));
            h.leaf(
                "p",
                &[("class", &"s")],
                format!("margin {} %; {}", digits(100.0 * found.margin, 2), found.heading()),
            );
        });
        h.open("main", &[], |h| {
            // What is wrong comes before what is slower.
            lists(h, [("Wrong", texts(&found.wrong)), ("Not built", texts(&found.unbuilt))]);
            rows(h, found);
            lists(h, [("Added", texts(&found.added)), ("Removed", texts(&found.removed))]);
        });
    })
}

/// The sign of a change. The signs differ by form.
fn sign(change: Change) -> (&'static str, &'static str) {
    match change {
        Change::Slower => ("✕", "bad"),
        Change::Faster => ("▲", "good"),
        Change::Same => ("●", "good"),
        Change::Undecided => ("◐", "open"),
        Change::Unknown => ("?", "open"),
    }
}

fn rows(h: &mut Html, found: &Comparison) {
    let differences = found.rows.iter().filter_map(|row| row.decision.difference);
    let ends = differences.flat_map(|(middle, ends)| {
        let (low, high) = ends.unwrap_or((middle, middle));
        [middle, low, high]
    });
    let axis = Axis::linear(ends.chain([found.margin, -found.margin]), 0.0);
    let about = "Time of the head over time of the base, minus one: above zero, the head is slower. Intervals of 95 % where it comes from pairs; the line is no difference.";
    section(h, "comparison", "Kernels", about, |h| {
        let columns = [
            ("kernel", false),
            ("change", false),
            ("variant", false),
            ("difference", true),
            ("95 %", true),
            ("plot", false),
        ];
        forest(h, &plot::line_at(&axis, 0.0), "changes of kernels", &columns, |h| {
            h.open("tr", &[("class", &"x")], |h| {
                h.leaf("td", &[("colspan", &5)], "");
                h.open("td", &[], |h| plot::axis(h, &axis, 0.01, " %"));
            });
            for row in found.sorted() {
                h.open("tr", &[], |h| one(h, &axis, row));
            }
        });
    });
}

fn one(h: &mut Html, axis: &Axis, row: &Row) {
    let change = row.decision.change;
    h.open("th", &[("scope", &"row")], |h| {
        h.name(&row.seat.to_string());
    });
    h.open("td", &[("class", &"why")], |h| {
        let (sign, class) = sign(change);
        h.open("span", &[("class", &format!("v {class}"))], |h| {
            h.leaf("b", &[], sign);
            h.text(format!(" {}", change.name()));
        });
        h.leaf("small", &[], &row.decision.because);
    });
    h.open("td", &[], |h| {
        h.label(&variants(row));
    });
    let share = |value: f64| digits(100.0 * value, 3);
    match row.decision.difference {
        Some((middle, ends)) => {
            number(h, format!("{} %", share(middle)));
            number(h, ends.map_or(String::new(), |(low, high)| format!("{} to {} %", share(low), share(high))));
            let decided = matches!(change, Change::Slower | Change::Faster | Change::Same);
            let dot = if decided { Dot::Filled } else { Dot::Hollow };
            h.open("td", &[], |h| plot::interval(h, axis, middle, ends, dot));
        }
        None => h.leaf("td", &[("colspan", &3)], ""),
    }
}

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

/// A title and a list for each part that has lines.
fn lists(h: &mut Html, parts: [(&str, Vec<String>); 2]) {
    for (title, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        h.leaf("h2", &[], title);
        h.open("ul", &[], |h| lines.iter().for_each(|line| h.leaf("li", &[], line)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{Decision, Seat, Wrong};
    use super::*;

    #[test]
    fn slower_kernels_come_first_with_their_intervals_and_names_stay_text() {
        let seat = |kernel: &str| Seat {
            package: "p".into(),
            kernel: kernel.into(),
            types: String::new(),
            target: "h200".into(),
            shape: "big".into(),
        };
        let row = |kernel: &str, change: Change, difference| Row {
            seat: seat(kernel),
            base: "V=1".into(),
            head: "V=2,W=3".into(),
            decision: Decision { change, difference, because: "in pairs on X".into() },
        };
        let mut found = Comparison::new("main".into(), "the working tree".into(), 0.01);
        found.rows = vec![
            row("<b>same</b>", Change::Same, None),
            row("slow", Change::Slower, Some((0.025, Some((0.0212, 0.0299))))),
        ];
        found.added = vec![seat("new")];
        found.wrong = vec![Wrong {
            package: "p".into(),
            kernel: "k".into(),
            operator: "o".into(),
            target: "h200".into(),
            because: "`y` is wrong".into(),
            finding: None,
        }];
        let text = page(&found);
        let (slow, same) =
            (text.find("p/<wbr>slow on h200").unwrap(), text.find("p/<wbr>&lt;b&gt;same&lt;/<wbr>b&gt;").unwrap());
        assert!(slow < same && !text.contains("<b>same"), "{text}");
        assert!(text.contains("<td class=n>2.50 %<td class=n>2.12 to 2.99 %<td><svg"), "{text}");
        assert!(
            text.contains("V=2,<wbr>W=3,<wbr> was V=1") && text.contains("above zero, the head is slower"),
            "{text}"
        );
        assert!(text.contains("✕</b> slower") && text.contains("<li>p/new on h200 at big"), "{text}");
        assert!(text.contains("margin 1.0 %; 1 slower, 1 same, 1 wrong"), "{text}");
        assert!(text.find("<h2>Wrong").unwrap() < slow, "{text}");
        assert_eq!(page(&found), text);
    }
}
