//! Scores against the declared start: totals first, `fast_p` as a curve, then each kernel with its interval. Knows scores; computes none.

use super::super::document::Report;
use super::super::score::{CandidateScore, DECLARED, Scores, scores};
use super::html::Html;
use super::plot::{self, Axis, Dot};
use super::table::{folded, forest, number, section, table};
use super::units::{coordinate, number as shown, per_cent};
use kforge_numerics::measure::score::{Fast, Form};

/// The factors of the table of `fast_p`.
const FACTORS: [f64; 9] = [0.5, 0.8, 0.95, 1.0, 1.05, 1.2, 1.5, 2.0, 4.0];

/// The section; nothing if nothing can be scored.
pub(super) fn section_of(h: &mut Html, report: &Report) {
    let Ok(found) = scores(report, Form::Speedup, DECLARED, &FACTORS) else { return };
    let timed: Vec<f64> = found.candidates.iter().filter_map(|of| of.speedup).collect();
    if timed.is_empty() {
        return;
    }
    let about = "How many times as fast each kernel is as its variant that is declared first: the geometric mean over its bench shapes. A wrong kernel \
                 scores 0. Mean, median and percentile are those of correct kernels.";
    section(h, "scores", "Scores", about, |h| {
        totals(h, &found);
        curve(h, report, &found);
        candidates(h, &found.candidates);
    });
}

fn totals(h: &mut Html, found: &Scores) {
    let suite = &found.suite;
    h.open("dl", &[("class", &"cards")], |h| {
        let mut one = |name: &str, value: String| {
            h.open("div", &[], |h| {
                h.leaf("dt", &[], name);
                h.leaf("dd", &[], value);
            });
        };
        one("scored", suite.candidates.to_string());
        one("correct", suite.correct.to_string());
        one("wrong", suite.wrong.to_string());
        one("unknown", suite.unverified.to_string());
        let factors = [
            ("geometric mean", suite.geometric_mean),
            ("median", suite.median),
            ("75th percentile", suite.percentile_75),
        ];
        for (name, value) in factors {
            one(name, value.map_or("unknown".into(), shown));
        }
    });
}

fn share(of: &Fast) -> String {
    match of.at_least == of.at_most {
        true => per_cent(of.at_least),
        false => format!("{} to {}", per_cent(of.at_least), per_cent(of.at_most)),
    }
}

/// The share of kernels that are correct and more than p times as fast, over p.
fn curve(h: &mut Html, report: &Report, found: &Scores) {
    let mut factors: Vec<f64> = found.candidates.iter().filter_map(|of| of.speedup).filter(|s| *s > 0.0).collect();
    factors.sort_by(f64::total_cmp);
    factors.dedup();
    let axis = Axis::logarithmic(factors.iter().copied(), 1.0);
    // The share falls at each speed-up: just below it the kernel still counts.
    let Ok(steps) = scores(report, Form::Speedup, DECLARED, &factors) else { return };
    let Ok(start) = scores(report, Form::Speedup, DECLARED, &[0.0]) else { return };
    let (left, top, width, height) = (42.0, 8.0, 308.0, 150.0);
    let x = |p: f64| coordinate(left + width * axis.share(p));
    let y = |share: f64| coordinate(top + height * (1.0 - share));
    let mut path = format!("M{} {}", coordinate(left), y(start.suite.fast.first().map_or(0.0, |f| f.at_least)));
    for step in &steps.suite.fast {
        path += &format!("H{}V{}", x(step.p), y(step.at_least));
    }
    path += &format!("H{}", coordinate(left + width));
    let label =
        "fast_p: the share of kernels that are correct and more than p times as fast as the declared start, over p";
    h.open("figure", &[], |h| {
        h.open("svg", &[("class", &"d"), ("viewBox", &"0 0 360 190"), ("role", &"img"), ("aria-label", &label)], |h| {
            for share in [0.0, 0.5, 1.0] {
                h.empty("path", &[("class", &"r"), ("d", &format!("M{left} {}h{width}", y(share)))]);
                let text = [
                    ("x", &(left - 4.0) as &dyn std::fmt::Display),
                    ("y", &y(share)),
                    ("dy", &3),
                    ("text-anchor", &"end"),
                ];
                h.leaf("text", &text, format!("{} %", share * 100.0));
            }
            for (tick, text) in plot::labelled(&axis.ticks(), 1.0) {
                h.leaf("text", &[("x", &x(tick)), ("y", &172), ("text-anchor", &"middle")], text);
            }
            h.empty("path", &[("class", &"z"), ("d", &format!("M{} {top}v{height}", x(1.0)))]);
            h.empty("path", &[("class", &"c"), ("d", &path)]);
            h.leaf(
                "text",
                &[("x", &(left + width / 2.0)), ("y", &186), ("text-anchor", &"middle")],
                "p, times as fast",
            );
        });
        let share = "the share that is correct and more than p times as fast";
        // The bounds differ by kernels that nobody verified or timed.
        let least = if found.suite.fast.iter().any(|of| of.at_least < of.at_most) { "at least " } else { "" };
        h.leaf("figcaption", &[], format!("fast_p: {least}{share}"));
    });
    folded(h, "fast_p as a table", |h| {
        table(h, "r", "fast_p", &[("p", true), ("share of kernels", true)], |h| {
            for of in &found.suite.fast {
                h.open("tr", &[], |h| {
                    number(h, of.p);
                    number(h, share(of));
                });
            }
        });
    });
}

fn candidates(h: &mut Html, all: &[CandidateScore]) {
    let values = all.iter().filter_map(|of| {
        let (low, high) = of.interval.unwrap_or((of.speedup?, of.speedup?));
        Some([of.speedup?, low, high])
    });
    let axis = Axis::logarithmic(values.flatten(), 1.0);
    folded(h, "Each kernel", |h| {
        let columns = [("kernel", false), ("verdict", false), ("times as fast", true), ("95 %", true), ("plot", false)];
        forest(h, &plot::line_at(&axis, 1.0), "scores of kernels", &columns, |h| {
            h.open("tr", &[("class", &"x")], |h| {
                h.leaf("td", &[("colspan", &4)], "");
                h.open("td", &[], |h| plot::axis(h, &axis, 1.0, ""));
            });
            for of in all {
                h.open("tr", &[], |h| {
                    let types = if of.types.is_empty() { String::new() } else { format!(" [{}]", of.types) };
                    h.leaf("th", &[("scope", &"row")], format!("{}{types} on {}", of.kernel, of.target));
                    h.leaf(
                        "td",
                        &[],
                        match of.correct {
                            Some(true) => "correct",
                            Some(false) => "wrong",
                            None => "unknown",
                        },
                    );
                    let open = if of.shapes.iter().any(|at| at.unconfirmed.is_some()) { " (unconfirmed)" } else { "" };
                    number(h, of.speedup.map_or("unknown".into(), |speedup| format!("{}{open}", shown(speedup))));
                    let ends = of.interval.map(|(low, high)| format!("{} to {}", shown(low), shown(high)));
                    number(h, ends.unwrap_or_default());
                    h.open("td", &[], |h| {
                        if let Some(speedup) = of.speedup {
                            let dot = if of.correct == Some(true) { Dot::Filled } else { Dot::Hollow };
                            plot::interval(h, &axis, speedup, of.interval, dot);
                        }
                    });
                });
            }
        });
    });
}
