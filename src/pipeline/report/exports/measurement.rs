//! Median times of champions, as benchmarks: the value from which every benchmark format is written. Knows the report; does not know those formats.
//!
//! A measurement is one median of the champion of a bench shape, cold or hot. Its name has everything that makes a series of its own: package, kernel, types,
//! shape, metric, target and class of devices. The champion's variant is not part of it, because the series shows how fast the kernel is, whichever variant
//! that is. What is unknown is left out:
//!
//! * a time that was not measured, or whose device is not known;
//! * times of a variant that is wrong at any shape.

use crate::report::Report;
use crate::report::document::{SpreadReport, TargetReport, TimeReport};
use kforge_types::record::{Standing, Verdict};

/// How launches were timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// With an empty L2 cache.
    Cold,
    /// With what the launch before it left in the cache.
    Hot,
}

impl Metric {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Cold => "cold",
            Metric::Hot => "hot",
        }
    }
}

/// The median time of a champion at a bench shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement<'r> {
    /// The package.
    pub package: &'r str,
    /// The kernel.
    pub kernel: &'r str,
    /// Its operator.
    pub operator: &'r str,
    /// Types, if the operator has a choice: `T=f16`.
    pub types: &'r str,
    /// The target.
    pub target: &'r str,
    /// The shape.
    pub shape: &'r str,
    /// The champion; empty if the kernel has no tunables.
    pub variant: &'r str,
    /// The class of the device: product, architecture and driver's major version.
    pub device: &'r str,
    /// How it was timed.
    pub metric: Metric,
    /// Whether champions are selected by this metric.
    pub selects: bool,
    /// The median in nanoseconds.
    pub median_ns: f64,
    /// The number of samples; none if unknown.
    pub samples: Option<u64>,
    /// The interval of 95 % of the median in nanoseconds; none if unknown.
    pub interval_ns: Option<(f64, f64)>,
    /// Whether it is a median of few samples.
    pub few: bool,
    /// The lowest standing of the observations on that device; none if unknown.
    pub standing: Option<Standing>,
}

impl Measurement<'_> {
    /// Its name, which is the same in every report: `norms/rms_norm[T=f16] llama cold on h200, NVIDIA H200 (sm_90, driver 580)`.
    pub fn name(&self) -> String {
        let Measurement { package, kernel, shape, target, device, metric, .. } = self;
        let types = if self.types.is_empty() { String::new() } else { format!("[{}]", self.types) };
        format!("{package}/{kernel}{types} {shape} {} on {target}, {device}", metric.name())
    }

    /// What else is known of it, by name and in order: facts that are no part of the series.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
        let interval = self.interval_ns.map(|(low, high)| format!("{low:.1} to {high:.1} ns"));
        let all = [
            ("variant", text(self.variant)),
            ("samples", self.samples.map(|n| n.to_string())),
            ("interval of 95 %", interval),
            ("few samples", self.few.then(|| "yes".to_string())),
            ("selects the champion", self.selects.then(|| "yes".to_string())),
            ("standing", self.standing.map(|standing| standing.name().to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The measurements of a report, in its order.
pub fn measurements(report: &Report) -> Vec<Measurement<'_>> {
    let mut all = vec![];
    for package in &report.packages {
        for kernel in &package.kernels {
            for target in &kernel.targets {
                for time in target.times.iter().filter(|time| stands(target, time)) {
                    let Some(device) = device(target, time) else { continue };
                    let hot = target.basis.as_ref().is_some_and(|basis| basis.hot);
                    let seen = time.seen.as_ref();
                    let of = |metric: Metric, median: Option<f64>, spread: Option<&SpreadReport>| {
                        Some(Measurement {
                            package: &package.name,
                            kernel: &kernel.name,
                            operator: &kernel.operator,
                            types: &target.types,
                            target: &target.target,
                            shape: &time.shape,
                            variant: &time.variant,
                            device,
                            metric,
                            selects: hot == (metric == Metric::Hot),
                            median_ns: median?,
                            samples: spread.map(|spread| spread.samples),
                            interval_ns: spread.and_then(|spread| spread.interval_ns),
                            few: time.few,
                            standing: standing(target, device),
                        })
                    };
                    all.extend(of(Metric::Cold, time.cold_ns, seen.and_then(|seen| seen.cold.as_ref())));
                    all.extend(of(Metric::Hot, time.hot_ns, seen.and_then(|seen| seen.hot.as_ref())));
                }
            }
        }
    }
    all
}

/// Whether a time is that of the champion of its shape, and the champion is wrong nowhere.
fn stands(target: &TargetReport, time: &TimeReport) -> bool {
    let champion = target.champion_at(&time.shape).and_then(|champion| champion.variant.as_deref());
    let fails = || target.shapes.iter().any(|s| s.variant == time.variant && matches!(s.verdict, Verdict::Fail(_)));
    champion == Some(&time.variant) && !fails()
}

/// The class of the device that was measured. An earlier kforge did not say it of each time; it is known if there was only one.
fn device<'r>(target: &'r TargetReport, time: &'r TimeReport) -> Option<&'r str> {
    match (&time.seen, target.observed_on.as_slice()) {
        (Some(seen), _) => Some(&seen.device),
        (None, [one]) => Some(one),
        (None, _) => None,
    }
}

/// The lowest standing of the observations of a kernel on a device.
fn standing(target: &TargetReport, device: &str) -> Option<Standing> {
    target.observed.iter().filter(|one| one.device == device).map(|one| one.standing).min()
}
