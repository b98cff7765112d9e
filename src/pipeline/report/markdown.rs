//! A report as markdown: tables for pull requests and documents. Knows the document.

use std::fmt::Write;

use super::document::Report;
use super::duration::duration;
use super::text::{ACCEPTED, facts, host_launched, observed};
use super::{baselines, calls, leaders, legend, provenance, rounds_text};
use jiff::Timestamp;
use kforge_foundation::base::{self, unhidden};
use kforge_types::record::observation::witness;
use kforge_types::record::params::{Attribution, Shown};

/// The report as markdown. With the present time, ages are given beside dates.
pub fn markdown(report: &Report, now: Option<Timestamp>) -> String {
    let mut out = String::from("# kforge report\n");
    if let Some(built) = &report.built {
        let _ = writeln!(out, "\n{}", provenance::built(built, None));
    }
    for package in &report.packages {
        let _ = writeln!(out, "\n## {}\n", package.name);
        for operator in &package.operators {
            let _ = writeln!(out, "* operator `{}`: {}", operator.name, operator.verdict);
        }
        let targets = || package.kernels.iter().flat_map(|k| k.targets.iter().map(move |t| (k, t)));
        for (kernel, target) in targets().filter(|(_, t)| !t.observed_on.is_empty()) {
            let _ = writeln!(out, "* `{}` on `{}`: observed on {}", kernel.name, target.target, observed(target, now));
        }
        for (kernel, target) in targets() {
            if let Some(why) = &target.stale {
                let _ = writeln!(out, "* `{}` on `{}` is stale: {why}", kernel.name, target.target);
            }
        }
        for (kernel, target) in targets() {
            if let Some(not_built) = &target.not_built {
                let last = not_built.last.as_ref().map_or_else(String::new, |last| format!("; {}", last.line()));
                let why = not_built.line();
                let _ = writeln!(out, "* `{}` on `{}` was not built: {why}{last}", kernel.name, target.target);
            }
        }
        for (kernel, target) in targets().filter(|(_, t)| t.accepted) {
            let _ = writeln!(out, "* `{}` on `{}`: {ACCEPTED}", kernel.name, target.target);
        }
        for (kernel, target) in targets() {
            if let Some(host) = &target.host {
                let _ = writeln!(out, "* `{}` on `{}`: {}", kernel.name, target.target, host_launched(host));
            }
        }
        for (kernel, target) in targets() {
            if let Some(search) = &target.search {
                let _ = writeln!(out, "* `{}` on `{}`: {}", kernel.name, target.target, search.line(target));
            }
        }
        for (kernel, target) in targets() {
            for overtaken in &target.overtaken {
                let _ = writeln!(out, "* `{}` on `{}`: {}", kernel.name, target.target, overtaken.line());
            }
        }
        table(&mut out, "kernel | target | champion | standing | why");
        for (kernel, target) in targets() {
            for champion in &target.champions {
                let name = match champion.variant.as_deref() {
                    Some("") => "the only variant".into(),
                    Some(v) => format!("`{v}`"),
                    None => "none".to_string(),
                };
                let standing = if champion.provisional { "provisional" } else { "champion" };
                let standing = format!("{standing}{}", target.stands_for(&champion.class));
                let warnings =
                    target.harmful(champion).map(|(method, why)| format!("; warning: {method} is harmful: {why}"));
                let unconfirmed = target.not_confirmed(champion).into_iter().map(|line| format!("; {line}"));
                let because = champion.because.clone() + &unconfirmed.chain(warnings).collect::<String>();
                let _ = writeln!(
                    out,
                    "| {} | {} | {name} | {} | {} |",
                    cell(&kernel.name),
                    cell(&target.target),
                    cell(&standing),
                    cell(&because)
                );
            }
        }
        table(&mut out, "kernel | target | shape | variant | verdict");
        for (kernel, target) in targets() {
            for shape in &target.shapes {
                let of = [
                    witness(shape.emulated, shape.interpreted, shape.in_torch),
                    if shape.unconfined.is_empty() { "" } else { "unconfined" },
                ];
                let of: Vec<&str> = of.into_iter().filter(|part| !part.is_empty()).collect();
                let emulated = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {}{emulated} |",
                    cell(&kernel.name),
                    cell(&target.target),
                    cell(&shape.shape),
                    cell(&shape.variant),
                    cell(&shape.verdict.to_string())
                );
            }
        }
        if targets().any(|(_, t)| !t.machine.is_empty()) {
            table(&mut out, "kernel | target | function | architectures | machine code");
        }
        for (kernel, target) in targets() {
            for machine in &target.machine {
                for function in &machine.functions {
                    let _ = writeln!(
                        out,
                        "| {} | {} | `{}` | {} | {} |",
                        cell(&kernel.name),
                        cell(&target.target),
                        function.entry,
                        machine.architectures.join(", "),
                        facts(function)
                    );
                }
            }
        }
        if targets().any(|(_, t)| !t.methods.is_empty()) {
            table(&mut out, "kernel | target | method | machine code | effect");
        }
        for (kernel, target) in targets() {
            for method in target.methods_of_champions() {
                let shown = match method.matched.as_ref().map(|m| &m.shown) {
                    None if method.is_unused() => "not used".to_string(),
                    Some(Shown::Shown) => "shown".to_string(),
                    Some(Shown::NotShown) => "not shown".to_string(),
                    Some(Shown::Unknown(why)) => format!("unknown: {why}"),
                    None => "unknown".to_string(),
                };
                let effect = method.attribution.as_ref().map(Attribution::reason).unwrap_or_default();
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} |",
                    cell(&kernel.name),
                    cell(&target.target),
                    cell(&method.method),
                    cell(&shown),
                    cell(&effect)
                );
            }
        }
        if targets().any(|(_, t)| t.rooflines.iter().any(|found| found.bound().is_some())) {
            table(&mut out, "kernel | target | variant | shape | what bounds it");
        }
        for (kernel, target) in targets() {
            for (found, bound) in target.rooflines.iter().filter_map(|found| Some((found, found.bound()?))) {
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} |",
                    cell(&kernel.name),
                    cell(&target.target),
                    cell(&found.variant),
                    cell(found.shape.as_deref().unwrap_or("unknown")),
                    cell(&bound)
                );
            }
        }
        if targets().any(|(_, t)| t.rooflines.iter().any(|r| !r.achieved.is_empty())) {
            table(&mut out, "kernel | target | variant | shape | time | reaches");
        }
        for (kernel, target) in targets() {
            for found in &target.rooflines {
                for (shape, reached) in &found.achieved {
                    let _ = writeln!(
                        out,
                        "| {} | {} | {} | {} | {} | {} |",
                        cell(&kernel.name),
                        cell(&target.target),
                        cell(&found.variant),
                        cell(shape),
                        duration(reached.time_ns),
                        reached.line()
                    );
                }
            }
        }
        if targets().any(|(_, t)| !t.baselines.is_empty()) {
            table(&mut out, &format!("kernel | target | {}", baselines::COLUMNS));
        }
        for (kernel, target) in targets() {
            for baseline in &target.baselines {
                let cells = baseline.cells().map(|text| cell(&text)).join(" | ");
                let _ = writeln!(out, "| {} | {} | {cells} |", cell(&kernel.name), cell(&target.target));
            }
        }
        for line in leaders::lines(package) {
            let _ = writeln!(out, "\n{}", cell(&line));
        }
        if targets().any(|(_, t)| !t.calls.is_empty()) {
            table(&mut out, &format!("kernel | target | {}", calls::COLUMNS));
        }
        for (kernel, target) in targets() {
            for call in &target.calls {
                let cells = call.cells().map(|text| cell(&text)).join(" | ");
                let _ = writeln!(out, "| {} | {} | {cells} |", cell(&kernel.name), cell(&target.target));
            }
        }
        for (kernel, target) in targets() {
            for line in target.calls.iter().filter_map(calls::CallsReport::own_line) {
                let _ = writeln!(out, "\n{} on {}, {}", cell(&kernel.name), cell(&target.target), cell(&line));
            }
        }
        for (kernel, target) in targets() {
            if let Some(rounds) = &target.rounds {
                let types = if target.types.is_empty() { String::new() } else { format!(" ({})", target.types) };
                let name = format!("`{}`{types} on `{}`", kernel.name, target.target);
                rounds_text::markdown(&mut out, &name, rounds);
            }
        }
        for (kernel, target) in targets() {
            for (kind, count, why) in &target.unavailable {
                let steps = base::count(*count, &format!("{kind} step"));
                let _ = writeln!(out, "\n{} on {}: {steps} unavailable: {why}", kernel.name, target.target);
            }
        }
    }
    if let Some(legend) = legend::line(report, legend::Figures::All) {
        let _ = writeln!(out, "\n{legend}");
    }
    unhidden(&out)
}

