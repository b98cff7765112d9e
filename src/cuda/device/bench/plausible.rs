//! Rejects times that no hardware can reach: computes the floor of what an operator has to move and compute, and measures times below it with the worker's own
//! clock. Knows peaks and floors; takes no samples of the bench. [`implausible`] decides.

use std::time::Instant;

use super::super::client::Lost;
use super::super::wire::SampleRequest;
use super::samples::BATCH;
use super::{Bench, SLOT};
use kforge_numerics::measure::floor::{Arithmetic, Moved};
use kforge_numerics::measure::stats::median;
use kforge_numerics::measure::{implausible, sampling};
use kforge_types::model::Role;
use kforge_types::record::Verdict;
use kforge_types::record::params::VerifyParams;
use kforge_types::record::timing::BenchObserved;

/// The bytes that an operator has to move. Bytes that the operator states itself have no direction: at least half of them go one way.
fn moved(params: &VerifyParams) -> Moved {
    if let Some(stated) = params.bytes {
        let half = (stated / 2.0) as u64;
        return Moved { read: half, written: half };
    }
    let sum = |not: Role| {
        let tensors = params.problem.tensors.iter().filter(|t| t.role != not);
        tensors.map(|t| t.elements() * t.dtype.bytes()).sum()
    };
    Moved { read: sum(Role::Output), written: sum(Role::Input) }
}

impl Bench<'_> {
    /// Measures times below a floor again with the worker's own clock. The verdict is fail if the two disagree, and unknown otherwise.
    pub(super) fn plausible(&mut self, seen: &BenchObserved) -> Result<Option<Verdict>, Lost> {
        let (peaks, moved) = (self.rig.client.facts.peaks(), moved(self.params));
        let read = self.params.problem.read().map(|t| t.dtype).collect();
        let arithmetic = self.params.flops_min.map(|least| Arithmetic { least, read });
        implausible::below_floor(
            seen,
            |cold| peaks.floor(cold, moved, arithmetic.as_ref()),
            |about| {
                self.swap()?;
                self.clocked(about)
            },
        )
    }

    /// Nanoseconds of one hot copy by the worker's clock: the slope between graphs of one and of many copies, minus the slope for laying buffers. The cost of a
    /// request cancels out.
    fn clocked(&mut self, about: f64) -> Result<f64, Lost> {
        let many = sampling::copies(about / 20.0);
        let mut slopes = vec![];
        for _ in 0..BATCH {
            let mut took = |copies, bare| -> Result<f64, Lost> {
                let start = Instant::now();
                self.rig.time(vec![SampleRequest { slot: SLOT, set: 0, cold: false, copies, bare, warm: false }])?;
                Ok(start.elapsed().as_secs_f64() * 1e9)
            };
            let (one, all) = (took(1, false)?, took(many, false)?);
            let (bare_one, bare_all) = (took(1, true)?, took(many, true)?);
            // Before measuring, the runner runs everything once to warm up.
            slopes.push(((all - one) - (bare_all - bare_one)) / 2.0 / f64::from(many - 1));
        }
        Ok(median(&slopes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Problem, Reference, Tensor};
    use kforge_types::record::testing::verification;

    #[test]
    fn what_an_operator_states_that_it_moves_counts_before_its_tensors() {
        let tensor = |role| Tensor::dense("x", role, DType::F32, &[100]);
        let tensors = vec![tensor(Role::Input), tensor(Role::Inout), tensor(Role::Output)];
        let params = verification("sm_90a", Problem::of(tensors, Reference::builtin("sum", &[])));
        assert_eq!(moved(&params), Moved { read: 800, written: 800 });
        assert_eq!(moved(&VerifyParams { bytes: Some(90.0), ..params }), Moved { read: 45, written: 45 });
    }
}
