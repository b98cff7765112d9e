//! KernelBench's own metrics for kernels of its tasks, by level: compiled, correct, `fast_p` and the geometric mean of speed-ups. Knows the report's document, and
//! which operators are tasks; [`super::score`] says what is correct and how fast it is.
//!
//! | metric | of a candidate, which is a kernel on a target |
//! |---|---|
//! | compiled | wrong if its compilation failed, or if its source has not what is called; unknown if an exception or the end of its process may have come before its first call |
//! | correct | its champions pass at every shape; wrong if one fails |
//! | speed-up | the geometric mean over bench shapes of the ratio to the baseline, which is measured in pairs; without a pair it is unknown |
//! | `fast_p` | the share of all candidates that are correct and more than p times as fast |
//!
//! What is unknown counts neither as a success nor as a failure: shares have bounds. A task that is imported in evaluation mode has no such metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::document::{KernelReport, PackageReport, Report, TargetReport};
use super::score::{against, candidate, correct, ends, factor, share, standing, unconfirmed};
use kforge_numerics::measure::score::{Form, Scored, Suite, suite};
use kforge_types::record::{FindingKind, Verdict};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// The problem set.
pub const SET: &str = "kernelbench";
/// The baseline where none is named: the reference as PyTorch runs it.
pub const EAGER: &str = "eager";
/// The factors of `fast_p` where none are named, as KernelBench has them.
pub const FACTORS: [f64; 6] = [0.0, 0.5, 0.8, 1.0, 1.5, 2.0];

/// A task, by its operator's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOrigin {
    /// Its level.
    pub level: Option<u32>,
    /// Its number there.
    pub number: Option<u32>,
    /// Its name.
    pub name: Option<String>,
    /// Whether its module is in training mode, as KernelBench runs it.
    pub trains: bool,
}

/// The metrics of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelBenchScores {
    /// Version of this format.
    pub format_version: u32,
    /// The baseline.
    pub baseline: String,
    /// The metrics of each level on each target; a level that is null holds the tasks without one.
    pub levels: Vec<LevelScores>,
    /// Every candidate.
    pub candidates: Vec<TaskScore>,
    /// Kernels of tasks that are imported in evaluation mode, because they draw random numbers in training: package and kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_metrics: Vec<(String, String)>,
}

/// The metrics of a level on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LevelScores {
    /// The target.
    pub target: String,
    /// The level.
    pub level: Option<u32>,
    /// The number of tasks that have a candidate.
    pub tasks: u32,
    /// The share that compiled: if none does of those that are unknown, and if all do.
    pub compiled: (f64, f64),
    /// The other metrics.
    pub suite: Suite,
}

/// A kernel of a task on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskScore {
    /// The level of the task.
    pub level: Option<u32>,
    /// The number of the task.
    pub number: Option<u32>,
    /// The name of the task.
    pub name: Option<String>,
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// Whether it compiled; none if that is unknown.
    pub compiled: Option<bool>,
    /// Whether it is correct; none if that is unknown.
    pub correct: Option<bool>,
    /// How many times as fast as the baseline it is; none if that is unknown.
    pub speedup: Option<f64>,
    /// The interval of 95 % of the speed-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Why a part of it is unknown, if so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The speed-ups that stand as unconfirmed, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<String>,
}

/// There is no kernel of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no kernel is one of a task of KernelBench: `kforge import kernelbench` writes packages whose operators state their `origin`"
)]
pub struct NoTasks;

