//! The binaries that bundles bring for compilations. Knows which of them takes the place of a compilation; does not know what is observed of it.
//!
//! Compilers do not always make the same binary twice, and an observation of one binary is not valid for another. So a bundle holds the binaries that its
//! observations are about. Whoever chooses the binary of a source decides what passes for that source, so compilations are not taken on trust:
//!
//! | the bundle | the binary |
//! |---|---|
//! | is signed by a key that this build trusts | takes the place of the compilation; this cache is asked before every other one |
//! | is only claimed | is not used. The source is compiled here. If that gives the same bytes, the bundle's observations are about it: questions hold the binary's digest |
//! | is only claimed, and compiling here gives other bytes | its observations are of another binary and answer nothing here; steps without an answer say so |
//! | is only claimed, and nothing can be compiled here | the compilation is unavailable, and says whose binary it did not use |
//!
//! Several signed bundles may each bring a different binary of one compilation, and kforge uses only one. It takes the binary with the most observations in its
//! bundle; among equals, one from the repository; among those, the one whose record has the least digest.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;

use super::{BINARY, Index, IndexedRecord};
use crate::action::{makes_binary, of_binary};
use crate::{Cache, Hit, Unanswered};
use kforge_foundation::base::{Digest, Severity};
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::{Note, Spec, Standing, StepResult};

/// The binaries that observations are about, as their bundles brought them. This cache is asked before every other one, so that a build with signed evidence
/// also uses the binaries of that evidence.
pub struct BundledBinaries {
    index: Index,
}

impl BundledBinaries {
    /// The binaries in `index`.
    pub fn new(index: Index) -> BundledBinaries {
        BundledBinaries { index }
    }

    /// The binaries that bundles brought for a compilation, the preferred one first.
    fn ranked(&self, spec: &Spec) -> io::Result<Vec<(u64, IndexedRecord)>> {
        if !makes_binary(spec) {
            return Ok(vec![]);
        }
        let Some(question) = of_binary(spec, &*self.index.blobs)? else { return Ok(vec![]) };
        let records = self.index.records(&question.key())?.into_iter();
        let mut all: Vec<(u64, IndexedRecord)> = records.map(|seen| self.index.about(seen)).collect();
        let order = |(about, seen): &(u64, IndexedRecord)| (Reverse(*about), !self.index.is_beside(seen), seen.digest);
        all.sort_by_cached_key(order);
        Ok(all)
    }

    /// The bundles that brought binaries of a compilation, and whether one of them is `own`.
    fn brought(&self, spec: &Spec, own: Option<&Digest>) -> Option<(Vec<String>, bool)> {
        // A bundle that cannot be read is reported where its binary would be used.
        let all = self.ranked(spec).ok().filter(|all| !all.is_empty())?;
        let equal = all.iter().any(|(_, seen)| own.is_some() && seen.record.result.outputs.get(BINARY) == own);
        let by: BTreeSet<String> = all.into_iter().map(|(_, seen)| seen.origin).collect();
        Some((by.into_iter().collect(), equal))
    }
}

/// A note that names the chosen binary; none if there is only one.
fn told(ranked: &[(u64, IndexedRecord)]) -> Option<Note> {
    let ((about, first), rest) = ranked.split_first()?;
    let other: Vec<String> =
        rest.iter().map(|(about, seen)| format!("the one from `{}` ({about})", seen.origin)).collect();
    (!other.is_empty()).then(|| {
        let message = format!(
            "bundles bring different binaries of this: kforge uses the one from `{}`, which has {about} observations of it, and not {}",
            first.origin,
            other.join(", ")
        );
        Note::new(Severity::Note, "evidence.brought", message)
    })
}

impl Cache for BundledBinaries {
    /// The signed binary with the most observations in its bundle.
    fn get(&self, _: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        let mut ranked = self.ranked(spec)?;
        ranked.retain(|(_, seen)| seen.standing() >= Standing::Signed);
        // Several bundles may hold the same binary.
        let mut known = BTreeSet::new();
        ranked.retain(|(_, seen)| known.insert(seen.record.result.outputs.get(BINARY).copied()));
        let note = told(&ranked);
        let first = ranked.into_iter().next();
        Ok(first.map(|(_, seen)| {
            let mut result = seen.record.result;
            result.notes.extend(note);
            Hit { result, origin: CacheOrigin::Evidence, evidence: None, tag: None }
        }))
    }

    fn lacks(&self, _: &Digest, spec: &Spec, _: Option<&str>) -> Option<Unanswered> {
        let (by, _) = self.brought(spec, None)?;
        Some(Unanswered::BinaryClaimed { by })
    }

    fn unlike(&self, spec: &Spec, result: &StepResult) -> Option<Unanswered> {
        let (by, equal) = self.brought(spec, result.outputs.get(BINARY))?;
        (!equal).then_some(Unanswered::OtherBinary { by })
    }

    /// Does nothing: only bundles add binaries.
    fn put(&self, _: &Digest, _: &Spec, _: &StepResult) -> io::Result<()> {
        Ok(())
    }
}
