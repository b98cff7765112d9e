//! The difference of two sides of a kernel as text: a heading, the sources, and the rest, because lines of sources are not wrapped. Knows the document only.

use std::collections::BTreeSet;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use super::difference::{
    DiffDocument, DiffSide, FunctionDiff, RatioReport, SelectedHow, SettingDiff, ShapeDiff, SideFailure,
};
use super::document::TimeReport;
use super::duration::duration;
use super::paint::{BAD, BOLD, DIM, GOOD, OPEN, paint};
use super::text::variant;
use super::wrong::word;
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::paired::{answer_of, difference, figures, said};
use kforge_types::record::{FindingKind, FunctionFacts, Verdict};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// The most opcodes of a function that are listed.
const OPCODES: usize = 16;

/// What is compared.
pub fn heading(found: &DiffDocument) -> String {
    let types = if found.types.is_empty() { String::new() } else { format!(" [{}]", found.types) };
    let name = paint(BOLD, &format!("{}/{}", found.package, found.kernel));
    let mut out = format!("{name} on {}{types}\n", found.target);
    let is_of_one = found.a.state == found.b.state;
    for (side, of) in [("A", &found.a), ("B", &found.b)] {
        let DiffSide { state, champion_of, .. } = of;
        let champion = match champion_of.as_slice() {
            [] => None,
            [all] if all == "all" => Some(format!("champion{}", selected(of.selected))),
            classes => Some(format!("champion of {}{}", classes.join(", "), selected(of.selected))),
        };
        let parts: Vec<String> = champion.into_iter().chain((!is_of_one).then(|| state.clone())).collect();
        let about = if parts.is_empty() { String::new() } else { format!("  {}", paint(DIM, &parts.join(", "))) };
        let _ = writeln!(out, "  {side}  {}{about}", variant(&of.variant));
    }
    out
}