/// The metrics of a report. `tasks` are operators by package and name.
///
/// # Errors
/// No kernel is one of a task.
pub fn kernelbench(
    report: &Report,
    tasks: &BTreeMap<(String, String), TaskOrigin>,
    baseline: &str,
    ps: &[f64],
) -> Result<KernelBenchScores, NoTasks> {
    let (mut candidates, mut without_metrics) = (vec![], vec![]);
    for package in &report.packages {
        for kernel in &package.kernels {
            let Some(task) = tasks.get(&(package.name.clone(), kernel.operator.clone())) else { continue };
            if !task.trains {
                without_metrics.push((package.name.clone(), kernel.name.clone()));
                continue;
            }
            candidates.extend(kernel.targets.iter().map(|target| task_score(package, kernel, target, task, baseline)));
        }
    }
    if candidates.is_empty() && without_metrics.is_empty() {
        return Err(NoTasks);
    }
    let key = |of: &TaskScore| (of.target.clone(), of.level, of.number, of.name.clone(), of.kernel.clone());
    candidates.sort_by_key(key);
    let mut levels: BTreeMap<(String, Option<u32>), Vec<&TaskScore>> = BTreeMap::new();
    for of in &candidates {
        levels.entry((of.target.clone(), of.level)).or_default().push(of);
    }
    let levels = levels.into_iter().map(|((target, level), of)| level_scores(target, level, &of, ps)).collect();
    Ok(KernelBenchScores {
        format_version: kforge_types::record::FORMAT_VERSION,
        baseline: baseline.into(),
        levels,
        candidates,
        without_metrics,
    })
}

fn level_scores(target: String, level: Option<u32>, of: &[&TaskScore], ps: &[f64]) -> LevelScores {
    let scored: Vec<Scored> =
        of.iter().map(|one| Scored { correct: one.correct, speedup: one.speedup, ratio: None }).collect();
    let share = |takes: &dyn Fn(Option<bool>) -> bool| {
        of.iter().filter(|one| takes(one.compiled)).count() as f64 / of.len() as f64
    };
    let tasks: BTreeSet<&str> = of.iter().map(|one| one.package.as_str()).collect();
    LevelScores {
        target,
        level,
        tasks: tasks.len() as u32,
        compiled: (share(&|compiled| compiled == Some(true)), share(&|compiled| compiled != Some(false))),
        suite: suite(Form::Speedup, &scored, ps),
    }
}

fn task_score(
    package: &PackageReport,
    kernel: &KernelReport,
    target: &TargetReport,
    task: &TaskOrigin,
    baseline: &str,
) -> TaskScore {
    let mut unknown = vec![];
    let compiled = compiled(target);
    if compiled.is_none() && !target.shapes.is_empty() {
        unknown.push("whether it compiled: what ended it may have come before its first call".to_string());
    }
    let (correct, speedup, interval, open) = match &target.basis {
        Some(basis) => {
            let against = against(package, kernel, target, &basis.declared, baseline);
            let found = candidate(package, kernel, target, against, Form::Speedup);
            unknown.extend(found.unknown);
            (found.correct, found.speedup, found.interval, unconfirmed(&found.shapes).collect())
        }
        None => {
            let correct = correct(target);
            match correct {
                None => unknown.push("it is not verified at every shape".into()),
                Some(true) => unknown.push("it has no times on this target".into()),
                Some(false) => {}
            }
            (correct, None, None, vec![])
        }
    };
    TaskScore {
        level: task.level,
        number: task.number,
        name: task.name.clone(),
        package: package.name.clone(),
        kernel: kernel.name.clone(),
        target: target.target.clone(),
        compiled,
        correct,
        speedup,
        interval,
        unknown,
        unconfirmed: open,
    }
}

/// Whether a kernel compiled, which for one in PyTorch is whether its source was loaded, and what is called was made of it.
fn compiled(target: &TargetReport) -> Option<bool> {
    let ran = |verdict: &Verdict, finding: Option<FindingKind>| match (verdict, finding) {
        (Verdict::Pass, _) => true,
        (Verdict::Fail(_), finding) => finding.is_none_or(has_run),
        (Verdict::Unknown(_), _) => false,
    };
    if target.shapes.iter().any(|shape| ran(&shape.verdict, shape.finding)) {
        return Some(true);
    }
    let refused = target.shapes.iter().any(|shape| shape.finding == Some(FindingKind::LaunchRefused));
    let failed = target.failures.iter().any(|failure| failure.kind == "compile");
    (refused || failed).then_some(false)
}

