//! Rounds of a kernel as a tree: candidates below the champion that they descend from, with verdicts, times, cost and folded differences of sources. Knows the
//! document.

use similar::{ChangeTag, TextDiff};

use super::super::difference::CONTEXT;
use super::super::duration::duration;
use super::html::Html;
use super::seat::{Level, Seat};
use super::table::folded;
use super::units::number;
use crate::report::rounds::{Became, CandidateReport, RoundReport, RoundsReport};
use crate::report::text::variant;

/// The part of a kernel about its rounds.
pub(super) fn rounds(h: &mut Html, seat: &Seat<'_>) {
    let Some(found) = &seat.target.rounds else { return };
    h.leaf("h4", &[], "Rounds");
    if let Some(shape) = &found.shape {
        h.leaf("p", &[("class", &"s")], format!("Times at {shape}."));
    }
    h.open("ol", &[("class", &"rounds"), ("start", &0)], |h| {
        found.rounds.iter().for_each(|round| h.open("li", &[], |h| one(h, round)));
    });
    found.over.iter().for_each(|why| h.leaf("p", &[], format!("No further round: {why}")));
    h.open("ul", &[("class", &"tree")], |h| tree(h, found, None));
    for agent in &found.spent {
        h.leaf("p", &[("class", &"s")], format!("Spent: {}", agent.line()));
    }
}

fn one(h: &mut Html, round: &RoundReport) {
    match round.round {
        0 => h.text("start"),
        _ if round.methods.is_empty() => h.text("no particular method"),
        _ => h.text(round.methods.join(", ")),
    };
    let mut parts = vec![];
    let (right, wrong, refused) = round.counts;
    parts.push(format!("{right} correct, {wrong} wrong, {refused} refused, {} repairs", round.repairs));
    if let Some(bound) = round.bound {
        parts.push(format!("bound by {} before", bound.name()));
    }
    let champion = round.champion.as_deref().map_or("none", variant);
    let time = round.time_ns.map_or(String::new(), |ns| format!(", {}", duration(ns)));
    let gain = round.gain.map_or(String::new(), |gain| format!(", {} times as fast as before", number(gain)));
    parts.push(format!("champion {champion}{time}{gain}"));
    h.leaf("small", &[], parts.join("; "));
}

/// The candidates that descend from `parent`, a variant and its round. A descendant is of a later round, so that a damaged report has no endless branch.
fn tree(h: &mut Html, found: &RoundsReport, parent: Option<(&str, u32)>) {
    let descends = |of: &CandidateReport, (label, round): (&str, u32)| {
        of.parent.as_deref() == Some(label) && of.round > round && first_of(found, label) == Some(round)
    };
    let is_mine = |of: &&CandidateReport| match parent {
        Some(parent) => descends(of, parent),
        None => of.parent.is_none(),
    };
    for of in found.candidates.iter().filter(is_mine) {
        h.open("li", &[], |h| {
            candidate(h, found, of);
            let own = of.variant.as_deref().map(|label| (label, of.round));
            if let Some(own) = own.filter(|own| found.candidates.iter().any(|c| descends(c, *own))) {
                h.open("ul", &[], |h| tree(h, found, Some(own)));
            }
        });
    }
}

/// The round of the first candidate of that name: names of variants are unique, except in a damaged report.
fn first_of(found: &RoundsReport, label: &str) -> Option<u32> {
    found.candidates.iter().find(|of| of.variant.as_deref() == Some(label)).map(|of| of.round)
}

fn candidate(h: &mut Html, found: &RoundsReport, of: &CandidateReport) {
    let level = match of.became {
        Became::Correct => Level::Device,
        Became::Undecided => Level::Unknown,
        Became::Wrong | Became::Refused => Level::Failed,
    };
    h.open("span", &[("class", &format!("v {}", level.class()))], |h| {
        h.leaf("b", &[], level.sign());
        h.text(format!(" {}", of.became.word()));
    });
    let place = match (of.round, of.attempt) {
        (0, _) => "declared".to_string(),
        (round, 0) => format!("round {round}"),
        (round, repair) => format!("round {round}, repair {repair}"),
    };
    let time = of.time_ns.map_or(String::new(), |ns| format!(", {}", duration(ns)));
    h.text(format!(" {} ({place}){time}", of.variant.as_deref().map_or("no candidate", variant)));
    if !of.champion_after.is_empty() {
        let rounds: Vec<String> = of.champion_after.iter().map(u32::to_string).collect();
        h.text(format!("; champion after round {}", rounds.join(", ")));
    }
    match of.because.lines().collect::<Vec<_>>().as_slice() {
        [] => {}
        [line] => h.leaf("small", &[], line),
        _ => folded(h, "why", |h| h.leaf("pre", &[], &of.because)),
    }
    if let Some(source) = &of.source {
        let label = of.parent.as_deref();
        let parent = found.candidates.iter().find(|c| c.variant.as_deref() == label && label.is_some());
        let parent = parent.and_then(|parent| source_of(found, parent));
        match parent {
            Some(before) => folded(h, "difference from the source before", |h| lines(h, before, source)),
            None => folded(h, "source", |h| h.leaf("pre", &[], source)),
        }
    }
}

/// The source of the answer that a candidate belongs to.
fn source_of<'r>(found: &'r RoundsReport, of: &CandidateReport) -> Option<&'r str> {
    let same = |other: &&CandidateReport| (other.round, other.attempt) == (of.round, of.attempt);
    found.candidates.iter().filter(same).find_map(|other| other.source.as_deref())
}

/// The difference of two sources by lines: those that changed, with what stands around them.
fn lines(h: &mut Html, before: &str, after: &str) {
    // Without their ends, so that a last line without one is equal to one with it.
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let found = TextDiff::from_slices(&a, &b);
    let groups = found.grouped_ops(CONTEXT);
    let (mut shown, gap) = (0, "...\n");
    h.open("pre", &[], |h| {
        for group in &groups {
            let (begins, ends) = (group.first(), group.last());
            h.text(if begins.is_some_and(|first| first.old_range().start > shown) { gap } else { "" });
            for change in group.iter().flat_map(|op| found.iter_changes(op)) {
                let text = change.value();
                match change.tag() {
                    ChangeTag::Equal => drop(h.text(format!("  {text}\n"))),
                    ChangeTag::Delete => h.leaf("del", &[], format!("- {text}\n")),
                    ChangeTag::Insert => h.leaf("ins", &[], format!("+ {text}\n")),
                }
            }
            shown = ends.map_or(shown, |last| last.old_range().end);
        }
        h.text(if shown < a.len() { gap } else { "" });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_changed_and_three_lines_around_it() {
        let of = |before: &str, after: &str| {
            let mut html = Html::default();
            lines(&mut html, before, after);
            html.finish()
        };
        let same: Vec<String> = (0..9).map(|line| format!("line {line}\n")).collect();
        let (a, b) = (format!("a < b\n{}x", same.concat()), format!("a > b\n{}x\n", same.concat()));
        let expected = "<pre><del>- a &lt; b\n</del><ins>+ a &gt; b\n</ins>  line 0\n  line 1\n  line 2\n...\n</pre>";
        assert_eq!(of(&a, &b), expected);
        let (a, b) = (format!("{}x\ny\n", same.concat()), format!("{}y\n", same.concat()));
        assert_eq!(of(&a, &b), "<pre>...\n  line 6\n  line 7\n  line 8\n<del>- x\n</del>  y\n</pre>");
    }
}
