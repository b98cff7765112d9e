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

/// The most variants of a kernel that are named.
const VARIANTS: usize = 200;

/// The declared variants of kernels, without types, in declared order.
pub fn variants(session: &Session, of: &dyn Fn(&str) -> bool) -> Vec<String> {
    let Ok(manifest) = session.manifest() else { return vec![] };
    let (workspace, _) = workspace::load(&manifest, &TEMPLATES);
    let mut all: Vec<String> = vec![];
    let packages = workspace.iter().flat_map(|workspace| &workspace.members).map(|member| &member.package);
    for (package, kernel) in packages.flat_map(|package| package.kernels.iter().map(move |kernel| (package, kernel))) {
        let targets = kernel.targets.iter().filter_map(|name| package.targets.get(name));
        let choice = package.operator(&kernel.operator).and_then(|operator| operator.choices().into_iter().next());
        let Some(choice) = choice.filter(|_| of(&kernel.name)) else { continue };
        for variant in targets.filter_map(|target| kernel.variants(target, &choice).ok()).flatten().take(VARIANTS) {
            if !variant.label.is_empty() && !all.contains(&variant.label) {
                all.push(variant.label);
            }
        }
    }
    all
}

/// The branches and tags of the repository around the session's folder; none without git.
pub fn revisions(session: &Session) -> Vec<String> {
    session.git().and_then(|git| git.names(&session.cwd).ok()).unwrap_or_default()
}

/// The ids of the steps of a whole build, in the order of the plan; none if it cannot be planned. A plan starts no step and writes no file of the workspace.
pub fn steps(session: &Session) -> Vec<String> {
    tree(session, &TreeRequest::default())
        .map(|tree| tree.graph.nodes().map(|node| node.id.clone()).collect())
        .unwrap_or_default()
}
