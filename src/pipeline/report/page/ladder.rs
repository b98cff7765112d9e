//! The ladder: a row for each kernel and target, failures first. Knows seats; decides nothing.

use super::super::provenance;
use super::super::reach::Fills;
use super::html::Html;
use super::seat::{Level, Seat, level};
use super::table::{section, table};
use super::units::per_cent;
use crate::report::duration::duration;
use kforge_foundation::base::count;
use kforge_types::record::Verdict;

/// The section.
pub(super) fn ladder(h: &mut Html, seats: &[Seat<'_>]) {
    let mut rows: Vec<(Level, &Seat<'_>)> = seats.iter().map(|seat| (seat.level(), seat)).collect();
    rows.sort_by_key(|(level, seat)| (*level, seat.at));
    let about = "A row for each kernel and target, failures first. Time and share of peak are those of the champion at the bench shape where it \
                 takes longest; a shape that is too small cannot fill the device.";
    section(h, "ladder", "Kernels", about, |h| {
        h.open("p", &[("class", &"s")], |h| {
            h.text("Kernels on targets: ");
            for level in Level::ALL {
                let count = rows.iter().filter(|(of, _)| *of == level).count();
                h.open("span", &[("class", &format!("v {}", level.class()))], |h| {
                    h.leaf("b", &[], level.sign());
                    h.text(format!(" {count} {}", level.name()));
                });
                h.text(" ");
            }
        });
        let columns = [
            ("kernel", false),
            ("target", false),
            ("verdicts by shape", false),
            ("time", true),
            ("of peak", true),
            ("evidence", false),
        ];
        table(h, "l", "kernels on targets", &columns, |h| {
            for (level, seat) in rows {
                h.open("tr", &[("class", &level.class())], |h| row(h, level, seat));
            }
        });
    });
}

fn row(h: &mut Html, level: Level, seat: &Seat<'_>) {
    let target = seat.target;
    h.open("th", &[("scope", &"row")], |h| {
        h.leaf("b", &[("class", &"g"), ("aria-hidden", &"true")], level.sign());
        h.text(" ");
        h.leaf("a", &[("href", &format!("#{}", seat.anchor()))], seat.name());
        if let Some(why) = &target.stale {
            h.open("p", &[("class", &"old")], |h| {
                h.leaf("b", &[], "of an earlier version");
                h.text(format!(": {why}"));
            });
        }
    });
    h.leaf("td", &[], &target.target);
    h.open("td", &[], |h| verdicts(h, seat));
    match seat.times().first() {
        Some((time, ns)) => {
            h.open("td", &[("class", &"n"), ("data-v", &super::units::digits(*ns, 6))], |h| {
                h.text(duration(*ns));
                h.leaf("small", &[], format!("at {}", time.shape));
            });
            match seat
                .achieved(&time.shape)
                .and_then(|(roofline, reached)| Some((roofline, reached, reached.roofline()?)))
            {
                Some((roofline, reached, share)) => {
                    h.open("td", &[("class", &"n"), ("data-v", &super::units::digits(share.share, 6))], |h| {
                        h.text(per_cent(share.share));
                        let small = Fills::of(roofline, &time.shape, reached).is_too_small();
                        h.leaf(
                            "small",
                            &[],
                            match (small, reached.memory == Some(share)) {
                                (true, true) => "of memory; too small",
                                (true, false) => "of arithmetic; too small",
                                (false, true) => "of memory",
                                (false, false) => "of arithmetic",
                            },
                        );
                    });
                }
                None => h.leaf("td", &[], ""),
            }
        }
        None => {
            match &target.earlier {
                Some(earlier) => {
                    let sorted = super::units::digits(earlier.ns, 6);
                    h.open("td", &[("class", &"n old"), ("data-v", &sorted)], |h| {
                        h.text(duration(earlier.ns));
                        h.leaf("small", &[], format!("at {} of an earlier version", earlier.shape));
                    });
                }
                None => h.leaf("td", &[], ""),
            }
            h.leaf("td", &[], "");
        }
    }
    h.open("td", &[], |h| evidence(h, seat));
}

/// Shapes by verdict, each group with its sign and words; reasons once each.
fn verdicts(h: &mut Html, seat: &Seat<'_>) {
    for of in Level::ALL {
        let mine = || seat.target.shapes.iter().filter(move |shape| level(shape) == of);
        if mine().next().is_none() {
            continue;
        }
        let name = |shape: &super::super::document::ShapeReport| match seat.champion(&shape.shape) {
            Some(champion) if champion != shape.variant => format!("{} ({})", shape.shape, shape.variant),
            _ => shape.shape.clone(),
        };
        // Without a champion, a shape stands here once for each variant.
        let mut names: Vec<(String, u64)> = vec![];
        for name in mine().map(name) {
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, variants)) => *variants += 1,
                None => names.push((name, 1)),
            }
        }
        let text = |(name, variants): (String, u64)| match variants {
            1 => name,
            _ => format!("{name} ({})", count(variants, "variant")),
        };
        let names: Vec<String> = names.into_iter().map(text).collect();
        h.open("p", &[("class", &format!("v {}", of.class()))], |h| {
            h.leaf("b", &[], of.sign());
            h.text(format!(" {}: {}", of.name(), names.join(", ")));
        });
        let mut told: Vec<String> = vec![];
        for shape in mine() {
            let why = match &shape.verdict {
                Verdict::Fail(why) => why.clone(),
                Verdict::Unknown(why) => why.to_string(),
                Verdict::Pass => continue,
            };
            if !told.contains(&why) {
                told.push(why);
            }
        }
        told.into_iter().take(3).for_each(|why| h.leaf("small", &[], why));
    }
    if let Some(not_built) = &seat.target.not_built {
        h.open("p", &[("class", &format!("v {}", Level::Unknown.class()))], |h| {
            h.leaf("b", &[], Level::Unknown.sign());
            h.text(format!(" not built: {}", not_built.line()));
        });
        not_built.last.iter().for_each(|last| h.leaf("small", &[], last.line()));
    }
    if seat.target.shapes.is_empty() && seat.target.failed.is_empty() {
        let none = seat.target.champions.iter().filter(|champion| champion.variant.is_none());
        none.for_each(|champion| h.leaf("small", &[], format!("No champion: {}", champion.because)));
    }
    if seat.is_cut_short() {
        h.leaf("small", &[], "The build ended before a champion was selected.");
    }
    let failures = seat.target.failures();
    for failure in failures.iter().take(2) {
        h.open("p", &[("class", &"v bad")], |h| {
            h.leaf("b", &[], Level::Failed.sign());
            h.text(format!(" {}", failure.line()));
        });
    }
    let more = failures.len().saturating_sub(2);
    if more > 0 {
        h.leaf("small", &[], format!("and for {}", count(more as u64, "more reason")));
    }
    for (kind, count, why) in &seat.target.unavailable {
        h.leaf("small", &[], format!("{count} {kind} unavailable: {why}"));
    }
}

/// Where and when the evidence was taken, and how far it is trusted. A script adds its age.
fn evidence(h: &mut Html, seat: &Seat<'_>) {
    let observed = &seat.target.observed;
    let Some(newest) = observed.iter().map(|one| &one.newest).max() else { return };
    let mut standings: Vec<String> = observed.iter().map(provenance::standing).collect();
    standings.dedup();
    h.text(format!("{}, {} ", standings.join(", "), newest.split('T').next().unwrap_or_default()));
    h.leaf("time", &[("datetime", newest)], "");
    h.leaf("small", &[], seat.target.observed_on.join("; "));
}