/// How a champion was selected, behind the word: ` (provisional; of the correct variants, in the last build)`.
fn selected(how: SelectedHow) -> String {
    let among = match (how.of_correct, how.last_build) {
        (true, true) => Some("of the correct variants, in the last build"),
        (true, false) => Some("of the correct variants"),
        (false, true) => Some("in the last build"),
        (false, false) => None,
    };
    let parts: Vec<&str> = how.provisional.then_some("provisional").into_iter().chain(among).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// The differences of the sources, in the unified format.
pub fn sources(found: &DiffDocument) -> String {
    let same = found.same_sources.join(", ");
    if found.sources.is_empty() {
        let same = if same.is_empty() { "not known".into() } else { format!("the same in both ({same})") };
        return format!("\nSource: {same}\n");
    }
    let mut out = String::from("\nSource:\n");
    for source in &found.sources {
        let Some(unified) = &source.unified else {
            let _ = writeln!(out, "  {} differs, and one side is no text or is no longer stored", source.file);
            continue;
        };
        for line in unified.lines() {
            let style = match line.as_bytes().first() {
                _ if line.starts_with("--- ") || line.starts_with("+++ ") => BOLD,
                Some(b'+') => ADDED,
                Some(b'-') => REMOVED,
                Some(b'@') => PLACE,
                _ => Style::new(),
            };
            let _ = writeln!(out, "{style}{line}{style:#}");
        }
    }
    if !same.is_empty() {
        let _ = writeln!(out, "{DIM}the same in both: {same}{DIM:#}");
    }
    out
}

/// What else differs, and what is not known.
pub fn rest(found: &DiffDocument) -> String {
    let mut out = String::from("\nVerdicts:\n");
    for (name, side, of) in [("A", &found.a, first as Of), ("B", &found.b, second)] {
        let _ = writeln!(out, "  {name}  {}", verdicts(side, &found.shapes, of));
    }
    out += &settings(&found.settings);
    if !found.functions.is_empty() {
        out += &paint(BOLD, &format!("\n{:<32}{:>10}{:>10}\n", "Machine code:", "A", "B"));
        found.functions.iter().for_each(|function| out += &of_function(function));
    }
    let shapes: String = found.shapes.iter().filter_map(|shape| of_shape(shape, found.hot)).collect();
    if !shapes.is_empty() {
        let _ = write!(out, "\n{}\n{shapes}", if found.hot { "Hot times:" } else { "Cold times:" });
    }
    let missing = [("A", &found.a), ("B", &found.b)];
    let missing: Vec<String> = missing
        .into_iter()
        .flat_map(|(side, of)| of.missing.iter().map(move |m| format!("  {side}: no {}: {}\n", m.what, m.why)))
        .collect();
    if !missing.is_empty() {
        let _ = write!(out, "\nNot known:\n{}", missing.concat());
    }
    out
}

/// The verdict on a side at a shape.
type Of = fn(&ShapeDiff) -> Option<&Verdict>;

fn first(at: &ShapeDiff) -> Option<&Verdict> {
    at.verdict_a.as_ref()
}

fn second(at: &ShapeDiff) -> Option<&Verdict> {
    at.verdict_b.as_ref()
}

/// The verdicts on a side in one line: its first failure, where else it fails, what is unknown and why, and where it passes.
fn verdicts(side: &DiffSide, shapes: &[ShapeDiff], of: Of) -> String {
    let told = |is: &dyn Fn(&Verdict) -> bool| -> Vec<&str> {
        let those = shapes.iter().filter(|at| of(at).is_some_and(is));
        those.map(|at| at.shape.as_str()).collect()
    };
    let mut parts = vec![];
    let mut fails = told(&|verdict| matches!(verdict, Verdict::Fail(_)));
    if let Some(SideFailure { step, shape, why, finding }) = &side.failure {
        let word = word(finding.and_then(FindingKind::not_run));
        parts.push(match (step, shape) {
            (Some(step), _) => format!("{}: `{step}`: {why}", paint(BAD, "failed in the last build")),
            (None, Some(shape)) => format!("{} at {shape}: {why}", paint(BAD, word)),
            (None, None) => format!("{}: {why}", paint(BAD, word)),
        });
        fails.retain(|name| Some(*name) != shape.as_deref());
        if !fails.is_empty() {
            parts.push(format!("also fails at {}", fails.join(", ")));
        }
    }
    let open = |verdict: &'_ Verdict| match verdict {
        Verdict::Unknown(why) => Some(why.to_string()),
        _ => None,
    };
    if let Some(why) = shapes.iter().filter_map(of).find_map(open) {
        let same = told(&|verdict| open(verdict).as_ref() == Some(&why));
        let others = told(&|verdict| open(verdict).is_some_and(|other| other != why));
        parts.push(format!("{} at {}: {why}", paint(OPEN, "unknown"), same.join(", ")));
        if !others.is_empty() {
            parts.push(format!("{} for other reasons at {}", paint(OPEN, "unknown"), others.join(", ")));
        }
    }
    let passes = told(&|verdict| *verdict == Verdict::Pass);
    if !passes.is_empty() {
        parts.push(format!("{} at {}", paint(GOOD, "pass"), passes.join(", ")));
    }
    if parts.is_empty() {
        parts.push(paint(OPEN, "not verified"));
    }
    parts.join("; ")
}

fn settings(settings: &[SettingDiff]) -> String {
    if settings.is_empty() {
        return "\nCompiled and launched: the same\n".into();
    }
    let mut out = String::from("\nCompiled and launched:\n");
    let widest = settings.iter().map(|s| s.name.chars().count()).max().unwrap_or_default();
    for SettingDiff { name, a, b } in settings {
        let value = |of: &Option<String>| of.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| "none".into());
        let _ = writeln!(out, "  {name:<widest$}  {} -> {}", value(a), value(b));
    }
    out
}

fn of_function(function: &FunctionDiff) -> String {
    let name = match (&function.a, &function.b) {
        (Some(a), Some(b)) if a.entry == b.entry => a.entry.clone(),
        (Some(a), Some(b)) => format!("{} against {}", a.entry, b.entry),
        (Some(only), None) => format!("{}, only in A", only.entry),
        (None, Some(only)) => format!("{}, only in B", only.entry),
        (None, None) => return String::new(),
    };
    let mut out = format!("  {name}\n");
    let mut row = |name: &str, is_always: bool, of: &dyn Fn(&FunctionFacts) -> Option<u64>| {
        let both = [&function.a, &function.b].map(|side| side.as_ref().and_then(of));
        let differ = both[0] != both[1];
        if both.iter().any(Option::is_some) && (is_always || differ) {
            out += &counts(name, both);
        }
    };
    row("registers", true, &|f| f.registers.map(u64::from));
    row("bytes of shared memory", true, &|f| f.shared);
    row("bytes of spill stores", true, &|f| f.spill_stores);
    row("bytes of spill loads", true, &|f| f.spill_loads);
    row("bytes of stack", false, &|f| f.stack);
    row("most threads of a block", false, &|f| f.max_threads.map(u64::from));
    row("bytes of parameters", false, &|f| Some(f.params.iter().map(|(_, size)| u64::from(*size)).sum()));
    out + &opcodes(function)
}

