//! The results of a build as one document, which `kforge report` shows and writes. It uses the names from manifests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::baselines::BaselineReport;
use super::calls::CallsReport;
use super::classes::{OvertakenReport, stands_for};
use super::earlier::EarlierReport;
use super::failure::FailureReport;
use super::leaders::LeaderReport;
use super::messages::MessageReport;
use super::not_built::NotBuiltReport;
use super::provenance::{BuiltReport, ObservedReport, SelectedReport};
use super::rounds::RoundsReport;
use super::search::SearchReport;
use super::wrong::UntriedReport;
use kforge_numerics::measure::interval::{Estimate, median_interval, quantiles};
use kforge_types::model::DType;
use kforge_types::record::event::VerdictCounts;
use kforge_types::record::params::{Attribution, Fate, Matched, OutputDiagnosis};
use kforge_types::record::profile::{Achieved, Roofline};
use kforge_types::record::timing::Series;
use kforge_types::record::{FindingKind, FunctionFacts, Standing, Verdict};

/// The results of a build.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// Version of this format.
    pub format_version: u32,
    /// The build; none if an earlier kforge wrote the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<BuiltReport>,
    /// To what the report was narrowed, if that left something out. The stored report never has it: it is found when the report is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowed: Option<SelectedReport>,
    /// Packages in order.
    pub packages: Vec<PackageReport>,
}

/// One package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PackageReport {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the root of the workspace; empty for the root itself. None if an earlier kforge wrote the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Operators whose calibration reports something noteworthy.
    pub operators: Vec<OperatorReport>,
    /// Kernels, by name and types.
    pub kernels: Vec<KernelReport>,
    /// The fastest of the kernels of each operator that has several, by target and bench shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<LeaderReport>,
    /// What steps reported about kernels and operators, each message once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageReport>,
    /// The number of verdicts of steps that are about no kernel on a target, such as calibrations.
    #[serde(default, skip_serializing_if = "VerdictCounts::is_empty")]
    pub verdicts: VerdictCounts,
}

/// Whether an operator's tolerance can tell correct from wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OperatorReport {
    /// Its name, with types.
    pub name: String,
    /// Decisive or not.
    pub verdict: Verdict,
    /// What calibration noted.
    pub notes: Vec<String>,
}

/// One kernel for one choice of types.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// Targets in order.
    pub targets: Vec<TargetReport>,
}

/// One kernel on one target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetReport {
    /// The target.
    pub target: String,
    /// Types, if the operator has a choice: `T=f16`.
    pub types: String,
    /// The devices whose observations were judged, each with product, architecture and driver; none if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_on: Vec<String>,
    /// The same observations with their origin, standing and time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedReport>,
    /// What has changed since these results, if anything has that a build would have to repeat steps for. The stored report never has it: it is found when the
    /// report is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// Whether kforge.lock pins an accepted variant, so that no other variant was built.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
    /// Its own launcher, if it has one: `launch.cu::run`. Its verdicts are then about a host-launched kernel, and its times are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The shapes of the operator that `requires` leaves to other kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_served: Vec<String>,
    /// The narrow integers with which it seems to index, if no shape comes near what they can count: nothing was shown there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_limit: Option<IndexLimitReport>,
    /// The expression of `select.per` whose values are the classes of shapes; none if classes are not values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The search over its tunables; none if every variant was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    /// The results of its rounds; none if no round is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundsReport>,
    /// The champion of each class of shapes.
    pub champions: Vec<ChampionReport>,
    /// Bench shapes at which another variant is faster than the champion, as far as is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtaken: Vec<OvertakenReport>,
    /// How to compare its times; none if nothing is timed or no variant was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<BasisReport>,
    /// Median times of its variants at bench shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<TimeReport>,
    /// The last known time of an earlier version, if this one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierReport>,
    /// Verdicts of champions by shape, and of every variant that is wrong.
    pub shapes: Vec<ShapeReport>,
    /// The number of verdicts of all its steps, also of variants that are no champions.
    #[serde(default, skip_serializing_if = "VerdictCounts::is_empty")]
    pub verdicts: VerdictCounts,
    /// Counts of variants: all, correct, wrong.
    pub variants: (u64, u64, u64),
    /// The number of variants that are wrong on `cpu`, for a device that has not shown them to be wrong itself.
    #[serde(default, skip_serializing_if = "is_none")]
    pub wrong_on_cpu: u64,
    /// Set if the build did not get to it because of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_built: Option<NotBuiltReport>,
    /// Set if the build ended at a failure before every variant was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untried: Option<UntriedReport>,
    /// Machine code of champions.
    pub machine: Vec<MachineReport>,
    /// Methods of champions.
    pub methods: Vec<MethodReport>,
    /// How far champions are from the peaks of the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooflines: Vec<RooflineReport>,
    /// Baselines beside its champions, by shape and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineReport>,
    /// Call times of its champions, if the kernel is in PyTorch. They compare with no device time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallsReport>,
    /// Steps that could not be executed here: kind, number, reason.
    pub unavailable: Vec<(String, u64, String)>,
    /// Steps that failed without a result: step, message.
    pub failed: Vec<(String, String)>,
    /// The same steps by reason; none if an earlier kforge wrote the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureReport>,
}

