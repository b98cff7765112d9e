//! The last known time of a kernel whose present version was not timed, taken from the report of the build before. So an edit on a machine without the
//! device does not lose what was known. Knows two reports; who calls it knows which kernels were edited.

use serde::{Deserialize, Serialize};

use super::document::{PackageReport, Report, TargetReport};
use super::duration::duration;

/// The time of an earlier version of a kernel on a target: that of its champion at the bench shape where it took longest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EarlierReport {
    /// The shape.
    pub shape: String,
    /// The variant that was champion there.
    pub variant: String,
    /// Its median time in nanoseconds, hot or cold as that version was compared.
    pub ns: f64,
    /// When it was measured, as RFC 3339, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl EarlierReport {
    /// The time of the champion now, or what was known of an earlier version if it has none.
    fn of(target: &TargetReport) -> Option<Self> {
        let Some((shape, variant, ns)) = target.slowest() else { return target.earlier.clone() };
        let mine = target.times.iter().filter(|time| time.shape == shape && time.variant == variant);
        let at = mine.filter_map(|time| time.seen.as_ref()?.at.clone()).next();
        Some(EarlierReport { shape: shape.into(), variant: variant.into(), ns, at })
    }

    /// As text: `7.97 us at llama of an earlier version`.
    pub(super) fn line(&self) -> String {
        format!("{} at {} of an earlier version", duration(self.ns), self.shape)
    }
}

impl TargetReport {
    /// The bench shape at which the champion takes longest, with the champion and its time in nanoseconds; none if no champion was timed.
    pub(super) fn slowest(&self) -> Option<(&str, &str, f64)> {
        let reached = self.rooflines.iter().flat_map(|found| found.achieved.iter().map(move |of| (found, of)));
        let reached = reached.map(|(found, (shape, of))| (shape.as_str(), found.variant.as_str(), of.time_ns));
        let longest = reached.max_by(|a, b| a.2.total_cmp(&b.2));
        longest.or_else(|| {
            let hot = self.basis.as_ref().is_some_and(|basis| basis.hot);
            let champion = |shape: &str| self.champion_at(shape)?.variant.as_deref();
            let times = self.times.iter().filter(|time| champion(&time.shape) == Some(time.variant.as_str()));
            let times = times.filter_map(|time| Some((time.shape.as_str(), time.variant.as_str(), time.ns(hot)?)));
            times.max_by(|a, b| a.2.total_cmp(&b.2))
        })
    }
}

/// Adds to each kernel on a target that has no time what the build before knew of it, if `is_edited` says so of its package, kernel and target.
pub fn carry(report: &mut Report, before: &Report, is_edited: &dyn Fn(&str, &str, &str) -> bool) {
    for package in &mut report.packages {
        let Some(past) = before.packages.iter().find(|past| past.name == package.name) else { continue };
        let PackageReport { name, kernels, .. } = package;
        for kernel in kernels {
            for target in kernel.targets.iter_mut().filter(|target| target.slowest().is_none()) {
                if is_edited(name, &kernel.name, &target.target) {
                    let of = past.kernels.iter().filter(|past| past.name == kernel.name).flat_map(|past| &past.targets);
                    let mut same = of.filter(|past| past.target == target.target && past.types == target.types);
                    target.earlier = same.find_map(EarlierReport::of);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, KernelReport, TimeReport};
    use super::*;

    fn champion(variant: &str) -> ChampionReport {
        ChampionReport {
            class: "all".into(),
            shapes: vec!["big".into(), "small".into()],
            variant: Some(variant.into()),
            provisional: false,
            because: String::new(),
            versus: vec![],
        }
    }

    fn time(shape: &str, variant: &str, ns: f64) -> TimeReport {
        TimeReport {
            shape: shape.into(),
            variant: variant.into(),
            cold_ns: Some(ns),
            hot_ns: None,
            few: false,
            by_class: None,
            seen: None,
        }
    }

    fn report(types: &str, champion: ChampionReport, times: Vec<TimeReport>) -> Report {
        let target = TargetReport {
            target: "h".into(),
            types: types.into(),
            champions: vec![champion],
            times,
            ..TargetReport::default()
        };
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        Report { packages: vec![package], ..Report::default() }
    }

    fn earlier(report: &Report) -> Option<&EarlierReport> {
        report.packages[0].kernels[0].targets[0].earlier.as_ref()
    }

    #[test]
    fn a_kernel_without_a_time_has_that_of_its_earlier_version() {
        let times = || vec![time("small", "A=1", 900.0), time("big", "A=1", 7970.0), time("big", "A=2", 9000.0)];
        let timed = report("", champion("A=1"), times());
        let mut edited = report("", champion("A=3"), vec![]);
        carry(&mut edited, &timed, &|package, kernel, target| (package, kernel, target) == ("p", "k", "h"));
        let found = earlier(&edited).unwrap();
        assert_eq!((found.variant.as_str(), found.line().as_str()), ("A=1", "7.97 us at big of an earlier version"));
        // Another edit keeps it: it is still the last known time.
        let mut again = report("", champion("A=4"), vec![]);
        carry(&mut again, &edited, &|_, _, _| true);
        assert_eq!(earlier(&again), earlier(&edited));
    }

    #[test]
    fn what_was_not_edited_was_timed_or_is_another_kernel_has_none() {
        let timed = report("", champion("A=1"), vec![time("big", "A=1", 7970.0)]);
        let mut same = report("", champion("A=1"), vec![]);
        carry(&mut same, &timed, &|_, _, _| false);
        assert_eq!(earlier(&same), None, "evidence that is gone is not that of an earlier version");
        let mut now = report("", champion("A=1"), vec![time("big", "A=1", 8000.0)]);
        carry(&mut now, &timed, &|_, _, _| true);
        assert_eq!(earlier(&now), None);
        let mut other = report("T=f16", champion("A=1"), vec![]);
        carry(&mut other, &timed, &|_, _, _| true);
        assert_eq!(earlier(&other), None);
    }
}
