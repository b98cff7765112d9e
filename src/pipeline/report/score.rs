//! Scores of the kernels of a report against a baseline, as values, text and markdown. Knows the report's document; [`kforge_numerics::measure::score`] derives
//! a score from verdict and time.
//!
//! A candidate is a kernel on a target that can be timed, represented by its champions. It is correct if the champion of each class of shapes passes at every
//! shape of the class, and wrong if one fails or if every variant is wrong. What is wrong on `cpu` only is unknown on a device, because the emulator never
//! overrules one. Its speedup is the geometric mean, over the bench shapes at which both were timed,
//! of the baseline's median time divided by its champion's, hot or cold as the kernel selects. The baseline itself is not a candidate. For a baseline that the
//! manifest declares, the ratio is that of the two device times that were taken in pairs; the host time of its calls takes part in nothing.

use std::collections::BTreeSet;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::document::{KernelReport, PackageReport, Report, TargetReport};
use super::text::variant;
use kforge_foundation::base::diag::closest;
use kforge_numerics::measure::interval::{Estimate, mean_interval, ratio_interval};
use kforge_numerics::measure::score::{Form, STEEPNESS, Score, Scored, Suite, score, suite};
use kforge_numerics::measure::stats::geometric_mean;
use kforge_types::record::Verdict;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// The most names of possible baselines of one sort that are shown.
const MOST_NAMES: usize = 8;

/// The baseline that is each kernel's first declared variant.
pub const DECLARED: &str = "declared";

/// The scores of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scores {
    /// Version of this format.
    pub format_version: u32,
    /// The form of the score.
    pub form: Form,
    /// The constant k of the logistic score.
    pub steepness: f64,
    /// The baseline, as the user named it.
    pub baseline: String,
    /// Every candidate: those that are wrong first, then those whose score is unknown, then by speedup, least first.
    pub candidates: Vec<CandidateScore>,
    /// The figures of all candidates together.
    pub suite: Suite,
}

/// The score of a kernel on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CandidateScore {
    /// Its package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// Its operator.
    pub operator: String,
    /// The target.
    pub target: String,
    /// Types, if the operator has a choice.
    pub types: String,
    /// Whether it is correct; none if that is unknown.
    pub correct: Option<bool>,
    /// The bench shapes at which both were timed.
    pub shapes: Vec<ShapeSpeedup>,
    /// The geometric mean of the speedups; none if there are none.
    pub speedup: Option<f64>,
    /// Its interval of 95 %, from those of the speedups; none if one of them has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The share of its time in its own code; none if unknown.
    pub ratio: Option<f64>,
    /// Its score.
    pub score: Score,
    /// Why a part of it is unknown, if so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A bench shape at which candidate and baseline were timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShapeSpeedup {
    /// The shape.
    pub shape: String,
    /// The champion.
    pub variant: String,
    /// Its median time in nanoseconds.
    pub ns: f64,
    /// The baseline's median time in nanoseconds.
    pub baseline_ns: f64,
    /// The baseline's time over the champion's; the median over pairs for a baseline that the manifest declares.
    pub speedup: f64,
    /// The interval of 95 % of the speedup: from pairs for a baseline that the manifest declares, otherwise from the intervals of the two medians, which hold
    /// nothing of what differs from one session to another. None if a median has no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Why the speedup stands as unconfirmed: it is so large that a second device has to confirm it, and none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<String>,
}

/// A baseline for one candidate.
pub(super) enum Against<'r> {
    /// Another kernel's report on the same target, or the candidate's own, and the variant, or none for its champions.
    Kernel(&'r TargetReport, Option<&'r str>),
    /// A baseline that the manifest declares, by its name.
    Declared(&'r str),
}

