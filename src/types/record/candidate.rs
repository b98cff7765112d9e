//! What kforge remembers of a candidate: its kernel, its fate, its time, and where its source is. Does not know shapes, so that it cannot reveal a holdout
//! shape; does not hold the source.

use serde::{Deserialize, Serialize};

use crate::model::{Language, Pattern};
use kforge_foundation::base::Digest;

/// The version of the format in which candidates are kept. Other versions are not read.
pub const CANDIDATES_FORMAT: u32 = 1;

/// The fate of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Became {
    /// Verified everywhere, and correct.
    #[serde(rename = "right")]
    Correct,
    /// Not known to be wrong, and not verified everywhere.
    Undecided,
    /// Wrong at some shape.
    Wrong,
    /// It did not compile, its launches are impossible, or the answer was unusable.
    Refused,
}

impl Became {
    /// The word for this fate, for people. Documents say `right` for `Correct`.
    pub fn word(self) -> &'static str {
        match self {
            Became::Correct => "correct",
            Became::Undecided => "undecided",
            Became::Wrong => "wrong",
            Became::Refused => "refused",
        }
    }
}

/// A candidate as it was last found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Candidate {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// Its operator.
    pub operator: String,
    /// The choice of types; empty if the operator has no types.
    pub types: String,
    /// What it is written in; left out for CUDA C++.
    #[serde(default, skip_serializing_if = "Language::is_default")]
    pub language: Language,
    /// The target.
    pub target: String,
    /// The target's architecture: `cpu`, `sm_90a`.
    pub arch: String,
    /// The digest of the operator's contract under these types. Equal contracts are the same work.
    pub contract: Digest,
    /// The operator's pattern; none if neither the manifest nor the contract shows it.
    pub pattern: Option<Pattern>,
    /// The operator's level, 0 to 5; none if neither the manifest nor the contract shows it.
    pub level: Option<u8>,
    /// The chain of rounds that holds the answer; none for a declared kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Digest>,
    /// The round that tried it; 0 for a declared kernel.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The variant; none if no variant of the answer could be tried.
    pub variant: Option<String>,
    /// The methods that are on in it; if it could not be tried, the methods that were asked for.
    pub methods: Vec<String>,
    /// Its fate.
    pub became: Became,
    /// Its median time in nanoseconds at the bench shape at which the champion takes longest; none if it was not timed.
    pub time_ns: Option<f64>,
    /// Its speed-up over the start of its rounds, or over the variant declared first; none if either was not timed.
    pub speedup: Option<f64>,
    /// Whether it was a champion, after some round or in the last build.
    pub champion: bool,
    /// The digest of its source; none if the answer held none.
    pub source: Option<Digest>,
}

impl Candidate {
    /// Its id for people: twelve digits that identify it.
    pub fn id(&self) -> String {
        let place = (&self.package, &self.kernel, &self.types, &self.target);
        let told = format!("{place:?} {:?} {} {} {:?}", self.chain, self.round, self.attempt, self.variant);
        Digest::of(told.as_bytes()).short()
    }

    /// Whether both candidates belong to the same kernel, choice of types and target.
    pub fn is_beside(&self, other: &Candidate) -> bool {
        (&self.package, &self.kernel, &self.types, &self.target)
            == (&other.package, &other.kernel, &other.types, &other.target)
    }
}
