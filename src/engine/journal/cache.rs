//! The journal as a cache: the first to be asked. Knows the journal and the store; does not write, because a row needs the node's id, which keys leave out.

use std::io;
use std::sync::Arc;

use super::Journal;
use crate::action::asks_device;
use crate::{Blobs, Cache, Hit};
use kforge_foundation::base::Digest;
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::{Spec, StepResult};

/// Answers with what the journal holds under a key, if all outputs are in the store. Questions to a device it leaves to the evidence index, which knows
/// whose answer counts.
pub struct JournalCache {
    journal: Arc<Journal>,
    blobs: Arc<dyn Blobs>,
}

impl JournalCache {
    /// A view of that journal.
    pub fn new(journal: Arc<Journal>, blobs: Arc<dyn Blobs>) -> JournalCache {
        JournalCache { journal, blobs }
    }
}

impl Cache for JournalCache {
    fn get(&self, key: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        if asks_device(spec) {
            return Ok(None);
        }
        let result = self.journal.by_key(key).filter(|r| r.outputs.values().all(|output| self.blobs.has(output)));
        Ok(result.map(|result| Hit { result, origin: CacheOrigin::Journal, evidence: None }))
    }

    /// Does nothing: [`Journal::record_step`] does.
    fn put(&self, _: &Digest, _: &Spec, _: &StepResult) -> io::Result<()> {
        Ok(())
    }
}
