//! The evidence index: observations of real devices, by question. Knows questions, records and files; does not know
//! what the questions mean.
//!
//! A question is a key that leaves the device out, so each question has a set of records, each with its provenance. [`choose`] decides which record answers.
//! Records are only ever added. Each is a file named by its own digest, `evidence/QUESTION/RECORD.json`, or `RECORD@BUNDLE.json` if it was imported from the
//! bundle of that name. So damage is detected, and a duplicate record is stored once. Bundles in the repository are not imported: their records are read in
//! addition to those of the home ([`Index::with`]).
//!
//! A binary that came with observations is stored here too, under its inputs ([`BundledBinaries`], [`of_binary`]). Several bundles may each bring a different
//! binary of one compilation, and kforge uses only one. It takes the binary with the most observations in its bundle; among equals, one from the repository;
//! among those, the one whose record has the least digest. For an imported bundle, the number of observations is stored beside the record, in
//! `RECORD@BUNDLE.about`, for every bundle that brought the record. The largest number counts, so the order of imports does not matter.
//!
//! A record that came in a signed bundle has an empty file `RECORD@DOCUMENT.signed` beside it for every signed document that brought it. Who signed a document is
//! asked each time ([`Signers`]), and never stored.
//!
//! Unlike contents and results, a record cannot be recreated without the device. So kforge syncs the records of a build when the build ends; syncing hundreds
//! of them one by one would make the device wait for the disk. A power cut before that loses the records of one build. A damaged record is skipped but kept.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::action::{asks_device, makes_binary, of_binary};
use super::home::{Doing, Home, TEMP_PREFIX, files_in, named, persist, publish};
use super::{Blobs, Cache, Hit};
use kforge_foundation::base::{Digest, Severity};
use kforge_types::record::event::{CacheOrigin, EvidenceSeen};
use kforge_types::record::{Note, Provenance, Spec, Standing, StepResult};

mod choose;
mod signers;

pub use choose::{AcceptedSource, Answer, choose};
pub(super) use signers::SIGNED;
pub use signers::Signers;

/// The output of a step that observes a device in which it states its [`Provenance`], as JSON.
pub const PROVENANCE: &str = "provenance";

/// The origin of records that were observed on this machine.
pub const HERE: &str = "here";

/// One observation of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// The key of the step, which leaves the device out.
    pub question: Digest,
    /// Where and how it was observed.
    pub provenance: Provenance,
    /// What was observed.
    pub result: StepResult,
}

/// A record in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedRecord {
    /// The record.
    pub record: Record,
    /// The digest of its file.
    pub digest: Digest,
    /// The bundle that the record was imported from, or [`HERE`].
    pub origin: String,
    /// The principal of the trusted key that signed the bundle; none if nobody whom this build trusts signed it.
    pub signer: Option<String>,
}

impl IndexedRecord {
    /// How far the record is trusted.
    pub fn standing(&self) -> Standing {
        match &self.signer {
            _ if self.origin == HERE => Standing::Here,
            Some(_) => Standing::Signed,
            None => Standing::Claimed,
        }
    }
}

/// Records that are not in the home but in bundles of the repository, by question. The index's blobs hold their outputs.
pub type Beside = HashMap<Digest, Vec<IndexedRecord>>;

/// The number of observations that a bundle holds of each binary that it brings, by the binary's digest.
pub type About = HashMap<Digest, u64>;

/// The output of a compilation that holds its binary.
pub const BINARY: &str = "binary";

/// The extension of a file that states the number of observations of a binary.
pub(super) const ABOUT: &str = "about";

/// The evidence index of a [`Home`].
#[derive(Clone)]
pub struct Index {
    root: PathBuf,
    tmp: PathBuf,
    blobs: Arc<dyn Blobs>,
    beside: Arc<Beside>,
    /// The number of observations of each binary in the bundles of the repository, by the binary's digest.
    about: Arc<About>,
    signers: Arc<dyn Signers>,
}

impl Index {
    /// The index of `home`; `blobs` holds the outputs.
    pub fn new(home: &Home, blobs: Arc<dyn Blobs>) -> Index {
        let signers = Arc::new(signers::Nobody);
        Index { root: home.evidence(), tmp: home.tmp(), blobs, beside: Arc::default(), about: Arc::default(), signers }
    }

    /// The same index with records of bundles in the repository, which are read and never written, and the number of observations that these bundles hold of
    /// each of their binaries.
    pub fn with(self, beside: Arc<Beside>, about: Arc<About>) -> Index {
        Index { beside, about, ..self }
    }

