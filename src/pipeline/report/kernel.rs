//! What `kforge explain KERNEL` shows, as a document and as text. Knows choices; selects nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;

use super::baselines::{self, BaselineReport};
use super::choice::{self, Choice};
use super::provenance::{self, ObservedReport};
use kforge_foundation::base::count;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// What is known of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct KernelDocument {
    /// Version of this format.
    pub format_version: u32,
    /// Its package.
    pub package: String,
    /// Its name.
    pub kernel: String,
    /// Its operator.
    pub operator: String,
    /// Its champions on each target, for each choice of types.
    pub seats: Vec<SeatDocument>,
    /// The number of its steps by kind, as far as they are known.
    pub steps: BTreeMap<String, u64>,
    /// Its steps that have to run before more is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
}

/// A kernel on a target for one choice of types.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeatDocument {
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
    /// The step that selects its champions.
    pub select: String,
    /// The choice for each class of shapes; empty if the step has no result yet.
    pub choices: Vec<Choice>,
    /// Baselines beside its champions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineReport>,
    /// The observations of devices that its results rest on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedReport>,
}

impl KernelDocument {
    /// Its steps that have to run, in one line; none if there are none.
    fn open_line(&self) -> Option<String> {
        let first = self.open.first()?;
        let all = count(self.open.len() as u64, "step");
        let verb = if self.open.len() == 1 { "has" } else { "have" };
        let such = if self.open.len() == 1 { format!("`{first}`") } else { format!("`{first}` first") };
        Some(format!("{all} {verb} to run: {such}"))
    }
}

/// What makes a selection outdated.
const OUTDATED: &str = "selected again after an edit of its sources, operator or shapes, with another compiler, or on a device of another class";

/// The text, with ANSI styles. With the present time, it also says how old observations are.
pub fn text(kernels: &[KernelDocument], now: Option<Timestamp>) -> String {
    let mut out = String::new();
    for kernel in kernels {
        let (package, name, operator) = (&kernel.package, &kernel.kernel, &kernel.operator);
        let _ = writeln!(out, "{BOLD}{package}/{name}{BOLD:#}, a kernel of operator {operator}");
        for seat in &kernel.seats {
            let types = if seat.types.is_empty() { String::new() } else { format!(" [{}]", seat.types) };
            let _ = writeln!(out, "on {}{types}, by `{}`", seat.target, seat.select);
            match seat.choices.is_empty() {
                true => out.push_str("  nothing is selected yet\n"),
                false => out.push_str(&choice::text(&seat.choices)),
            }
            for line in baselines::lines(&seat.baselines) {
                let _ = writeln!(out, "  {line}");
            }
            if !seat.observed.is_empty() {
                let _ = writeln!(out, "  {DIM}evidence: {}{DIM:#}", provenance::line(&seat.observed, now));
            }
            if !seat.choices.is_empty() {
                let _ = writeln!(out, "  {DIM}{OUTDATED}{DIM:#}");
            }
        }
        if kernel.seats.is_empty() {
            out.push_str("nothing is selected yet\n");
        }
        if let Some(line) = kernel.open_line() {
            let _ = writeln!(out, "{line}");
        }
        let steps: u64 = kernel.steps.values().sum();
        let kinds: Vec<String> = kernel.steps.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let _ = writeln!(out, "{DIM}{}: {}{DIM:#}", count(steps, "step"), kinds.join(", "));
        let _ = writeln!(out, "{DIM}`kforge tree --kernel {name}` lists them{DIM:#}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_told_by_its_champions_and_the_number_of_its_steps() {
        let choice = Choice {
            class: "all".into(),
            stands_for: String::new(),
            champion: Some("A=1".into()),
            provisional: true,
            because: "the first".into(),
            overtaken: vec![],
            time: None,
            rivals: vec![],
        };
        let seat = |types: &str, choices| SeatDocument {
            target: "cpu".into(),
            types: types.into(),
            select: "p/k/cpu/select".into(),
            choices,
            baselines: vec![],
            observed: vec![],
        };
        let kernel = KernelDocument {
            format_version: 1,
            package: "p".into(),
            kernel: "k".into(),
            operator: "o".into(),
            seats: vec![seat("", vec![choice]), seat("T=f16", vec![])],
            steps: [("compile".to_string(), 2), ("select".to_string(), 1)].into(),
            open: vec!["p/k/cpu/judge".into(), "p/k/cpu/select".into()],
        };
        let plain = anstream::adapter::strip_str(&text(&[kernel], None)).to_string();
        let lines = [
            "p/k, a kernel of operator o",
            "on cpu, by `p/k/cpu/select`",
            "  provisional: A=1  (the first)",
            "    would change it: times at its bench shapes: it was selected without them",
            "  selected again after an edit of its sources, operator or shapes, with another compiler, or on a device of another class",
            "on cpu [T=f16], by `p/k/cpu/select`",
            "  nothing is selected yet",
            "2 steps have to run: `p/k/cpu/judge` first",
            "3 steps: 2 compile, 1 select",
            "`kforge tree --kernel k` lists them",
        ];
        assert_eq!(plain, lines.join("\n") + "\n");
    }
}
