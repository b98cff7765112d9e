//! The request of the last build of a workspace, as its output folder remembers it. Commands that only look at the plan use it, because the plan depends on the
//! selection: a selection reads the judgements of all targets that were selected with it. Knows the request and its file; plans nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::build::PlanRequest;
use super::open::Session;
use crate::event::Warning;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::provenance::SelectedReport;
use kforge_project::workspace::Workspace;
use kforge_project::workspace::select::SelectionArgs;

/// The file's name in the output folder.
const FILE: &str = "request.json";

/// What a build was asked for, in names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRequest {
    /// The packages.
    packages: Vec<String>,
    /// Kernels, operators, shapes and targets; empty lists select everything.
    kernels: Vec<String>,
    operators: Vec<String>,
    shapes: Vec<String>,
    targets: Vec<String>,
    /// How far it went.
    goal: String,
    /// The overlay.
    overlay: Option<PathBuf>,
}

impl LastRequest {
    /// The request that a plan was made for.
    pub fn of(session: &Session, workspace: &Workspace, asked: &PlanRequest) -> LastRequest {
        let selected = &asked.selected;
        LastRequest {
            packages: selected.members.iter().map(|i| workspace.members[*i].package.name.clone()).collect(),
            kernels: selected.kernels.clone(),
            operators: selected.operators.clone(),
            shapes: selected.shapes.clone(),
            targets: selected.targets.clone(),
            goal: asked.goal.name().into(),
            overlay: asked.overlay.as_ref().map(|path| session.cwd.join(path)),
        }
    }

    /// The selection.
    pub fn words(&self) -> SelectionArgs {
        SelectionArgs {
            packages: self.packages.clone(),
            workspace: false,
            exclude: vec![],
            kernels: self.kernels.clone(),
            operators: self.operators.clone(),
            shapes: self.shapes.clone(),
            targets: self.targets.clone(),
        }
    }

    /// The request of the build that a report is of.
    pub fn of_report(selected: &SelectedReport) -> LastRequest {
        let SelectedReport { packages, kernels, operators, shapes, targets, overlay } = selected.clone();
        LastRequest { packages, kernels, operators, shapes, targets, goal: Goal::Build.name().into(), overlay }
    }

    /// The selection, for a report.
    pub fn selected(&self) -> SelectedReport {
        let LastRequest { packages, kernels, operators, shapes, targets, overlay, .. } = self.clone();
        SelectedReport { packages, kernels, operators, shapes, targets, overlay }
    }

    /// How far it went.
    pub fn goal(&self) -> Goal {
        Goal::ALL.into_iter().find(|goal| goal.name() == self.goal).unwrap_or(Goal::Build)
    }

    /// The overlay.
    pub fn overlay(&self) -> Option<PathBuf> {
        self.overlay.clone()
    }

    /// Remembers the request in an output folder. If that fails, later commands only know less, so it is a warning.
    pub fn note(&self, session: &Session, target: &Path) {
        let path = target.join(FILE);
        // Lists of texts always serialize.
        let bytes = serde_json::to_vec(self).expect("BUG: a request that does not serialise");
        if let Err(source) = write_if_changed(&path, &bytes) {
            session.reporter.warn(Warning::NotNoted { path, source });
        }
    }

    /// The request of the last build with that output folder; none if there was none, or if it cannot be read.
    pub fn last(target: &Path) -> Option<LastRequest> {
        serde_json::from_slice(&std::fs::read(target.join(FILE)).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_is_remembered_by_its_name() {
        for goal in Goal::ALL {
            let request = LastRequest { goal: goal.name().into(), ..LastRequest::default() };
            assert_eq!(request.goal(), goal);
        }
    }
}
