//! Wrong elements that all hold one value. Knows nothing about where they are: `measure::pattern` explains that.

use super::super::compare::show;
use super::Explained;
use super::element::is_filled;
use super::evidence::Evidence;
use kforge_types::record::WrongPattern;

/// One finite value in every wrong element, where different values are expected.
pub(super) fn same(evidence: &Evidence<'_>) -> Option<Explained> {
    let first = (0..evidence.of.want.len()).find(|at| evidence.is_wrong(*at))?;
    let value = evidence.of.got[first];
    // That values are not finite is counted elsewhere, and says more than that they are the same. What may be poison was perhaps not written.
    if !value.is_finite() || is_filled(evidence.of.dtype, value) {
        return None;
    }
    let extent = evidence.explains_as(value)?;
    // -0 is 0.
    let value = if value == 0.0 { 0.0 } else { value };
    Some(evidence.found(WrongPattern::Constant { value: show(evidence.of.dtype, value) }, extent))
}
