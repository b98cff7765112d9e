//! The evidence index: observations of real devices, by question. Knows questions, records and files; does not know
//! what the questions mean.
//!
//! A question is a key that leaves the device out, so each question has a set of records, each with its provenance. [`choose`] decides which record answers.
//! Records are only ever added. Each is a file named by its own digest, `evidence/QUESTION/RECORD.json`, or `RECORD@BUNDLE.json` if it was imported from the
//! bundle of that name. So damage is detected, and a duplicate record is stored once. Bundles in the repository are not imported: their records are read in
//! addition to those of the home ([`Index::with`]).
//!
//! A binary that came with observations is stored here too, under its inputs ([`BundledBinaries`]). For an imported bundle, the number of its observations is
//! stored beside the record, in `RECORD@BUNDLE.about`, for every bundle that brought the record. The largest number counts, so the order of imports does not
//! matter.
//!
//! **Standing** ([`Standing`]) is derived and never stored in a record. A record without a bundle's name stands `here` only if `RECORD.tag` beside it holds a
//! valid tag of this machine's key ([`MachineKey::of_record`]); otherwise its origin is [`HOME`], and it is claimed: another machine that shares the home wrote
//! it, an earlier kforge, or somebody with an editor. A record that was imported, or that lies in a bundle of the repository, is claimed unless the bundle is
//! signed. A tag lies beside the record, so the record's digest does not depend on the machine.
//!
//! A record that came in a signed bundle has an empty file `RECORD@DOCUMENT.signed` beside it for every signed document that brought it. Who signed a document is
//! asked each time ([`Signers`]), and never stored.
//!
//! Unlike contents and results, a record cannot be recreated without the device. So kforge syncs the records of a build when the build ends; syncing hundreds
//! of them one by one would make the device wait for the disk. A power cut before that loses the records of one build. A damaged record is skipped but kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::action::asks_device;
use super::home::{Doing, Home, TEMP_PREFIX, files_in, named, persist, publish};
use super::machine_key::{MachineKey, Tag};
use super::{Blobs, Cache, Hit, Unanswered};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, EvidenceSeen};
use kforge_types::record::{Provenance, Spec, Standing, StepKind, StepResult};

mod binaries;
mod choose;
mod signers;

pub use binaries::BundledBinaries;
pub use choose::{AHEAD, AcceptedSource, Answer, choose, is_ahead, rivals};
pub(super) use signers::SIGNED;
pub use signers::Signers;

/// The output of a step that observes a device in which it states its [`Provenance`], as JSON.
pub const PROVENANCE: &str = "provenance";

/// The origin of records that this machine observed and authenticated.
pub const HERE: &str = "here";

/// The origin of records in the home that no bundle brought and that this machine did not authenticate.
pub const HOME: &str = "home";

/// The origin of records from a bundle whose name is [`HERE`].
const BUNDLE_HERE: &str = "@here";

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

impl Record {
    /// What a step observed, with the provenance in the result's output [`PROVENANCE`].
    ///
    /// # Errors
    /// The output is missing or is not a provenance.
    pub fn of(question: Digest, kind: StepKind, result: StepResult, blobs: &dyn Blobs) -> io::Result<Record> {
        let bytes = match result.outputs.get(PROVENANCE) {
            Some(digest) => blobs.get(digest)?,
            None => None,
        };
        let wrong = |why: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("a {kind} step's output `{PROVENANCE}` {why}"))
        };
        let bytes = bytes.ok_or_else(|| wrong("is missing: the observation cannot be kept as evidence"))?;
        let provenance = serde_json::from_slice(&bytes).map_err(|e| wrong(&format!("is not a provenance: {e}")))?;
        Ok(Record { question, provenance, result })
    }
}

/// A record in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedRecord {
    /// The record.
    pub record: Record,
    /// The digest of its file.
    pub digest: Digest,
    /// The bundle that the record was imported from, [`HERE`] or [`HOME`].
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

/// The extension of a file with the tag of a record.
pub(super) const TAG: &str = "tag";

/// The evidence index of a [`Home`].
#[derive(Clone)]
pub struct Index {
    root: PathBuf,
    tmp: PathBuf,
    blobs: Arc<dyn Blobs>,
    beside: Arc<Beside>,
    /// The number of observations of each binary in the bundles of the repository, by the binary's digest.
    about: Arc<About>,
    key: Option<Arc<MachineKey>>,
    signers: Arc<dyn Signers>,
}

