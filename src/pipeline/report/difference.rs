//! The difference of two variants of a kernel, or of a kernel at two revisions, as a document. Knows what was found of each side; looks nothing up.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use similar::TextDiff;

use super::document::TimeReport;
use kforge_numerics::measure::interval::ratio_interval;
use kforge_types::record::params::Judgement;
use kforge_types::record::{FORMAT_VERSION, FindingKind, FunctionFacts, Verdict};

/// The lines around a change that a difference of sources shows.
pub(super) const CONTEXT: usize = 3;

/// How two variants of a kernel differ on a target.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiffDocument {
    /// Version of this format.
    pub format_version: u32,
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
    /// Whether hot times count instead of cold ones.
    pub hot: bool,
    /// The first side.
    pub a: DiffSide,
    /// The second side.
    pub b: DiffSide,
    /// The files of the sources that differ.
    pub sources: Vec<SourceDiff>,
    /// The files of the sources that are the same.
    pub same_sources: Vec<String>,
    /// What differs in how they are compiled and launched.
    pub settings: Vec<SettingDiff>,
    /// Their functions in machine code. Empty if neither side has any.
    pub functions: Vec<FunctionDiff>,
    /// What is known at each shape.
    pub shapes: Vec<ShapeDiff>,
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiffSide {
    /// The state that it is of: the working tree, or a revision with its commit.
    pub state: String,
    /// The variant.
    pub variant: String,
    /// The classes of shapes for which it is the champion.
    pub champion_of: Vec<String>,
    /// How it was selected as champion.
    #[serde(default, skip_serializing_if = "SelectedHow::is_plain")]
    pub selected: SelectedHow,
    /// Its verdicts together.
    pub verdict: SideVerdict,
    /// The first of its failures: a step without a result, or else the first shape with a failing verdict in the order of the operator.
    pub failure: Option<SideFailure>,
    /// What is not known of it.
    pub missing: Vec<Missing>,
}

/// How a champion was selected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SelectedHow {
    /// Whether it is provisional: selected without measurements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// Whether the last build selected it, and a build now would have to select again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last_build: bool,
    /// Whether other variants of the kernel failed in that build, so that it was selected among the correct ones only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_correct: bool,
}

impl SelectedHow {
    /// Whether there is nothing to say.
    fn is_plain(&self) -> bool {
        *self == SelectedHow::default()
    }
}

/// The verdicts on a side at all shapes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SideVerdict {
    /// It is correct at every shape that has a verdict.
    Pass,
    /// It fails at a shape, or a step of it failed without a result.
    Fail,
    /// The verdict at a shape is unknown, and none fails.
    Unknown,
    /// No shape has a verdict.
    Untried,
}

/// A failure of a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SideFailure {
    /// The step that failed without a result, in the last build; none for a failing verdict.
    pub step: Option<String>,
    /// The shape of a failing verdict.
    pub shape: Option<String>,
    /// Why, in a line.
    pub why: String,
    /// The finding that decides a failing verdict; none if only values are wrong.
    pub finding: Option<FindingKind>,
}

/// Something that is not known, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Missing {
    /// What is missing, such as `machine code`.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SourceDiff {
    /// The file, relative to the package.
    pub file: String,
    /// Whether the first side has it.
    pub in_a: bool,
    /// Whether the second side has it.
    pub in_b: bool,
    /// The difference in the unified format; none if a side is no text, or no longer stored.
    pub unified: Option<String>,
}

/// A setting of the compilation or of a launch that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SettingDiff {
    /// The setting, such as `defines.BLOCK`.
    pub name: String,
    /// Its value in the first side.
    pub a: Option<String>,
    /// Its value in the second side.
    pub b: Option<String>,
}

/// A function of both sides, or of one.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FunctionDiff {
    /// In the first side.
    pub a: Option<FunctionFacts>,
    /// In the second side.
    pub b: Option<FunctionFacts>,
}

/// What is known of both sides at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShapeDiff {
    /// The shape.
    pub shape: String,
    /// The verdict on the first side.
    pub verdict_a: Option<Verdict>,
    /// The verdict on the second side.
    pub verdict_b: Option<Verdict>,
    /// The times of the first side.
    pub time_a: Option<TimeReport>,
    /// The times of the second side.
    pub time_b: Option<TimeReport>,
    /// How they compare.
    pub ratio: Option<RatioReport>,
    /// Why there is no ratio from pairs, where both sides could have one.
    pub no_pairs: Option<String>,
}

