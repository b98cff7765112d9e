//! Champions over the bundles that git holds: for each kernel, target, bench shape and device, who was champion at which commit, and how long it took. Knows
//! bundles and git's plumbing; measures and builds nothing.
//!
//! | file | does |
//! |---|---|
//! | `walk` | finds the bundles in commits |
//! | `read` | reads them, each once, and puts the times of champions in order |
//! | `page` | the document as an HTML page |
//!
//! | decision | reason |
//! |---|---|
//! | a document of its own, not a part of `report.json` | a report is the result of one build and is stored; a history needs no build, and changes with commits and trusted keys |
//! | only first parents | a branch is one change of the line that it was merged into |
//! | a point only where a commit changed something | a hundred commits of a hundred kernels stay small |
//! | times of different devices, and hot and cold ones, are series of their own | they are different quantities |
//! | of several records of one commit, the standing decides, then the time | as among the records that answer a build |
//! | bundles beside a manifest, whatever the package is called there | members are added, renamed and moved; a bundle says which kernels it is about |

mod page;
mod read;
mod walk;

#[cfg(test)]
mod tests;

pub use page::page;
pub use read::{Limits, NoHistory, read};

use serde::{Deserialize, Serialize};

use super::comparison::Seat;
use kforge_foundation::base::Digest;
use kforge_types::record::Standing;

/// Champions over commits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct History {
    /// Version of this format.
    pub format_version: u32,
    /// Version of kforge that wrote it.
    pub kforge: String,
    /// The commit whose first parents were walked.
    pub head: String,
    /// The folder of the workspace in its repository; none at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether the repository lacks the beginning of its history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shallow: bool,
    /// The limit that left out older commits, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The commits that changed a bundle, oldest first.
    pub commits: Vec<HistoryCommit>,
    /// The times of champions, in the order of their names.
    pub series: Vec<HistorySeries>,
    /// The bundles that were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<OddBundle>,
    /// The bundles whose signature does not count, so that they are only claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distrusted: Vec<OddBundle>,
}

/// A limit that a history reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "limit", content = "most")]
pub enum Cut {
    /// The number of commits that changed a bundle.
    Commits(u64),
    /// The number of bundles.
    Bundles(u64),
    /// The size of all bundles in bytes.
    Bytes(u64),
}

/// A commit that changed a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryCommit {
    /// Its name, in hexadecimal.
    pub commit: String,
    /// When it was committed, as RFC 3339 in UTC.
    pub at: String,
    /// The first line of its message.
    pub subject: String,
    /// How many bundles its tree holds.
    pub bundles: u64,
}

/// The times of the champions of a kernel on a target at a bench shape, on devices of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistorySeries {
    /// The kernel, target and shape.
    pub seat: Seat,
    /// The device class as text: product, architecture and driver's major version.
    pub device: String,
    /// Whether these are hot times instead of cold ones.
    pub hot: bool,
    /// The commits that changed the champion, its time, or who vouches for it; oldest first.
    pub points: Vec<HistoryPoint>,
    /// The commits from which on no bundle has such a time, until the next point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// A champion and its time, from this commit on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryPoint {
    /// The commit.
    pub commit: String,
    /// The variant. A kernel without tunables has one variant, with an empty label.
    pub variant: String,
    /// What differs from the point before.
    pub change: PointChange,
    /// The median of its samples in nanoseconds.
    pub median_ns: f64,
    /// The interval of 95 % of the median; none if there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<(f64, f64)>,
    /// How many samples there are.
    pub samples: u64,
    /// The machine code that was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<Digest>,
    /// When it was measured, as RFC 3339.
    pub measured_at: String,
    /// The full driver version.
    pub driver: String,
    /// Version of kforge that measured it.
    pub kforge: String,
    /// The bundle: its path from the workspace's root.
    pub bundle: String,
    /// The digest of the record.
    pub record: Digest,
    /// How far it is trusted now.
    pub standing: Standing,
    /// Who signed it, if it is signed by a trusted key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// What differs between two points. The first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PointChange {
    /// There is no point before.
    First,
    /// Another variant is champion.
    Champion,
    /// The same variant has other machine code.
    Code,
    /// The same machine code was measured again.
    Time,
    /// The same measurement is vouched for by somebody else.
    Standing,
    /// The same measurement is there again, after commits without it.
    Back,
}

impl PointChange {
    /// The change in words; empty for a new measurement, which is the usual case.
    pub fn name(self) -> &'static str {
        match self {
            PointChange::First => "first",
            PointChange::Champion => "another champion",
            PointChange::Code => "other machine code",
            PointChange::Time => "",
            PointChange::Standing => "other standing",
            PointChange::Back => "back",
        }
    }
}

/// A bundle that was not read, or whose signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OddBundle {
    /// The oldest commit of the walk whose tree holds it.
    pub commit: String,
    /// Its path from the workspace's root.
    pub path: String,
    /// The reason.
    pub why: String,
}

impl History {
    /// Keeps only the accepted seats.
    pub fn retain(&mut self, takes: impl Fn(&Seat) -> bool) {
        self.series.retain(|series| takes(&series.seat));
    }

    /// What keeps the history from being whole, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let mut all = vec![];
        if self.shallow {
            all.push(
                "the clone is shallow, so the history begins with its oldest commit: `git fetch --unshallow` fetches the rest".into(),
            );
        }
        match self.cut {
            Some(Cut::Commits(most)) => {
                all.push(format!("older commits are left out: {most} commits that changed a bundle are the limit"))
            }
            Some(Cut::Bundles(most)) => all.push(format!("older commits are left out: {most} bundles are the limit")),
            Some(Cut::Bytes(most)) => {
                all.push(format!("older commits are left out: {} MiB of bundles are the limit", most >> 20));
            }
            None => {}
        }
        match self.unread.len() {
            0 => {}
            1 => all.push("1 bundle was not read".into()),
            n => all.push(format!("{n} bundles were not read")),
        }
        all
    }
}

/// The abbreviation of a commit.
fn abbreviated(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
