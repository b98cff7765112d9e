//! Where a report comes from: the build, and for each kernel and target the observations of devices that were judged. As values and as text. Knows provenance;
//! trusts nothing and nobody by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::age::{ago, span};
use kforge_types::record::Standing;
use kforge_types::record::event::EvidenceSeen;

/// The build whose results a report holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BuiltReport {
    /// Version of kforge.
    pub kforge: String,
    /// When the build ended that first gave these results, as RFC 3339. A build with nothing to do gives no new results.
    pub at: String,
    /// The commit of the repository; none outside a repository, or without git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the workspace had changes that the commit does not have, new files included; none if the commit is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The folder of the workspace in its repository, relative to the repository's root; none at the root, or outside a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether a later build was interrupted, so that its results are missing here.
    #[serde(default)]
    pub interrupted: bool,
    /// What was selected.
    #[serde(default)]
    pub selected: SelectedReport,
    /// The packages of each toolchain that `kforge.lock` pins, with their versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolchains: BTreeMap<String, Vec<String>>,
    /// The keys of the steps that failed, so that a report can tell a later edit from what the build has seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_keys: Vec<String>,
}

/// The selection of a build or of a report, by names. Empty lists select everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SelectedReport {
    /// Packages.
    pub packages: Vec<String>,
    /// Kernels.
    pub kernels: Vec<String>,
    /// Operators.
    pub operators: Vec<String>,
    /// Shapes.
    pub shapes: Vec<String>,
    /// Targets.
    pub targets: Vec<String>,
    /// The overlay, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<PathBuf>,
}

impl SelectedReport {
    /// What is selected, in words: "package `a`, kernels `b` and `c`".
    pub(super) fn line(&self) -> String {
        let all = [
            ("package", &self.packages),
            ("kernel", &self.kernels),
            ("operator", &self.operators),
            ("shape", &self.shapes),
            ("target", &self.targets),
        ];
        let part = |(kind, names): (&str, &Vec<String>)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            match names.as_slice() {
                [] => None,
                [one] => Some(format!("{kind} {one}")),
                [first @ .., last] => Some(format!("{kind}s {} and {last}", first.join(", "))),
            }
        };
        all.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }
}

/// Observations of one device with one driver, of one origin and standing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObservedReport {
    /// The device class as text: product, architecture and driver's major version.
    pub device: String,
    /// The full driver version; empty if it was not recorded.
    pub driver: String,
    /// Where the records come from: a bundle's name or path, or `here`.
    pub origin: String,
    /// How far the build trusts them.
    pub standing: Standing,
    /// Who signed them, if they are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// How many there are.
    pub records: u64,
    /// When the oldest was observed, as RFC 3339.
    pub oldest: String,
    /// When the newest was observed.
    pub newest: String,
}

/// Adds an observation to those that were already seen.
pub(super) fn observe(all: &mut Vec<ObservedReport>, seen: &EvidenceSeen) {
    let same = |one: &&mut ObservedReport| {
        (&one.device, &one.driver, &one.origin) == (&seen.device_class, &seen.driver, &seen.origin)
            && (one.standing, &one.signer) == (seen.standing, &seen.signer)
    };
    match all.iter_mut().find(same) {
        Some(one) => {
            one.records += 1;
            // Text compares as time does, because all times are written in UTC with the same fields.
            one.oldest = seen.measured_at.clone().min(std::mem::take(&mut one.oldest));
            one.newest = seen.measured_at.clone().max(std::mem::take(&mut one.newest));
        }
        None => all.push(ObservedReport {
            device: seen.device_class.clone(),
            driver: seen.driver.clone(),
            origin: seen.origin.clone(),
            standing: seen.standing,
            signer: seen.signer.clone(),
            records: 1,
            oldest: seen.measured_at.clone(),
            newest: seen.measured_at.clone(),
        }),
    }
}

/// The observations that these steps rest on, in the order of a report.
pub fn observed<'a>(seen: impl Iterator<Item = &'a EvidenceSeen>) -> Vec<ObservedReport> {
    let mut all = vec![];
    seen.for_each(|seen| observe(&mut all, seen));
    sort(&mut all);
    all
}

/// The order of observations in a report.
pub(super) fn sort(all: &mut [ObservedReport]) {
    all.sort_by(|a, b| {
        (&a.device, &a.driver, a.standing, &a.origin, &a.signer)
            .cmp(&(&b.device, &b.driver, b.standing, &b.origin, &b.signer))
    });
}

