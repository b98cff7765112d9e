//! The value of each method of a kernel, as text: whether machine code shows the method, and its attribution. Knows the report's document; attributes nothing.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use super::document::{MethodReport, Report, TargetReport};
use super::legend;
use super::text::{fate, seen, variant};
use kforge_numerics::measure::attribute::WITHOUT;
use kforge_numerics::measure::paired::figures;
use kforge_types::record::params::Fate;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// The declared methods of kernels, and which targets are emulated and so have no machine code and no times.
pub struct Declared<'d> {
    /// The names of the methods of a kernel of a package, in declared order.
    pub methods: &'d dyn Fn(&str, &str) -> Vec<String>,
    /// Whether a target of a package is emulated.
    pub emulated: &'d dyn Fn(&str, &str) -> bool,
}

/// The text, with ANSI styles; kernels without methods are left out.
pub fn text(report: &Report, declared: &Declared<'_>) -> String {
    let mut out = String::new();
    for package in &report.packages {
        let mut of_package = String::new();
        for kernel in &package.kernels {
            let methods = (declared.methods)(&package.name, &kernel.name);
            for target in kernel.targets.iter().filter(|_| !methods.is_empty()) {
                let types = if target.types.is_empty() { String::new() } else { format!(" [{}]", target.types) };
                let _ =
                    writeln!(of_package, "  {BOLD}{}{BOLD:#}{types} on {BOLD}{}{BOLD:#}", kernel.name, target.target);
                if (declared.emulated)(&package.name, &target.target) {
                    let _ = writeln!(
                        of_package,
                        "    {OPEN}unknown{OPEN:#} {}: the emulator measures no times, and it runs no machine code that could show a method",
                        methods.join(", ")
                    );
                } else {
                    write_target(&mut of_package, target, &methods);
                }
            }
        }
        if !of_package.is_empty() {
            let _ = write!(out, "{BOLD}{}{BOLD:#}\n{of_package}", package.name);
        }
    }
    let targets = || report.packages.iter().flat_map(|of| &of.kernels).flat_map(|kernel| &kernel.targets);
    let saves = |method: &MethodReport| method.attribution.as_ref().is_some_and(|found| found.saving.is_some());
    if let Some(legend) = legend::of_methods().filter(|_| targets().flat_map(|target| &target.methods).any(saves)) {
        let _ = writeln!(out, "{DIM}{legend}{DIM:#}");
    }
    if out.is_empty() {
        out.push_str("no selected kernel declares a method: add `[kernel.NAME.methods.\"memory.NAME\"]` with what turning it off means\n");
    }
    out
}

fn write_target(out: &mut String, target: &TargetReport, methods: &[String]) {
    for champion in &target.champions {
        let class = target.stands_for(&champion.class);
        let Some(label) = &champion.variant else {
            let _ = writeln!(out, "    no champion{class}: {}", champion.because);
            continue;
        };
        let standing = if champion.provisional { "provisional champion" } else { "champion" };
        let _ = writeln!(out, "    {standing}{class}: {}", variant(label));
        for method in methods {
            match target.methods.iter().find(|m| m.method == *method && m.variant == *label) {
                Some(found) => write_method(out, found),
                None => {
                    let _ = writeln!(
                        out,
                        "      {method}\n        not compared: the kernel does not say how to turn it off"
                    );
                }
            }
        }
    }
}

fn write_method(out: &mut String, method: &MethodReport) {
    if method.is_unused() {
        let _ = writeln!(out, "      {}\n        {}", method.method, fate(Fate::NotUsed));
        return;
    }
    let (shown, counts) = seen(method);
    let counts = if counts.is_empty() { String::new() } else { format!("  {DIM}{counts}{DIM:#}") };
    let _ = writeln!(out, "      {}\n        machine code: {shown}{counts}", method.method);
    let _ = match &method.attribution {
        Some(attribution) => {
            // Where pairs decide the fate, the reason has the figures.
            let decided = matches!(attribution.fate, Fate::Effective | Fate::Ineffective | Fate::Harmful);
            let saving = attribution.saving.filter(|_| !decided).map_or(String::new(), |(median, low, high)| {
                format!("; {WITHOUT}{}", figures(median, Some((low, high))))
            });
            writeln!(out, "        attribution:  {}: {}{saving}", fate(attribution.fate), attribution.reason())
        }
        None => writeln!(out, "        attribution:  {OPEN}unknown{OPEN:#}: nothing was compared"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::{ChampionReport, KernelReport, PackageReport};
    use kforge_types::record::params::{Attribution, Matched, Shown};

    fn report(target: TargetReport) -> Report {
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        Report { format_version: 1, packages: vec![package], ..Report::default() }
    }

    fn said(target: TargetReport, methods: &[&str]) -> String {
        let methods: Vec<String> = methods.iter().map(|m| (*m).to_string()).collect();
        let declared = Declared { methods: &|_, _| methods.clone(), emulated: &|_, target| target == "cpu" };
        anstream::adapter::strip_str(&text(&report(target), &declared)).to_string()
    }

    #[test]
    fn each_method_has_its_signature_and_its_attribution() {
        let attribution = Attribution {
            fate: Fate::Effective,
            because: "without it slower, +10.0 % [+8.0, +12.0]".into(),
            detail: None,
            saving: Some((0.1, 0.08, 0.12)),
        };
        // Its pairs decide nothing.
        let failed = Attribution {
            fate: Fate::ImplementationFailed,
            because: "the machine code does not show it".into(),
            ..attribution.clone()
        };
        let matched = Matched { shown: Shown::Shown, counts: vec![("LDG".into(), 4, 0)] };
        let method = MethodReport {
            method: "memory.wide".into(),
            variant: "V=4".into(),
            matched: Some(matched),
            attribution: Some(attribution),
            shapes: vec![],
        };
        let unseen =
            MethodReport { method: "memory.unseen".into(), matched: None, attribution: Some(failed), ..method.clone() };
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec![],
            variant: Some("V=4".into()),
            provisional: false,
            because: String::new(),
            versus: vec![],
        };
        let unused = MethodReport {
            method: "memory.other".into(),
            variant: "V=4".into(),
            matched: None,
            attribution: Some(Attribution { fate: Fate::NotUsed, because: String::new(), detail: None, saving: None }),
            shapes: vec![],
        };
        let target = TargetReport {
            target: "h".into(),
            champions: vec![champion],
            methods: vec![method, unseen, unused],
            ..TargetReport::default()
        };
        let text = said(target, &["memory.wide", "memory.unseen", "memory.other", "compute.none"]);
        for part in [
            "champion: V=4",
            "machine code: shown  LDG 4 times, 0 without it",
            "  effective: without it slower, +10.0 % [+8.0, +12.0]\n",
            "failed: the machine code does not show it; without it +10.0 % [+8.0, +12.0]\n",
            "memory.other\n        not used\n",
            "compute.none\n        not compared",
            "\nsigns: + means that the kernel without the method is slower than the champion, - that it is faster; ",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let target = TargetReport { target: "cpu".into(), ..TargetReport::default() };
        assert!(said(target, &["memory.wide"]).contains("unknown memory.wide: the emulator measures no times"));
        let target = TargetReport { target: "cpu".into(), ..TargetReport::default() };
        assert!(said(target, &[]).starts_with("no selected kernel declares a method"));
    }
}
