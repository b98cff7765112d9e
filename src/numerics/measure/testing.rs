//! What tests of several packages judge. Nothing else uses it.

use super::compare::Comparison;
use kforge_types::record::{Determinism, TrialObserved, VerifyObservation};

/// The observation of one trial with one output.
pub fn observed(output: Comparison) -> VerifyObservation {
    let trial = TrialObserved { trial: 0, distribution: "uniform".into(), outputs: vec![output.finish()] };
    VerifyObservation {
        trials: vec![trial],
        determinism: Determinism::Stable,
        ..VerifyObservation::begun(true, 1, "check".into())
    }
}
