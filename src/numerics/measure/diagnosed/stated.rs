//! Whether a diagnosis may be stated under a tolerance. Knows fronts and tolerances, not what a pattern means.

use super::super::judge::excess;
use kforge_types::model::{DType, Tolerance};
use kforge_types::record::{Diagnosis, FrontPoint, OutputObserved, WrongPattern};

/// Whether a pattern says which values elements have, so that a tolerance can contradict it.
pub fn speaks_of_values(pattern: &WrongPattern) -> bool {
    !matches!(pattern, WrongPattern::ElementSize { .. })
}

/// The diagnosis of an output, as far as it holds under its tolerance. Every element must be near its expected value or near the value of the pattern: an element
/// that is wrong then follows the pattern. It describes the output as a whole only if every element is near the pattern's value. None if an element that is
/// wrong, even slightly, does not follow the pattern.
pub fn stated(seen: &OutputObserved, tolerance: &Tolerance) -> Option<Diagnosis> {
    let found = seen.diagnosis.as_ref()?;
    if !speaks_of_values(&found.pattern) {
        return Some(found.clone());
    }
    let fit = seen.fit.as_ref()?;
    let near = |front: &[FrontPoint]| front.iter().all(|point| within(point, seen.dtype, tolerance));
    near(&fit.nearest).then(|| Diagnosis { whole: found.whole && near(&fit.every), ..found.clone() })
}

/// Whether a distance is allowed: to an expected value, or to one that a pattern gives in its place.
fn within(point: &FrontPoint, dtype: DType, tolerance: &Tolerance) -> bool {
    excess(tolerance, dtype, point.error, point.want, point.scale) <= 1.0
}