impl TargetReport {
    /// Whether calls of the kernel are timed in place of launches.
    pub fn is_called(&self) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.called)
    }

    /// Keeps what is about the shapes that `takes` accepts.
    pub fn narrow(&mut self, takes: &dyn Fn(&str) -> bool) {
        self.shapes.retain(|of| takes(&of.shape));
        self.times.retain(|of| takes(&of.shape));
        self.overtaken.retain(|of| takes(&of.shape));
        self.baselines.retain(|of| takes(&of.shape));
        self.calls.retain(|of| takes(&of.shape));
        self.champions.iter_mut().for_each(|of| of.versus.retain(|versus| takes(&versus.shape)));
        self.methods.iter_mut().for_each(|of| {
            let compared = of.shapes.len();
            of.shapes.retain(|saving| takes(&saving.shape));
            // What a method is worth at other shapes is not said of these.
            if compared > 0 && of.shapes.is_empty() {
                of.attribution = None;
            }
        });
        self.rooflines.retain_mut(|of| {
            of.achieved.retain(|shape, _| takes(shape));
            if of.shape.as_deref().is_none_or(takes) {
                return true;
            }
            // What bounds a champion, and its metrics, are those of its slowest shape.
            (of.shape, of.roofline) = (None, Roofline::default());
            !of.achieved.is_empty()
        });
        self.earlier = self.earlier.take().filter(|of| takes(&of.shape));
    }
}

/// An index type of 16 or 32 bits that no shape comes near. It is taken from the kernel's declared arguments only: an argument of that type that depends on the
/// operator's dims suggests that indices are computed in it. Neither the source nor the machine code was examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IndexLimitReport {
    /// The arguments with that type, as declared.
    pub arguments: Vec<String>,
    /// Their type.
    pub dtype: DType,
    /// The elements that it can count.
    pub limit: u64,
    /// The elements of the largest tensor at any shape.
    pub elements: u64,
}

impl IndexLimitReport {
    /// As a sentence.
    pub fn line(&self) -> String {
        let IndexLimitReport { arguments, dtype, limit, elements } = self;
        let names: Vec<String> = arguments.iter().map(|name| format!("`{name}`")).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        format!(
            "nothing is shown near the limit of its indices: {} {verb} {dtype} and can count {limit} elements, and the largest tensor of any shape has {elements}",
            names.join(", ")
        )
    }
}

/// The champion of a class of shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChampionReport {
    /// The class: `all`, a shape's name, or the value of the class expression; with `@` and a shape's name, the class of a shape that was split from it.
    pub class: String,
    /// The shapes for which it is champion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<String>,
    /// The variant; none if no correct variant accepts the class. A kernel without tunables has one variant, with an empty label.
    pub variant: Option<String>,
    /// Whether it is provisional: selected without measurements.
    pub provisional: bool,
    /// Why it was selected.
    pub because: String,
    /// The comparisons by pairs with other variants, by shape and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versus: Vec<VersusReport>,
}

/// A comparison by pairs of another variant with a champion at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VersusReport {
    /// The shape.
    pub shape: String,
    /// The other variant.
    pub variant: String,
    /// Its time over the champion's: the median over blocks of pairs.
    pub ratio: f64,
    /// The interval of 95 % of the ratio.
    pub interval: (f64, f64),
    /// The ratios where the other variant came first and where the champion did, if they disagree. The comparison then decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_disagree: Option<(f64, f64)>,
}

