//! The journal as the coordinator sees it. Knows the journal and the store; does not decide what is stale.
//!
//! Besides the rows of steps it stores named values: why a step's key changed and whether the step then ran (`because/ID`), and how long steps of a kind take
//! (`duration/KIND`). The duration is that of the last step that ran, stored only if it differs from the stored one by more than half.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Journal, StepRow};
use crate::action::read_explanation;
use crate::{Because, Blobs, Memory, PreviousResult, Row};
use kforge_foundation::base::Digest;
use kforge_types::record::StepKind;
use kforge_types::record::event::CacheOrigin;

/// Why a step's key changed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredReasons {
    /// The step ran.
    Ran(Vec<Because>),
    /// The step did not run, because its result was known.
    Known {
        /// The reason.
        known: Vec<Because>,
    },
    /// No reason is stored, or none that can be decoded.
    #[default]
    Nothing,
}

/// A workspace's memory: its journal, and the store that holds explanations.
pub struct JournalMemory {
    journal: Arc<Journal>,
    blobs: Arc<dyn Blobs>,
}

impl JournalMemory {
    /// The memory of `journal`.
    pub fn new(journal: Arc<Journal>, blobs: Arc<dyn Blobs>) -> JournalMemory {
        JournalMemory { journal, blobs }
    }

    fn of_kind(&self, kind: StepKind) -> Option<u64> {
        let bytes = self.journal.meta(&format!("duration/{kind}"))?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Memory for JournalMemory {
    fn last_key(&self, id: &str) -> Option<Digest> {
        self.journal.last_key(id)
    }

    fn last(&self, id: &str) -> Option<PreviousResult> {
        let row = self.journal.last(id)?;
        // Without an explanation, because it was collected or cannot be read, the changed key still shows that something changed.
        let explanation = row.explanation.and_then(|digest| read_explanation(&*self.blobs, &digest).ok().flatten());
        let because = self.journal.meta(&format!("because/{id}"));
        let kept = because.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let (because, known) = match kept {
            StoredReasons::Ran(because) => (because, false),
            StoredReasons::Known { known } => (known, true),
            StoredReasons::Nothing => (vec![], false),
        };
        Some(PreviousResult {
            key: row.key,
            explanation: explanation.unwrap_or_default(),
            forgotten: row.result.is_none(),
            because,
            known,
        })
    }

    fn remember(&self, row: &Row<'_>) -> io::Result<()> {
        let explanation = self.blobs.put(&serde_json::to_vec(row.explanation)?)?;
        let name = format!("because/{}", row.id);
        let because = match (row.because, row.known) {
            ([], _) => vec![],
            (because, false) => serde_json::to_vec(because)?,
            (because, true) => serde_json::to_vec(&StoredReasons::Known { known: because.to_vec() })?,
        };
        if self.journal.meta(&name).unwrap_or_default() != because {
            self.journal.record_meta(&name, &because)?;
        }
        if let Some(ms) = row.duration_ms {
            let off = self.of_kind(row.kind).is_none_or(|known| ms.abs_diff(known) > known / 2);
            if off {
                self.journal.record_meta(&format!("duration/{}", row.kind), &ms.to_le_bytes())?;
            }
        }
        // A binary from a bundle is not stored here: only the bundle may provide it, and nothing may once the bundle is removed.
        let brought = row.origin == CacheOrigin::Evidence && row.evidence.is_none();
        let known = || self.journal.duration(row.id).or(row.result.map(|result| result.duration_ms));
        let step = StepRow {
            key: *row.key,
            result: row.result.filter(|_| !brought).cloned(),
            explanation: Some(explanation),
            duration_ms: row.duration_ms.or_else(known).unwrap_or(0),
            tag: row.tag,
        };
        self.journal.record_step(row.id, &step)
    }

    fn duration(&self, id: &str, kind: StepKind) -> Option<u64> {
        self.journal.duration(id).or_else(|| self.of_kind(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::Store;
    use crate::home::Home;
    use kforge_types::record::event::{CacheOrigin, Why};

    #[test]
    fn what_was_remembered_is_there_in_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Blobs> = Arc::new(Store::new(&Home::open(dir.path()).unwrap()));
        let path = dir.path().join("journal");
        let open = || JournalMemory::new(Arc::new(Journal::open(&path).unwrap().0), store.clone());
        let memory = open();
        assert_eq!((memory.last_key("a"), memory.last("a")), (None, None));
        assert_eq!(memory.duration("a", StepKind::Compile), None);
        let why = Why { code: "changed".into(), field: Some("params.std".into()), before: None, after: None };
        let because = [Because { what: "a".into(), why }];
        let explanation = [("kind".to_string(), "compile".to_string())];
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let result = super::super::tests::row(1).result;
        let row = Row {
            id: "a",
            kind: StepKind::Compile,
            key: &one,
            explanation: &explanation,
            result: result.as_ref(),
            origin: CacheOrigin::None,
            evidence: None,
            duration_ms: Some(50),
            because: &because,
            known: false,
            tag: None,
        };
        memory.remember(&row).unwrap();
        drop(memory);
        let memory = open();
        let (explanation, because) = (explanation.to_vec(), because.to_vec());
        let last = PreviousResult { key: one, explanation, forgotten: false, because, known: false };
        assert_eq!((memory.last_key("a"), memory.last("a")), (Some(one), Some(last.clone())));
        assert_eq!(memory.journal.by_key(&one), result);
        assert_eq!(
            (memory.duration("a", StepKind::Compile), memory.duration("b", StepKind::Compile)),
            (Some(50), Some(50))
        );
        assert_eq!(memory.duration("b", StepKind::Inspect), None);
        // As after a time-out: the run is remembered but its result is not stored. A step that did not run keeps its duration.
        memory.remember(&Row { key: &two, result: None, duration_ms: None, because: &[], ..row }).unwrap();
        assert_eq!(
            memory.last("a"),
            Some(PreviousResult { key: two, forgotten: true, because: vec![], ..last.clone() })
        );
        assert_eq!((memory.duration("a", StepKind::Compile), memory.journal.by_key(&two)), (Some(50), None));
        // It is also remembered that a step did not run because its result was known.
        memory.remember(&Row { duration_ms: None, known: true, ..row }).unwrap();
        assert_eq!(memory.last("a"), Some(PreviousResult { known: true, ..last }));
    }
}
