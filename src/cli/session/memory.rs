//! The engine's memory over this workspace's journal. What was hashed, and why a step last had another key, is a blob beside the journal's row.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::Digest;
use crate::engine::journal::{Journal, StepRow};
use crate::engine::{Because, Blobs, Last, Memory, Row};
use crate::record::StepKind;
use crate::record::event::CacheOrigin;

/// The blob beside a row.
#[derive(Serialize, Deserialize)]
struct Beside {
    explanation: Vec<(String, String)>,
    forgotten: bool,
    because: Vec<Because>,
}

/// The journal as the coordinator sees it.
pub struct Remembered {
    journal: Arc<Journal>,
    blobs: Arc<dyn Blobs>,
    durations: HashMap<StepKind, u64>,
}

impl Remembered {
    /// Over a journal, with the store for what lies beside its rows.
    pub fn new(journal: Arc<Journal>, blobs: Arc<dyn Blobs>) -> Self {
        // Ids end in their kind: its mean is the guess for a step that never ran.
        let mut sums: HashMap<StepKind, (u64, u64)> = HashMap::new();
        for (id, ms) in journal.durations() {
            if let Some(kind) = id.rsplit('/').next().and_then(|k| k.parse().ok()) {
                let sum = sums.entry(kind).or_default();
                *sum = (sum.0 + ms, sum.1 + 1);
            }
        }
        let durations = sums.into_iter().map(|(k, (ms, n))| (k, ms / n.max(1))).collect();
        Remembered { journal, blobs, durations }
    }

    fn beside(&self, row: &StepRow) -> Option<Beside> {
        serde_json::from_slice(&self.blobs.get(row.explanation.as_ref()?).ok()??).ok()
    }
}

impl Memory for Remembered {
    fn last_key(&self, id: &str) -> Option<Digest> {
        self.journal.last(id).map(|row| row.key)
    }

    fn last(&self, id: &str) -> Option<Last> {
        let row = self.journal.last(id)?;
        let beside = self.beside(&row);
        let key = row.key;
        Some(match beside {
            Some(b) => Last { key, explanation: b.explanation, forgotten: b.forgotten, because: b.because },
            None => Last { key, explanation: vec![], forgotten: false, because: vec![] },
        })
    }

    fn remember(&self, row: &Row<'_>) -> io::Result<()> {
        let beside = Beside {
            explanation: row.explanation.to_vec(),
            forgotten: row.result.is_none(),
            because: row.because.to_vec(),
        };
        let bytes = serde_json::to_vec(&beside).map_err(io::Error::other)?;
        let explanation = Some(self.blobs.put(&bytes)?);
        let duration_ms = row.duration_ms.or_else(|| self.journal.duration(row.id)).unwrap_or(0);
        // A journal must not answer for a device's observations: their records do.
        let result = row.result.filter(|_| row.origin != CacheOrigin::Evidence && row.evidence.is_none()).cloned();
        self.journal.record_step(row.id, &StepRow { key: *row.key, result, explanation, duration_ms })
    }

    fn duration(&self, id: &str, kind: StepKind) -> Option<u64> {
        self.journal.duration(id).or_else(|| self.durations.get(&kind).copied())
    }
}