/// The verdict on a variant at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShapeReport {
    /// The shape.
    pub shape: String,
    /// The variant.
    pub variant: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the verdict comes from the emulator, or from Triton's interpreter, or from PyTorch on the processor.
    pub emulated: bool,
    /// Whether it comes from Triton's interpreter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interpreted: bool,
    /// Whether it comes from PyTorch on the processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_torch: bool,
    /// What the system could not confine; empty if the kernel was confined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfined: Vec<String>,
    /// The largest error, relative to the allowed one.
    pub worst: Option<f64>,
    /// Why the verdict rests on no fresh trial, whose inputs nobody knew before; none if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_fresh: Option<String>,
    /// The inputs whose values are in files of the package, so that every candidate can know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_inputs: Vec<String>,
    /// Whether a process that ran no other kernel confirmed the verdict. Only champions on a device are confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
    /// Why a champion on a device is neither confirmed nor refuted: its confirmation gave nothing. None in all other cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_confirmed: Option<String>,
    /// For failures: the full explanation.
    pub explanation: String,
    /// What explains wrong values of outputs, if their pattern is plain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnoses: Vec<OutputDiagnosis>,
    /// Whether the kernel did not run, because its launch was refused: an argument, or the threads of a block, do not fit the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// For a failure: the finding that decides it; none if only values are wrong, or if an earlier kforge wrote the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
    /// For an unknown verdict: the step whose failure prevents it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prevented_by: Option<String>,
}

/// Machine code of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineReport {
    /// The variant.
    pub variant: String,
    /// Architectures covered.
    pub architectures: Vec<String>,
    /// Its functions. Opcodes are counted where the code was disassembled, which is done if methods are judged.
    pub functions: Vec<FunctionFacts>,
}

/// A method of a champion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MethodReport {
    /// Its id.
    pub method: String,
    /// The variant that uses it.
    pub variant: String,
    /// Whether machine code shows it; none if that step gave no result.
    pub matched: Option<Matched>,
    /// What it is worth; none if that step gave no result.
    pub attribution: Option<Attribution>,
    /// What it saves at each bench shape that was compared. Only all shapes together decide what it is worth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<MethodShapeReport>,
}

/// What a method saves at a bench shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MethodShapeReport {
    /// The shape.
    pub shape: String,
    /// (time without - time with) / time with: median, and the ends of its 95 % interval.
    pub saving: (f64, f64, f64),
    /// The savings where the kernel without it came first and where the champion did, if they disagree. The saving then shows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_disagree: Option<(f64, f64)>,
}

impl MethodReport {
    /// Whether the variant is known not to use it.
    pub(super) fn is_unused(&self) -> bool {
        self.attribution.as_ref().is_some_and(|a| a.fate == Fate::NotUsed)
    }
}

/// How far a champion is from the peaks of its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RooflineReport {
    /// The variant.
    pub variant: String,
    /// The slowest shape, which the roofline describes; none if nothing was timed, or if only other shapes were asked for. The roofline then says nothing.
    pub shape: Option<String>,
    /// Gaps, bound and the metrics that show them. The `shape` inside is the shape's position.
    pub roofline: Roofline,
    /// What it achieves at each timed bench shape, by the shape's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub achieved: BTreeMap<String, Achieved>,
}

impl RooflineReport {
    /// What bounds the champion; none if that is known of a shape only that was not asked for.
    pub(super) fn bound(&self) -> Option<String> {
        (self.roofline != Roofline::default()).then(|| self.roofline.summary())
    }
}

/// How to compare the times of a kernel on a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BasisReport {
    /// Whether hot times count instead of cold ones.
    pub hot: bool,
    /// The variant that is declared first, or from which its rounds start.
    pub declared: String,
    /// Whether only the kernel's own code is timed, without fills by the driver.
    pub whole: bool,
    /// Whether calls of the kernel are timed in place of launches, because it is in PyTorch. Its times are then in `calls`, and compare with no device time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called: bool,
    /// The class of each shape.
    pub classes: BTreeMap<String, String>,
    /// The baselines of its operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<String>,
}