impl Index {
    /// The index of `home`; `blobs` holds the outputs.
    pub fn new(home: &Home, blobs: Arc<dyn Blobs>) -> Index {
        let (beside, about) = (Arc::default(), Arc::default());
        let signers = Arc::new(signers::Nobody);
        Index { root: home.evidence(), tmp: home.tmp(), blobs, beside, about, key: None, signers }
    }

    /// The same index for a machine with this key. Without a key, no record stands `here`.
    pub fn keyed(self, key: Option<Arc<MachineKey>>) -> Index {
        Index { key, ..self }
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
    /// [`Index::sync`]. The record stands `here` if this machine has a key.
    pub fn add(&self, record: &Record) -> io::Result<Digest> {
        if let Some(key) = &self.key {
            // The tag comes first: a record whose tag was lost would have to be observed again.
            let digest = Digest::of(&serde_json::to_vec(record)?);
            let place = self.tag_of(&record.question, &digest);
            publish(&self.tmp, &place, key.of_record(&digest).hex().as_bytes(), 0o644)?;
        }
        self.keep(record, "").map(|kept| kept.0)
    }

    /// The file with the tag of a record.
    fn tag_of(&self, question: &Digest, record: &Digest) -> PathBuf {
        self.root.join(question.hex()).join(format!("{}.{TAG}", record.hex()))
    }

    /// The record with the origin [`HOME`] instead of [`HERE`], unless this machine authenticated it.
    fn authenticated(&self, seen: IndexedRecord) -> IndexedRecord {
        let holds = |key: &Arc<MachineKey>| {
            let stored = std::fs::read_to_string(self.tag_of(&seen.record.question, &seen.digest)).ok()?;
            Some(Tag::of_hex(&stored)? == key.of_record(&seen.digest))
        };
        match seen.origin == HERE && self.key.as_ref().and_then(holds) != Some(true) {
            true => IndexedRecord { origin: HOME.into(), ..seen },
            false => seen,
        }
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
        let suffix = suffix_of(bundle);
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
                self.keep_document(record, &digest, document)?;
            }
        }
        self.sync()?;
        Ok(added)
    }

    /// Adds a record that a worker of another machine observed, whose outputs are already in the store. `origin` names where it came from, as the name of a bundle
    /// does, and `signed` names the signed document that holds it, if there is one. It survives a power cut only after [`Index::sync`].
    /// Returns the digest that names it.
    pub fn bring(&self, record: &Record, origin: &str, signed: Option<&str>) -> io::Result<Digest> {
        if let Some(document) = signed {
            // The document comes first: without it, a record would be found that is claimed.
            self.keep_document(record, &Digest::of(&serde_json::to_vec(record)?), document)?;
        }
        self.keep(record, &suffix_of(origin)).map(|kept| kept.0)
    }

    /// Notes that a signed document holds a record.
    fn keep_document(&self, record: &Record, digest: &Digest, document: &str) -> io::Result<()> {
        let folder = self.root.join(record.question.hex());
        publish(&self.tmp, &folder.join(format!("{}@{document}.{SIGNED}", digest.hex())), b"", 0o644)
    }

    /// Stores a record. Returns the digest that names it, and whether it is new.
    fn keep(&self, record: &Record, suffix: &str) -> io::Result<(Digest, bool)> {
        let bytes = serde_json::to_vec(record)?;
        let digest = Digest::of(&bytes);
        let folder = self.root.join(record.question.hex());
        // A record that was observed here is kept also if a bundle brought it before, because it then stands `here`.
        let is_held = |seen: &IndexedRecord| seen.digest == digest && (seen.origin == HERE || !suffix.is_empty());
        if files_in(&folder)?.iter().filter_map(|path| read(path)).any(|seen| is_held(&seen)) {
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

    /// The records in a folder, each once: if it was observed here and imported too, with the greater standing.
    fn under(&self, folder: &Path) -> io::Result<Vec<IndexedRecord>> {
        let files = files_in(folder)?;
        let names: Vec<&str> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        let mut all: Vec<IndexedRecord> = vec![];
        for seen in files.iter().filter_map(|path| read(path)) {
            let mut seen = self.authenticated(seen);
            let documents = names.iter().filter_map(|name| signers::document(name, &seen.digest));
            seen.signer =
                documents.filter_map(|document| self.signers.signer(document, &seen.origin, &seen.digest)).next();
            match all.iter_mut().find(|held| held.digest == seen.digest) {
                Some(held) if held.standing() < seen.standing() => *held = seen,
                Some(_) => {}
                None => all.push(seen),
            }
        }
        Ok(all)
    }
}

/// What the name of a record's file ends with, before its extension, if the record came from a bundle of this name.
fn suffix_of(bundle: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    format!("@{}", bundle.chars().map(plain).collect::<String>())
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
    let (hex, origin) = match name.split_once('@') {
        Some((hex, HERE)) => (hex, BUNDLE_HERE),
        Some(imported) => imported,
        None => (name, HERE),
    };
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
    found: Mutex<Findings>,
}

/// What lookups found besides answers. Nothing of it changes an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Records of the home that claim to be from the future, by the digest of the record. They answer nothing.
    pub ahead: BTreeMap<Digest, IndexedRecord>,
    /// By question: the records of a verification that count and observed something else than the one that answers ([`rivals`]), and the one that answers.
    pub rivals: BTreeMap<Digest, (IndexedRecord, Vec<IndexedRecord>)>,
    /// Questions that the local device is asked although the home has an answer, because it is only claimed.
    pub claimed: BTreeSet<Digest>,
}

