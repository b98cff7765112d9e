//! Markdown for the summary of a job: the result in a line, failures first, then champions with their times, then what is unknown and why. All tables are
//! bounded, because a code host cuts long summaries off. Knows the report; `markdown` of the room above shows everything.

use std::fmt::Write;

use super::message::messages;
use crate::report::Report;
use crate::report::document::{ChampionReport, KernelReport, PackageReport, TargetReport, TimeReport};
use crate::report::duration::duration;
use crate::report::fit::shortened;
use crate::report::markdown::table;
use crate::report::{provenance, text};
use kforge_foundation::base::{Diagnostic, Severity, count, is_hidden};
use kforge_types::record::Verdict;
use kforge_types::record::event::VerdictCounts;

/// The most rows of a table.
const MOST_ROWS: usize = 25;

/// The most characters of a cell.
const MOST_CHARACTERS: usize = 240;

/// Rows of a table; each is a list of cells.
type Rows = Vec<Vec<String>>;

/// The summary.
pub(super) fn summary(report: &Report, diagnostics: &[Diagnostic]) -> String {
    format!("## kforge: {}\n{}", result(report, diagnostics), results(report, diagnostics))
}

/// What the summary says below its heading. It begins with an empty line.
pub(super) fn results(report: &Report, diagnostics: &[Diagnostic]) -> String {
    let (failures, unknown, champions) = (failures(report, diagnostics), unknown(report), champions(report));
    let mut out = format!("\n{}\n", counted(report, diagnostics));
    if let Some(built) = report.built.as_ref().filter(|built| !built.at.is_empty()) {
        let _ = writeln!(out, "\n{}", escaped(&provenance::built(built, None)));
    }
    for (kernel, target) in seats(report).map(|(_, kernel, target)| (kernel, target)) {
        if let Some(why) = &target.stale {
            let _ = writeln!(out, "\n{} is stale: {}", seat(kernel, target), escaped(why));
        }
    }
    section(&mut out, "Failures", "what | where | why", failures);
    section(
        &mut out,
        "Champions",
        "kernel | shape | champion | time | longer (+) or shorter (-) than the first variant's | device",
        champions,
    );
    section(&mut out, "Unknown", "kernel | what | why", unknown);
    out
}

/// The result in one or a few words. What could not be built comes before what is wrong.
fn result(report: &Report, diagnostics: &[Diagnostic]) -> &'static str {
    let verdicts = || seats(report).flat_map(|(_, _, target)| &target.shapes).map(|shape| &shape.verdict);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        "the manifest has errors"
    } else if seats(report).any(|(_, _, target)| !target.failed.is_empty()) {
        "not built"
    } else if report.has_failed() {
        let failing = || {
            seats(report).flat_map(|(_, _, target)| &target.shapes).filter(|of| matches!(of.verdict, Verdict::Fail(_)))
        };
        let is_run = failing().next().is_none() || failing().any(|shape| shape.not_run().is_none());
        if is_run { "wrong" } else { "does not run" }
    } else if verdicts().any(|verdict| *verdict == Verdict::Pass) {
        "passed"
    } else {
        "nothing is known"
    }
}

/// The number of verdicts, as the build counts them, and of failed steps.
fn counted(report: &Report, diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let mut verdicts = report.verdicts();
    let mut of = "steps";
    // An earlier kforge did not store how many there were.
    if verdicts.is_empty() {
        seats(report).flat_map(|(_, _, target)| &target.shapes).for_each(|shape| verdicts.add(&shape.verdict));
        of = if verdicts.is_empty() { of } else { "champions and failures" };
    }
    let failed = seats(report).map(|(_, _, target)| target.failed.len()).sum::<usize>();
    let mut parts = vec![];
    if errors > 0 {
        parts.push(count(errors as u64, "manifest error"));
    }
    if failed > 0 {
        parts.push(format!("{} failed", count(failed as u64, "step")));
    }
    let (all, VerdictCounts { pass, fail, unknown }) = (count(verdicts.total(), "verdict"), verdicts);
    parts.push(format!("{all} of {of}: {pass} pass, {fail} fail, {unknown} unknown"));
    parts.join("; ")
}

/// Every kernel on every target.
fn seats(report: &Report) -> impl Iterator<Item = (&PackageReport, &KernelReport, &TargetReport)> {
    let kernels =
        report.packages.iter().flat_map(|package| package.kernels.iter().map(move |kernel| (package, kernel)));
    kernels.flat_map(|(package, kernel)| kernel.targets.iter().map(move |target| (package, kernel, target)))
}

/// A kernel on a target: `rms_norm [T=f16] on cpu`.
fn seat(kernel: &KernelReport, target: &TargetReport) -> String {
    let types = if target.types.is_empty() { String::new() } else { format!(" [{}]", target.types) };
    escaped(&format!("{}{types} on {}", kernel.name, target.target))
}

