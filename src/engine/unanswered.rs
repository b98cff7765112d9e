//! Why what is stored does not answer a step that this machine cannot execute. Knows the reasons and their wording; does not look anything up.

use std::fmt;

use super::evidence::HOME;

/// The option with which a command takes claimed evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClaimsOption {
    /// `--require-evidence=claimed`.
    #[default]
    RequireEvidence,
    /// `--allow-claimed`.
    AllowClaimed,
    /// The command has none.
    None,
}

impl ClaimsOption {
    /// The option in a message, if the command has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            ClaimsOption::RequireEvidence => Some("`--require-evidence=claimed`"),
            ClaimsOption::AllowClaimed => Some("`--allow-claimed`"),
            ClaimsOption::None => None,
        }
    }
}

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
    /// The reason in words, for users of a command with this option.
    pub fn for_users_of(&self, option: ClaimsOption) -> String {
        match (self, option.name()) {
            (Unanswered::Claimed { by }, option) => format!(
                "its evidence is only claimed by {}: it needs the signature of a key that this build trusts{}",
                named(by),
                option.map_or_else(String::new, |option| format!(", or {option}"))
            ),
            (other, _) => other.to_string(),
        }
    }

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
            Unanswered::Claimed { .. } => f.write_str(&self.for_users_of(ClaimsOption::default())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_evidence_is_taken_with_the_option_that_the_command_has() {
        let claimed = Unanswered::Claimed { by: "h.kfe".into() };
        let said = |option| claimed.for_users_of(option);
        assert!(said(ClaimsOption::RequireEvidence).ends_with("trusts, or `--require-evidence=claimed`"));
        assert_eq!(claimed.to_string(), said(ClaimsOption::RequireEvidence));
        assert!(said(ClaimsOption::AllowClaimed).ends_with("trusts, or `--allow-claimed`"));
        assert!(said(ClaimsOption::None).ends_with("that this build trusts"));
        assert_eq!(Unanswered::NoEvidence.for_users_of(ClaimsOption::None), Unanswered::NoEvidence.to_string());
    }
}
