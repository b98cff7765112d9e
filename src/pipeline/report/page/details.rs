//! For each kernel on a target, folded: why it fails, its tuning space, samples, rounds and machine code. Knows which parts there are.

use super::html::Html;
use super::listings::Listings;
use super::seat::{Level, Seat, level};
use super::table::section;
use super::{Most, code, rounds, samples, space};
use crate::report::calls::CallsReport;
use crate::report::fit::shortened_lines;
use crate::report::legend;
use crate::report::text::{ACCEPTED, by_class, host_launched};
use kforge_foundation::base::count;

/// A part of a kernel's details.
type Part = fn(&mut Html, &Seat<'_>, Option<&Listings>, Most);

/// The parts that are left out first where a page would become too large, last.
const PARTS: [Part; 4] = [
    |h, seat, _, _| rounds::rounds(h, seat),
    |h, seat, _, most| space::space(h, seat, most.rows),
    |h, seat, _, most| samples::samples(h, seat, most.shapes),
    |h, seat, listings, most| code::code(h, seat, listings, most.facts),
];

/// The section, in at most about `room` bytes: the part that matters least is left out first, of the kernels that the ladder has last.
pub(super) fn details(h: &mut Html, seats: &[Seat<'_>], listings: Option<&Listings>, most: Most, room: usize) {
    let about =
        "For each kernel on a target: what failed, the tuning space, samples, rounds, machine code and metrics.";
    let written = |write: &dyn Fn(&mut Html)| {
        let mut part = Html::default();
        write(&mut part);
        part
    };
    let mut texts = Texts { failures: 8, characters: 4000 };
    let (heads, size) = loop {
        let heads: Vec<Html> = seats.iter().map(|seat| written(&|h| head(h, seat, texts))).collect();
        let size: usize = heads.iter().map(|part| part.len() + AROUND).sum();
        if size < room || texts.characters < 100 {
            break (heads, size);
        }
        texts = Texts { failures: (texts.failures / 2).max(1), characters: texts.characters / 2 };
    };
    let mut rest = room.saturating_sub(size);
    let mut parts: Vec<Vec<Html>> = seats.iter().map(|_| vec![]).collect();
    let mut short = vec![false; seats.len()];
    let mut order: Vec<usize> = (0..seats.len()).collect();
    order.sort_by_key(|at| seats[*at].level());
    for write in PARTS {
        for at in order.iter().copied() {
            let seat = &seats[at];
            let part = written(&|h| write(h, seat, listings, most));
            match rest.checked_sub(part.len()) {
                Some(left) => {
                    rest = left;
                    parts[at].push(part);
                }
                None => short[at] = true,
            }
        }
    }
    let targets: Vec<_> = seats.iter().map(|seat| seat.target).collect();
    section(h, "details", "Details", about, |h| {
        if let Some(legend) = legend::of_targets(&targets, legend::Figures::Champions) {
            h.leaf("p", &[("class", &"s")], legend);
        }
        for ((seat, head), (parts, short)) in seats.iter().zip(heads).zip(parts.into_iter().zip(short)) {
            h.open("details", &[("class", &"k")], |h| {
                h.open("summary", &[], |h| {
                    h.open("h3", &[("id", &seat.anchor())], |h| {
                        h.leaf("b", &[("class", &format!("g {}", seat.level().class()))], seat.level().sign());
                        h.text(format!(" {}", seat.full()));
                    });
                });
                h.part(head);
                parts.into_iter().for_each(|part| h.part(part));
                if short {
                    let more = format!("`kforge report --html --kernel {}` shows more.", seat.kernel.name);
                    h.leaf("p", &[("class", &"s")], more);
                }
            });
        }
    });
}

/// Bytes around the details of a kernel.
const AROUND: usize = 320;

/// How many steps that failed for one reason are named.
const NAMED: usize = 3;

/// How much is shown of what fails.
#[derive(Debug, Clone, Copy)]
struct Texts {
    /// Wrong variants, and failed steps, of a kernel. The others are counted.
    failures: usize,
    /// Characters of an explanation or of the message of a step.
    characters: usize,
}

/// What is shown of each kernel, however many there are.
fn head(h: &mut Html, seat: &Seat<'_>, most: Texts) {
    champions(h, seat);
    notes(h, seat);
    failures(h, seat, most);
}

/// What else must be known of its champions.
fn notes(h: &mut Html, seat: &Seat<'_>) {
    let target = seat.target;
    if target.accepted {
        h.leaf("p", &[("class", &"s")], ACCEPTED);
    }
    if let Some(host) = &target.host {
        h.leaf("p", &[("class", &"v open")], host_launched(host));
    }
    let own = target.calls.iter().filter_map(CallsReport::own_line);
    for line in target.calls.iter().filter_map(CallsReport::line).chain(own) {
        h.leaf("p", &[("class", &"s")], line);
    }
    for (shape, line) in by_class(target) {
        h.leaf("p", &[("class", &"v open")], format!("{shape}: {line}"));
    }
}

/// The champion of each class, with the reason.
fn champions(h: &mut Html, seat: &Seat<'_>) {
    for champion in &seat.target.champions {
        h.open("p", &[], |h| {
            let standing = if champion.provisional { "provisional" } else { "champion" };
            h.text(format!("{standing}{}: ", seat.target.stands_for(&champion.class)));
            h.open("code", &[], |h| {
                h.label(champion.variant.as_deref().map_or("none", crate::report::text::variant));
            });
            h.leaf("small", &[], &champion.because);
        });
        for line in seat.target.not_confirmed(champion) {
            h.leaf("p", &[], line);
        }
        for (method, why) in seat.target.harmful(champion) {
            h.leaf("p", &[("class", &"v bad")], format!("warning: {method} is harmful: {why}"));
        }
    }
    for overtaken in &seat.target.overtaken {
        h.leaf("p", &[], overtaken.line());
    }
}

/// Explanations of what is wrong.
fn failures(h: &mut Html, seat: &Seat<'_>, most: Texts) {
    let mut is_short = false;
    let mut explain = |h: &mut Html, text: &'_ str| {
        let (shown, is_all) = shortened_lines(text, most.characters);
        is_short |= !is_all;
        h.leaf("pre", &[], shown);
    };
    let failed = || seat.target.shapes.iter().filter(|shape| level(shape) == Level::Failed);
    for shape in failed().take(most.failures) {
        h.open("p", &[("class", &"v bad")], |h| {
            h.leaf("b", &[], Level::Failed.sign());
            h.text(" ").label(crate::report::text::variant(&shape.variant)).text(format!(" at {}", shape.shape));
        });
        if !shape.explanation.is_empty() {
            explain(h, &shape.explanation);
        }
        shape.diagnoses.iter().for_each(|found| h.leaf("p", &[], format!("{}: {}", found.output, found.text)));
    }
    let failures = seat.target.failures();
    for failure in failures.iter().take(most.failures) {
        h.open("p", &[("class", &"v bad")], |h| {
            h.leaf("b", &[], Level::Failed.sign());
            h.text(format!(" {}", failure.line()));
        });
        let rest: Vec<&str> = failure.rest(seat.target).collect();
        if !rest.is_empty() {
            explain(h, &rest.join("\n"));
        }
        h.leaf("p", &[("class", &"s")], failure.named(NAMED));
    }
    let beyond = |all: usize| all.saturating_sub(most.failures);
    let more = beyond(failed().count()) + beyond(failures.len());
    if more > 0 {
        h.leaf("p", &[], format!("and {}", count(more as u64, "more failure")));
    }
    if is_short || more > 0 {
        h.leaf("p", &[("class", &"s")], format!("`kforge report --kernel {}` shows all of it.", seat.kernel.name));
    }
}
