//! How long one run of a candidate may take on a device: far longer than its work needs at the device's peaks, so that a run that never ends costs little. Knows
//! problems and peaks. It is in no key, because a time-out is not stored.

use std::time::Duration;

use super::facts::DeviceFacts;
use kforge_numerics::reference::cost::{at_most, cost};
use kforge_types::model::DType;
use kforge_types::record::params::VerifyParams;

/// How many times longer than its work needs a run may take.
const SLOWER_THAN: f64 = 1000.0;
/// The least limit of a run.
const LEAST: Duration = Duration::from_secs(1);
/// Bytes per nanosecond of a device that does not report its memory's clock.
const MEMORY: f64 = 100.0;
/// Operations per second of a device whose arithmetic is not known.
const ARITHMETIC: f64 = 1e12;

/// The limit of one run: [`SLOWER_THAN`] times what its bytes and operations need at the device's peaks, at least [`LEAST`], and never more than `most`. The
/// operations of a function of the package are not known; an upper bound takes their place.
pub(super) fn run_limit(params: &VerifyParams, facts: &DeviceFacts, most: Duration) -> Duration {
    let peaks = facts.peaks();
    let memory = if peaks.memory_bytes_ns > 0.0 { peaks.memory_bytes_ns } else { MEMORY };
    let double = params.problem.tensors.iter().any(|tensor| tensor.dtype == DType::F64);
    let arithmetic = peaks.ops_s.get(if double { "f64" } else { "f32" }).copied().unwrap_or(ARITHMETIC);
    let workspaces: f64 = params.workspaces.iter().map(|w| (w.elements * w.dtype.bytes()) as f64).sum();
    let bytes = cost(&params.problem).bytes + workspaces;
    let operations = at_most(&params.problem).max(params.flops_min.unwrap_or(0.0));
    let seconds = SLOWER_THAN * (bytes / memory / 1e9).max(operations / arithmetic);
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    limit.max(LEAST).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::h200;
    use kforge_types::model::{Problem, Reference, Role, Tensor};
    use kforge_types::record::testing::verification;

    const MOST: Duration = Duration::from_secs(120);

    fn product(n: u64, reference: Reference) -> VerifyParams {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[n, n]);
        let tensors = vec![tensor("a", Role::Input), tensor("b", Role::Input), tensor("c", Role::Output)];
        verification("sm_90a", Problem::of(tensors, reference))
    }

    fn builtin(n: u64) -> VerifyParams {
        product(n, Reference::builtin("matmul", &[]))
    }

    fn own(n: u64) -> VerifyParams {
        product(n, Reference::Python { file: "r.py".into(), function: "f".into() })
    }

    #[test]
    fn a_run_may_take_a_thousand_times_what_its_work_needs() {
        let of = |params: &VerifyParams| run_limit(params, &h200(), MOST);
        assert_eq!(of(&builtin(64)), LEAST);
        // 2 * 8192^3 operations, at 66.9 T/s in f32.
        let large = of(&builtin(8192)).as_secs_f64();
        assert!((15.0..18.0).contains(&large), "{large}");
        assert_eq!(of(&builtin(1 << 15)), MOST);
        assert_eq!(run_limit(&builtin(8192), &h200(), Duration::from_millis(300)), Duration::from_millis(300));
    }

    #[test]
    fn unknown_operations_are_bounded_from_above() {
        let of = |params: &VerifyParams| run_limit(params, &h200(), MOST);
        assert_eq!(of(&own(64)), LEAST);
        assert!(of(&own(2048)) > of(&builtin(2048)));
        assert_eq!(of(&own(8192)), MOST);
    }

    #[test]
    fn a_device_that_states_no_peaks_gives_more_time() {
        let facts = DeviceFacts { memory_clock_mhz: 0, arch: "sm_999".into(), ..h200() };
        assert!(run_limit(&builtin(2048), &facts, MOST) > run_limit(&builtin(2048), &h200(), MOST));
    }
}
