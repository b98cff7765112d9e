//! What `kforge explain KERNEL` shows, as a document and as text. Knows choices; selects nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;

use super::baselines::{self, BaselineReport};
use super::calls::{self, CallsReport};
use super::choice::{self, Choice, Chosen, Rival};
use super::document::{Report, TargetReport};
use super::failure::FailureReport;
use super::leaders::LeaderReport;
use super::not_built::NotBuiltReport;
use super::provenance::{self, ObservedReport};
use super::text::variant;
use super::wrong::word;
use kforge_foundation::base::count;
use kforge_types::record::FindingKind;

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
    /// What the last build selected on targets where the step that selects is not known yet, because steps before it have to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_build: Vec<LastSelection>,
}

/// What the last build selected on a target for one choice of types.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LastSelection {
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
    /// The champion of each class of shapes.
    pub chosen: Vec<Chosen>,
}

impl LastSelection {
    /// What a report has of a kernel, without the targets and types that `known` accepts.
    pub fn of(report: &Report, package: &str, kernel: &str, known: impl Fn(&str, &str) -> bool) -> Vec<Self> {
        let packages = report.packages.iter().filter(|of| of.name == package);
        let targets = packages.flat_map(|of| &of.kernels).filter(|of| of.name == kernel).flat_map(|of| &of.targets);
        let of_target = |of: &TargetReport| LastSelection {
            target: of.target.clone(),
            types: of.types.clone(),
            chosen: Chosen::of(report, package, kernel, (&of.target, &of.types)),
        };
        let unknown = targets.filter(|of| !known(&of.target, &of.types));
        unknown.map(of_target).filter(|of| !of.chosen.is_empty()).collect()
    }
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
    /// Its wrong variants, if the step has no result yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<WrongDocument>,
    /// Its steps that failed in the last build, if the step that selects has no result yet. Failures are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_failures: Vec<FailureReport>,
    /// Why the last build has no result of it, or no verdict on it, if the step that selects has no result yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_built: Option<NotBuiltReport>,
    /// Baselines beside its champions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineReport>,
    /// The fastest of the kernels of its operator at bench shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<LeaderReport>,
    /// Call times of its champions, if the kernel is in PyTorch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallsReport>,
    /// The observations of devices that its results rest on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedReport>,
    /// What the selection follows from.
    pub reads: ReadsDocument,
}

/// The wrong variants of a kernel for which nothing is selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WrongDocument {
    /// The number of its variants.
    pub variants: u64,
    /// Those that are wrong.
    pub wrong: u64,
    /// Those without any verdict.
    pub untried: u64,
    /// The first of those that are wrong, in declared order.
    pub variant: String,
    /// The first shape at which it is wrong.
    pub shape: String,
    /// Why.
    pub why: String,
    /// The finding that decides it; none if only values are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
}

impl WrongDocument {
    /// Why nothing is selected: `: 1 of 3 variants is wrong, 2 are not judged`.
    fn line(&self) -> String {
        let WrongDocument { variants, wrong, untried, .. } = *self;
        let are = |number: u64| if number == 1 { "is" } else { "are" };
        match (variants == wrong, untried) {
            (true, _) if variants == 1 => "nothing is selected: the only variant is wrong".into(),
            (true, _) => "nothing is selected: every variant is wrong".into(),
            (false, 0) => {
                format!("nothing is selected yet: {wrong} of {} {} wrong", count(variants, "variant"), are(wrong))
            }
            (false, _) => format!(
                "nothing is selected yet: {wrong} of {} {} wrong, {untried} {} not judged",
                count(variants, "variant"),
                are(wrong),
                are(untried)
            ),
        }
    }

    /// The first finding.
    fn first(&self) -> String {
        let WrongDocument { variant: label, shape, why, finding, .. } = self;
        format!("{}  {} at {shape}: {why}", variant(label), word(finding.and_then(FindingKind::not_run)))
    }
}

impl SeatDocument {
    /// Whether nothing is selected because of results on this target, which a report shows.
    fn fails(&self) -> bool {
        let is_own = |rival: &Rival| rival.held_back.as_ref().is_some_and(|held| !held.on_cpu);
        let lacks = |choice: &Choice| choice.chosen.champion.is_none() && choice.rivals.iter().any(is_own);
        match self.choices.is_empty() {
            true => self.wrong.is_some() || !self.last_failures.is_empty(),
            false => self.choices.iter().all(lacks),
        }
    }