/// The observations of a kernel on a target in one line: device, date, standing, and the age if the present time is known. Parts that differ only in their date
/// are not repeated.
pub fn line(all: &[ObservedReport], now: Option<Timestamp>) -> String {
    let mut parts: Vec<(String, String, &str, &str)> = vec![];
    for one in all {
        let standing = standing(one);
        match parts.iter_mut().find(|(device, other, ..)| *device == one.device && *other == standing) {
            Some((.., oldest, newest)) => {
                *oldest = (*oldest).min(&one.oldest);
                *newest = (*newest).max(&one.newest);
            }
            None => parts.push((one.device.clone(), standing, &one.oldest, &one.newest)),
        }
    }
    let text = |(device, standing, oldest, newest): (String, String, &str, &str)| {
        let age = now.map(|now| format!(" ({})", span(oldest, newest, now))).unwrap_or_default();
        format!("{device}, {}{age}, {standing}", days(oldest, newest))
    };
    parts.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

/// How far observations are trusted, in words: `here`, ``signed by `NAME` ``, ``claimed by `FILE` ``.
pub(super) fn standing(one: &ObservedReport) -> String {
    match (one.standing, &one.signer) {
        (Standing::Here, _) => "here".into(),
        (Standing::Signed, Some(signer)) => format!("signed by `{signer}`"),
        (Standing::Signed, None) => format!("signed in `{}`", one.origin),
        (Standing::Claimed, _) => format!("claimed by `{}`", one.origin),
    }
}

/// The days of a range of times: `2026-11-23`, or `2026-11-20 to 2026-11-23`.
fn days(oldest: &str, newest: &str) -> String {
    let day = |time: &str| time.split('T').next().unwrap_or_default().to_string();
    let (oldest, newest) = (day(oldest), day(newest));
    if oldest == newest { newest } else { format!("{oldest} to {newest}") }
}

/// The build in one line: `built 3 minutes ago by kforge 0.1.0 at 1a2b3c4d5e6f with changes`.
pub fn built(report: &BuiltReport, now: Option<Timestamp>) -> String {
    let when = match now {
        Some(now) => ago(&report.at, now),
        None => report.at.clone(),
    };
    let commit = report.commit.as_ref().map(|commit| {
        let changes = if report.dirty == Some(true) { " with uncommitted changes" } else { "" };
        format!(" at commit {}{changes}", commit.chars().take(12).collect::<String>())
    });
    let interrupted = if report.interrupted { "; a later build was interrupted" } else { "" };
    format!("built {when} by kforge {}{}{interrupted}", report.kforge, commit.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(origin: &str, standing: Standing, signer: Option<&str>, at: &str) -> EvidenceSeen {
        EvidenceSeen {
            origin: origin.into(),
            measured_at: at.into(),
            device_class: "NVIDIA H200 (sm_90, driver 580)".into(),
            driver: "580.95.05".into(),
            kforge: "0.1.0".into(),
            standing,
            signer: signer.map(String::from),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
        }
    }

    fn told(all: &[EvidenceSeen], now: Option<&str>) -> String {
        let mut observed = vec![];
        all.iter().for_each(|seen| observe(&mut observed, seen));
        sort(&mut observed);
        line(&observed, now.map(|now| now.parse().unwrap()))
    }

    #[test]
    fn observations_that_are_alike_are_one_part_of_one_line() {
        let file = "evidence/h200.kfe";
        let claimed = |at| seen(file, Standing::Claimed, None, at);
        let all = [claimed("2026-11-23T10:00:00Z"), claimed("2026-11-23T09:00:00Z"), claimed("2026-11-23T11:00:00Z")];
        let line = "NVIDIA H200 (sm_90, driver 580), 2026-11-23, claimed by `evidence/h200.kfe`";
        assert_eq!(told(&all, None), line);
        let mut observed = vec![];
        all.iter().for_each(|seen| observe(&mut observed, seen));
        assert_eq!((observed.len(), observed[0].records), (1, 3));
        assert_eq!((&*observed[0].oldest, &*observed[0].newest), ("2026-11-23T09:00:00Z", "2026-11-23T11:00:00Z"));
    }

    #[test]
    fn standing_days_and_age_are_told_of_each_that_differs() {
        let all = [
            seen("here", Standing::Here, None, "2026-11-24T10:00:00Z"),
            seen("a.kfe", Standing::Signed, Some("alice"), "2026-11-20T10:00:00Z"),
            seen("b.kfe", Standing::Signed, Some("alice"), "2026-11-22T10:00:00Z"),
        ];
        assert_eq!(
            told(&all, Some("2026-11-25T10:00:00Z")),
            "NVIDIA H200 (sm_90, driver 580), 2026-11-20 to 2026-11-22 (5 days to 3 days ago), signed by `alice`; \
             NVIDIA H200 (sm_90, driver 580), 2026-11-24 (1 day ago), here"
        );
    }

    #[test]
    fn a_build_is_told_by_time_version_and_commit() {
        let mut report =
            BuiltReport { kforge: "0.1.0".into(), at: "2026-11-25T09:57:00Z".into(), ..BuiltReport::default() };
        let now = Some("2026-11-25T10:00:00Z".parse().unwrap());
        assert_eq!(built(&report, now), "built 3 minutes ago by kforge 0.1.0");
        report.commit = Some("1a2b3c4d5e6f708090".into());
        report.dirty = Some(false);
        assert_eq!(built(&report, None), "built 2026-11-25T09:57:00Z by kforge 0.1.0 at commit 1a2b3c4d5e6f");
        (report.dirty, report.interrupted) = (Some(true), true);
        let said = "built 3 minutes ago by kforge 0.1.0 at commit 1a2b3c4d5e6f with uncommitted changes; a later build was interrupted";
        assert_eq!(built(&report, now), said);
    }
}
