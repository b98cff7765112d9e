//! What `kforge explain KERNEL` shows, as a document and as text. Knows choices; selects nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::Style;
use serde::Serialize;

use super::baselines::{self, BaselineReport};
use super::choice::{self, Choice};
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
}

/// The text, with ANSI styles.
pub fn text(kernels: &[KernelDocument]) -> String {
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
        };
        let kernel = KernelDocument {
            format_version: 1,
            package: "p".into(),
            kernel: "k".into(),
            operator: "o".into(),
            seats: vec![seat("", vec![choice]), seat("T=f16", vec![])],
            steps: [("compile".to_string(), 2), ("select".to_string(), 1)].into(),
        };
        let plain = anstream::adapter::strip_str(&text(&[kernel])).to_string();
        let lines = [
            "p/k, a kernel of operator o",
            "on cpu, by `p/k/cpu/select`",
            "  provisional: A=1  (the first)",
            "on cpu [T=f16], by `p/k/cpu/select`",
            "  nothing is selected yet",
            "3 steps: 2 compile, 1 select",
            "`kforge tree --kernel k` lists them",
        ];
        assert_eq!(plain, lines.join("\n") + "\n");
    }
}
