//! git, as a session finds it. Knows where programs are looked for; `release::revision` knows what git is asked.

use std::path::{Path, PathBuf};

use super::open::Session;
use kforge_pipeline::release::revision::Git;

impl Session {
    /// The git of this session's environment; none if it has none.
    pub(crate) fn git(&self) -> Option<Git<'_>> {
        let mut programs = self.environment.path().split(':').map(|folder| Path::new(folder).join("git"));
        let program: PathBuf = programs.find(|path| path.is_absolute() && path.is_file())?;
        Some(Git { program, environment: self.environment.all(), interrupted: &self.interrupted })
    }
}