    /// The same index, which asks `signers` who signed an imported record.
    pub fn signed_by(self, signers: Arc<dyn Signers>) -> Index {
        Index { signers, ..self }
    }

    /// Adds a record that was observed here and whose outputs are already in the store. Returns the digest that names it. It survives a power cut only after
    /// [`Index::sync`].
    pub fn add(&self, record: &Record) -> io::Result<Digest> {
        self.keep(record, "").map(|kept| kept.0)
    }

    /// Syncs the added records to disk.
    pub fn sync(&self) -> io::Result<()> {
        let root = File::open(&self.root).map_err(|e| named(e, Doing::Sync, &self.root))?;
        rustix::fs::syncfs(&root).map_err(|e| named(e.into(), Doing::Sync, &self.root))
    }

    /// The number of observations of the binary in a compilation's record, in the bundle that brought it; 0 if not known. If several bundles brought the
    /// record, the one with the most observations counts, then the first by name; the returned record names that bundle as its origin.
    fn about(&self, seen: IndexedRecord) -> (u64, IndexedRecord) {
        if self.is_beside(&seen) {
            let about = seen.record.result.outputs.get(BINARY).and_then(|b| self.about.get(b)).copied();
            return (about.unwrap_or(0), seen);
        }
        let most = self.said(&seen).into_iter().max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
        match most {
            Some((about, origin)) => (about, IndexedRecord { origin, ..seen }),
            None => (0, seen),
        }
    }

    /// For each bundle that brought a record of the home: its number of observations of the binary, and its name.
    fn said(&self, seen: &IndexedRecord) -> Vec<(u64, String)> {
        let (front, end) = (format!("{}@", seen.digest.hex()), format!(".{ABOUT}"));
        let files = files_in(&self.root.join(seen.record.question.hex())).unwrap_or_default();
        let said = |path: &PathBuf| {
            let bundle = path.file_name()?.to_str()?.strip_prefix(&front)?.strip_suffix(&end)?.to_string();
            Some((std::fs::read_to_string(path).ok()?.parse().ok()?, bundle))
        };
        files.iter().filter_map(said).collect()
    }

    fn is_beside(&self, seen: &IndexedRecord) -> bool {
        let beside = self.beside.get(&seen.record.question);
        beside.is_some_and(|all| all.iter().any(|other| other.digest == seen.digest))
    }

