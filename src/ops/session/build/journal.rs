//! The workspace's journal, opened for what a build does with it.

use std::sync::Arc;

use super::super::open::{Opened, Session};
use super::Asked;
use crate::Error;
use crate::event::Warning;
use kforge_engine::journal::Journal;

/// A journal that is open.
pub(super) struct Remembered {
    pub(super) journal: Arc<Journal>,
    /// Whether all of it could be read.
    pub(super) whole: bool,
}

impl Session {
    pub(super) fn journal(&self, opened: &Opened, asked: &Asked) -> Result<Remembered, Error> {
        let path = opened.target.join("journal");
        let (journal, warnings) =
            if asked.write { Journal::open(&path)? } else { Journal::view(&path).map(|j| (j, vec![]))? };
        let whole = warnings.is_empty();
        warnings.into_iter().for_each(|warning| self.reporter.warn(Warning::Store { text: warning }));
        if asked.write {
            // Collection must know of this workspace before it has results to lose.
            opened.home.register(&path)?;
        }
        Ok(Remembered { journal: Arc::new(journal), whole })
    }
}
