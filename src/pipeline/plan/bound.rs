//! What bounds a champion: its profile at each bench shape, the peaks of the device, and one roofline over all of them. Knows the operator's cost and the
//! metrics to take; does not know which kernel is champion.

use std::collections::BTreeMap;

use super::context::{Planner, Scope};
use super::memory;
use super::node_builder::{ABLATION, NodeBuilder};
use super::operators::Case;
use super::variants::PlannedVariant;
use kforge_foundation::base::Diagnostic;
use kforge_numerics::reference::cost;
use kforge_types::model::{DType, Metric, Problem, Role};
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::metric::{METRICS, Set};
use kforge_types::record::peaks::PeaksParams;
use kforge_types::record::profile::{ProfileParams, RooflineCase, RooflineParams};

/// Version of the profiling protocol. Raise it when the way of taking metrics changes.
pub const PROFILE_PROTOCOL: u32 = 1;

/// Version of the protocol for measuring a device's peaks. Raise it when kernels or samples change.
pub const PEAKS_PROTOCOL: u32 = 2;

impl Planner<'_> {
    /// Plans the profiles of a variant at these bench shapes, given by position, and the roofline that reads them. Plans nothing if the variant is not timed.
    pub(super) fn roofline(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        benched: &[(usize, &Case)],
    ) -> Result<(), Diagnostic> {
        let mut inputs: Vec<(String, String)> = vec![];
        let mut cases = BTreeMap::new();
        for (at, case) in benched {
            let Some(bench) = self.bench(scope, build, case)? else { continue };
            inputs.push((format!("bench:{at}"), bench));
            inputs.push((format!("profile:{at}"), self.profile(scope, build, case)?));
            cases.insert(*at as u32, cost_of(scope, case)?);
        }
        if cases.is_empty() {
            return Ok(());
        }
        let params = RooflineParams { cases, hot: scope.kernel.select.metric == Metric::Hot };
        let parts = self.parts(scope, build);
        let mut node = NodeBuilder::new(StepKind::Roofline, &parts, self.labels(scope, build, None), &params)
            .phase(ABLATION)
            .round(scope.round);
        inputs.push(("peaks".into(), self.peaks(scope)));
        for (name, from) in &inputs {
            node = node.optional(name, from, "observation");
        }
        self.add(node.done());
        Ok(())
    }

    /// The step that measures the peaks of a target's device. There is one for everything that is timed there, because its question depends only on the device.
    /// Returns its id.
    fn peaks(&mut self, scope: Scope<'_>) -> String {
        let params = PeaksParams { arch: scope.target.arch.name().into(), protocol: PEAKS_PROTOCOL };
        let package = self.package_input(scope.package).package.name.clone();
        let round = if scope.round == 0 { String::new() } else { format!("r{}", scope.round) };
        let target = Some(scope.target.name.clone());
        let labels = Labels { package: package.clone(), target, ..Labels::default() };
        let node = NodeBuilder::new(StepKind::Peaks, &[&package, &scope.target.name, &round], labels, &params)
            .phase(ABLATION)
            .round(scope.round)
            .memory(memory::CONTEXT)
            .device(self.observed(scope), true)
            .unless(self.no_device(scope))
            .done();
        self.add(node)
    }

    /// The profile step of a variant on a bench shape. Returns its id.
    fn profile(&mut self, scope: Scope<'_>, build: &PlannedVariant, case: &Case) -> Result<String, Diagnostic> {
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, ABLATION, Some(&case.problem))?;
        let of = self.verify_params(scope, build, case, compiler, &BTreeMap::new())?;
        let needs = memory::timing(&of);
        let params = ProfileParams { arch: of.arch.clone(), of, metrics: wanted(), protocol: PROFILE_PROTOCOL };
        let shape = &scope.operator.shapes[case.at].name;
        let mut parts = self.parts(scope, build);
        parts.push(shape);
        let node = NodeBuilder::new(StepKind::Profile, &parts, self.labels(scope, build, Some(shape)), &params)
            .phase(ABLATION)
            .round(scope.round)
            .memory(needs)
            .build("", &compile, &inspect)
            .device(self.observed(scope), true)
            .unless(self.no_device(scope));
        let functions = self.input_functions(scope.package, &case.problem);
        Ok(self.add(functions.read_by(node).done()))
    }
}

/// The names of the metrics for a profile, sorted: all that are not derived from others.
fn wanted() -> Vec<String> {
    let taken = METRICS.iter().filter(|m| m.set != Set::Derived);
    let mut names: Vec<String> = taken.map(|m| m.name.to_string()).collect();
    names.sort();
    names
}

/// The cost of the operator at a shape: as declared, or else the cost of its built-in reference.
fn cost_of(scope: Scope<'_>, case: &Case) -> Result<RooflineCase, Diagnostic> {
    let shape = &scope.operator.shapes[case.at];
    let builtin = cost::cost(&case.problem);
    let flops = scope.operator.flops(scope.choice, shape)?;
    let written = case.problem.tensors.iter().filter(|t| t.role != Role::Input);
    Ok(RooflineCase {
        flops: flops.or((builtin.flops > 0.0).then_some(builtin.flops)),
        bytes: scope.operator.bytes(scope.choice, shape)?.unwrap_or(builtin.bytes),
        written: written.map(|t| (t.elements() * t.dtype.bytes()) as f64).sum(),
        unit: unit(&case.problem).into(),
    })
}

/// The arithmetic unit of an operator: that of the widest floats that it reads, because a narrower unit loses their precision; without floats, that of the
/// widest integers.
fn unit(problem: &Problem) -> &'static str {
    let read = || problem.read().map(|t| t.dtype);
    let widest = |floats: bool| read().filter(|d| d.is_float() == floats).max_by_key(|d| d.bytes());
    match widest(true).or_else(|| widest(false)) {
        Some(DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 | DType::F4e2m1x2) => "f8",
        Some(DType::I8 | DType::U8 | DType::I4x2) => "i8",
        Some(other) => other.name(),
        None => "f32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_is_not_derived_is_wanted_once() {
        let wanted = wanted();
        assert!(wanted.is_sorted() && wanted.windows(2).all(|w| w[0] != w[1]));
        assert!(wanted.contains(&"dram_throughput".into()) && !wanted.contains(&"traffic_excess".into()));
        assert_eq!(wanted.len(), METRICS.iter().filter(|m| m.set != Set::Derived).count());
    }
}
