//! Rounds as text and as markdown. Knows the document.

use std::fmt::Write;

use super::duration::duration;
use super::markdown::table;
use super::rounds::{Became, CandidateReport, FateReport, RoundReport, RoundsReport};
use super::text::{self, Failures, variant};
use kforge_foundation::base::count;
use kforge_types::model::Axis;
use kforge_types::record::profile::Gaps;

/// `used compute 8 %, memory 43 %; waiting unknown; bound by memory`.
fn used(round: &RoundReport) -> String {
    let known = |gaps: &&Gaps| Axis::ALL.into_iter().any(|axis| gaps.of(axis).is_some());
    let Some(gaps) = round.gaps.as_ref().filter(known) else { return "use unknown".into() };
    let bound = round.bound.map(|axis| format!("; bound by {}", axis.name())).unwrap_or_default();
    format!("{}{bound}", gaps.text(&|_| None))
}

fn tried(round: &RoundReport) -> String {
    match round.methods.is_empty() {
        true => "no particular method".into(),
        false => round.methods.join(", "),
    }
}

/// `2 correct, 1 wrong, 1 refused, 1 repair`.
fn counts(round: &RoundReport) -> String {
    let (right, wrong, refused) = round.counts;
    let mut parts = vec![format!("{right} correct")];
    for (n, what) in [(wrong, "wrong"), (refused, "refused")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if round.repairs > 0 {
        parts.push(count(round.repairs as usize, "repair"));
    }
    parts.join(", ")
}

/// `BLOCK=32,V=4 3.00 us, 2.67 times as fast`.
fn champion(round: &RoundReport, before: Option<&RoundReport>) -> String {
    let Some(label) = &round.champion else { return "none".into() };
    let mut line = variant(label).to_string();
    if let Some(ns) = round.time_ns {
        line += &format!(" {}", duration(ns));
    }
    match (before.is_some_and(|b| b.champion.as_ref() == Some(label)), round.gain) {
        (true, _) => line += ", as before",
        (false, Some(gain)) => line += &format!(", {gain:.2} times as fast"),
        (false, None) => {}
    }
    line
}

fn fate(method: &FateReport) -> String {
    let rounds: Vec<String> = method.tried.iter().map(|r| format!("{r}")).collect();
    let tried =
        if rounds.is_empty() { "from the start".into() } else { format!("tried in round {}", rounds.join(", ")) };
    match method.fate {
        Some(fate) => format!("{tried}: {}: {}", text::fate(fate), method.reason()),
        None => format!("{tried}: {}", method.reason()),
    }
}

/// The first nonempty line of a text that may be long.
fn first(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("")
}

fn candidate(of: &CandidateReport) -> String {
    let name = of.variant.as_deref().map_or("no candidate", variant);
    // The name of a variant that an agent wrote contains its round.
    let said = of.round == 0 || name.contains(&format!("r{}", of.round));
    let round = if said { String::new() } else { format!("r{}  ", of.round) };
    let mut line = format!("{round}{name}  {}", of.became.word());
    if let Some(ns) = of.time_ns {
        line += &format!("  {}", duration(ns));
    }
    if of.became != Became::Correct && !of.because.is_empty() {
        line += &format!(": {}", first(&of.because));
    }
    if let (Some(from), Some(to)) = (of.champion_after.first(), of.champion_after.last()) {
        line += &match from == to {
            true => format!("  champion after round {from}"),
            false => format!("  champion after rounds {from} to {to}"),
        };
    }
    line
}

/// The rounds in one line.
pub(super) fn summary(found: &RoundsReport) -> String {
    let RoundsReport { rounds, candidates, .. } = found;
    let tried = candidates.iter().filter(|c| c.round > 0).count();
    let first = rounds.iter().find_map(|r| r.time_ns);
    let gain = first.zip(rounds.last().and_then(|r| r.time_ns)).map(|(first, last)| first / last);
    let gain = gain.map(|gain| format!("; {gain:.2} times as fast as the start")).unwrap_or_default();
    let number = rounds.len().saturating_sub(1);
    format!("{}: {}{gain}; `kforge report` shows them", count(number, "round"), count(tried, "candidate"))
}

/// Rounds as terminal text: a line or two after a build, complete in a report.
pub(super) fn write(out: &mut String, found: &RoundsReport, failures: Failures) {
    if failures == Failures::Told {
        let _ = writeln!(out, "    {}", summary(found));
        return;
    }
    let RoundsReport { rounds, candidates, methods, spent, over, shape } = found;
    let at = shape.as_ref().map(|shape| format!(" (times at {shape})")).unwrap_or_default();
    let number = rounds.len().saturating_sub(1);
    let _ = writeln!(out, "    {}{at}", count(number, "round"));
    let mut before: Option<&RoundReport> = None;
    for round in rounds {
        match round.round {
            0 => drop(writeln!(out, "      start: {}", champion(round, None))),
            n => {
                let _ = writeln!(out, "      round {n}: {}", used(round));
                let _ = writeln!(out, "        tried {}: {}", tried(round), counts(round));
                let _ = writeln!(out, "        champion: {}", champion(round, before));
            }
        }
        before = Some(round);
    }
    if let Some(why) = over {
        let _ = writeln!(out, "      no further round: {why}");
    }
    let _ = writeln!(out, "    candidates");
    tree(out, candidates, None, "      ");
    for method in methods {
        let _ = writeln!(out, "    {}  {}", method.method, fate(method));
    }
    for agent in spent {
        let _ = writeln!(out, "    spent {}", agent.line());
    }
}

/// Candidates, each below the one that it descends from.
fn tree(out: &mut String, all: &[CandidateReport], parent: Option<&str>, indent: &str) {
    let mut told: Option<(u32, u32)> = None;
    for of in all.iter().filter(|c| c.parent.as_deref() == parent) {
        if of.attempt > 0 && told != Some((of.round, of.attempt)) {
            let _ = writeln!(out, "{indent}repair {} of round {}", of.attempt, of.round);
        }
        told = Some((of.round, of.attempt));
        let _ = writeln!(out, "{indent}{}", candidate(of));
        if let Some(label) = &of.variant
            && all.iter().any(|c| c.parent.as_deref() == Some(label) && c.round > of.round)
        {
            tree(out, all, Some(label), &format!("{indent}  "));
        }
    }
}

/// Rounds as markdown tables.
pub(super) fn markdown(out: &mut String, name: &str, found: &RoundsReport) {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let at = found.shape.as_ref().map(|shape| format!(", times at `{shape}`")).unwrap_or_default();
    let _ = writeln!(out, "\n### Rounds of {name}{at}\n");
    table(out, "round | used before | tried | candidates | champion after");
    let mut before: Option<&RoundReport> = None;
    for round in &found.rounds {
        let (used, tried, counts) = match round.round {
            0 => ("".into(), "".into(), "".into()),
            _ => (used(round), tried(round), counts(round)),
        };
        let champion = cell(&champion(round, before));
        let _ = writeln!(out, "| {} | {used} | {} | {counts} | {champion} |", round.round, cell(&tried));
        before = Some(round);
    }
    let _ = writeln!(out, "\n```text");
    tree(out, &found.candidates, None, "");
    let _ = writeln!(out, "```");
    if !found.methods.is_empty() {
        table(out, "method | tried in | result | why");
    }
    for method in &found.methods {
        let rounds: Vec<String> = method.tried.iter().map(u32::to_string).collect();
        let fate = method.fate.map_or("", word);
        let _ = writeln!(out, "| {} | {} | {fate} | {} |", method.method, rounds.join(", "), cell(&method.reason()));
    }
    for agent in &found.spent {
        let _ = writeln!(out, "\n* spent {}", cell(&agent.line()));
    }
    if let Some(why) = &found.over {
        let _ = writeln!(out, "\n* no further round: {}", cell(why));
    }
}

fn word(fate: kforge_types::record::params::Fate) -> &'static str {
    fate.name()
}
