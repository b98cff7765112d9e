//! The records that are held, for people and programs: with the steps that ask for them, grouped so that a list fits on a page; and where the answers of a
//! build came from. Knows values; the caller passes the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bundle::Step;
use crate::report::age::span;
use kforge_engine::evidence::{HERE, HOME, IndexedRecord};
use kforge_foundation::base::{Digest, count};
use kforge_types::record::event::EvidenceSeen;
use kforge_types::record::{FORMAT_VERSION, Provenance, Standing, StepKind, Verdict};

/// A record that is held: one line of `kforge evidence list --message-format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Holding {
    /// Version of this format.
    pub format_version: u32,
    /// The question that it answers.
    pub question: Digest,
    /// The digest that identifies the record.
    pub record: Digest,
    /// The kind of step, if a known step asks the question.
    pub kind: Option<StepKind>,
    /// The steps that ask the question: from the current plan, or from the plan from which a bundle was made.
    pub steps: Vec<Step>,
    /// A bundle's name, its path if it is in the repository, `here`, or `home` for a record of the home that this machine did not make.
    pub origin: String,
    /// How far the record is trusted here.
    #[serde(default)]
    pub standing: Standing,
    /// Who signed it, by the principals of the trusted key; none unless the standing is `signed`.
    #[serde(default)]
    pub signer: Option<String>,
    /// Where and how it was observed.
    pub provenance: Provenance,
    /// Its verdict, if it has one.
    pub verdict: Option<Verdict>,
    /// Its summary in one line.
    pub summary: String,
}

impl Holding {
    /// A record and the steps that ask for it.
    pub fn new(seen: IndexedRecord, asked: Option<(StepKind, Vec<Step>)>) -> Self {
        let standing = seen.standing();
        let IndexedRecord { record, digest, origin, signer, .. } = seen;
        let (kind, steps) = asked.map_or((None, vec![]), |(kind, steps)| (Some(kind), steps));
        Holding {
            format_version: FORMAT_VERSION,
            question: record.question,
            record: digest,
            kind,
            steps,
            origin,
            standing,
            signer: signer.filter(|_| standing == Standing::Signed),
            provenance: record.provenance,
            verdict: record.result.verdict,
            summary: record.result.summary,
        }
    }

    /// The subject: `norms/rms_norm on h200`.
    fn subject(&self) -> String {
        let name = |step: &Step| {
            let labels = &step.labels;
            // A question to the device only is about no kernel.
            let what = labels.kernel.as_ref().or(labels.operator.as_ref()).map_or(String::new(), |w| format!("/{w}"));
            format!("{}{what} on {}", labels.package, labels.target.as_deref().unwrap_or("a device"))
        };
        let names: BTreeSet<String> = self.steps.iter().map(name).collect();
        match names.is_empty() {
            true => "no step here asks for it".into(),
            false => names.into_iter().collect::<Vec<_>>().join(", "),
        }
    }
}

/// An origin as text, with who vouches for it.
fn from(origin: &str, standing: Standing, signer: Option<&str>) -> String {
    match (standing, signer) {
        (Standing::Here, _) => "recorded here".into(),
        (Standing::Signed, Some(signer)) => format!("from `{origin}`, signed by {signer}"),
        // A copy of a home, or a record of this home that nothing authenticates.
        _ if [HERE, HOME].contains(&origin) => "claimed by the home".into(),
        _ => format!("claimed by `{origin}`"),
    }
}

/// Records of one subject, kind, class, driver, origin, standing and signer.
type Group<'h> = (String, Option<StepKind>, String, &'h str, &'h str, &'h str, Standing, Option<&'h str>);

/// Holdings as text: one paragraph per kernel and target, one line per kind, device and origin.
pub fn text(holdings: &[Holding], now: Timestamp) -> String {
    let mut groups: BTreeMap<Group<'_>, (u64, &str, &str)> = BTreeMap::new();
    for held in holdings {
        let p = &held.provenance;
        let (origin, signer) = (&*held.origin, held.signer.as_deref());
        let class = p.device.to_string();
        let group = (held.subject(), held.kind, class, &*p.driver, &*p.kforge, origin, held.standing, signer);
        let at = p.measured_at.as_str();
        let (count, oldest, newest) = groups.entry(group).or_insert((0, at, at));
        (*count, *oldest, *newest) = (*count + 1, (*oldest).min(at), (*newest).max(at));
    }
    let (mut out, mut last) = (String::new(), None);
    for ((subject, kind, device, driver, kforge, origin, standing, signer), (count, oldest, newest)) in groups {
        if last.as_ref() != Some(&subject) {
            let _ = writeln!(out, "{subject}");
            last = Some(subject);
        }
        let (kind, when) = (kind.map_or("record", StepKind::name), span(oldest, newest, now));
        let from = from(origin, standing, signer);
        let _ = writeln!(out, "  {kind:<8} {count:>5}  {device}, driver {driver}, kforge {kforge}, {when}, {from}");
    }
    out
}

/// How many records there are, and how many of them are no observations of devices: `59 records of evidence: 51 observations, 8 compilations`.
pub fn counted(holdings: &[Holding]) -> String {
    by_kind(holdings.iter().map(|held| held.kind))
}