/// Why a report has no scores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoScores {
    /// There is no candidate.
    #[error("there is nothing to score: no kernel except the baseline has a target that can be timed")]
    Nothing,
    /// The baseline is neither a kernel nor a variant, and the manifest declares none of that name.
    #[error(
        "no selected kernel or variant is called `{baseline}`: expected a kernel ({}), a variant that was timed ({}), {}or `{DECLARED}`{}",
        listed(.kernels), listed(.variants), declared(.baselines), .meant.as_ref().map(|best| format!("; did you mean `{best}`?")).unwrap_or_default()
    )]
    Baseline {
        /// The baseline.
        baseline: String,
        /// The name that was probably meant.
        meant: Option<String>,
        /// Kernels that could be the baseline.
        kernels: BTreeSet<String>,
        /// Variants that could be the baseline.
        variants: BTreeSet<String>,
        /// Baselines that the manifests declare.
        baselines: BTreeSet<String>,
    },
}

/// The scores of all candidates of a report.
///
/// # Errors
/// There is no candidate, or the baseline is neither a kernel nor a variant nor declared.
pub fn scores(report: &Report, form: Form, baseline: &str, ps: &[f64]) -> Result<Scores, NoScores> {
    let mut candidates = vec![];
    let mut known = baseline == DECLARED;
    for package in &report.packages {
        for kernel in &package.kernels {
            for target in &kernel.targets {
                let Some(basis) = &target.basis else { continue };
                let against = against(package, kernel, target, &basis.declared, baseline);
                known |= against.is_ok() || basis.baselines.iter().any(|name| name == baseline);
                if kernel.name != baseline {
                    candidates.push(candidate(package, kernel, target, against, form));
                }
            }
        }
    }
    if !known {
        return Err(unknown_baseline(report, baseline));
    }
    if candidates.is_empty() {
        return Err(NoScores::Nothing);
    }
    candidates.sort_by(|a, b| a.rank().cmp(&b.rank()).then_with(|| a.speed().total_cmp(&b.speed())));
    let of: Vec<Scored> = candidates.iter().map(CandidateScore::known).collect();
    Ok(Scores {
        format_version: kforge_types::record::FORMAT_VERSION,
        form,
        steepness: STEEPNESS,
        baseline: baseline.into(),
        suite: suite(form, &of, ps),
        candidates,
    })
}

impl CandidateScore {
    /// What orders candidates before their speedups.
    fn rank(&self) -> u8 {
        match (self.correct, self.speedup) {
            (Some(false), _) => 0,
            (None, _) => 1,
            (_, None) => 2,
            (Some(true), Some(_)) => 3,
        }
    }

    fn speed(&self) -> f64 {
        self.speedup.unwrap_or(0.0)
    }

    fn known(&self) -> Scored {
        Scored { correct: self.correct, speedup: self.speedup, ratio: self.ratio }
    }
}

/// The error for an unknown baseline, with the possible ones.
fn unknown_baseline(report: &Report, baseline: &str) -> NoScores {
    let kernels: Vec<&KernelReport> = report.packages.iter().flat_map(|package| &package.kernels).collect();
    let scored = |kernel: &&&KernelReport| kernel.targets.iter().any(|target| target.basis.is_some());
    let names: BTreeSet<&str> = kernels.iter().filter(scored).map(|kernel| kernel.name.as_str()).collect();
    let times = kernels.iter().flat_map(|kernel| &kernel.targets).filter(|target| target.basis.is_some());
    let variants = times.flat_map(|target| &target.times).map(|time| time.variant.as_str());
    let variants: BTreeSet<&str> = variants.filter(|variant| !variant.is_empty()).collect();
    let bases = kernels.iter().flat_map(|kernel| &kernel.targets).filter_map(|target| target.basis.as_ref());
    let baselines: BTreeSet<&str> = bases.flat_map(|basis| &basis.baselines).map(String::as_str).collect();
    let all = names.iter().chain(&variants).chain(&baselines).copied().chain([DECLARED]);
    let owned = |names: &BTreeSet<&str>| names.iter().map(ToString::to_string).collect();
    NoScores::Baseline {
        baseline: baseline.to_string(),
        meant: closest(baseline, all).map(str::to_string),
        kernels: owned(&names),
        variants: owned(&variants),
        baselines: owned(&baselines),
    }
}

