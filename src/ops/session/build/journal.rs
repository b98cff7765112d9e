//! The workspace's journal, opened for reading or for writing.

use std::sync::Arc;

use super::super::open::{Opened, Session};
use super::PlanRequest;
use crate::Error;
use crate::event::Warning;
use kforge_engine::journal::Journal;

/// An open journal.
pub(super) struct Remembered {
    pub(super) journal: Arc<Journal>,
    /// Whether all of it could be read.
    pub(super) whole: bool,
}

impl Session {
    pub(super) fn journal(&self, opened: &Opened, asked: &PlanRequest) -> Result<Remembered, Error> {
        let path = opened.target.join("journal");
        let (journal, warnings) =
            if asked.write { Journal::open(&path)? } else { Journal::view(&path).map(|j| (j, vec![]))? };
        let whole = warnings.is_empty();
        warnings.into_iter().for_each(|warning| self.reporter.warn(Warning::Store { text: warning }));
        if asked.write {
            // The cache's collection must know this workspace before the workspace has results to lose.
            opened.home.register(&path)?;
        }
        Ok(Remembered { journal: Arc::new(journal), whole })
    }
}