fn by_kind(kinds: impl Iterator<Item = Option<StepKind>> + Clone) -> String {
    let number = kinds.clone().count();
    let all = count(number as u64, "record");
    let compiled = kinds.clone().filter(|kind| *kind == Some(StepKind::Compile)).count();
    let open = kinds.filter(Option::is_none).count();
    let observed = number - compiled - open;
    if observed == number {
        return format!("{all} of evidence");
    }
    let parts = [
        (observed, count(observed as u64, "observation")),
        (compiled, count(compiled as u64, "compilation")),
        (open, format!("{open} of unknown steps")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(number, _)| *number > 0).map(|(_, said)| said).collect();
    format!("{all} of evidence: {}", parts.join(", "))
}

/// The origin of an answer, in a few words.
pub fn source(seen: &EvidenceSeen) -> String {
    let EvidenceSeen { origin, measured_at, device_class, standing, signer, .. } = seen;
    let origin = match standing {
        Standing::Here => String::new(),
        _ => format!(", {}", from(origin, *standing, signer.as_deref())),
    };
    format!("{device_class}, {measured_at}{origin}")
}

/// Answers of a build with the same origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reused {
    /// A bundle's name or path, or `here`.
    pub origin: String,
    /// The device class as text.
    pub device_class: String,
    /// The full driver version.
    pub driver: String,
    /// Version of kforge that observed it.
    pub kforge: String,
    /// The number of answers.
    pub count: u64,
    /// When the oldest was observed, as RFC 3339.
    pub oldest: String,
    /// When the newest was observed, as RFC 3339.
    pub newest: String,
    /// How far they are trusted.
    pub standing: Standing,
    /// Who signed them, if they are signed by a trusted key.
    pub signer: Option<String>,
}

impl Reused {
    /// The answers in one line.
    pub fn text(&self, now: Timestamp) -> String {
        let noun = if self.count == 1 { "observation" } else { "observations" };
        format!(
            "{} {noun} of {} {}: driver {}, kforge {}, {}",
            self.count,
            self.device_class,
            from(&self.origin, self.standing, self.signer.as_deref()),
            self.driver,
            self.kforge,
            span(&self.oldest, &self.newest, now)
        )
    }
}

/// Where answers came from, in order.
pub fn reused<'e>(answers: impl IntoIterator<Item = &'e EvidenceSeen>) -> Vec<Reused> {
    /// Origin, device class, driver, kforge, standing and signer.
    type Source<'s> = (&'s str, &'s str, &'s str, &'s str, Standing, Option<&'s str>);
    let mut found: BTreeMap<Source<'_>, Reused> = BTreeMap::new();
    for seen in answers {
        let EvidenceSeen { origin, measured_at, device_class, driver, kforge, standing, signer, .. } = seen;
        let group = (&**origin, &**device_class, &**driver, &**kforge, *standing, signer.as_deref());
        let entry = found.entry(group).or_insert_with(|| Reused {
            origin: origin.clone(),
            device_class: device_class.clone(),
            driver: driver.clone(),
            kforge: kforge.clone(),
            count: 0,
            oldest: measured_at.clone(),
            newest: measured_at.clone(),
            standing: *standing,
            signer: signer.clone(),
        });
        entry.count += 1;
        entry.oldest = entry.oldest.clone().min(measured_at.clone());
        entry.newest = entry.newest.clone().max(measured_at.clone());
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn records_that_are_no_observations_of_devices_are_counted_apart() {
        let said = |kinds: &[StepKind]| by_kind(kinds.iter().copied().map(Some));
        assert_eq!(said(&[StepKind::Verify, StepKind::Bench]), "2 records of evidence");
        let mixed = said(&[StepKind::Verify, StepKind::Compile, StepKind::Compile]);
        assert_eq!(mixed, "3 records of evidence: 1 observation, 2 compilations");
        assert_eq!(said(&[StepKind::Compile]), "1 record of evidence: 1 compilation");
        assert_eq!(said(&[]), "0 records of evidence");
        let open = by_kind([Some(StepKind::Verify), None].into_iter());
        assert_eq!(open, "2 records of evidence: 1 observation, 1 of unknown steps");
    }

    #[test]
    fn answers_are_told_by_where_they_come_from() {
        let seen = |origin: &str, day: &str, signer: Option<&str>| EvidenceSeen {
            origin: origin.into(),
            measured_at: format!("2026-11-{day}T12:00:00Z"),
            device_class: "NVIDIA H200 (sm_90, driver 580)".into(),
            driver: "580.1".into(),
            kforge: "0.1.0".into(),
            standing: match (origin, signer) {
                (HERE, _) => Standing::Here,
                (_, Some(_)) => Standing::Signed,
                (_, None) => Standing::Claimed,
            },
            signer: signer.map(str::to_string),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
        };
        let h200 = "evidence/h200.kfe";
        let all =
            [seen(h200, "17", None), seen(HERE, "18", None), seen(h200, "15", None), seen(h200, "16", Some("ci@x"))];
        let now = at("2026-11-20T12:00:00Z");
        let told: Vec<String> = reused(&all).iter().map(|r| r.text(now)).collect();
        assert_eq!(
            told,
            [
                "2 observations of NVIDIA H200 (sm_90, driver 580) claimed by `evidence/h200.kfe`: driver 580.1, \
                 kforge 0.1.0, 5 days to 3 days ago",
                "1 observation of NVIDIA H200 (sm_90, driver 580) from `evidence/h200.kfe`, signed by ci@x: driver 580.1, \
                 kforge 0.1.0, 4 days ago",
                "1 observation of NVIDIA H200 (sm_90, driver 580) recorded here: driver 580.1, kforge 0.1.0, 2 days ago",
            ]
        );
    }
}
