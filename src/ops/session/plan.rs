//! The plan for operations that only look at it: everything the workspace could build, nothing locked, nothing written, no network.

use std::path::PathBuf;

use super::build::{Asked, Packages, Ready};
use super::open::{Opened, Session};
use crate::Error;
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::SelectionArgs;

/// What an operation looks at.
pub struct Looking {
    /// The workspace.
    pub opened: Opened,
    packages: Packages,
    asked: Asked,
}

impl Session {
    /// Opens the workspace to look at the plan of what `words` select.
    pub fn look(&self, words: &SelectionArgs, goal: Goal) -> Result<Looking, Error> {
        self.look_with(words, goal, None)
    }

    /// The same with a private manifest laid over it.
    pub fn look_with(&self, words: &SelectionArgs, goal: Goal, overlay: Option<PathBuf>) -> Result<Looking, Error> {
        let opened = self.open()?;
        let selected = self.select_over(&opened.workspace, words, overlay.as_deref())?;
        let asked = Asked {
            selected,
            goal,
            jobs: None,
            keep_going: true,
            remeasure: false,
            overlay,
            write: false,
            looks: true,
        };
        let packages = self.packages(&opened, &asked)?;
        Ok(Looking { opened, packages, asked })
    }
}

impl Looking {
    /// Plans, and gives the plan to `with`.
    pub fn plan<R, E: From<Error>>(
        self,
        session: &Session,
        with: impl FnOnce(&Opened, &Ready<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.plan_of(session, |opened, _, ready| with(opened, ready))
    }

    /// The same, with the packages that it is the plan of.
    pub fn plan_of<R, E: From<Error>>(
        mut self,
        session: &Session,
        with: impl FnOnce(&Opened, &Packages, &Ready<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let ready = session.ready(&mut self.opened, &self.packages, &self.asked)?;
        with(&self.opened, &self.packages, &ready)
    }
}
