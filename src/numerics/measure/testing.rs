//! Observations for tests of several packages. Nothing else uses this module.

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