impl EvidenceCache {
    /// A cache view of the index. For a spec that asks a device and the product that its target names, `wanted` returns the source whose answers count; for any
    /// other spec it returns none.
    pub fn new(
        index: Index,
        wanted: impl Fn(&Spec, Option<&str>) -> Option<AcceptedSource> + Send + Sync + 'static,
    ) -> EvidenceCache {
        EvidenceCache { index, wanted: Box::new(wanted), added: AtomicBool::new(false), found: Mutex::default() }
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
        let (records, now) = (self.index.records(key)?, jiff::Timestamp::now());
        let ahead = records.iter().filter(|seen| is_ahead(&seen.record, now)).cloned();
        let ahead: Vec<(Digest, IndexedRecord)> = ahead.map(|seen| (seen.digest, seen)).collect();
        if !ahead.is_empty() {
            self.found.lock().unwrap_or_else(PoisonError::into_inner).ahead.extend(ahead);
        }
        let seen = match choose(&records, &wanted, now) {
            Answer::Found(seen) => seen,
            Answer::AskHere => {
                let claimed = AcceptedSource { least: Standing::Claimed, ..wanted };
                if let Answer::Found(seen) = choose(&records, &claimed, now)
                    && seen.origin == HOME
                {
                    self.found.lock().unwrap_or_else(PoisonError::into_inner).claimed.insert(*key);
                }
                return Ok(None);
            }
            Answer::Unknown { .. } => return Ok(None),
        };
        if spec.kind == StepKind::Verify {
            let others: Vec<IndexedRecord> = rivals(&records, &seen, &wanted, now).into_iter().cloned().collect();
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            match others.is_empty() {
                true => drop(found.rivals.remove(key)),
                false => drop(found.rivals.insert(*key, ((*seen).clone(), others))),
            }
        }
        Ok(Some(*seen))
    }

    /// What the lookups so far found besides answers.
    pub fn findings(&self) -> Findings {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The index behind this cache.
    pub fn index(&self) -> &Index {
        &self.index
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
            clocks_mhz: record.provenance.clocks_mhz,
            temperature_c: record.provenance.temperature_c,
            throttle: record.provenance.throttle,
        };
        let (result, origin) = (record.result, CacheOrigin::Evidence);
        Ok(Some(Hit { result, origin, evidence: Some(evidence), tag: None }))
    }

    fn lacks(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> Option<Unanswered> {
        let wanted = (self.wanted)(spec, product)?;
        let (records, now) = (self.index.records(key).ok()?, jiff::Timestamp::now());
        let answer = choose(&records, &wanted, now);
        let claimed = AcceptedSource { least: Standing::Claimed, ..wanted.clone() };
        if let (Answer::Unknown { .. }, Answer::Found(seen)) = (&answer, choose(&records, &claimed, now)) {
            return Some(Unanswered::Claimed { by: seen.origin });
        }
        Some(match (answer, wanted.device) {
            (Answer::Found(_), _) => return None,
            // Evidence from other products does not matter in these cases, and it may change while this build runs.
            (Answer::AskHere, _) | (_, Some(_)) => Unanswered::NoEvidence,
            (Answer::Unknown { products }, None) if products.is_empty() => Unanswered::NoEvidence,
            (Answer::Unknown { products }, None) => Unanswered::Products(products),
        })
    }

    /// Adds a record, with the provenance in the result's output [`PROVENANCE`]. Ignores specs that ask no device.
    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult) -> io::Result<()> {
        if !asks_device(spec) {
            return Ok(());
        }
        let record = Record::of(*key, spec.kind, result.clone(), &*self.index.blobs)?;
        self.added.store(true, Ordering::Relaxed);
        self.index.add(&record).map(drop)
    }
}

#[cfg(test)]
mod tests;
