//! The journal as a cache, the first to be asked. Knows the journal and the store; does not write, because a row needs the node's id, which keys leave out.

use std::io;
use std::sync::Arc;

use super::Journal;
use crate::action::asks_device;
use crate::authentication::Authentication;
use crate::{Blobs, Cache, Hit};
use kforge_foundation::base::Digest;
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::{Spec, StepResult};

/// Answers with the journal's result under a key, if all its outputs are in the store. Leaves questions to a device to the evidence index, which knows which
/// device's answer counts.
pub struct JournalCache {
    journal: Arc<Journal>,
    blobs: Arc<dyn Blobs>,
    authentication: Authentication,
}

impl JournalCache {
    /// A cache view of `journal`, in which every result counts.
    pub fn new(journal: Arc<Journal>, blobs: Arc<dyn Blobs>) -> JournalCache {
        JournalCache { journal, blobs, authentication: Authentication::default() }
    }

    /// The same, in which only those results count that `authentication` accepts.
    pub fn with(self, authentication: Authentication) -> JournalCache {
        JournalCache { authentication, ..self }
    }
}

impl Cache for JournalCache {
    fn get(&self, key: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        if asks_device(spec) {
            return Ok(None);
        }
        let Some((result, tag)) = self.journal.tagged(key) else { return Ok(None) };
        let there = result.outputs.values().all(|output| self.blobs.has(output));
        let counts = there && self.authentication.accepts(key, &result, tag.as_ref());
        Ok(counts.then_some(Hit { result, origin: CacheOrigin::Journal, evidence: None, tag }))
    }

    /// Does nothing: [`Journal::record_step`] records results.
    fn put(&self, _: &Digest, _: &Spec, _: &StepResult) -> io::Result<()> {
        Ok(())
    }
}