/// The times of a variant at a bench shape, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeReport {
    /// The shape.
    pub shape: String,
    /// The variant.
    pub variant: String,
    /// The median of cold times, if there are any.
    pub cold_ns: Option<f64>,
    /// The median of hot times.
    pub hot_ns: Option<f64>,
    /// Whether these are medians of few samples, which showed that the variant is too slow for a full timing. Of the checks against kernels that detect timing,
    /// only the check of outputs was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub few: bool,
    /// The times on inputs of a stress class, which are in no median; none if there were no such launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_class: Option<ClassTimeReport>,
    /// Where and how often they were measured; none if that is unknown, as in reports of an earlier kforge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<TimeSeenReport>,
}

/// Where and how often the times of a variant at a shape were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeSeenReport {
    /// The device class as text: product, architecture and driver's major version.
    pub device: String,
    /// When, as RFC 3339; none in reports of an earlier kforge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// How far the build trusts them; none in reports of an earlier kforge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// SM clock and memory clock at that time, in MHz, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_mhz: Option<(u32, u32)>,
    /// Temperature of the device in degrees Celsius, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// Why its clocks were held down, by the names of NVML.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
    /// The cold samples, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<SpreadReport>,
    /// The hot samples, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<SpreadReport>,
}

/// How many samples a median has, and how certain it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpreadReport {
    /// How many samples there are.
    pub samples: u64,
    /// The interval of 95 % of the median in nanoseconds; none if there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<(f64, f64)>,
    /// Samples that were dropped under hardware slowdown or thermal limits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u32,
    /// Quantiles of the samples in nanoseconds, from the least to the greatest sample in equal steps. Only for champions, for the fastest other variant at
    /// the shape, and for the variant that is declared first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles_ns: Vec<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The steps between the quantiles of a series.
const QUANTILE_STEPS: usize = 20;

impl SpreadReport {
    /// The spread of a series.
    pub(super) fn of(series: &Series) -> Self {
        let samples = &series.samples_ns;
        SpreadReport {
            samples: samples.len() as u64,
            interval_ns: median_interval(samples),
            dropped: series.dropped,
            quantiles_ns: quantiles(samples, QUANTILE_STEPS),
        }
    }
}

impl TimeReport {
    /// The median of hot or cold times.
    pub fn ns(&self, hot: bool) -> Option<f64> {
        if hot { self.hot_ns } else { self.cold_ns }
    }

    /// The spread of hot or cold times.
    pub fn spread(&self, hot: bool) -> Option<&SpreadReport> {
        let seen = self.seen.as_ref()?;
        if hot { seen.hot.as_ref() } else { seen.cold.as_ref() }
    }

    /// The median of hot or cold times with its interval.
    pub fn estimate(&self, hot: bool) -> Option<Estimate> {
        Some(Estimate { value: self.ns(hot)?, interval: self.spread(hot)?.interval_ns? })
    }
}

/// The times of launches on inputs of a stress class among the timed ones, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClassTimeReport {
    /// The stress class.
    pub class: String,
    /// The median of cold times, if there are any.
    pub cold_ns: Option<f64>,
    /// The median of hot times.
    pub hot_ns: Option<f64>,
    /// Whether cold or hot times differ from those on other inputs by more than noise and power explain.
    pub differs: bool,
}

impl TargetReport {
    /// The methods of the champions. Methods of a variant that lost its place are left out.
    pub(super) fn methods_of_champions(&self) -> impl Iterator<Item = &MethodReport> {
        let is_champion = |label: &str| self.champions.iter().any(|c| c.variant.as_deref() == Some(label));
        self.methods.iter().filter(move |m| self.champions.is_empty() || is_champion(&m.variant))
    }