/// How the times of two sides compare at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatioReport {
    /// The time of the second side over that of the first.
    pub ratio: f64,
    /// The interval of 95 % of the ratio; none if there are too few samples.
    pub interval: Option<(f64, f64)>,
    /// Whether both were timed in turn on the same buffers. If not, it is the ratio of two medians, and nothing is known about what differed between the two
    /// measurements.
    pub paired: bool,
    /// The ratios where the second side came first and where the first side did, if they disagree. The pairs then decide nothing.
    pub orders_disagree: Option<(f64, f64)>,
    /// The device and the time of the measurement of pairs.
    pub measured: Option<String>,
}

/// What was found of one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SideFound {
    /// See [`DiffSide::state`].
    pub state: String,
    /// The variant.
    pub variant: String,
    /// The classes of shapes for which it is the champion.
    pub champion_of: Vec<String>,
    /// How it was selected.
    pub selected: SelectedHow,
    /// Every file that its source can reach; none if the contents are no longer stored.
    pub files: BTreeMap<String, Option<Vec<u8>>>,
    /// The settings of its compilation.
    pub settings: BTreeMap<String, String>,
    /// Its launches by shape.
    pub launches: BTreeMap<String, BTreeMap<String, String>>,
    /// Its functions, with opcodes if they were counted.
    pub functions: Vec<FunctionFacts>,
    /// Its verdicts by shape.
    pub verdicts: BTreeMap<String, Verdict>,
    /// The findings that decide its failing verdicts, by shape.
    pub findings: BTreeMap<String, FindingKind>,
    /// The first of its steps that failed without a result in the last build, and why.
    pub failed: Option<(String, String)>,
    /// Its times by shape.
    pub times: BTreeMap<String, TimeReport>,
    /// What is not known.
    pub missing: Vec<Missing>,
}

impl SideFound {
    /// Adds the judgement at a shape.
    pub fn judged(&mut self, shape: &str, judgement: Judgement) {
        match judgement.finding {
            Some(finding) => drop(self.findings.insert(shape.into(), finding)),
            None => drop(self.findings.remove(shape)),
        }
        self.verdicts.insert(shape.into(), judgement.verdict);
    }
}

/// What pairs say at a shape at which both sides could be paired.
#[derive(Debug, Clone, PartialEq)]
pub enum PairsAt {
    /// The ratio.
    Taken(RatioReport),
    /// Why there are none, for people.
    Missing(String),
}

/// What pairs say by shape.
pub type PairsFound = BTreeMap<String, PairsAt>;

/// Where two sides are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffSeat {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
    /// Whether hot times count instead of cold ones.
    pub hot: bool,
    /// The shapes in the order of the operator.
    pub shapes: Vec<String>,
}

/// How two sides differ.
pub fn difference(seat: DiffSeat, a: SideFound, b: SideFound, mut pairs: PairsFound) -> DiffDocument {
    let (sources, same_sources) = files(&a.files, &b.files);
    let shapes = seat.shapes.iter().filter_map(|shape| at(shape, seat.hot, &a, &b, pairs.remove(shape))).collect();
    // A grid depends on the shape, so launches are compared at one.
    let launched = seat.shapes.iter().find_map(|s| Some((s, a.launches.get(s)?, b.launches.get(s)?)));
    let launches = launched.map(|(shape, a, b)| differing(a, b, &|name| format!("{name} at {shape}")));
    let mut settings = differing(&a.settings, &b.settings, &str::to_string);
    settings.extend(launches.into_iter().flatten());
    let side = |of: SideFound| {
        let failure = failure(&of, &seat.shapes);
        DiffSide {
            verdict: verdict(&of, failure.is_some()),
            failure,
            state: of.state,
            variant: of.variant,
            champion_of: of.champion_of,
            selected: of.selected,
            missing: of.missing,
        }
    };
    let functions = functions(&a.functions, &b.functions);
    let (a, b) = (side(a), side(b));
    let DiffSeat { package, kernel, target, types, hot, .. } = seat;
    DiffDocument {
        format_version: FORMAT_VERSION,
        package,
        kernel,
        target,
        types,
        hot,
        sources,
        same_sources,
        settings,
        functions,
        shapes,
        a,
        b,
    }
}

/// The verdicts of a side together.
fn verdict(of: &SideFound, fails: bool) -> SideVerdict {
    let is_open = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
    match (fails, of.verdicts.is_empty(), of.verdicts.values().any(is_open)) {
        (true, ..) => SideVerdict::Fail,
        (_, true, _) => SideVerdict::Untried,
        (.., true) => SideVerdict::Unknown,
        _ => SideVerdict::Pass,
    }
}