/// Whether a kernel with this finding was called.
fn has_run(finding: FindingKind) -> bool {
    finding.not_run().is_none() && !matches!(finding, FindingKind::Forbidden | FindingKind::Protocol)
}

/// What a level is called.
fn level_name(level: Option<u32>) -> String {
    level.map_or("without a level".into(), |level| format!("level {level}"))
}

/// The metrics of a level, each with its name.
fn figures(of: &LevelScores) -> Vec<(String, String)> {
    let mut all = vec![
        ("compiled".to_string(), share(of.compiled)),
        ("correct".to_string(), of.suite.correctness.map_or("unknown".into(), share)),
    ];
    all.extend(of.suite.fast.iter().map(|fast| (format!("fast_{}", fast.p), share((fast.at_least, fast.at_most)))));
    let untimed = match of.suite.untimed {
        0 => String::new(),
        n => format!(" (without {n} that have no speed-up)"),
    };
    all.push(("geometric mean".into(), factor(of.suite.geometric_mean) + &untimed));
    all
}

/// A candidate's task: `1/33 BatchNorm`.
fn task_name(of: &TaskScore) -> String {
    let level = of.level.map(|level| format!("{level}/"));
    let number = of.number.map(|number| format!("{number} "));
    let name = of.name.as_deref().unwrap_or(&of.package);
    [level, number].into_iter().flatten().collect::<String>() + name
}

fn said_of(of: &TaskScore) -> String {
    let compiled = match of.compiled {
        Some(true) => "compiled",
        Some(false) => "not compiled",
        None => "compiled unknown",
    };
    let speedup = of.speedup.map_or(String::new(), |s| format!(", {s:.3} times as fast{}", ends(of.interval)));
    format!("{compiled}, {}{speedup}", standing(of.correct))
}

fn left_out(of: &KernelBenchScores) -> Option<String> {
    let names: Vec<String> = of.without_metrics.iter().map(|(package, kernel)| format!("{package}/{kernel}")).collect();
    (!names.is_empty())
        .then(|| format!("without metrics, because their tasks draw random numbers in training: {}", names.join(", ")))
}

