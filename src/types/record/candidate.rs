//! What is remembered of a candidate: what it is of, what became of it, how it did, and where its source is. Knows no shape, so that it can tell of none that is held
//! back; does not hold the source.

use serde::{Deserialize, Serialize};

use crate::model::Pattern;
use kforge_foundation::base::Digest;

/// The version of the form in which candidates are kept. Another version is not read.
pub const CANDIDATES_FORMAT: u32 = 1;

/// What becomes of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Became {
    /// Right wherever it was verified, and verified everywhere.
    Right,
    /// Nothing speaks against it, and not all is known.
    Undecided,
    /// Wrong somewhere.
    Wrong,
    /// Not compiled, or its launches are impossible, or the answer was of no use.
    Refused,
}

impl Became {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Became::Right => "right",
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
    /// The choice of types; empty where the operator leaves none.
    pub types: String,
    /// The target.
    pub target: String,
    /// The target's architecture: `cpu`, `sm_90a`.
    pub arch: String,
    /// The operator's contract under these types: equal contracts are the same work.
    pub contract: Digest,
    /// The operator's pattern; none where neither manifest nor contract shows it.
    pub pattern: Option<Pattern>,
    /// The operator's level, 0 to 5; none where neither shows it.
    pub level: Option<u8>,
    /// The chain of rounds that holds the answer; none for what is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Digest>,
    /// The round that tried it; 0 for what is declared.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The variant; none where nothing of an answer could be tried.
    pub variant: Option<String>,
    /// The methods that are on in it; of what could not be tried those that were asked for.
    pub methods: Vec<String>,
    /// What became of it.
    pub became: Became,
    /// Its median time in nanoseconds at the bench shape at which the champion takes longest; none where it was not timed.
    pub time_ns: Option<f64>,
    /// How many times as fast as what its rounds started from, or as the variant declared first; none where either was not timed.
    pub speedup: Option<f64>,
    /// Whether it was champion, after some round or of the last build.
    pub champion: bool,
    /// The digest of its source; none where an answer held none.
    pub source: Option<Digest>,
}

impl Candidate {
    /// What tells it from every other, as people name it: twelve digits.
    pub fn id(&self) -> String {
        let place = (&self.package, &self.kernel, &self.types, &self.target);
        let told = format!("{place:?} {:?} {} {} {:?}", self.chain, self.round, self.attempt, self.variant);
        Digest::of(told.as_bytes()).short()
    }

    /// Whether both are of one kernel for one choice of types and one target.
    pub fn is_beside(&self, other: &Candidate) -> bool {
        (&self.package, &self.kernel, &self.types, &self.target)
            == (&other.package, &other.kernel, &other.types, &other.target)
    }
}
