//! The evidence index: observations of real devices, by question. Knows questions, records and files; does not know
//! what the questions mean.
//!
//! A question is a key, and a key does not hold the device; so each question has a set of records, each with its provenance. [`choose`] decides which of
//! them answers. Records are only added. Each is a file named by its own digest, `evidence/QUESTION/RECORD.json`, or `RECORD@BUNDLE.json` if it was
//! imported from a bundle of that name: damage is detected, and a duplicate record is stored once. Bundles in the repository are not imported: their records
//! stand beside those of the home ([`Index::with`]).
//!
//! A binary that came with observations is stored here too, under its inputs ([`BundledBinaries`], [`of_binary`]). Several bundles may each bring a different binary of
//! one compilation, and kforge uses only one: the one with the most observations in its bundle, then one from the repository, then the one whose record has the
//! least digest. The number of observations in an imported bundle is stored beside the record, in `RECORD@BUNDLE.about`, for every bundle that brought the
//! record; the largest number counts, so that the order of imports does not matter.
//!
//! Unlike everything else in the home, a record cannot be recreated without the device. So kforge syncs the records of a build when the build ends: syncing
//! hundreds of them one by one would make the device wait for the disk. A power cut before that loses the records of one build. A damaged record is skipped,
//! but kept.

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
use kforge_types::record::{Note, Provenance, Spec, StepResult};

mod choose;

pub use choose::{AcceptedSource, Answer, choose};

/// The output under which a step that observes a device says where: a [`Provenance`] as JSON.
pub const PROVENANCE: &str = "provenance";

/// Where records come from that were observed on this machine.
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
    /// What it says.
    pub record: Record,
    /// The digest of its file.
    pub digest: Digest,
    /// The bundle it was imported from, or [`HERE`].
    pub origin: String,
}

/// Records that lie elsewhere than in the home, by question: those of bundles in the repository. Their outputs are among the index's blobs.
pub type Beside = HashMap<Digest, Vec<IndexedRecord>>;

/// How many observations a bundle holds of each binary that it brings.
pub type About = HashMap<Digest, u64>;

/// The output of a compilation under which its binary stands.
pub const BINARY: &str = "binary";

/// The ending of a file that says how much is known of a binary.
pub(super) const ABOUT: &str = "about";

/// The evidence index of a [`Home`].
#[derive(Clone)]
pub struct Index {
    root: PathBuf,
    tmp: PathBuf,
    blobs: Arc<dyn Blobs>,
    beside: Arc<Beside>,
    /// What the bundles hold whose records lie beside, by the binary's digest.
    about: Arc<About>,
}

impl Index {
    /// The index of that home; outputs lie in `blobs`.
    pub fn new(home: &Home, blobs: Arc<dyn Blobs>) -> Index {
        Index { root: home.evidence(), tmp: home.tmp(), blobs, beside: Arc::default(), about: Arc::default() }
    }

    /// The same with records from elsewhere, which are read and never written, and how much those say of the binaries among them.
    pub fn with(self, beside: Arc<Beside>, about: Arc<About>) -> Index {
        Index { beside, about, ..self }
    }

    /// Adds a record that was observed here; its outputs are in the store already. Gives the digest that names it. [`Index::sync`] has it outlast a power cut.
    pub fn add(&self, record: &Record) -> io::Result<Digest> {
        self.keep(record, "").map(|kept| kept.0)
    }

    /// Has the disk hold what was added.
    pub fn sync(&self) -> io::Result<()> {
        let root = File::open(&self.root).map_err(|e| named(e, Doing::Sync, &self.root))?;
        rustix::fs::syncfs(&root).map_err(|e| named(e.into(), Doing::Sync, &self.root))
    }

    /// How many observations there are of the binary that a record of a compilation holds, in the bundle that it came with; 0 where that is not known. Of
    /// several bundles that brought it that counts which says most, and is named with the record; of those that say as much the first by name.
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

    /// What each bundle that brought a record of the home says of its binary: how much, and its name.
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

    /// Adds records from the bundle of that name (letters, digits, `.`, `-` and `_`; others are replaced by `_`); their outputs are in the store already.
    /// Gives how many were not held before.
    ///
    /// They are on disk when this returns, and not one by one: what a power cut undoes before that is in the bundle still, and can be imported again.
    pub fn import<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Record>,
        bundle: &str,
        about: &About,
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
        }
        self.sync()?;
        Ok(added)
    }

    /// Keeps a record; says what names it, and whether it is new.
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

    /// All records under a question that are whole and whose outputs are in the store, those of the home first, in the order of their digests. A record that
    /// lies in two places is one.
    pub fn records(&self, question: &Digest) -> io::Result<Vec<IndexedRecord>> {
        let mut records = self.under(&self.root.join(question.hex()))?;
        records.retain(|seen| seen.record.question == *question);
        for seen in self.beside.get(question).into_iter().flatten() {
            if !records.iter().any(|held| held.digest == seen.digest) {
                records.push(seen.clone());
            }
        }
        records.retain(|seen| seen.record.result.outputs.values().all(|output| self.blobs.has(output)));
        Ok(records)
    }

    /// All whole records, in the order of their questions.
    pub fn all(&self) -> io::Result<Vec<IndexedRecord>> {
        let mut all = Vec::new();
        for folder in folders(&self.root)? {
            all.extend(self.under(&folder)?);
        }
        Ok(all)
    }

    /// All whole records that lie elsewhere than in the home, in the order of their questions.
    pub fn beside(&self) -> Vec<IndexedRecord> {
        let mut questions: Vec<_> = self.beside.iter().collect();
        questions.sort_by_key(|(question, _)| **question);
        questions.into_iter().flat_map(|(_, records)| records.iter().cloned()).collect()
    }

    fn under(&self, folder: &Path) -> io::Result<Vec<IndexedRecord>> {
        Ok(files_in(folder)?.iter().filter_map(|path| read(path)).collect())
    }

    /// Which record answers, for whoever wants that.
    pub fn lookup(&self, question: &Digest, wanted: &AcceptedSource) -> io::Result<Answer> {
        Ok(choose(&self.records(question)?, wanted))
    }
}

