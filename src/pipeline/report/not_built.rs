//! Kernels on targets that a build did not get to because of a failure, with what the build before knew of them, taken from its report. Knows reports; who calls
//! it knows which steps were skipped, and why.

use serde::{Deserialize, Serialize};

use super::document::{Report, TargetReport};
use super::text::variant;
use kforge_types::record::Verdict;
use kforge_types::record::observation::witness;

/// Why a build has no result for a kernel on a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotBuiltReport {
    /// The step that failed, or whose result is wrong.
    pub step: String,
    /// Whether the build stopped there; otherwise the kernel depends on that step.
    pub stopped: bool,
    /// What the last build that got to it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastReport>,
}

/// What an earlier build found of a kernel on a target. The kernel may have changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastReport {
    /// When that build ended, as RFC 3339; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The champions, each once.
    pub champions: Vec<String>,
    /// Whether one of them was provisional.
    pub provisional: bool,
    /// Whether something was wrong, or a step failed.
    pub failed: bool,
    /// The number of verdicts that passed.
    pub passed: u64,
    /// The number of verdicts that were unknown.
    pub unknown: u64,
    /// What gave the verdicts, if no device did: `emulated`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl NotBuiltReport {
    /// The reason.
    pub fn line(&self) -> String {
        match self.stopped {
            true => format!("the build stopped at `{}`", self.step),
            false => format!("`{}` failed", self.step),
        }
    }
}

impl LastReport {
    fn of(target: &TargetReport, at: Option<&String>) -> Self {
        let number = |is: fn(&Verdict) -> bool| target.shapes.iter().filter(|shape| is(&shape.verdict)).count() as u64;
        let mut champions: Vec<String> = vec![];
        for label in target.champions.iter().filter_map(|champion| champion.variant.as_ref()) {
            if !champions.contains(label) {
                champions.push(label.clone());
            }
        }
        let said = target.shapes.iter().find(|shape| shape.verdict == Verdict::Pass);
        LastReport {
            at: at.filter(|at| !at.is_empty()).cloned(),
            champions,
            provisional: target.champions.iter().any(|champion| champion.provisional && champion.variant.is_some()),
            failed: target.has_failed(),
            passed: number(|verdict| *verdict == Verdict::Pass),
            unknown: number(|verdict| matches!(verdict, Verdict::Unknown(_))),
            by: said.map_or("", |shape| witness(shape.emulated, shape.interpreted, shape.in_torch)).into(),
        }
    }

    /// As a line: `last known: pass emulated, BLOCK=32 (provisional)`.
    pub fn line(&self) -> String {
        let LastReport { champions, provisional, failed, passed, unknown, by, .. } = self;
        let verdict = match (failed, passed, unknown) {
            (true, ..) => "fail".to_string(),
            (_, 0, 0) => "no verdict".into(),
            (_, _, 0) => "pass".into(),
            (_, 0, _) => "unknown".into(),
            (_, passed, unknown) => format!("{passed} pass, {unknown} unknown"),
        };
        let by = if *failed || by.is_empty() { String::new() } else { format!(" {by}") };
        let names: Vec<&str> = champions.iter().map(|label| variant(label)).collect();
        let champions = if names.is_empty() { "no champion".into() } else { names.join("; ") };
        let provisional = if *provisional { " (provisional)" } else { "" };
        format!("last known: {verdict}{by}, {champions}{provisional}")
    }
}

/// Adds the reason to each kernel on a target that has no result. `why` gives it for package, kernel, target and types, without the last result; `before` is the
/// report of the build before.
pub fn add(report: &mut Report, before: Option<&Report>, why: &dyn Fn([&str; 4]) -> Option<NotBuiltReport>) {
    for package in &mut report.packages {
        for kernel in &mut package.kernels {
            for target in kernel.targets.iter_mut().filter(|target| !target.is_begun()) {
                let Some(why) = why([&package.name, &kernel.name, &target.target, &target.types]) else { continue };
                let last = before.and_then(|before| {
                    let at = before.built.as_ref().map(|built| &built.at);
                    let past = before.at(&package.name, &kernel.name, &target.target, &target.types).next()?;
                    match &past.not_built {
                        Some(earlier) => earlier.last.clone(),
                        None => past.is_begun().then(|| LastReport::of(past, at)),
                    }
                });
                target.not_built = Some(NotBuiltReport { last, ..why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, KernelReport, PackageReport};
    use super::super::provenance::BuiltReport;
    use super::*;

    fn report(target: TargetReport) -> Report {
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        let built = BuiltReport { at: "2026-11-25T09:57:00Z".into(), ..BuiltReport::default() };
        Report { built: Some(built), packages: vec![package], ..Report::default() }
    }

    fn bare(types: &str) -> TargetReport {
        TargetReport { target: "h".into(), types: types.into(), ..TargetReport::default() }
    }

    fn added(mut report: Report, before: Option<&Report>, stopped: bool) -> Report {
        add(&mut report, before, &|place| {
            assert_eq!(place[..3], ["p", "k", "h"]);
            Some(NotBuiltReport { step: "p/first/judge".into(), stopped, last: None })
        });
        report
    }

    fn of(report: &Report) -> &NotBuiltReport {
        report.packages[0].kernels[0].targets[0].not_built.as_ref().unwrap()
    }

    #[test]
    fn what_a_build_did_not_get_to_has_the_result_of_the_last_build_that_did() {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec![],
            variant: Some("A=1".into()),
            provisional: true,
            because: String::new(),
            versus: vec![],
        };
        let shape = serde_json::json!({
            "shape": "s", "variant": "A=1", "verdict": "pass", "emulated": true, "worst": null, "explanation": "",
        });
        let shapes = vec![serde_json::from_value(shape).unwrap()];
        let before = report(TargetReport { champions: vec![champion], shapes, ..bare("") });
        let now = added(report(bare("")), Some(&before), true);
        assert_eq!(of(&now).line(), "the build stopped at `p/first/judge`");
        let last = of(&now).last.clone().unwrap();
        assert_eq!(last.line(), "last known: pass emulated, A=1 (provisional)");
        assert_eq!(last.at.as_deref(), Some("2026-11-25T09:57:00Z"));
        // Another build that does not get to it keeps that.
        let again = added(report(bare("")), Some(&now), false);
        assert_eq!((of(&again).line().as_str(), of(&again).last.as_ref()), ("`p/first/judge` failed", Some(&last)));
        // Of other types, and without a build before, nothing is known.
        assert_eq!(of(&added(report(bare("T=f16")), Some(&before), true)).last, None);
        assert_eq!(of(&added(report(bare("")), None, true)).last, None);
        // What has a result is not among them.
        let built = added(before.clone(), None, true);
        assert_eq!(built, before);
    }

    #[test]
    fn the_last_result_is_told_by_its_verdicts() {
        let line = |failed, passed, unknown| {
            let champions = vec![];
            LastReport { at: None, champions, provisional: false, failed, passed, unknown, by: String::new() }.line()
        };
        assert_eq!(line(true, 1, 1), "last known: fail, no champion");
        assert_eq!(line(false, 3, 1), "last known: 3 pass, 1 unknown, no champion");
        assert_eq!(line(false, 0, 1), "last known: unknown, no champion");
        assert_eq!(line(false, 0, 0), "last known: no verdict, no champion");
    }
}
