//! Which remembered results count. Knows tags and whether they are required; does not know what a result says or where it lies.
//!
//! A result under a key is remembered in the journal of a workspace and in the action cache of a home. Another machine may have written both: a CI job restores
//! them, two machines share a home, somebody copies a folder. So each result that a step gave here is stored with a tag ([`MachineKey::of_result`]).
//!
//! | decision | reason |
//! |---|---|
//! | a plain build takes every result | whoever can write to the home of a user can do as the user, and a shared cache is worth having |
//! | a build that requires evidence takes only authenticated results | a restored cache would otherwise decide its verdicts |
//! | results of pure steps are treated like all others | they take a moment to compute again, and one rule has no gap |
//! | a result without a valid tag is a miss, not an error | the step runs again, and its result gets a tag |
//! | a step that cannot run here then has no result | what this machine can neither compute nor has computed is a claim |
//! | only a step that ran gets a tag; a result that was found keeps its own | a plain build must not turn a claim into a result of this machine |
//!
//! What a tag says is "this machine computed this result of this key". The key holds the digests of all inputs, so it stays true whatever becomes of the steps
//! that made them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::machine_key::{MachineKey, Tag};
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;

/// Which remembered results count. The default takes every result and makes no tags. Clones share what they refused.
#[derive(Debug, Clone, Default)]
pub struct Authentication {
    key: Option<Arc<MachineKey>>,
    required: bool,
    /// The keys of results that were found and did not count. Several stores are asked in turn, so the last answer about a key decides.
    refused: Arc<Mutex<BTreeSet<Digest>>>,
}

impl Authentication {
    /// With the key of this machine, if it has one. If `required` is set, only results with a valid tag count, which without a key are none.
    pub fn new(key: Option<Arc<MachineKey>>, required: bool) -> Self {
        Authentication { key, required, refused: Arc::default() }
    }

    /// Whether a result counts.
    pub fn accepts(&self, key: &Digest, result: &StepResult, tag: Option<&Tag>) -> bool {
        if !self.required {
            return true;
        }
        let is_own = tag.is_some_and(|tag| self.tag(key, result) == Some(*tag));
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match is_own {
            true => drop(refused.remove(key)),
            false => drop(refused.insert(*key)),
        }
        is_own
    }

    /// The number of keys whose results were found and did not count.
    pub fn refused(&self) -> u64 {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Whether only authenticated results count.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// The tag of a result that was computed here; none if this machine has no key.
    pub fn tag(&self, key: &Digest, result: &StepResult) -> Option<Tag> {
        self.key.as_ref().map(|own| own.of_result(key, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_tag_counts_where_one_is_required() {
        let (one, two) = ([1, 2]).map(|n| Arc::new(MachineKey::of_bytes(&[n; 32]))).into();
        let key = Digest::of(b"key");
        let result = |summary: &str| StepResult {
            outputs: Default::default(),
            verdict: None,
            notes: vec![],
            summary: summary.into(),
            duration_ms: 0,
        };
        let plain = Authentication::new(Some(Arc::clone(&one)), false);
        let strict = Authentication::new(Some(one), true);
        let tag = strict.tag(&key, &result("a")).unwrap();
        assert_eq!(plain.tag(&key, &result("a")), Some(tag));
        assert!(plain.accepts(&key, &result("a"), None));
        assert!(strict.accepts(&key, &result("a"), Some(&tag)));
        assert!(!strict.accepts(&key, &result("a"), None), "no tag");
        assert_eq!((plain.refused(), strict.clone().refused()), (0, 1));
        assert!(strict.accepts(&key, &result("a"), Some(&tag)) && strict.refused() == 0, "another store has it");
        assert!(!strict.accepts(&key, &result("b"), Some(&tag)), "another result");
        assert!(!strict.accepts(&Digest::of(b"other"), &result("a"), Some(&tag)), "another key");
        assert!(!Authentication::new(Some(two), true).accepts(&key, &result("a"), Some(&tag)), "another machine");
        assert!(!Authentication::new(None, true).accepts(&key, &result("a"), Some(&tag)), "no key");
        assert_eq!(Authentication::new(None, true).tag(&key, &result("a")), None);
    }
}