/// The baselines that manifests declare, as a part of a list.
fn declared(names: &BTreeSet<String>) -> String {
    if names.is_empty() { String::new() } else { format!("a baseline ({}), ", listed(names)) }
}

/// The first of some names, and the number of the others.
fn listed(names: &BTreeSet<String>) -> String {
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "there is none".into(),
        all if all > MOST_NAMES => format!("{} and {} more", shown.join(", "), all - MOST_NAMES),
        _ => shown.join(", "),
    }
}

/// The baseline of a candidate, or why there is none.
pub(super) fn against<'r>(
    package: &'r PackageReport,
    kernel: &'r KernelReport,
    target: &'r TargetReport,
    declared: &'r str,
    baseline: &'r str,
) -> Result<Against<'r>, String> {
    if baseline == DECLARED {
        return Ok(Against::Kernel(target, Some(declared)));
    }
    if target.basis.as_ref().is_some_and(|basis| basis.baselines.iter().any(|name| name == baseline)) {
        return match target.baselines.iter().any(|found| found.baseline == baseline) {
            true => Ok(Against::Declared(baseline)),
            false => Err(format!("the baseline `{baseline}` was not timed beside it")),
        };
    }
    let other = package.kernels.iter().find(|k| k.name == baseline && k.operator == kernel.operator);
    if let Some(other) = other {
        let same = |t: &&TargetReport| t.target == target.target && t.types == target.types;
        let found = other.targets.iter().find(same).map(|t| Against::Kernel(t, None));
        return found.ok_or_else(|| format!("`{baseline}` is not for `{}`", target.target));
    }
    match target.times.iter().any(|t| t.variant == baseline) {
        true => Ok(Against::Kernel(target, Some(baseline))),
        false => Err(format!("neither a kernel of `{}` nor a variant that was timed is `{baseline}`", kernel.operator)),
    }
}

pub(super) fn candidate(
    package: &PackageReport,
    kernel: &KernelReport,
    target: &TargetReport,
    against: Result<Against<'_>, String>,
    form: Form,
) -> CandidateScore {
    let mut unknown: Vec<String> = vec![];
    let correct = correct(target);
    if correct.is_none() {
        let why = match target.is_wrong_on_cpu() {
            true => format!(
                "every variant is wrong, {} of {} only on `cpu`, which decides nothing on a device",
                target.wrong_on_cpu, target.variants.0
            ),
            false => "it is not verified at every shape".into(),
        };
        unknown.push(why);
    }
    let hot = target.basis.as_ref().is_some_and(|b| b.hot);
    let mut shapes = vec![];
    match against {
        Err(why) => unknown.push(why),
        Ok(Against::Declared(name)) => {
            shapes = beside(target, name, &mut unknown);
            if shapes.is_empty() && correct != Some(false) {
                unknown.push(format!("no bench shape has a ratio to `{name}`"));
            }
        }
        Ok(Against::Kernel(base, fixed)) => {
            for time in &target.times {
                let Some(variant) = champion(target, &time.shape).filter(|v| *v == time.variant) else { continue };
                let Some(base_variant) = fixed.or_else(|| champion(base, &time.shape)) else { continue };
                let times = ns(target, &time.shape, variant, hot).zip(ns(base, &time.shape, base_variant, hot));
                let Some((ns, baseline_ns)) = times else { continue };
                if base.fails(base_variant) {
                    unknown.push(format!("the baseline is wrong, so its time at {} does not count", time.shape));
                    continue;
                }
                let interval = interval(target, (base, base_variant), &time.shape, variant, hot);
                let (shape, variant) = (time.shape.clone(), variant.to_string());
                let speedup = baseline_ns / ns;
                shapes.push(ShapeSpeedup { shape, variant, ns, baseline_ns, speedup, interval, unconfirmed: None });
            }
            if shapes.is_empty() && correct != Some(false) {
                unknown.push("no bench shape has a valid time of both".into());
            }
        }
    }
    let speedups: Vec<f64> = shapes.iter().map(|s| s.speedup).collect();
    let speedup = (!speedups.is_empty()).then(|| geometric_mean(&speedups));
    let estimates = shapes.iter().map(|at| Some(Estimate { value: at.speedup, interval: at.interval? }));
    let interval = estimates.collect::<Option<Vec<Estimate>>>().and_then(|all| mean_interval(&all));
    let ratio = match target.is_called() {
        true => own_share(target),
        false => target.basis.as_ref().filter(|b| b.whole).map(|_| 1.0),
    };
    if ratio.is_none() && form == Form::Weighted {
        unknown.push(match target.is_called() {
            true => {
                "the share of its device time in kernels of its own is not known: a `policy` has it measured".into()
            }
            false => "the share of its time that fills take is not measured".into(),
        });
    }
    let known = Scored { correct, speedup, ratio };
    CandidateScore {
        package: package.name.clone(),
        kernel: kernel.name.clone(),
        operator: kernel.operator.clone(),
        target: target.target.clone(),
        types: target.types.clone(),
        correct,
        shapes,
        speedup,
        interval,
        ratio,
        score: score(form, &known),
        unknown,
    }
}