    /// Adds the records of a bundle, whose outputs are already in the store. Characters of the bundle's name other than letters, digits, `.`, `-` and `_` are
    /// replaced by `_`. `signed` names the bundle's signed document, if it has one. Returns the number of new records.
    ///
    /// The records are synced together before this returns. Records that a power cut loses before that are still in the bundle and can be imported again.
    pub fn import<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Record>,
        bundle: &str,
        about: &About,
        signed: Option<&str>,
    ) -> io::Result<u64> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        let suffix = format!("@{}", bundle.chars().map(plain).collect::<String>());
        let mut added = 0;
        for record in records {
            let (digest, is_new) = self.keep(record, &suffix)?;
            added += u64::from(is_new);
            let known = record.result.outputs.get(BINARY).and_then(|binary| about.get(binary));
            if let Some(known) = known {
                let place = self.root.join(record.question.hex()).join(format!("{}{suffix}.{ABOUT}", digest.hex()));
                publish(&self.tmp, &place, known.to_string().as_bytes(), 0o644)?;
            }
            if let Some(document) = signed {
                let folder = self.root.join(record.question.hex());
                publish(&self.tmp, &folder.join(format!("{}@{document}.{SIGNED}", digest.hex())), b"", 0o644)?;
            }
        }
        self.sync()?;
        Ok(added)
    }

    /// Stores a record. Returns the digest that names it, and whether it is new.
    fn keep(&self, record: &Record, suffix: &str) -> io::Result<(Digest, bool)> {
        let bytes = serde_json::to_vec(record)?;
        let digest = Digest::of(&bytes);
        let folder = self.root.join(record.question.hex());
        if files_in(&folder)?.iter().any(|path| read(path).is_some_and(|seen| seen.digest == digest)) {
            return Ok((digest, false));
        }
        for output in record.result.outputs.values() {
            self.blobs.path(output)?.ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("the observation's output {output} is not in the store"),
                )
            })?;
        }
        let place = folder.join(format!("{}{suffix}.json", digest.hex()));
        let mut temp = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempfile_in(&self.tmp)
            .map_err(|e| named(e, Doing::WriteIn, &self.tmp))?;
        io::Write::write_all(&mut temp, &bytes).map_err(|e| named(e, Doing::Write, &place))?;
        persist(temp, &place)?;
        Ok((digest, true))
    }

    /// All undamaged records under a question whose outputs are in the store: first those of the home, in the order of their digests, then those of the
    /// repository. A record that is in several places is listed once, with a signer if one of them has one.
    pub fn records(&self, question: &Digest) -> io::Result<Vec<IndexedRecord>> {
        let mut records = self.under(&self.root.join(question.hex()))?;
        records.retain(|seen| seen.record.question == *question);
        for seen in self.beside.get(question).into_iter().flatten() {
            match records.iter_mut().find(|held| held.digest == seen.digest) {
                Some(held) => held.signer = held.signer.take().or_else(|| seen.signer.clone()),
                None => records.push(seen.clone()),
            }
        }
        records.retain(|seen| seen.record.result.outputs.values().all(|output| self.blobs.has(output)));
        Ok(records)
    }

    /// All undamaged records of the home, in the order of their questions.
    pub fn all(&self) -> io::Result<Vec<IndexedRecord>> {
        let mut all = Vec::new();
        for folder in folders(&self.root)? {
            all.extend(self.under(&folder)?);
        }
        Ok(all)
    }

    /// All records of bundles in the repository, in the order of their questions.
    pub fn beside(&self) -> Vec<IndexedRecord> {
        let mut questions: Vec<_> = self.beside.iter().collect();
        questions.sort_by_key(|(question, _)| **question);
        questions.into_iter().flat_map(|(_, records)| records.iter().cloned()).collect()
    }

    fn under(&self, folder: &Path) -> io::Result<Vec<IndexedRecord>> {
        let files = files_in(folder)?;
        let mut records: Vec<IndexedRecord> = files.iter().filter_map(|path| read(path)).collect();
        let names: Vec<&str> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        for seen in &mut records {
            let documents = names.iter().filter_map(|name| signers::document(name, &seen.digest));
            seen.signer = documents.filter_map(|document| self.signers.signer(document, &seen.digest)).next();
        }
        Ok(records)
    }

    /// Returns the record that answers, if one of the accepted sources has it.
    pub fn lookup(&self, question: &Digest, wanted: &AcceptedSource) -> io::Result<Answer> {
        Ok(choose(&self.records(question)?, wanted))
    }
}

/// The folders in the index, one for each question, sorted.
pub(super) fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root).map_err(|e| named(e, Doing::Read, root))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// The record in a file; none if the file is damaged or not a record.
pub(super) fn read(path: &Path) -> Option<IndexedRecord> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (hex, origin) = name.split_once('@').unwrap_or((name, HERE));
    let bytes = std::fs::read(path).ok()?;
    let digest = Digest::of(&bytes);
    if digest.hex() != hex {
        return None;
    }
    Some(IndexedRecord {
        record: serde_json::from_slice(&bytes).ok()?,
        digest,
        origin: origin.to_string(),
        signer: None,
    })
}

/// Returns the source whose answers count for a spec, given the product that its target names.
type SourcePolicy = dyn Fn(&Spec, Option<&str>) -> Option<AcceptedSource> + Send + Sync;

/// The evidence index as a cache: answers specs that ask a device.
pub struct EvidenceCache {
    index: Index,
    wanted: Box<SourcePolicy>,
    added: AtomicBool,
}

impl EvidenceCache {
    /// A cache view of the index. For a spec that asks a device and the product that its target names, `wanted` returns the source whose answers count; for any
    /// other spec it returns none.
    pub fn new(
        index: Index,
        wanted: impl Fn(&Spec, Option<&str>) -> Option<AcceptedSource> + Send + Sync + 'static,
    ) -> EvidenceCache {
        EvidenceCache { index, wanted: Box::new(wanted), added: AtomicBool::new(false) }
    }

    /// Syncs the records that were added since the last call, if there are any.
    pub fn sync(&self) -> io::Result<()> {
        if self.added.swap(false, Ordering::Relaxed) { self.index.sync() } else { Ok(()) }
    }
}

