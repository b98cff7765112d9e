//! The standing of a record: how far it can be trusted by whoever judges a build. Knows the three standings and their order; does not know keys, signatures or
//! files.

use serde::{Deserialize, Serialize};

/// How far a record can be trusted. It is derived from where the record lies and from who signed it, and is never stored in the record: a record cannot vouch
/// for itself. A greater standing is more trustworthy.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Somebody claims it: it came in a bundle or a cache, and nobody whom this build trusts signed it.
    #[default]
    Claimed,
    /// It came in a bundle with a signature by a key that this build trusts.
    Signed,
    /// This machine observed it and authenticated it with its own key.
    Here,
}

impl Standing {
    /// The name, as JSON and options write it.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Claimed => "claimed",
            Standing::Signed => "signed",
            Standing::Here => "here",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standings_are_ordered_by_trust_and_named_as_json_names_them() {
        let all = [Standing::Claimed, Standing::Signed, Standing::Here];
        assert!(all.is_sorted());
        for standing in all {
            assert_eq!(serde_json::to_value(standing).unwrap(), standing.name());
        }
    }
}
