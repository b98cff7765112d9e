//! The plan for commands that only look at it: everything the workspace could build, nothing locked, nothing written, no network.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::build::{Asked, Packages, Ready};
use super::open::{Context, Opened};
use crate::cli::args::Select;
use crate::cli::exit::Exit;
use kforge_pipeline::plan::Goal;

/// What a command looks at.
pub struct Looking {
    /// The workspace.
    pub opened: Opened,
    packages: Packages,
    asked: Asked,
}

impl Context {
    /// Opens the workspace to look at the plan of what `words` select.
    pub fn look(&self, words: &Select, goal: Goal) -> Result<Looking, Exit> {
        self.look_with(words, goal, None)
    }

    /// The same with a private manifest laid over it.
    pub fn look_with(&self, words: &Select, goal: Goal, overlay: Option<PathBuf>) -> Result<Looking, Exit> {
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
    pub fn plan<R>(
        self,
        context: &Context,
        with: impl FnOnce(&Opened, &Ready<'_>) -> Result<R, Exit>,
    ) -> Result<R, Exit> {
        self.plan_of(context, |opened, _, ready| with(opened, ready))
    }

    /// The same, with the packages that it is the plan of.
    pub fn plan_of<R>(
        mut self,
        context: &Context,
        with: impl FnOnce(&Opened, &Packages, &Ready<'_>) -> Result<R, Exit>,
    ) -> Result<R, Exit> {
        let ready = context.ready(&mut self.opened, &self.packages, &self.asked, &Arc::new(AtomicBool::new(false)))?;
        with(&self.opened, &self.packages, &ready)
    }
}
