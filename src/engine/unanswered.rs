//! Why what is stored does not answer a step that this machine cannot execute. Knows the reasons and their wording; does not look anything up.

use std::fmt;

use super::evidence::HOME;

/// Why what is stored does not answer a step. The origins are names of bundles, or [`HOME`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no record of a device that counts.
    NoEvidence,
    /// Several products have records, and the target names none of them.
    Products(Vec<String>),
    /// Records answer, but only claimed ones, and the build requires more.
    Claimed {
        /// Who claims them.
        by: String,
    },
    /// The records are of another binary than the compiler makes here.
    OtherBinary {
        /// Who brought the other binary.
        by: Vec<String>,
    },
    /// A bundle brought the binary of a compilation, but its standing is only claimed.
    BinaryClaimed {
        /// Who brought it.
        by: Vec<String>,
    },
    /// A result is stored that this machine did not compute, and the build requires one that it did.
    Unauthenticated,
}

impl Unanswered {
    /// Whether evidence exists and only its standing or its binary keeps it from answering.
    pub fn is_refused(&self) -> bool {
        !matches!(self, Unanswered::NoEvidence | Unanswered::Products(_))
    }
}

/// An origin as text.
fn named(origin: &str) -> String {
    if origin == HOME { "a record in the home that this machine did not make".into() } else { format!("`{origin}`") }
}

fn all(origins: &[String]) -> String {
    origins.iter().map(|origin| named(origin)).collect::<Vec<_>>().join(" and ")
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::NoEvidence => f.write_str("no evidence from one"),
            Unanswered::Products(products) => {
                write!(f, "evidence from {}: choose one with the target's `device`", products.join(" and "))
            }
            Unanswered::Claimed { by } => write!(
                f,
                "its evidence is only claimed by {}: it needs the signature of a key that this build trusts, or `--require-evidence=claimed`",
                named(by)
            ),
            Unanswered::OtherBinary { by } => {
                write!(f, "evidence is of another binary than this compiler makes (claimed by {})", all(by))
            }
            Unanswered::BinaryClaimed { by } => write!(
                f,
                "the binary from {} is only claimed: it needs the signature of a key that this build trusts, or a compiler that makes the same",
                all(by)
            ),
            Unanswered::Unauthenticated => f.write_str("this machine did not compute the result that is stored"),
        }
    }
}
