//! What `kforge explain KERNEL` shows, as a document and as text. Knows choices; selects nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;

use super::baselines::{self, BaselineReport};
use super::choice::{self, Choice, Chosen};
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
    /// What the last build selected, if the step has no result any more: steps before it changed, or failed and have to run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_build: Vec<Chosen>,
    /// Baselines beside its champions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineReport>,
    /// The observations of devices that its results rest on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedReport>,
    /// What the selection follows from.
    pub reads: ReadsDocument,
}

/// What a selection follows from: a change of any of it makes the selection outdated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReadsDocument {
    /// The files that its sources can reach, relative to the package.
    pub sources: Vec<String>,
    /// The reference: `builtin:rms_norm`, or `ref.py::f`.
    pub reference: String,
    /// The files that the reference, checks and inputs of its operator can reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_files: Vec<String>,
    /// The tables of the manifest: `kernel.rms_norm`.
    pub tables: Vec<String>,
    /// What compiles it, or runs it where nothing is compiled: `CUDA 13.0`.
    pub toolchain: String,
    /// The classes of devices whose observations count; without observations, the product or the architecture. Empty on `cpu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// How many files a line names. The others are counted.
const FILES: usize = 6;

impl ReadsDocument {
    /// What the selection depends on, as a line.
    fn line(&self) -> String {
        let named = |files: &[String]| {
            let more = files.len().saturating_sub(FILES);
            let more = if more > 0 { format!(" and {}", count(more as u64, "more file")) } else { String::new() };
            format!("{}{more}", files.iter().take(FILES).cloned().collect::<Vec<_>>().join(", "))
        };
        let of_reference = match self.reference_files.is_empty() {
            true => self.reference.clone(),
            false => format!("{} ({})", self.reference, named(&self.reference_files)),
        };
        let tables: Vec<String> = self.tables.iter().map(|table| format!("[{table}]")).collect();
        let mut parts = vec![
            named(&self.sources),
            format!("{} in the manifest", tables.join(", ")),
            format!("the reference {of_reference}"),
            self.toolchain.clone(),
        ];
        parts.retain(|part| !part.is_empty());
        let device = match self.devices.is_empty() {
            true => String::new(),
            false => format!("; the device {}", self.devices.join(" or ")),
        };
        format!("depends on {}{device}", parts.join("; "))
    }
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
                true => {
                    out.push_str("  nothing is selected yet\n");
                    for last in &seat.last_build {
                        let _ = writeln!(out, "  {}", last.last_line());
                    }
                }
                false => out.push_str(&choice::text(&seat.choices)),
            }
            for line in baselines::lines(&seat.baselines) {
                let _ = writeln!(out, "  {line}");
            }
            if !seat.observed.is_empty() {
                let _ = writeln!(out, "  {DIM}evidence: {}{DIM:#}", provenance::line(&seat.observed, now));
            }
            if !seat.choices.is_empty() {
                let _ = writeln!(out, "  {DIM}{}{DIM:#}", seat.reads.line());
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
        let _ = writeln!(out, "{DIM}{} of this kernel: {}{DIM:#}", count(steps, "step"), kinds.join(", "));
        let _ = writeln!(out, "{DIM}`kforge tree --kernel {name}` lists them{DIM:#}");
    }
    let choices = kernels.iter().flat_map(|kernel| &kernel.seats).flat_map(|seat| &seat.choices);
    if let Some(legend) = choice::legend(choices) {
        let _ = writeln!(out, "{DIM}{legend}{DIM:#}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, KernelReport, PackageReport, Report, TargetReport};
    use super::*;

    #[test]
    fn a_kernel_is_told_by_its_champions_and_the_number_of_its_steps() {
        let choice = Choice {
            chosen: Chosen {
                class: "all".into(),
                stands_for: String::new(),
                champion: Some("A=1".into()),
                provisional: true,
                because: "the first".into(),
            },
            overtaken: vec![],
            time: None,
            rivals: vec![],
        };
        let reads = ReadsDocument {
            sources: vec!["k.cu".into(), "common.h".into()],
            reference: "builtin:sum".into(),
            reference_files: vec![],
            tables: vec!["kernel.k".into(), "operator.o".into(), "targets.cpu".into()],
            toolchain: "the C++ compiler of this machine".into(),
            devices: vec![],
        };
        let seat = |types: &str, choices| SeatDocument {
            target: "cpu".into(),
            types: types.into(),
            select: "p/k/cpu/select".into(),
            choices,
            last_build: vec![],
            baselines: vec![],
            observed: vec![],
            reads: reads.clone(),
        };
        let champion = |class: &str, variant: Option<&str>, because: &str| ChampionReport {
            class: class.into(),
            shapes: vec![],
            variant: variant.map(Into::into),
            provisional: true,
            because: because.into(),
            versus: vec![],
        };
        let target = |types: &str, champions| TargetReport {
            target: "cpu".into(),
            types: types.into(),
            champions,
            ..TargetReport::default()
        };
        let targets = vec![
            target("T=f32", vec![champion("all", Some("A=3"), "other types")]),
            target("T=f16", vec![champion("all", Some("A=2"), "the second"), champion("all@b", None, "all are wrong")]),
        ];
        let kernels = vec![KernelReport { name: "k".into(), operator: "o".into(), targets }];
        let packages = vec![PackageReport { name: "p".into(), kernels, ..PackageReport::default() }];
        let report = Report { packages, ..Report::default() };
        let last_build = Chosen::of(&report, "p", "k", ("cpu", "T=f16"));
        assert_eq!(Chosen::of(&report, "q", "k", ("cpu", "T=f16")), []);
        let kernel = KernelDocument {
            format_version: 1,
            package: "p".into(),
            kernel: "k".into(),
            operator: "o".into(),
            seats: vec![seat("", vec![choice]), SeatDocument { last_build, ..seat("T=f16", vec![]) }],
            steps: [("compile".to_string(), 2), ("select".to_string(), 1)].into(),
            open: vec!["p/k/cpu/judge".into(), "p/k/cpu/select".into()],
        };
        let plain = anstream::adapter::strip_str(&text(&[kernel], None)).to_string();
        let lines = [
            "p/k, a kernel of operator o",
            "on cpu, by `p/k/cpu/select`",
            "  provisional: A=1  (the first)",
            "    would change it: times at its bench shapes: it was selected without them",
            "  depends on k.cu, common.h; [kernel.k], [operator.o], [targets.cpu] in the manifest; the reference builtin:sum; the C++ compiler of this machine",
            "on cpu [T=f16], by `p/k/cpu/select`",
            "  nothing is selected yet",
            "  the last build selected: A=2  (provisional; the second)",
            "  the last build selected at b: none  (all are wrong)",
            "2 steps have to run: `p/k/cpu/judge` first",
            "3 steps of this kernel: 2 compile, 1 select",
            "`kforge tree --kernel k` lists them",
        ];
        assert_eq!(plain, lines.join("\n") + "\n");
    }

    #[test]
    fn what_makes_a_selection_outdated_is_told_by_the_names_of_its_own_inputs() {
        let reads = ReadsDocument {
            sources: (0..8).map(|i| format!("{i}.cu")).collect(),
            reference: "ref.py::f".into(),
            reference_files: vec!["ref.py".into(), "data.npy".into()],
            tables: vec!["kernel.k".into()],
            toolchain: "CUDA 13.0".into(),
            devices: vec!["NVIDIA H200 (sm_90, driver 580)".into()],
        };
        assert_eq!(
            reads.line(),
            "depends on 0.cu, 1.cu, 2.cu, 3.cu, 4.cu, 5.cu and 2 more files; [kernel.k] in the manifest; the reference ref.py::f (ref.py, data.npy); CUDA 13.0; the device NVIDIA H200 (sm_90, driver 580)"
        );
    }
}
