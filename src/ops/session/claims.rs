//! What a build says about evidence that does not speak for itself: claims that it took, records from the future that it did not take. Knows the outcome of a
//! build; decides nothing.

use std::collections::BTreeMap;

use super::open::Session;
use crate::event::Warning;
use kforge_engine::BuildOutcome;
use kforge_types::record::Standing;

impl Session {
    /// Reports who claims evidence that answered steps of a build that takes claims, once for each bundle.
    pub(crate) fn report_claims(&self, outcome: &BuildOutcome) {
        let mut claims: BTreeMap<&str, u64> = BTreeMap::new();
        let seen = outcome.steps.iter().filter_map(|done| done.evidence.as_ref());
        for claim in seen.filter(|seen| seen.standing == Standing::Claimed) {
            *claims.entry(&claim.origin).or_default() += 1;
        }
        for (origin, count) in claims {
            self.reporter.warn(Warning::Claimed { origin: origin.into(), count });
        }
    }
}
