//! For each kernel on a target, folded: why it fails, its tuning space, samples, rounds and machine code. Knows which parts there are.

use super::html::Html;
use super::listings::Listings;
use super::seat::{Level, Seat, level};
use super::table::section;
use super::{Most, code, rounds, samples, space};

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
    let heads: Vec<Html> = seats.iter().map(|seat| written(&|h| head(h, seat))).collect();
    let mut rest = room.saturating_sub(heads.iter().map(|part| part.len() + AROUND).sum());
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
    section(h, "details", "Details", about, |h| {
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

/// What is shown of each kernel, however many there are.
fn head(h: &mut Html, seat: &Seat<'_>) {
    champions(h, seat);
    failures(h, seat);
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

/// The full explanations of what is wrong.
fn failures(h: &mut Html, seat: &Seat<'_>) {
    for shape in seat.target.shapes.iter().filter(|shape| level(shape) == Level::Failed) {
        h.open("p", &[("class", &"v bad")], |h| {
            h.leaf("b", &[], Level::Failed.sign());
            h.text(" ").label(crate::report::text::variant(&shape.variant)).text(format!(" at {}", shape.shape));
        });
        if !shape.explanation.is_empty() {
            h.leaf("pre", &[], &shape.explanation);
        }
        shape.diagnoses.iter().for_each(|found| h.leaf("p", &[], format!("{}: {}", found.output, found.text)));
    }
    for failure in seat.target.failures() {
        h.open("p", &[("class", &"v bad")], |h| {
            h.leaf("b", &[], Level::Failed.sign());
            h.text(format!(" {}", failure.line()));
        });
        let rest: Vec<&str> = failure.rest(seat.target).collect();
        if !rest.is_empty() {
            h.leaf("pre", &[], rest.join("\n"));
        }
        h.leaf("p", &[("class", &"s")], failure.named(NAMED));
    }
}

/// How many steps that failed for one reason are named.
const NAMED: usize = 3;