    /// Why nothing is selected, as far as that is known.
    fn write_open(&self, out: &mut String) {
        match &self.wrong {
            Some(wrong) => {
                let _ = writeln!(out, "  {}", wrong.line());
                let _ = writeln!(out, "    {}", wrong.first());
            }
            None => out.push_str("  nothing is selected yet\n"),
        }
        for failure in &self.last_failures {
            let _ = writeln!(out, "  failed in the last build: {}", failure.line());
        }
        if let (Some(not_built), true) = (&self.not_built, self.last_failures.is_empty()) {
            let _ = writeln!(out, "  no result in the last build: {}", not_built.line());
        }
        for last in &self.last_build {
            let _ = writeln!(out, "  {}", last.last_line());
        }
    }
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
                true => seat.write_open(&mut out),
                false => out.push_str(&choice::text(&seat.choices)),
            }
            if seat.fails() {
                let shows = format!("`kforge report -p {package} --kernel {name} --target {}` shows more", seat.target);
                let _ = writeln!(out, "  {DIM}{shows}{DIM:#}");
            }
            for line in calls::lines(&seat.calls) {
                let _ = writeln!(out, "  {line}");
            }
            for line in baselines::lines(&seat.baselines) {
                let _ = writeln!(out, "  {line}");
            }
            for leader in &seat.leaders {
                let _ = writeln!(out, "  {}", leader.line());
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
        for LastSelection { target, types, chosen } in &kernel.last_build {
            let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
            for last in chosen {
                let _ = writeln!(out, "on {target}{types}, {}", last.last_line());
            }
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

    fn wrong(variants: u64, wrong: u64, untried: u64) -> WrongDocument {
        let [variant, shape, why] = ["A=1", "s", "`y` is wrong at 0"].map(String::from);
        WrongDocument { variants, wrong, untried, variant, shape, why, finding: None }
    }

    #[test]
    fn where_every_variant_is_wrong_nothing_more_will_be_selected() {
        assert_eq!(wrong(1, 1, 0).line(), "nothing is selected: the only variant is wrong");
        assert_eq!(wrong(3, 3, 0).line(), "nothing is selected: every variant is wrong");
        assert_eq!(wrong(3, 2, 0).line(), "nothing is selected yet: 2 of 3 variants are wrong");
        let raised = WrongDocument { variant: String::new(), finding: Some(FindingKind::Raised), ..wrong(1, 1, 0) };
        assert_eq!(raised.first(), "the only variant  does not run at s: `y` is wrong at 0");
    }

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
            wrong: None,
            last_failures: vec![],
            not_built: None,
            baselines: vec![],
            leaders: vec![],
            calls: vec![],
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
        let wrong = wrong(3, 1, 2);
        let not_built = NotBuiltReport { step: "p/o/oracle".into(), stopped: false, last: None };
        let failure = FailureReport {
            kind: "compile".into(),
            message: "`n` is undefined".into(),
            variants: vec!["A=1".into()],
            ..FailureReport::default()
        };
        let kernel = KernelDocument {
            format_version: 1,
            package: "p".into(),
            kernel: "k".into(),
            operator: "o".into(),
            seats: vec![
                seat("", vec![choice]),
                SeatDocument { last_build, ..seat("T=f16", vec![]) },
                SeatDocument { wrong: Some(wrong), ..seat("T=f64", vec![]) },
                SeatDocument { last_failures: vec![failure], ..seat("T=bf16", vec![]) },
                SeatDocument { not_built: Some(not_built), ..seat("T=i8", vec![]) },
            ],
            steps: [("compile".to_string(), 2), ("select".to_string(), 1)].into(),
            open: vec!["p/k/cpu/judge".into(), "p/k/cpu/select".into()],
            last_build: vec![],
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
            "on cpu [T=f64], by `p/k/cpu/select`",
            "  nothing is selected yet: 1 of 3 variants is wrong, 2 are not judged",
            "    A=1  wrong at s: `y` is wrong at 0",
            "  `kforge report -p p --kernel k --target cpu` shows more",
            "on cpu [T=bf16], by `p/k/cpu/select`",
            "  nothing is selected yet",
            "  failed in the last build: compile: `n` is undefined (1 variant)",
            "  `kforge report -p p --kernel k --target cpu` shows more",
            "on cpu [T=i8], by `p/k/cpu/select`",
            "  nothing is selected yet",
            "  no result in the last build: `p/o/oracle` failed",
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