    /// Lines on a champion that passes and whose confirmation gave nothing: `not confirmed: WHY`, with the shapes if they are not all of its own.
    pub(super) fn not_confirmed(&self, champion: &ChampionReport) -> Vec<String> {
        let mine = |shape: &&ShapeReport| {
            Some(&shape.variant) == champion.variant.as_ref() && champion.shapes.contains(&shape.shape)
        };
        let mut reasons: Vec<(&str, Vec<&str>)> = vec![];
        for shape in self.shapes.iter().filter(mine).filter(|shape| shape.verdict == Verdict::Pass) {
            let Some(why) = shape.not_confirmed.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, shapes)) => shapes.push(&shape.shape),
                None => reasons.push((why, vec![&shape.shape])),
            }
        }
        let line = |(why, shapes): (&str, Vec<&str>)| match shapes.len() == champion.shapes.len() {
            true => format!("not confirmed: {why}"),
            false => format!("not confirmed at {}: {why}", shapes.join(", ")),
        };
        reasons.into_iter().map(line).collect()
    }

    /// The methods that cost a champion time, with the reason.
    pub(super) fn harmful<'r>(&'r self, champion: &'r ChampionReport) -> impl Iterator<Item = (&'r str, String)> {
        let mine = self.methods.iter().filter(|m| Some(&m.variant) == champion.variant.as_ref());
        mine.filter_map(|m| {
            let attribution = m.attribution.as_ref().filter(|a| a.fate == Fate::Harmful)?;
            Some((m.method.as_str(), attribution.reason()))
        })
    }
}

impl Report {
    /// Keeps only the accepted kernels on targets, given package, kernel, operator and target.
    pub fn retain(&mut self, takes: &dyn Fn(&str, &str, &str, &str) -> bool) {
        for package in &mut self.packages {
            for kernel in &mut package.kernels {
                kernel.targets.retain(|t| takes(&package.name, &kernel.name, &kernel.operator, &t.target));
            }
            package.kernels.retain(|k| !k.targets.is_empty());
            let kept = |name: &str| package.kernels.iter().any(|k| k.operator == name);
            package.operators.retain(|o| kept(&o.name));
            let kernels = &package.kernels;
            package.messages.retain(|message| message.is_of(kernels));
        }
        self.packages.retain(|p| !p.kernels.is_empty());
    }
}

impl Report {
    /// The number of verdicts: those of all steps, as a build counts them.
    pub fn verdicts(&self) -> VerdictCounts {
        let targets = |package: &PackageReport| -> VerdictCounts {
            package.kernels.iter().flat_map(|kernel| &kernel.targets).map(|target| target.verdicts).sum()
        };
        self.packages.iter().flat_map(|package| [package.verdicts, targets(package)]).sum()
    }

    /// The report of a build that did not complete, without kernels that have no results and no reason for that.
    pub fn begun(mut self) -> Report {
        for package in &mut self.packages {
            let stays = |target: &TargetReport| target.is_begun() || target.not_built.is_some();
            package.kernels.iter_mut().for_each(|kernel| kernel.targets.retain(stays));
            package.kernels.retain(|kernel| !kernel.targets.is_empty());
        }
        let is_wrong = |package: &PackageReport| package.operators.iter().any(|o| o.verdict != Verdict::Pass);
        self.packages.retain(|package| !package.kernels.is_empty() || is_wrong(package));
        self
    }

    /// Whether a step failed, or a result is wrong.
    pub fn has_failed(&self) -> bool {
        self.packages.iter().any(|package| {
            package.operators.iter().any(|o| matches!(o.verdict, Verdict::Fail(_)))
                || package.kernels.iter().flat_map(|k| &k.targets).any(TargetReport::has_failed)
        })
    }

    /// A kernel on a target for one choice of types, as far as the report has it.
    pub fn at<'r>(
        &'r self,
        package: &'r str,
        kernel: &'r str,
        target: &'r str,
        types: &'r str,
    ) -> impl Iterator<Item = &'r TargetReport> {
        let packages = self.packages.iter().filter(move |of| of.name == package);
        let kernels = packages.flat_map(|of| &of.kernels).filter(move |of| of.name == kernel);
        kernels.flat_map(|of| &of.targets).filter(move |of| of.target == target && of.types == types)
    }
}

