//! The plan of a build, as a graph.

use std::collections::BTreeMap;

use super::super::open::Session;
use super::{Packages, PlanRequest};
use crate::Error;
use kforge_engine::Graph;
use kforge_foundation::base::Digest;
use kforge_pipeline::optimize::methods::Facts;
use kforge_pipeline::plan::expand::Expander;
use kforge_pipeline::plan::{PackageInput, PlanInput, Planner, Selection};
use kforge_types::record::Devices;

/// A plan.
pub(super) struct Planned<'p> {
    pub(super) graph: Graph,
    pub(super) expander: Expander<'p>,
    /// The documents that specs name.
    pub(super) documents: BTreeMap<Digest, Vec<u8>>,
}

impl Session {
    pub(super) fn planned<'p>(
        &self,
        packages: &'p Packages,
        asked: &PlanRequest,
        inputs: Vec<PackageInput<'p>>,
        devices: Devices,
    ) -> Result<Planned<'p>, Error> {
        let mut planner = Planner::plan(PlanInput {
            packages: inputs,
            selection: Selection {
                kernels: asked.selected.kernels.clone(),
                operators: asked.selected.operators.clone(),
                shapes: asked.selected.shapes.clone(),
                targets: asked.selected.targets.clone(),
            },
            goal: asked.goal,
            emulator_limit: self.settings.number("emulator.max-work") as f64,
            oracle_limit: self.settings.number("oracle.max-work") as f64,
            time_limit_s: self.settings.number("build.time-limit"),
            devices,
            methods: kforge_pipeline::optimize::methods::signatures(),
            has_form: kforge_pipeline::optimize::methods::has_form,
            facts: |operator, choice, kernel| Facts::of(operator, choice, kernel, None).named(),
        });
        self.check(std::mem::take(&mut planner.diagnostics))?;
        let nodes = std::mem::take(&mut planner.nodes);
        if nodes.is_empty() {
            return Err(Error::NothingToDo { kernels: packages.all().any(|p| !p.kernels.is_empty()) });
        }
        let documents = std::mem::take(&mut planner.documents);
        Ok(Planned {
            graph: Graph::new(nodes)?,
            expander: Expander::new(planner),
            documents: documents.into_iter().collect(),
        })
    }
}