/// Messages that are errors, then wrong verdicts.
fn failures(report: &Report, diagnostics: &[Diagnostic]) -> Rows {
    let mut rows: Rows = vec![];
    for message in messages(report, diagnostics) {
        if message.severity != Severity::Error {
            continue;
        }
        let place = message.place.as_ref().map(|place| match place.region {
            Some(region) => format!("{}:{}", place.path, region.line),
            None => place.path.clone(),
        });
        let subject = message.subject();
        let what = if subject.is_empty() { message.code.clone() } else { format!("{subject}: {}", message.code) };
        let more = match message.steps.saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and in {})", count(more, "more step")),
        };
        let why = message.text.lines().next().unwrap_or_default();
        rows.push(vec![escaped(&what), escaped(&place.unwrap_or_default()), format!("{}{more}", escaped(why))]);
    }
    // A report of an earlier kforge has no messages.
    if rows.is_empty() {
        for (_, kernel, target) in seats(report) {
            for (step, why) in &target.failed {
                rows.push(vec![seat(kernel, target), escaped(step), escaped(why)]);
            }
            for shape in &target.shapes {
                if let Verdict::Fail(why) = &shape.verdict {
                    let at = format!("{} {}", shape.shape, shape.variant);
                    rows.push(vec![seat(kernel, target), escaped(at.trim_end()), escaped(why)]);
                }
            }
        }
    }
    rows
}

/// The champions at their timed shapes; without times, one row each.
fn champions(report: &Report) -> Rows {
    let mut rows: Rows = vec![];
    for (_, kernel, target) in seats(report) {
        for champion in &target.champions {
            let Some(label) = &champion.variant else { continue };
            let name = format!("{}{}", text::variant(label), if champion.provisional { " (provisional)" } else { "" });
            let times: Vec<&TimeReport> = target.times.iter().filter(|time| is_of(target, champion, time)).collect();
            for time in &times {
                let Some(ns) = selecting(target, time) else { continue };
                let seen = time.seen.as_ref().map_or_else(String::new, |seen| seen.device.clone());
                rows.push(vec![
                    seat(kernel, target),
                    escaped(&time.shape),
                    escaped(&name),
                    duration(ns),
                    against(target, time, ns),
                    escaped(&seen),
                ]);
            }
            if times.iter().all(|time| selecting(target, time).is_none()) {
                let stands_for = match target.stands_for(&champion.class) {
                    all if all.is_empty() => "all".to_string(),
                    some => some,
                };
                rows.push(vec![
                    seat(kernel, target),
                    escaped(stands_for.trim_start().trim_start_matches("for ")),
                    escaped(&name),
                    "not timed".into(),
                    String::new(),
                    String::new(),
                ]);
            }
        }
    }
    rows
}

/// Whether a time is that of a champion at a shape for which it is champion.
fn is_of(target: &TargetReport, champion: &ChampionReport, time: &TimeReport) -> bool {
    let stands = target.champion_at(&time.shape);
    Some(&time.variant) == champion.variant.as_ref() && stands.is_some_and(|one| one.class == champion.class)
}

/// The time by which champions are selected.
fn selecting(target: &TargetReport, time: &TimeReport) -> Option<f64> {
    if target.basis.as_ref().is_some_and(|basis| basis.hot) { time.hot_ns } else { time.cold_ns }
}

/// How the time of a champion compares with that of the variant that is declared first.
fn against(target: &TargetReport, time: &TimeReport, ns: f64) -> String {
    let Some(first) = target.basis.as_ref().map(|basis| basis.declared.as_str()) else { return String::new() };
    if first == time.variant {
        return "the same".into();
    }
    let other = target.times.iter().find(|other| other.variant == first && other.shape == time.shape);
    match other.and_then(|other| selecting(target, other)) {
        Some(other) => format!("{:+.1} %", (ns / other - 1.0) * 100.0),
        None => "unknown".into(),
    }
}

/// Unknown verdicts and steps that could not run, by reason.
fn unknown(report: &Report) -> Rows {
    let mut rows: Rows = vec![];
    for (_, kernel, target) in seats(report) {
        let mut reasons: Vec<(String, Vec<&str>)> = vec![];
        for shape in &target.shapes {
            let Verdict::Unknown(why) = &shape.verdict else { continue };
            let why = why.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, shapes)) if shapes.contains(&shape.shape.as_str()) => {}
                Some((_, shapes)) => shapes.push(&shape.shape),
                None => reasons.push((why, vec![&shape.shape])),
            }
        }
        for (why, shapes) in reasons {
            rows.push(vec![seat(kernel, target), escaped(&shapes.join(", ")), escaped(&why)]);
        }
        if let Some(not_built) = &target.not_built {
            rows.push(vec![seat(kernel, target), "not built".into(), escaped(&not_built.line())]);
        }
        for (kind, number, why) in &target.unavailable {
            let steps = count(*number, &format!("{kind} step"));
            rows.push(vec![seat(kernel, target), steps, escaped(why)]);
        }
    }
    for package in &report.packages {
        for operator in &package.operators {
            if let Verdict::Unknown(why) = &operator.verdict {
                rows.push(vec![escaped(&operator.name), "its tolerance".into(), escaped(&why.to_string())]);
            }
        }
    }
    rows
}

/// A heading and a table; nothing if it has no rows.
fn section(out: &mut String, heading: &str, columns: &str, rows: Rows) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### {heading}");
    table(out, columns);
    for row in rows.iter().take(MOST_ROWS) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    if let Some(more) = rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        let _ = writeln!(out, "\nand {more} more, which `kforge report` lists");
    }
}

/// Text in a cell: on one line, bounded by leaving out its middle, and without effect on the table, as a link or an image, or as HTML. Hidden characters are
/// named.
fn escaped(text: &str) -> String {
    let line = shortened(text, MOST_CHARACTERS, 4);
    let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\\', "\\\\");
    let line = line.replace('|', "\\|").replace('`', "\\`").replace('[', "\\[").replace(']', "\\]");
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => " ".into(),
        c if is_hidden(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    line.chars().map(shown).collect()
}