/// The share of the device time of its calls that a kernel in PyTorch spends in kernels of its own: the mean over the bench shapes. None unless it is known at
/// each of them.
fn own_share(target: &TargetReport) -> Option<f64> {
    let shares = target.calls.iter().map(|call| call.own.as_ref()?.value());
    let shares = shares.collect::<Option<Vec<f64>>>().filter(|shares| !shares.is_empty())?;
    Some(shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The speedups of champions over a baseline that the manifest declares: ratios of times that were taken in pairs, of calls for a champion in PyTorch.
fn beside(target: &TargetReport, name: &str, unknown: &mut Vec<String>) -> Vec<ShapeSpeedup> {
    let mut shapes = vec![];
    for found in target.baselines.iter().filter(|found| found.baseline == name) {
        if champion(target, &found.shape) != Some(&found.variant) {
            continue;
        }
        let rating = &found.rating;
        if matches!(rating.verdict, Verdict::Fail(_)) {
            unknown.push(format!("the baseline is wrong, so its time at {} does not count", found.shape));
            continue;
        }
        let of_baseline = if rating.of_calls { rating.call_ns } else { rating.device_ns };
        if let (Some(ratio), Some(ns), Some(baseline_ns)) = (rating.ratio, rating.champion_ns, of_baseline) {
            let (shape, variant) = (found.shape.clone(), found.variant.clone());
            let interval = Some((ratio.low, ratio.high));
            let unconfirmed = found.unconfirmed().map(str::to_string);
            shapes.push(ShapeSpeedup { shape, variant, ns, baseline_ns, speedup: ratio.median, interval, unconfirmed });
        }
    }
    shapes
}

/// The interval of a speedup over another variant, from the intervals of the two medians.
fn interval(
    target: &TargetReport,
    (base, base_variant): (&TargetReport, &str),
    shape: &str,
    variant: &str,
    hot: bool,
) -> Option<(f64, f64)> {
    match std::ptr::eq(target, base) && variant == base_variant {
        true => Some((1.0, 1.0)),
        false => ratio_interval(estimate(base, shape, base_variant, hot)?, estimate(target, shape, variant, hot)?),
    }
}

/// The median time of a variant at a shape with its interval.
fn estimate(target: &TargetReport, shape: &str, variant: &str, hot: bool) -> Option<Estimate> {
    target.times.iter().find(|t| t.shape == shape && t.variant == variant)?.estimate(hot)
}

/// The champion at a shape: that of its class. If there are several rounds, the last one counts.
fn champion<'r>(target: &'r TargetReport, shape: &str) -> Option<&'r str> {
    target.champion_at(shape)?.variant.as_deref()
}

