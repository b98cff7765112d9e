//! The names that a command line may hold: packages, kernels, operators, shapes, targets, methods and steps. For completion in a shell: reads manifests and the
//! plan, writes nothing, and a mistake in a manifest leaves only its own names out.

use std::collections::BTreeSet;

use super::tree::{TreeRequest, tree};
use crate::Session;
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::workspace;

/// The names of a workspace, sorted and without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Packages.
    pub packages: BTreeSet<String>,
    /// Kernels.
    pub kernels: BTreeSet<String>,
    /// Operators.
    pub operators: BTreeSet<String>,
    /// Shapes, also holdout shapes.
    pub shapes: BTreeSet<String>,
    /// Targets.
    pub targets: BTreeSet<String>,
    /// Methods that kernels declare.
    pub methods: BTreeSet<String>,
}

/// The names of the workspace of a session; none if there is no workspace.
pub fn names(session: &Session) -> Names {
    let mut names = Names::default();
    let Ok(manifest) = session.manifest() else { return names };
    let (workspace, _) = workspace::load(&manifest, &TEMPLATES);
    for package in workspace.iter().flat_map(|workspace| &workspace.members).map(|member| &member.package) {
        names.packages.insert(package.name.clone());
        names.targets.extend(package.targets.keys().cloned());
        for operator in &package.operators {
            names.operators.insert(operator.name.clone());
            names.shapes.extend(operator.shapes.iter().map(|shape| shape.name.clone()));
        }
        for kernel in &package.kernels {
            names.kernels.insert(kernel.name.clone());
            names.methods.extend(kernel.methods.iter().map(|method| method.id.clone()));
        }
    }
    names
}

/// The ids of the steps of a whole build, in the order of the plan; none if it cannot be planned. A plan starts no step and writes no file of the workspace.
pub fn steps(session: &Session) -> Vec<String> {
    tree(session, &TreeRequest::default())
        .map(|tree| tree.graph.nodes().map(|node| node.id.clone()).collect())
        .unwrap_or_default()
}