impl TargetReport {
    /// Whether a variant is wrong, or a step failed.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty() || self.shapes.iter().any(|shape| matches!(shape.verdict, Verdict::Fail(_)))
    }

    /// Whether a variant that is no champion is wrong, or a step of such a variant failed.
    pub fn has_failed_beside_champions(&self) -> bool {
        let is_other = |label: &String| self.champions.iter().all(|champion| champion.variant.as_ref() != Some(label));
        let is_wrong = |shape: &ShapeReport| matches!(shape.verdict, Verdict::Fail(_)) && is_other(&shape.variant);
        self.failures().iter().flat_map(|failed| &failed.variants).any(is_other) || self.shapes.iter().any(is_wrong)
    }

    /// Whether a variant is wrong at any shape.
    pub fn fails(&self, variant: &str) -> bool {
        self.shapes.iter().any(|s| s.variant == variant && matches!(s.verdict, Verdict::Fail(_)))
    }

    /// Whether every variant is wrong, at least one of them on `cpu` only, so that nothing is known of the device.
    pub(super) fn is_wrong_on_cpu(&self) -> bool {
        let (all, _, wrong) = self.variants;
        self.wrong_on_cpu > 0 && wrong + self.wrong_on_cpu >= all
    }

    /// Whether the build has any result of it.
    pub(super) fn is_begun(&self) -> bool {
        let TargetReport { champions, shapes, machine, failed, unavailable, rounds, search, .. } = self;
        !(champions.is_empty()
            && shapes.is_empty()
            && machine.is_empty()
            && failed.is_empty()
            && unavailable.is_empty()
            && rounds.is_none()
            && search.is_none())
    }

    /// Whether a build that failed ended before a champion was selected, although variants have verdicts.
    pub(super) fn is_cut_short(&self, has_failed: bool) -> bool {
        has_failed && self.champions.is_empty() && !self.shapes.is_empty()
    }

    /// The shapes for which a champion is selected, as in [`stands_for`].
    pub fn stands_for(&self, class: &str) -> String {
        stands_for(self.per.as_deref(), class)
    }

    /// The champion at a shape. If there are several rounds, the last one counts.
    pub fn champion_at(&self, shape: &str) -> Option<&ChampionReport> {
        let class = self.basis.as_ref().and_then(|basis| basis.classes.get(shape));
        // An older kforge listed no shapes.
        let of_class = |c: &&ChampionReport| {
            if c.shapes.is_empty() { class == Some(&c.class) } else { c.shapes.iter().any(|s| s == shape) }
        };
        self.champions.iter().rev().find(of_class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::Axis;

    #[test]
    fn a_failure_of_the_champion_itself_is_none_beside_it() {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec![],
            variant: Some("A=1".into()),
            provisional: true,
            because: String::new(),
            versus: vec![],
        };
        let of = |variants: &[&str]| {
            let variants = variants.iter().map(|name| name.to_string()).collect();
            let failed = FailureReport { kind: "bench".into(), variants, ..FailureReport::default() };
            let target =
                TargetReport { champions: vec![champion.clone()], failures: vec![failed], ..TargetReport::default() };
            target.has_failed_beside_champions()
        };
        assert_eq!([of(&["A=1"]), of(&["A=1", "A=2"]), of(&[])], [false, true, false]);
    }

    #[test]
    fn of_other_shapes_than_the_slowest_nothing_is_said_that_is_true_of_the_slowest_only() {
        let reached = Achieved {
            time_ns: 2000.0,
            bytes_per_s: 1e12,
            memory: None,
            ops_per_s: None,
            unit: "f32".into(),
            compute: None,
            waves: None,
        };
        let metrics = [("waves".to_string(), 3.0)].into();
        let found = RooflineReport {
            variant: "A=1".into(),
            shape: Some("big".into()),
            roofline: Roofline { bound: Some(Axis::Memory), metrics, ..Roofline::default() },
            achieved: ["big", "odd"].map(|shape| (shape.to_string(), reached.clone())).into(),
        };
        let of = |wanted: &str| {
            let mut target = TargetReport { rooflines: vec![found.clone()], ..TargetReport::default() };
            target.narrow(&|shape| shape == wanted);
            target.rooflines
        };
        let [big] = of("big").try_into().unwrap();
        assert_eq!((big.bound().is_some(), big.roofline.metrics.len(), big.achieved.len()), (true, 1, 1));
        let [odd] = of("odd").try_into().unwrap();
        assert_eq!((odd.bound(), odd.roofline, odd.shape), (None, Roofline::default(), None));
        assert_eq!(odd.achieved.into_keys().collect::<Vec<_>>(), ["odd"]);
        assert!(of("even").is_empty());
    }
}