/// The first failure of a side.
fn failure(of: &SideFound, shapes: &[String]) -> Option<SideFailure> {
    if let Some((step, why)) = &of.failed {
        let why = why.lines().next().unwrap_or_default().to_string();
        return Some(SideFailure { step: Some(step.clone()), shape: None, why, finding: None });
    }
    shapes.iter().find_map(|shape| match of.verdicts.get(shape)? {
        Verdict::Fail(why) => Some(SideFailure {
            step: None,
            shape: Some(shape.clone()),
            why: why.clone(),
            finding: of.findings.get(shape).copied(),
        }),
        _ => None,
    })
}

type Files = BTreeMap<String, Option<Vec<u8>>>;

/// The files that differ, and the names of the others.
fn files(a: &Files, b: &Files) -> (Vec<SourceDiff>, Vec<String>) {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let (mut differing, mut same) = (vec![], vec![]);
    for file in names {
        let (of_a, of_b) = (a.get(file), b.get(file));
        if of_a == of_b && of_a.is_some_and(Option::is_some) {
            same.push(file.clone());
            continue;
        }
        // A file that a side does not have is empty there.
        let text = |side: Option<&Option<Vec<u8>>>| match side {
            None => Some(String::new()),
            Some(bytes) => String::from_utf8(bytes.clone()?).ok(),
        };
        let unified = text(of_a).zip(text(of_b)).map(|(a, b)| {
            let name =
                |side: &str, is_there: bool| if is_there { format!("{side}/{file}") } else { "/dev/null".into() };
            let found = TextDiff::from_lines(a.as_str(), b.as_str());
            let (from, to) = (name("a", of_a.is_some()), name("b", of_b.is_some()));
            found.unified_diff().context_radius(CONTEXT).header(&from, &to).to_string()
        });
        differing.push(SourceDiff { file: file.clone(), in_a: of_a.is_some(), in_b: of_b.is_some(), unified });
    }
    (differing, same)
}

fn differing(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
    named: &dyn Fn(&str) -> String,
) -> Vec<SettingDiff> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differ = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differ.map(|name| SettingDiff { name: named(name), a: a.get(name).cloned(), b: b.get(name).cloned() }).collect()
}

/// Functions by name. A variant's arguments of a template are part of an entry, so only the name before them is compared.
fn functions(a: &[FunctionFacts], b: &[FunctionFacts]) -> Vec<FunctionDiff> {
    fn name(of: &FunctionFacts) -> &str {
        of.entry.split('<').next().unwrap_or_default()
    }
    let mut rest: Vec<&FunctionFacts> = b.iter().collect();
    let mut out = vec![];
    for function in a {
        let other = rest.iter().position(|other| name(other) == name(function)).map(|at| rest.remove(at));
        out.push(FunctionDiff { a: Some(function.clone()), b: other.cloned() });
    }
    out.extend(rest.into_iter().map(|only| FunctionDiff { a: None, b: Some(only.clone()) }));
    out
}

/// What is known at a shape; none if nothing is.
fn at(shape: &str, hot: bool, a: &SideFound, b: &SideFound, pairs: Option<PairsAt>) -> Option<ShapeDiff> {
    let (verdict_a, verdict_b) = (a.verdicts.get(shape).cloned(), b.verdicts.get(shape).cloned());
    let (time_a, time_b) = (a.times.get(shape).cloned(), b.times.get(shape).cloned());
    let (paired, no_pairs) = match pairs {
        Some(PairsAt::Taken(ratio)) => (Some(ratio), None),
        Some(PairsAt::Missing(why)) => (None, Some(why)),
        None => (None, None),
    };
    let ratio = paired.or_else(|| apart(time_a.as_ref()?, time_b.as_ref()?, hot));
    let is_known = verdict_a.is_some() || verdict_b.is_some() || time_a.is_some() || time_b.is_some();
    (is_known || ratio.is_some()).then(|| ShapeDiff {
        shape: shape.into(),
        verdict_a,
        verdict_b,
        time_a,
        time_b,
        ratio,
        no_pairs,
    })
}

/// The ratio of two medians of one class of devices; none if they are not of one.
fn apart(a: &TimeReport, b: &TimeReport, hot: bool) -> Option<RatioReport> {
    let device = |of: &TimeReport| of.seen.as_ref().map(|seen| seen.device.clone());
    let same = device(a).is_some() && device(a) == device(b);
    let (before, after) = (a.ns(hot)?, b.ns(hot)?);
    let interval = || ratio_interval(b.estimate(hot)?, a.estimate(hot)?);
    same.then(|| RatioReport {
        ratio: after / before,
        interval: interval(),
        paired: false,
        orders_disagree: None,
        measured: None,
    })
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