impl EvidenceCache {
    /// The record that answers a question to `product`; none if there is no such record, or if the spec asks no device.
    pub fn seen(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> io::Result<Option<IndexedRecord>> {
        let Some(wanted) = (self.wanted)(spec, product) else { return Ok(None) };
        Ok(match self.index.lookup(key, &wanted)? {
            Answer::Found(seen) => Some(*seen),
            Answer::AskHere | Answer::Unknown { .. } => None,
        })
    }

    /// The index behind this cache.
    pub fn index(&self) -> &Index {
        &self.index
    }
}

/// The binaries that observations are about, as their bundles brought them. Compilers do not always produce the same binary twice, and an observation of one
/// binary is not valid for another. This cache is asked before every other one, so that a build with the evidence also uses the binaries of that evidence.
pub struct BundledBinaries {
    index: Index,
}

impl BundledBinaries {
    /// The binaries in `index`.
    pub fn new(index: Index) -> BundledBinaries {
        BundledBinaries { index }
    }
}

impl BundledBinaries {
    /// The binaries that bundles brought for a question, the preferred one first.
    fn ranked(&self, question: &Digest) -> io::Result<Vec<(u64, IndexedRecord)>> {
        let records = self.index.records(question)?.into_iter();
        let mut all: Vec<(u64, IndexedRecord)> = records.map(|seen| self.index.about(seen)).collect();
        let order = |(about, seen): &(u64, IndexedRecord)| (Reverse(*about), !self.index.is_beside(seen), seen.digest);
        all.sort_by_cached_key(order);
        // Several bundles may hold the same binary.
        let mut known = BTreeSet::new();
        all.retain(|(_, seen)| known.insert(seen.record.result.outputs.get(BINARY).copied()));
        Ok(all)
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
    /// The binary with the most observations in its bundle; among equals, one from the repository; among those, the one whose record has the least digest.
    fn get(&self, _: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        if !makes_binary(spec) {
            return Ok(None);
        }
        let Some(question) = of_binary(spec, &*self.index.blobs)? else { return Ok(None) };
        let ranked = self.ranked(&question.key())?;
        let note = told(&ranked);
        let first = ranked.into_iter().next();
        Ok(first.map(|(_, seen)| {
            let mut result = seen.record.result;
            result.notes.extend(note);
            Hit { result, origin: CacheOrigin::Evidence, evidence: None }
        }))
    }

    /// Does nothing: only bundles add binaries.
    fn put(&self, _: &Digest, _: &Spec, _: &StepResult) -> io::Result<()> {
        Ok(())
    }
}

impl Cache for EvidenceCache {
    fn get(&self, key: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        self.answer(key, spec, None)
    }

    fn answer(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> io::Result<Option<Hit>> {
        let Some(seen) = self.seen(key, spec, product)? else { return Ok(None) };
        let standing = seen.standing();
        let IndexedRecord { record, origin, signer, .. } = seen;
        let evidence = EvidenceSeen {
            origin,
            measured_at: record.provenance.measured_at,
            device_class: record.provenance.device.to_string(),
            driver: record.provenance.driver,
            kforge: record.provenance.kforge,
            standing,
            signer,
        };
        Ok(Some(Hit { result: record.result, origin: CacheOrigin::Evidence, evidence: Some(evidence) }))
    }

    fn lacks(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> Option<String> {
        let wanted = (self.wanted)(spec, product)?;
        let answer = self.index.lookup(key, &wanted).ok()?;
        Some(match (answer, wanted.device) {
            (Answer::Found(_), _) => return None,
            // Evidence from other products does not matter in these cases, and it may change while this build runs.
            (Answer::AskHere, _) | (_, Some(_)) => "no evidence from one".into(),
            (Answer::Unknown { products }, None) if products.is_empty() => "no evidence from one".into(),
            (Answer::Unknown { products }, None) => {
                format!("evidence from {}: choose one with the target's `device`", products.join(" and "))
            }
        })
    }

    /// Adds a record, with the provenance in the result's output [`PROVENANCE`]. Ignores specs that ask no device.
    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult) -> io::Result<()> {
        if !asks_device(spec) {
            return Ok(());
        }
        let bytes = match result.outputs.get(PROVENANCE) {
            Some(digest) => self.index.blobs.get(digest)?,
            None => None,
        };
        let wrong = |why: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("a {} step's output `{PROVENANCE}` {why}", spec.kind))
        };
        let bytes = bytes.ok_or_else(|| wrong("is missing: the observation cannot be kept as evidence"))?;
        let provenance = serde_json::from_slice(&bytes).map_err(|e| wrong(&format!("is not a provenance: {e}")))?;
        self.added.store(true, Ordering::Relaxed);
        self.index.add(&Record { question: *key, provenance, result: result.clone() }).map(drop)
    }
}

#[cfg(test)]
mod tests;
