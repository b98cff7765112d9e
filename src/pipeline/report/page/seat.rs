//! A row of the page: a kernel on a target, and what every section asks of it. Knows the document.

use super::super::document::{
    KernelReport, PackageReport, Report, RooflineReport, ShapeReport, TargetReport, TimeReport,
};
use kforge_types::record::Verdict;
use kforge_types::record::profile::Achieved;

/// A kernel on a target, for one choice of types.
#[derive(Clone, Copy)]
pub(super) struct Seat<'r> {
    /// Its number on the page.
    pub(super) at: usize,
    /// Whether the report has several packages, so that names need theirs.
    several: bool,
    /// Whether the build of the report failed.
    has_failed: bool,
    /// Its package.
    pub(super) package: &'r PackageReport,
    /// The kernel.
    pub(super) kernel: &'r KernelReport,
    /// The target.
    pub(super) target: &'r TargetReport,
}

/// How far something is known to be correct, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Something failed.
    Failed,
    /// Something is unknown.
    Unknown,
    /// It passes in the emulator or in Triton's interpreter.
    Emulated,
    /// It passes on the device, or on the processor that is the target.
    Device,
}

impl Level {
    /// All, worst first.
    pub(super) const ALL: [Level; 4] = [Level::Failed, Level::Unknown, Level::Emulated, Level::Device];

    /// Its class in the style.
    pub(super) fn class(self) -> &'static str {
        match self {
            Level::Failed => "bad",
            Level::Unknown => "open",
            Level::Emulated => "emu",
            Level::Device => "good",
        }
    }

    /// Its sign. The four differ by form.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Level::Failed => "✕",
            Level::Unknown => "?",
            Level::Emulated => "◐",
            Level::Device => "●",
        }
    }

    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Failed => "failed",
            Level::Unknown => "unknown",
            Level::Emulated => "passes, emulated",
            Level::Device => "passes on the device",
        }
    }
}

/// The level of a verdict at a shape.
pub(super) fn level(shape: &ShapeReport) -> Level {
    match &shape.verdict {
        Verdict::Fail(_) => Level::Failed,
        Verdict::Unknown(_) => Level::Unknown,
        Verdict::Pass if shape.emulated => Level::Emulated,
        Verdict::Pass => Level::Device,
    }
}

/// The kernels on targets of a report, in its order.
pub(super) fn seats(report: &Report) -> Vec<Seat<'_>> {
    let (several, has_failed) = (report.packages.len() > 1, report.has_failed());
    let kernels =
        report.packages.iter().flat_map(|package| package.kernels.iter().map(move |kernel| (package, kernel)));
    let targets = kernels.flat_map(|(package, kernel)| kernel.targets.iter().map(move |t| (package, kernel, t)));
    let seat = |(at, (package, kernel, target))| Seat { at, several, has_failed, package, kernel, target };
    targets.enumerate().map(seat).collect()
}

impl<'r> Seat<'r> {
    /// Its name without the target: `package/kernel [T=f16]`.
    pub(super) fn name(&self) -> String {
        let package = if self.several { format!("{}/", self.package.name) } else { String::new() };
        let types = &self.target.types;
        let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
        format!("{package}{}{types}", self.kernel.name)
    }

    /// Its name with the target.
    pub(super) fn full(&self) -> String {
        format!("{} on {}", self.name(), self.target.target)
    }

    /// The anchor of its details.
    pub(super) fn anchor(&self) -> String {
        format!("k{}", self.at)
    }

    /// Whether hot times count.
    pub(super) fn hot(&self) -> bool {
        self.target.basis.as_ref().is_some_and(|basis| basis.hot)
    }

    /// The level of the whole.
    pub(super) fn level(&self) -> Level {
        let target = self.target;
        let lacks = || target.champions.iter().any(|champion| champion.variant.is_none()) || self.is_cut_short();
        if !target.failed.is_empty() {
            return Level::Failed;
        }
        let least = target.shapes.iter().map(level).min();
        match least {
            Some(level) if level > Level::Unknown && lacks() => Level::Unknown,
            Some(level) => level,
            None => Level::Unknown,
        }
    }

    /// Whether a build that failed ended before a champion was selected.
    pub(super) fn is_cut_short(&self) -> bool {
        self.target.is_cut_short(self.has_failed)
    }

    /// The champion's label at a shape.
    pub(super) fn champion(&self, shape: &str) -> Option<&'r str> {
        self.target.champion_at(shape)?.variant.as_deref()
    }

    /// The times of champions at their shapes, slowest first.
    pub(super) fn times(&self) -> Vec<(&'r TimeReport, f64)> {
        let hot = self.hot();
        let mine = self.target.times.iter().filter(|time| self.champion(&time.shape) == Some(&time.variant));
        let mut all: Vec<_> = mine.filter_map(|time| Some((time, time.ns(hot)?))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// The time of a variant at a shape.
    pub(super) fn time(&self, shape: &str, variant: &str) -> Option<&'r TimeReport> {
        self.target.times.iter().find(|time| time.shape == shape && time.variant == variant)
    }

    /// What the champion reaches at a shape, with the roofline that says so.
    pub(super) fn achieved(&self, shape: &str) -> Option<(&'r RooflineReport, &'r Achieved)> {
        let champion = self.champion(shape);
        let of = self.target.rooflines.iter().filter(|found| Some(found.variant.as_str()) == champion);
        of.filter_map(|found| Some((found, found.achieved.get(shape)?))).next()
    }
}