/// Whether a kernel is correct.
pub(super) fn correct(target: &TargetReport) -> Option<bool> {
    let of_champion = |s: &&super::document::ShapeReport| champion(target, &s.shape) == Some(&s.variant);
    let verdicts: Vec<&Verdict> = target.shapes.iter().filter(of_champion).map(|s| &s.verdict).collect();
    let (all, _, wrong) = target.variants;
    let none = target.champions.iter().any(|c| c.variant.is_none());
    if verdicts.iter().any(|v| matches!(v, Verdict::Fail(_))) || all > 0 && wrong == all {
        return Some(false);
    }
    (!none && Verdict::all_pass(verdicts)).then_some(true)
}

/// The time of a variant at a shape.
fn ns(target: &TargetReport, shape: &str, variant: &str, hot: bool) -> Option<f64> {
    if target.is_called() {
        return target.calls.iter().find(|of| of.shape == shape && of.variant == variant)?.call_ns;
    }
    let time = target.times.iter().find(|t| t.shape == shape && t.variant == variant)?;
    if hot { time.hot_ns } else { time.cold_ns }
}

/// The title of a score, with its constant.
fn title(scores: &Scores) -> String {
    let baseline = match scores.baseline.as_str() {
        DECLARED => "the variant declared first".to_string(),
        other => format!("`{other}`"),
    };
    match scores.form {
        Form::Speedup => format!("speed-up over {baseline}"),
        Form::Logistic => format!("logistic score against {baseline} (k = {})", scores.steepness),
        Form::Weighted => format!("weighted score against {baseline} (0.5 correct, 0.5 faster, 0.25 its own code)"),
    }
}

/// A score, or its bounds.
fn shown(score: &Score) -> String {
    match (score.value(), score.at_most) {
        (Some(value), _) => format!("{value:.3}"),
        (None, Some(most)) => format!("{:.3} to {most:.3}", score.at_least),
        (None, None) => format!("at least {:.3}", score.at_least),
    }
}

pub(super) fn share((low, high): (f64, f64)) -> String {
    if low == high { format!("{:.1} %", low * 100.0) } else { format!("{:.1} to {:.1} %", low * 100.0, high * 100.0) }
}

pub(super) fn standing(correct: Option<bool>) -> &'static str {
    match correct {
        Some(true) => "right",
        Some(false) => "wrong",
        None => "unknown",
    }
}

pub(super) fn factor(value: Option<f64>) -> String {
    value.map_or("unknown".into(), |v| format!("{v:.3}"))
}

/// An interval behind its value: ` [0.98, 1.05]`; empty without one.
pub(super) fn ends(interval: Option<(f64, f64)>) -> String {
    interval.map_or(String::new(), |(low, high)| format!(" [{low:.3}, {high:.3}]"))
}

/// The figures of a suite, each with its name.
fn figures(suite: &Suite) -> Vec<(String, String)> {
    let mut all = vec![
        ("correctness".to_string(), suite.correctness.map_or("unknown".into(), share)),
        ("mean score".into(), suite.mean.as_ref().map_or("unknown".into(), shown)),
        ("median speed-up".into(), factor(suite.median)),
        ("geometric mean".into(), factor(suite.geometric_mean)),
        ("75th percentile".into(), factor(suite.percentile_75)),
    ];
    all.extend(suite.fast.iter().map(|f| (format!("fast_{}", f.p), share((f.at_least, f.at_most)))));
    all
}

/// The number of candidates, and what is unknown about them.
fn counted(suite: &Suite) -> String {
    let mut text = format!("{} scored: {} correct, {} wrong", suite.candidates, suite.correct, suite.wrong);
    if suite.unverified > 0 {
        let _ = write!(text, ", {} unknown", suite.unverified);
    }
    if suite.untimed > 0 {
        let _ =
            write!(text, "; {} correct without a speed-up, excluded from median, mean and percentile", suite.untimed);
    }
    text
}