/// The folders in the index, one a question, in order.
pub(super) fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root).map_err(|e| named(e, Doing::Read, root))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// The record in a file; none if it is damaged, or no record.
pub(super) fn read(path: &Path) -> Option<IndexedRecord> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (hex, origin) = name.split_once('@').unwrap_or((name, HERE));
    let bytes = std::fs::read(path).ok()?;
    let digest = Digest::of(&bytes);
    if digest.hex() != hex {
        return None;
    }
    Some(IndexedRecord { record: serde_json::from_slice(&bytes).ok()?, digest, origin: origin.to_string() })
}

/// Says whose answer counts, for a spec whose target names that product.
type SourcePolicy = dyn Fn(&Spec, Option<&str>) -> Option<AcceptedSource> + Send + Sync;

/// The evidence index as a cache: answers specs that ask a device.
pub struct EvidenceCache {
    index: Index,
    wanted: Box<SourcePolicy>,
    added: AtomicBool,
}

impl EvidenceCache {
    /// A view of that index; `wanted` says whose answer counts, for a spec that asks a device, and the product that is asked; nothing for any other spec.
    pub fn new(
        index: Index,
        wanted: impl Fn(&Spec, Option<&str>) -> Option<AcceptedSource> + Send + Sync + 'static,
    ) -> EvidenceCache {
        EvidenceCache { index, wanted: Box::new(wanted), added: AtomicBool::new(false) }
    }

    /// Has the disk hold what was added since the last time, if anything was.
    pub fn sync(&self) -> io::Result<()> {
        if self.added.swap(false, Ordering::Relaxed) { self.index.sync() } else { Ok(()) }
    }
}

impl EvidenceCache {
    /// The record that answers a question, where those of `product` count; none where there is none, or where nothing is asked of a device.
    pub fn seen(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> io::Result<Option<IndexedRecord>> {
        let Some(wanted) = (self.wanted)(spec, product) else { return Ok(None) };
        Ok(match self.index.lookup(key, &wanted)? {
            Answer::Found(seen) => Some(*seen),
            Answer::AskHere | Answer::Unknown { .. } => None,
        })
    }

    /// The index it answers from.
    pub fn index(&self) -> &Index {
        &self.index
    }
}

/// The binaries that observations are about, as they came with these: compilers do not always make the same twice, and what was seen of one says nothing of
/// another. Asked before every other cache, so that whoever holds the evidence holds what it is about.
pub struct BundledBinaries {
    index: Index,
}

impl BundledBinaries {
    /// Those of that index.
    pub fn new(index: Index) -> BundledBinaries {
        BundledBinaries { index }
    }
}

impl BundledBinaries {
    /// What was brought for a question, in the order in which it is built upon.
    fn ranked(&self, question: &Digest) -> io::Result<Vec<(u64, IndexedRecord)>> {
        let records = self.index.records(question)?.into_iter();
        let mut all: Vec<(u64, IndexedRecord)> = records.map(|seen| self.index.about(seen)).collect();
        let order = |(about, seen): &(u64, IndexedRecord)| (Reverse(*about), !self.index.is_beside(seen), seen.digest);
        all.sort_by_cached_key(order);
        // The same binary may stand in several bundles.
        let mut known = BTreeSet::new();
        all.retain(|(_, seen)| known.insert(seen.record.result.outputs.get(BINARY).copied()));
        Ok(all)
    }
}

/// Says which of several binaries is built upon; nothing where there is one.
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
    /// Of several that were brought the one of which its bundle says most; among equals one of the repository, then the one whose record has the least digest.
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

    /// Does nothing: binaries come in bundles.
    fn put(&self, _: &Digest, _: &Spec, _: &StepResult) -> io::Result<()> {
        Ok(())
    }
}

impl Cache for EvidenceCache {
    fn get(&self, key: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        self.answer(key, spec, None)
    }

    fn answer(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> io::Result<Option<Hit>> {
        let Some(IndexedRecord { record, origin, .. }) = self.seen(key, spec, product)? else { return Ok(None) };
        let evidence = EvidenceSeen {
            origin,
            measured_at: record.provenance.measured_at,
            device_class: record.provenance.device.to_string(),
            driver: record.provenance.driver,
            kforge: record.provenance.kforge,
        };
        Ok(Some(Hit { result: record.result, origin: CacheOrigin::Evidence, evidence: Some(evidence) }))
    }

    fn lacks(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> Option<String> {
        let wanted = (self.wanted)(spec, product)?;
        let answer = self.index.lookup(key, &wanted).ok()?;
        Some(match (answer, wanted.device) {
            (Answer::Found(_), _) => return None,
            // Which other products there is evidence from does not matter then, and may change while this build runs.
            (Answer::AskHere, _) | (_, Some(_)) => "no evidence from one".into(),
            (Answer::Unknown { products }, None) if products.is_empty() => "no evidence from one".into(),
            (Answer::Unknown { products }, None) => {
                format!("evidence from {}: choose one with the target's `device`", products.join(" and "))
            }
        })
    }

    /// Adds a record, with the provenance that the result's output [`PROVENANCE`] holds. Ignores specs that ask no device.
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
