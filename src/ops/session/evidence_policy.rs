//! Which evidence a request takes. Knows standings and samples; looks nothing up.

use kforge_types::record::Standing;

/// Which evidence a request takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvidencePolicy {
    /// The least standing of evidence that is required; none if evidence need not exist.
    pub required: Option<Standing>,
    /// The part of the brought verifications that are repeated on the device that is here, in hundredths of a per cent.
    pub recheck: u32,
}

impl EvidencePolicy {
    /// Requires evidence of this standing, if any.
    pub fn requiring(required: Option<Standing>) -> Self {
        EvidencePolicy { required, recheck: 0 }
    }

    /// The least standing that counts. Where evidence is not required, what is claimed counts and is labelled.
    pub fn least(self) -> Standing {
        self.required.unwrap_or(Standing::Claimed)
    }

    /// Whether claims do not count, neither about devices nor about results that another machine may have stored.
    pub fn refuses_claims(self) -> bool {
        self.least() > Standing::Claimed
    }
}
