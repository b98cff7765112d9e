//! Where the results come from: commit, toolchain, device, kforge; what nobody signed, what is stale, what is missing. Knows the document.

use std::collections::BTreeMap;

use super::super::document::Report;
use super::html::Html;
use super::seat::Seat;
use super::table::{number, section, table};
use crate::report::provenance::ObservedReport;
use kforge_types::record::Standing;

/// The section.
pub(super) fn sources(h: &mut Html, report: &Report, seats: &[Seat<'_>]) {
    let about = "What built these results, which observations were judged, and what is only claimed, stale or missing.";
    section(h, "provenance", "Provenance", about, |h| {
        if let Some(built) = &report.built {
            h.open("dl", &[("class", &"kv")], |h| {
                let mut one = |name: &str, value: &str| {
                    h.leaf("dt", &[], name);
                    h.leaf("dd", &[], value);
                };
                one("kforge", &built.kforge);
                one("built", &built.at);
                if let Some(commit) = &built.commit {
                    let dirty = if built.dirty == Some(true) { ", with uncommitted changes" } else { "" };
                    one("commit", &format!("{commit}{dirty}"));
                }
                if let Some(folder) = &built.folder {
                    one("folder", folder);
                }
                if built.interrupted {
                    one("interrupted", "a later build was interrupted, and its results are missing here");
                }
                for (toolchain, packages) in &built.toolchains {
                    one(toolchain, &packages.join(", "));
                }
            });
        }
        observations(h, seats);
        doubts(h, seats);
    });
}

/// What distinguishes observations: device, driver, origin, standing, signer.
type Kind<'r> = (&'r str, &'r str, &'r str, Standing, Option<&'r str>);

/// How many there are of a kind: kernels, observations, the oldest and the newest time.
type Counted<'r> = (u64, u64, &'r str, &'r str);

/// The observations of all seats, each kind once.
fn observations(h: &mut Html, seats: &[Seat<'_>]) {
    let mut all: BTreeMap<Kind<'_>, Counted<'_>> = BTreeMap::new();
    for one in seats.iter().flat_map(|seat| &seat.target.observed) {
        let ObservedReport { device, driver, origin, standing, signer, records, oldest, newest } = one;
        let key = (device.as_str(), driver.as_str(), origin.as_str(), *standing, signer.as_deref());
        let of = all.entry(key).or_insert((0, 0, oldest, newest));
        *of = (of.0 + 1, of.1 + records, of.2.min(oldest), of.3.max(newest));
    }
    if all.is_empty() {
        return;
    }
    let columns = [
        ("device", false),
        ("driver", false),
        ("from", false),
        ("standing", false),
        ("kernels", true),
        ("observations", true),
        ("oldest", false),
        ("newest", false),
    ];
    table(h, "r", "observations", &columns, |h| {
        for ((device, driver, origin, standing, signer), (kernels, records, oldest, newest)) in all {
            h.open("tr", &[], |h| {
                h.leaf("th", &[("scope", &"row")], device);
                h.leaf("td", &[], driver);
                h.leaf("td", &[], origin);
                h.leaf(
                    "td",
                    &[],
                    match (standing, signer) {
                        (Standing::Signed, Some(signer)) => format!("signed by {signer}"),
                        (Standing::Claimed, _) => "claimed".into(),
                        (standing, _) => standing.name().to_string(),
                    },
                );
                number(h, kernels);
                number(h, records);
                h.leaf("td", &[], oldest);
                h.leaf("td", &[], newest);
            });
        }
    });
}

/// What weakens the results: each reason with the kernels that it is about.
fn doubts(h: &mut Html, seats: &[Seat<'_>]) {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for seat in seats {
        let mut add = |why: String| all.entry(why).or_default().push(seat.full());
        if let Some(why) = &seat.target.stale {
            add(format!("Stale: {why}"));
        }
        if seat.target.observed.iter().any(|one| one.standing == Standing::Claimed) {
            add("Only claimed: nobody whom this build trusts signed some of its observations".into());
        }
        for what in seat.target.shapes.iter().flat_map(|shape| &shape.unconfined) {
            if !all.get(&format!("Unconfined: {what}")).is_some_and(|of| of.contains(&seat.full())) {
                all.entry(format!("Unconfined: {what}")).or_default().push(seat.full());
            }
        }
        if let Some(limit) = &seat.target.index_limit {
            let mut add = |why: String| all.entry(why).or_default().push(seat.full());
            add(format!("Indices in {} were tested only far from their limit", limit.dtype));
        }
    }
    if all.is_empty() {
        return;
    }
    h.leaf("h3", &[], "What to know");
    h.open("ul", &[], |h| {
        for (why, of) in all {
            h.open("li", &[], |h| {
                h.text(why);
                h.leaf("small", &[], of.join(", "));
            });
        }
    });
}
