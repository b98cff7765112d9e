//! The plan for operations that only inspect it: everything that the workspace could build, without locks, writes or network.

use std::path::PathBuf;

use super::build::{Packages, PlanRequest, Ready};
use super::evidence_policy::EvidencePolicy;
use super::open::{Opened, Session};
use crate::Error;
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::{Selected, SelectionArgs};

/// The subject of an inspection: a workspace and a request.
pub struct Looking {
    /// The workspace.
    pub opened: Opened,
    packages: Packages,
    asked: PlanRequest,
}

impl Session {
    /// Opens the workspace to inspect the plan of a selection.
    pub fn look(&self, words: &SelectionArgs, goal: Goal) -> Result<Looking, Error> {
        self.look_with(words, goal, None)
    }

    /// Like [`Self::look`], with an overlay.
    pub fn look_with(&self, words: &SelectionArgs, goal: Goal, overlay: Option<PathBuf>) -> Result<Looking, Error> {
        let opened = self.open()?;
        let selected = self.select_over(&opened.workspace, words, overlay.as_deref())?;
        self.look_at(opened, selected, goal, overlay)
    }

    /// Like [`Self::look_with`], for a workspace that is open and a selection in it.
    pub fn look_at(
        &self,
        opened: Opened,
        selected: Selected,
        goal: Goal,
        overlay: Option<PathBuf>,
    ) -> Result<Looking, Error> {
        let asked = PlanRequest {
            selected,
            goal,
            jobs: None,
            keep_going: true,
            remeasure: false,
            evidence: EvidencePolicy::default(),
            overlay,
            write: false,
            looks: true,
        };
        let packages = self.packages(&opened, &asked)?;
        Ok(Looking { opened, packages, asked })
    }
}

impl Looking {
    /// Plans, and passes the plan to `with`.
    pub fn plan<R, E: From<Error>>(
        self,
        session: &Session,
        with: impl FnOnce(&Opened, &Ready<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.plan_of(session, |opened, _, ready| with(opened, ready))
    }

    /// Like [`Self::plan`], but also passes the planned packages.
    pub fn plan_of<R, E: From<Error>>(
        mut self,
        session: &Session,
        with: impl FnOnce(&Opened, &Packages, &Ready<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let ready = session.ready(&mut self.opened, &self.packages, &self.asked)?;
        with(&self.opened, &self.packages, &ready)
    }
}
