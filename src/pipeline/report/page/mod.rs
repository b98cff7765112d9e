//! A report as one HTML page: a single file without requests, readable without a script. Knows the report's document and nothing else; writes no file.
//!
//! | file | shows |
//! |---|---|
//! | `operators` | operators that are wrong or decide nothing |
//! | `ladder` | a row for each kernel and target, failures first |
//! | `speedups`, `scores` | champions against the declared start, rivals and baselines; totals and `fast_p` |
//! | `roofline` | what champions reach at each bench shape |
//! | `methods` | what methods are worth |
//! | `details` | for each kernel: what fails (`seat`), `space`, `samples`, `rounds`, `code` |
//! | `sources` | where all this comes from |
//! | `listings` | the disassembly of what the page compares: a page of its own beside it |
//! | `html`, `plot`, `table`, `units` | syntax and escaping, marks on axes, tables, numbers |
//!
//! | decision | reason |
//! |---|---|
//! | markup is written by `html`, which escapes everything that is not a constant | names, messages and answers of agents come from anywhere |
//! | a policy in the page allows only its own script, by digest, and no request | what slipped through would still not run |
//! | plots in rows of tables have places in per cent | they fit every width without scaling texts |
//! | numbers that a report gives by themselves are in tables; plots repeat them | a screen reader, a printer and a test can read them |
//! | of many kernels, tables have fewer rows, and details that exceed 300 KB are left out | it opens at once; `report.json` has all |
//! | the page does not know the present time | one document gives one page; a script adds ages |

mod code;
mod details;
pub(crate) mod html;
mod ladder;
pub mod listings;
mod methods;
mod operators;
pub(crate) mod plot;
mod roofline;
mod rounds;
mod samples;
mod scores;
mod seat;
mod sources;
mod space;
mod speedups;
pub(crate) mod table;
pub(crate) mod units;

#[cfg(test)]
pub(crate) mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::document::Report;
use super::provenance;
use html::Html;
use listings::Listings;
use seat::{Seat, seats};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The size of a page in bytes up to which it shows details.
const LARGEST: usize = 295_000;

/// Bytes around the sections: head and links.
const AROUND: usize = 3000;

/// What a page shows of each kernel, given how many there are.
#[derive(Debug, Clone, Copy)]
struct Most {
    /// Rows of a table of variants or visits.
    rows: usize,
    /// Bench shapes at which champions are compared with others.
    compared: usize,
    /// Shapes with samples.
    shapes: usize,
    /// Opcodes and metrics.
    facts: usize,
    /// Points of the rooflines, beyond which each kernel has one.
    points: usize,
}

impl Most {
    fn of(seats: usize) -> Self {
        match seats {
            0..=12 => Most { rows: 400, compared: 99, shapes: 8, facts: 200, points: 200 },
            13..=48 => Most { rows: 40, compared: 99, shapes: 2, facts: 24, points: 200 },
            _ => Most { rows: 8, compared: 1, shapes: 1, facts: 8, points: 200 },
        }
    }
}

/// The page of a report, with nothing beside it.
pub fn page(report: &Report) -> String {
    let seats = seats(report);
    frame(&title(report), |h| body(h, report, &seats, None))
}

/// The page of a report that has the disassembly of machine code beside it, or the reasons why there is none: see [`listings::sidecar`].
pub fn page_beside(report: &Report, listings: &Listings) -> String {
    let seats = seats(report);
    frame(&title(report), |h| body(h, report, &seats, Some(listings)))
}

/// A page with this title and body, and with the style and the script of all pages.
pub(crate) fn frame(title: &str, body: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::default();
    let h = &mut html;
    h.constant("<!doctype html>\n");
    h.open("html", &[("lang", &"en")], |h| {
        h.open("head", &[], |h| head(h, title));
        h.open("body", &[], |h| {
            body(h);
            h.open("script", &[], |h| h.constant(SCRIPT));
        });
    });
    html.finish()
}

fn head(h: &mut Html, title: &str) {
    h.empty("meta", &[("charset", &"utf-8")]);
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    );
    h.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
    h.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    h.leaf("title", &[], title);
    h.open("style", &[], |h| h.constant(STYLE));
}

fn title(report: &Report) -> String {
    let names: Vec<&str> = report.packages.iter().map(|package| package.name.as_str()).collect();
    match names.as_slice() {
        [] => "kforge report".into(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more: kforge report", rest.len()),
        names => format!("{}: kforge report", names.join(", ")),
    }
}

fn body(h: &mut Html, report: &Report, seats: &[Seat<'_>], listings: Option<&Listings>) {
    let most = Most::of(seats.len());
    // The sections come first, because the links lead only to those that exist.
    let mut sections = Html::default();
    operators::operators(&mut sections, report);
    ladder::ladder(&mut sections, seats);
    speedups::speedups(&mut sections, seats, most.compared);
    scores::section_of(&mut sections, report);
    roofline::roofline(&mut sections, seats, most.points);
    methods::methods(&mut sections, seats, most.compared);
    let mut last = Html::default();
    sources::sources(&mut last, report, seats);
    let used = sections.len() + last.len() + STYLE.len() + SCRIPT.len() + AROUND;
    details::details(&mut sections, seats, listings, most, LARGEST.saturating_sub(used));
    sections.part(last);
    h.open("header", &[], |h| {
        h.leaf("h1", &[], title(report));
        if let Some(built) = &report.built {
            h.open("p", &[("class", &"s")], |h| {
                h.text(provenance::built(built, None)).text(" ");
                h.leaf("time", &[("datetime", &built.at)], "");
            });
        }
        if let Some(selected) = &report.narrowed {
            h.open("p", &[("class", &"v open")], |h| {
                h.leaf("b", &[], "Narrowed");
                h.text(format!(" to {}. `kforge report --html` writes the whole page.", selected.line()));
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
}