/// The metrics with ANSI styles.
pub fn text(of: &KernelBenchScores) -> String {
    let mut out = format!("{BOLD}KernelBench's metrics against `{}`{BOLD:#}\n", of.baseline);
    for level in &of.levels {
        let counts = format!("{} of {}", candidates(level.suite.candidates), tasks(level.tasks));
        let _ = writeln!(out, "{BOLD}{} on {}{BOLD:#}  {counts}", level_name(level.level), level.target);
        for (name, value) in figures(level) {
            let _ = writeln!(out, "  {name:>15}  {value}");
        }
    }
    for one in &of.candidates {
        let _ = write!(out, "  {BOLD}{}{BOLD:#}: {} on {}", task_name(one), one.kernel, one.target);
        let _ = writeln!(out, "  {DIM}({}){DIM:#}", said_of(one));
        for why in &one.unknown {
            let _ = writeln!(out, "    {OPEN}unknown{OPEN:#}: {why}");
        }
        for line in &one.unconfirmed {
            let _ = writeln!(out, "    {OPEN}{line}{OPEN:#}");
        }
    }
    if let Some(line) = left_out(of) {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn candidates(n: u32) -> String {
    kforge_foundation::base::count(n, "candidate")
}

fn tasks(n: u32) -> String {
    kforge_foundation::base::count(n, "task")
}

/// The metrics as markdown.
pub fn markdown(of: &KernelBenchScores) -> String {
    let mut out = format!("# KernelBench's metrics\n\nagainst `{}`\n", of.baseline);
    for level in &of.levels {
        let counts = format!("{} of {}", candidates(level.suite.candidates), tasks(level.tasks));
        let _ = writeln!(
            out,
            "\n## {} on {}\n\n{counts}\n\n| metric | value |\n|---|---|",
            level_name(level.level),
            level.target
        );
        for (name, value) in figures(level) {
            let _ = writeln!(out, "| {name} | {value} |");
        }
    }
    out.push_str("\n| task | kernel | target | compiled | correct | speed-up | 95 % | unknown |\n|---|---|---|---|---|---|---|---|\n");
    for one in &of.candidates {
        let compiled = one.compiled.map_or("unknown", |yes| if yes { "yes" } else { "no" });
        let correct = one.correct.map_or("unknown", |yes| if yes { "yes" } else { "no" });
        let cells = [
            task_name(one),
            one.kernel.clone(),
            one.target.clone(),
            compiled.into(),
            correct.into(),
            factor(one.speedup),
            ends(one.interval).trim_start().to_string(),
            one.unknown.iter().chain(&one.unconfirmed).cloned().collect::<Vec<_>>().join("; "),
        ];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
    if let Some(line) = left_out(of) {
        let _ = writeln!(out, "\n{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::baselines::BaselineReport;
    use super::super::document::{BasisReport, ChampionReport, ShapeReport};
    use super::super::failure::FailureReport;
    use super::*;
    use kforge_types::record::Unknown;
    use serde_json::json;

    /// A kernel on a target with a verdict at one shape.
    fn target(verdict: Verdict, finding: Option<FindingKind>) -> TargetReport {
        let shape: ShapeReport = serde_json::from_value(json!({
            "shape": "own", "variant": "", "verdict": verdict, "emulated": false, "worst": null, "explanation": "", "finding": finding,
        }))
        .unwrap();
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec!["own".into()],
            variant: Some(String::new()),
            provisional: true,
            because: String::new(),
            versus: vec![],
        };
        let wrong = u64::from(matches!(verdict, Verdict::Fail(_)));
        TargetReport {
            target: "h200".into(),
            champions: vec![champion],
            shapes: vec![shape],
            variants: (1, 1 - wrong, wrong),
            ..TargetReport::default()
        }
    }

    fn pass() -> TargetReport {
        target(Verdict::Pass, None)
    }

    fn fail(finding: Option<FindingKind>) -> TargetReport {
        target(Verdict::Fail("wrong".into()), finding)
    }

    /// The same with a ratio of pairs to the eager reference.
    fn times_as_fast(ratio: f64) -> TargetReport {
        let baseline: BaselineReport = serde_json::from_value(json!({
            "baseline": "eager", "shape": "own", "variant": "",
            "rating": {
                "verdict": Verdict::Pass, "ratio": { "median": ratio, "low": ratio, "high": ratio },
                "champion_ns": 1000.0, "device_ns": 1000.0 * ratio, "explanation": "",
            },
        }))
        .unwrap();
        let basis = BasisReport { baselines: vec!["eager".into()], whole: true, ..BasisReport::default() };
        TargetReport { basis: Some(basis), baselines: vec![baseline], ..pass() }
    }

    fn report(kernels: &[(&str, &str, TargetReport)]) -> Report {
        let package = |(package, kernel, target): &(&str, &str, TargetReport)| PackageReport {
            name: (*package).into(),
            kernels: vec![KernelReport { name: (*kernel).into(), operator: "o".into(), targets: vec![target.clone()] }],
            ..PackageReport::default()
        };
        Report { packages: kernels.iter().map(package).collect(), ..Report::default() }
    }

    fn tasks_of(levels: &[(&str, u32, bool)]) -> BTreeMap<(String, String), TaskOrigin> {
        let of = |(package, level, trains): &(&str, u32, bool)| {
            let origin =
                TaskOrigin { level: Some(*level), number: Some(7), name: Some("Norm".into()), trains: *trains };
            ((package.to_string(), "o".to_string()), origin)
        };
        levels.iter().map(of).collect()
    }

    #[test]
    fn the_metrics_of_each_level_are_those_of_kernelbench() {
        let report = report(&[
            ("a", "s0", times_as_fast(2.0)),
            ("b", "s0", times_as_fast(0.5)),
            ("c", "s0", fail(None)),
            ("d", "s0", fail(Some(FindingKind::LaunchRefused))),
            ("e", "s0", pass()),
            ("f", "s0", pass()),
        ]);
        let tasks = tasks_of(&[
            ("a", 1, true),
            ("b", 1, true),
            ("c", 1, true),
            ("d", 1, true),
            ("e", 2, true),
            ("f", 2, false),
        ]);
        let found = kernelbench(&report, &tasks, EAGER, &FACTORS).unwrap();
        assert_eq!(
            found.levels.iter().map(|of| (of.level, of.tasks)).collect::<Vec<_>>(),
            [(Some(1), 4), (Some(2), 1)]
        );
        let first = &found.levels[0];
        assert_eq!((first.compiled, first.suite.correctness), ((0.75, 0.75), Some((0.5, 0.5))));
        let fast: Vec<f64> = first.suite.fast.iter().map(|fast| fast.at_least).collect();
        // More than p times as fast: 0.5 and 2.0 do not count at their own p.
        assert_eq!(fast, [0.5, 0.25, 0.25, 0.25, 0.25, 0.0]);
        assert!(first.suite.fast.iter().all(|fast| fast.at_least == fast.at_most));
        assert_eq!(first.suite.geometric_mean, Some(1.0));
        // Without a time, everything but correctness is unknown.
        let second = &found.levels[1];
        assert_eq!((second.suite.correctness, second.suite.geometric_mean), (Some((1.0, 1.0)), None));
        let bounds: Vec<(f64, f64)> = second.suite.fast.iter().map(|fast| (fast.at_least, fast.at_most)).collect();
        assert_eq!((bounds[0], bounds[3]), ((1.0, 1.0), (0.0, 1.0)));
        assert_eq!(found.without_metrics, [("f".to_string(), "s0".to_string())]);
        let shown = anstream::adapter::strip_str(&text(&found)).to_string();
        for line in [
            "KernelBench's metrics against `eager`",
            "level 1 on h200  4 candidates of 4 tasks",
            "         fast_0  50.0 %",
            "         fast_1  0.0 to 100.0 %",
            " geometric mean  unknown (without 1 that have no speed-up)",
            "  1/7 Norm: s0 on h200  (not compiled, wrong)",
            "without metrics, because their tasks draw random numbers in training: f/s0",
        ] {
            assert!(shown.lines().any(|own| own.contains(line)), "no {line}:\n{shown}");
        }
        assert!(
            markdown(&found).contains("| 1/7 Norm | s0 | h200 | yes | yes | 2.000 | [2.000, 2.000] |  |"),
            "{}",
            markdown(&found)
        );
    }

    #[test]
    fn what_may_have_come_before_the_first_call_leaves_compiled_unknown() {
        assert_eq!(compiled(&pass()), Some(true));
        assert_eq!(compiled(&fail(None)), Some(true));
        assert_eq!(compiled(&fail(Some(FindingKind::WrongShape))), Some(true));
        for ended in [FindingKind::Raised, FindingKind::Crash, FindingKind::Forbidden, FindingKind::Protocol] {
            assert_eq!(compiled(&fail(Some(ended))), None, "{ended:?}");
        }
        assert_eq!(compiled(&target(Verdict::Unknown(Unknown::Missing("x".into())), None)), None);
        let failure: FailureReport = serde_json::from_value(json!({ "kind": "compile", "message": "m" })).unwrap();
        let broken = TargetReport { failures: vec![failure], shapes: vec![], ..pass() };
        assert_eq!(compiled(&broken), Some(false));
    }

    #[test]
    fn kernels_of_no_task_have_no_metrics() {
        assert_eq!(kernelbench(&report(&[("a", "k", pass())]), &BTreeMap::new(), EAGER, &FACTORS), Err(NoTasks));
    }
}