/// Begins a table with these columns. A blank line comes first, because without it markdown continues the text above.
pub(super) fn table(out: &mut String, columns: &str) {
    let blank = if out.ends_with("\n\n") { "" } else { "\n" };
    let rule = "|---".repeat(columns.split(" | ").count());
    let _ = writeln!(out, "{blank}| {columns} |\n{rule}|");
}

/// Text that cannot leave its table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, KernelReport, PackageReport, RooflineReport, TargetReport};
    use super::*;
    use kforge_types::record::profile::Roofline;

    #[test]
    fn a_blank_line_stands_before_every_table() {
        let roofline = Roofline { time_ns: Some(1.0), ..Roofline::default() };
        let roofline = RooflineReport { variant: "A=1".into(), shape: None, roofline, achieved: [].into() };
        let bare = TargetReport { target: "cpu".into(), ..TargetReport::default() };
        let listed = TargetReport { observed_on: vec!["a device".into()], ..bare.clone() };
        let told = TargetReport { accepted: true, rooflines: vec![roofline], ..bare.clone() };
        let of = |target: &TargetReport| {
            let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target.clone()] };
            PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() }
        };
        let packages = [bare, listed, told].iter().map(of).collect();
        let text = markdown(&Report { format_version: 1, packages, ..Report::default() }, None);
        let lines: Vec<&str> = text.lines().collect();
        let heads: Vec<usize> = (1..lines.len()).filter(|at| lines[*at].starts_with("|---")).map(|at| at - 1).collect();
        assert_eq!(heads.len(), 7, "{text}");
        for head in heads {
            assert_eq!(lines[head - 1], "", "before line {head} of\n{text}");
        }
    }

    #[test]
    fn bars_and_newlines_do_not_break_tables() {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec![],
            variant: Some("A=1".into()),
            provisional: true,
            because: "a|b\nc".into(),
            versus: vec![],
        };
        let target = TargetReport { target: "cpu".into(), champions: vec![champion], ..TargetReport::default() };
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let report = Report {
            format_version: 1,
            packages: vec![PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() }],
            ..Report::default()
        };
        assert!(
            markdown(&report, None).contains("| k | cpu | `A=1` | provisional | a\\|b c |\n"),
            "{}",
            markdown(&report, None)
        );
    }
}