/// The opcodes that are not as frequent in both, the largest differences first. Nothing if those of a side were not counted.
fn opcodes(function: &FunctionDiff) -> String {
    let FunctionDiff { a: Some(a), b: Some(b) } = function else { return String::new() };
    if a.opcodes.is_empty() || b.opcodes.is_empty() {
        return String::new();
    }
    let of = |side: &FunctionFacts, name: &String| side.opcodes.get(name).copied().unwrap_or(0);
    let names: BTreeSet<&String> = a.opcodes.keys().chain(b.opcodes.keys()).collect();
    let mut differing: Vec<(&String, u64, u64)> =
        names.into_iter().map(|name| (name, of(a, name), of(b, name))).filter(|(_, a, b)| a != b).collect();
    differing.sort_by_key(|(name, a, b)| (std::cmp::Reverse(a.abs_diff(*b)), *name));
    let sums = [a, b].map(|side| Some(side.opcodes.values().sum()));
    let mut out = counts("instructions", sums);
    differing.iter().take(OPCODES).for_each(|(name, a, b)| out += &counts(name, [Some(*a), Some(*b)]));
    match differing.len() {
        0 => out += "    each opcode is as frequent in both\n",
        n if n > OPCODES => {
            let _ = writeln!(out, "    {DIM}and {} more, which --message-format json lists{DIM:#}", n - OPCODES);
        }
        _ => {}
    }
    out
}

/// A line with the counts of both sides, and by how much they differ.
fn counts(name: &str, both: [Option<u64>; 2]) -> String {
    let shown = |count: Option<u64>| count.map_or_else(|| "?".to_string(), |n| n.to_string());
    let more = match both {
        [Some(a), Some(b)] if b > a => format!("{:>10}", format!("+{}", b - a)),
        [Some(a), Some(b)] if a > b => format!("{:>10}", format!("-{}", a - b)),
        _ => String::new(),
    };
    format!("    {name:<28}{:>10}{:>10}{more}\n", shown(both[0]), shown(both[1]))
}

/// The line of a bench shape; none if neither side is timed there.
fn of_shape(at: &ShapeDiff, hot: bool) -> Option<String> {
    let time = |of: &Option<TimeReport>| of.as_ref().and_then(|time| Some((time.ns(hot)?, time.few)));
    let told = |side: &str, of: Option<(f64, bool)>| match of {
        Some((ns, true)) => format!("{side} {} (few samples)", duration(ns)),
        Some((ns, false)) => format!("{side} {}", duration(ns)),
        None => format!("{side} not timed"),
    };
    let (a, b) = (time(&at.time_a), time(&at.time_b));
    let mut parts = vec![];
    match a.is_none() && b.is_none() {
        true => {}
        false => parts.push(format!("{}, {}", told("A", a), told("B", b))),
    }
    parts.extend(at.ratio.as_ref().map(ratio));
    if !at.ratio.as_ref().is_some_and(|ratio| ratio.paired) {
        parts.extend(at.no_pairs.as_ref().map(|why| format!("no pairs: {why}")));
    }
    (!parts.is_empty()).then(|| format!("  {}: {}\n", at.shape, parts.join("; ")))
}

fn ratio(found: &RatioReport) -> String {
    let (median, ends) = (found.ratio - 1.0, found.interval.map(|(low, high)| (low - 1.0, high - 1.0)));
    let orders = found.orders_disagree.map_or_else(String::new, |(b_first, a_first)| {
        let (b_first, a_first) = (difference(b_first - 1.0), difference(a_first - 1.0));
        format!("; the two orders disagree: {b_first} where B came first, {a_first} where A did")
    });
    match (found.paired, ends) {
        (true, Some(ends)) => {
            let answer = answer_of(median, ends, found.orders_disagree.is_some(), MARGIN);
            let measured = found.measured.as_ref().map(|measured| paint(DIM, &format!(" ({measured})")));
            format!("B in pairs with A: {}{}{orders}", said(answer, median, ends), measured.unwrap_or_default())
        }
        _ => format!("B against A {} by separate medians, which say less than pairs", figures(median, ends)),
    }
}