/// The scores with ANSI styles.
pub fn text(scores: &Scores) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n", title(scores));
    let _ = writeln!(out, "{BOLD}all{BOLD:#}  {}", counted(&scores.suite));
    for (name, value) in figures(&scores.suite) {
        let _ = writeln!(out, "  {name:>15}  {value}");
    }
    for of in &scores.candidates {
        let types = if of.types.is_empty() { String::new() } else { format!(" [{}]", of.types) };
        let _ = write!(out, "  {BOLD}{}{BOLD:#}{types} on {}: {}", of.kernel, of.target, shown(&of.score));
        let speedup = of.speedup.map_or(String::new(), |s| format!(", {s:.3} times as fast{}", ends(of.interval)));
        let _ = writeln!(out, "  {DIM}({}{speedup}){DIM:#}", standing(of.correct));
        for at in &of.shapes {
            let times = format!("{:.0} ns, baseline {:.0} ns", at.ns, at.baseline_ns);
            let ends = ends(at.interval);
            let _ = writeln!(
                out,
                "    {}  {:.3}{ends}  {DIM}{times}  {}{DIM:#}",
                at.shape,
                at.speedup,
                variant(&at.variant)
            );
            if let Some(why) = &at.unconfirmed {
                let _ = writeln!(out, "      {OPEN}unconfirmed{OPEN:#}: {why}");
            }
        }
        for why in &of.unknown {
            let _ = writeln!(out, "    {OPEN}unknown{OPEN:#}: {why}");
        }
    }
    out
}

/// What stands as unconfirmed, one line for each shape.
pub(super) fn unconfirmed(shapes: &[ShapeSpeedup]) -> impl Iterator<Item = String> + '_ {
    let line = |at: &ShapeSpeedup| Some(format!("unconfirmed at {}: {}", at.shape, at.unconfirmed.as_ref()?));
    shapes.iter().filter_map(line)
}

/// The scores as markdown.
pub fn markdown(scores: &Scores) -> String {
    let mut out = format!("# kforge scores\n\n{}\n\n", title(scores));
    let _ = writeln!(out, "{}\n\n| figure | value |\n|---|---|", counted(&scores.suite));
    for (name, value) in figures(&scores.suite) {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    out.push_str(
        "\n| kernel | target | verdict | speed-up | 95 % | score | unknown |\n|---|---|---|---|---|---|---|\n",
    );
    for of in &scores.candidates {
        let types = if of.types.is_empty() { String::new() } else { format!(" ({})", of.types) };
        let cells = [
            format!("{}{types}", of.kernel),
            of.target.clone(),
            standing(of.correct).into(),
            factor(of.speedup),
            ends(of.interval).trim_start().to_string(),
            shown(&of.score),
            of.unknown.iter().cloned().chain(unconfirmed(&of.shapes)).collect::<Vec<_>>().join("; "),
        ];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::document::{BasisReport, ChampionReport};
    use super::*;

    #[test]
    fn what_only_the_emulator_found_wrong_has_an_unknown_score_and_says_so() {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec!["s".into()],
            variant: None,
            provisional: true,
            because: String::new(),
            versus: vec![],
        };
        let of = |wrong: u64, wrong_on_cpu: u64| {
            let target = TargetReport {
                target: "h200".into(),
                basis: Some(BasisReport::default()),
                champions: vec![champion.clone()],
                variants: (2, 0, wrong),
                wrong_on_cpu,
                ..TargetReport::default()
            };
            let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
            let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
            let report = Report { packages: vec![package], ..Report::default() };
            let mut found = scores(&report, Form::Speedup, DECLARED, &[]).unwrap();
            let of = found.candidates.remove(0);
            (of.correct, of.unknown.first().cloned().unwrap_or_default())
        };
        let on_cpu =
            |number| format!("every variant is wrong, {number} of 2 only on `cpu`, which decides nothing on a device");
        assert_eq!(of(0, 2), (None, on_cpu(2)));
        assert_eq!(of(1, 1), (None, on_cpu(1)));
        assert_eq!(of(0, 1), (None, "it is not verified at every shape".to_string()));
        assert_eq!(of(2, 0).0, Some(false), "the device says so itself");
    }
}
