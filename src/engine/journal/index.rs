//! The journal in memory: the bytes of its file, and the positions of the live rows in them. Knows which rows replace which; does not touch files.
//!
//! Rows stay encoded until they are needed, so that loading is little more than a walk over frames.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::frame::{Frame, HEADER, mix};
use super::row::{Fields, StatRow, StepRow, kind, put_digest, put_stat, put_step};
use crate::machine_key::Tag;
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;

/// A hasher for keys that are already hashes.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A map by the first eight bytes of a digest's hash. Two digests with the same first bytes share an entry. A lookup compares the whole digest, so the digest
/// that lost its entry is a miss and nothing worse.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

fn first(digest: &Digest) -> u64 {
    digest.hash().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The positions of the rows of one name.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    /// The last row of the node.
    last: Option<Frame>,
    /// Its last row with a result.
    good: Option<Frame>,
    stat: Option<Frame>,
    meta: Option<Frame>,
}

/// The journal in memory.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    names: Vec<Frame>,
    /// The number of each name, by the hash of the name ...
    numbers: ByHash<u32>,
    /// ... and of the names whose hash another name already has.
    clashes: HashMap<Box<[u8]>, u32>,
    places: Vec<Places>,
    by_key: ByHash<Frame>,
    /// The position at which each key was last forgotten: rows before it have lost their results.
    forgotten: ByHash<usize>,
    scans: ByHash<Frame>,
    certificate: Option<Frame>,
    /// The total size of live frames, including names, in bytes.
    live: usize,
}

impl Index {
    /// The index of an empty journal.
    pub(super) fn new() -> Index {
        Index::load(HEADER.to_vec())
    }

    /// The index of a file's bytes, which begin with the correct header. Keeps the bytes before the first frame that is damaged or invalid.
    pub(super) fn load(bytes: Vec<u8>) -> Index {
        // An estimate of the number of rows: two frames, a name and a row, take about 300 bytes.
        let rows = bytes.len() / 300;
        let mut index = Index {
            bytes,
            names: Vec::with_capacity(rows),
            numbers: ByHash::with_capacity_and_hasher(rows, BuildHasherDefault::default()),
            clashes: HashMap::new(),
            places: Vec::with_capacity(rows),
            by_key: ByHash::with_capacity_and_hasher(rows, BuildHasherDefault::default()),
            forgotten: ByHash::default(),
            scans: ByHash::default(),
            certificate: None,
            live: HEADER.len(),
        };
        let mut at = HEADER.len();
        while let Some(frame) = Frame::at(&index.bytes, at) {
            if index.admit(frame).is_none() {
                break;
            }
            at = frame.end();
        }
        index.bytes.truncate(at);
        index
    }

    /// The file's bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bytes that are no longer live.
    pub(super) fn dead(&self) -> usize {
        self.bytes.len() - self.live
    }

    /// Enters a frame of `bytes` into the index. Returns none if the frame is invalid.
    fn admit(&mut self, frame: Frame) -> Option<()> {
        let mut fields = Fields(frame.payload(&self.bytes));
        let replaced = match frame.kind {
            kind::NAME => {
                let number = u32::try_from(self.names.len()).ok()?;
                match self.numbers.entry(mix(0, fields.0)) {
                    Entry::Vacant(free) => {
                        free.insert(number);
                    }
                    Entry::Occupied(_) => {
                        self.clashes.insert(fields.0.into(), number);
                    }
                }
                self.names.push(frame);
                self.places.push(Places::default());
                None
            }
            kind::STEP => {
                let places = self.places.get_mut(fields.u32()? as usize)?;
                let (row, good) = fields.step_head()?;
                let last = places.last.replace(frame);
                // A row with a result stays live behind rows without one, until the next row with a result.
                let spare = last.filter(|l| places.good != Some(*l));
                self.live -= spare.map_or(0, Frame::size);
                if good {
                    self.by_key.insert(first(&row.key), frame);
                    places.good.replace(frame)
                } else {
                    None
                }
            }
            kind::STAT => self.places.get_mut(fields.u32()? as usize)?.stat.replace(frame),
            kind::META => self.places.get_mut(fields.u32()? as usize)?.meta.replace(frame),
            kind::SCAN => self.scans.insert(first(&fields.digest()?), frame),
            kind::CERTIFICATE => self.certificate.replace(frame),
            kind::FORGET => {
                let hash = first(&fields.digest()?);
                self.by_key.remove(&hash);
                self.forgotten.insert(hash, frame.start());
                // Never live itself: compaction leaves out the results that it removes.
                Some(frame)
            }
            _ => return None,
        };
        self.live += frame.size();
        self.live -= replaced.map_or(0, Frame::size);
        Some(())
    }

    /// Appends a record. A record that is too long for a frame (4 GiB) is dropped.
    fn add(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(frame) = Frame::append(&mut self.bytes, kind, write) {
            let admitted = self.admit(frame);
            assert!(admitted.is_some(), "BUG: a record that cannot be read back");
        }
    }

    /// The number of a name. Assigns one if the name is new.
    fn number(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.known(name) {
            return number;
        }
        self.add(kind::NAME, |out| out.extend(name));
        // 2^32 names do not fit in memory.
        (self.names.len() - 1) as u32
    }

    fn known(&self, name: &[u8]) -> Option<u32> {
        let number = *self.numbers.get(&mix(0, name))?;
        if self.name(number) == Some(name) { Some(number) } else { self.clashes.get(name).copied() }
    }

    fn places(&self, name: &[u8]) -> Option<Places> {
        self.known(name).map(|n| self.places[n as usize])
    }

    fn name(&self, number: u32) -> Option<&[u8]> {
        self.names.get(number as usize).map(|frame| frame.payload(&self.bytes))
    }

    fn text(&self, number: u32) -> Option<String> {
        self.name(number).and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::to_string)
    }

    /// A step's row; without its result if the result was forgotten.
    fn step(&self, frame: Frame) -> Option<StepRow> {
        let mut fields = Fields(frame.payload(&self.bytes));
        fields.u32()?;
        let (mut row, good) = fields.step_head()?;
        if good && self.forgotten.get(&first(&row.key)).is_none_or(|at| *at < frame.start()) {
            let (result, tag) = fields.result(|n| self.text(n))?;
            (row.result, row.tag) = (Some(result), tag);
        }
        Some(row)
    }

    pub(super) fn last(&self, id: &str) -> Option<StepRow> {
        self.step(self.places(id.as_bytes())?.last?)
    }

    pub(super) fn by_key(&self, key: &Digest) -> Option<(StepResult, Option<Tag>)> {
        let row = self.step(*self.by_key.get(&first(key))?)?;
        let result = row.result.filter(|_| row.key == *key)?;
        Some((result, row.tag))
    }

    pub(super) fn add_step(&mut self, id: &str, row: &StepRow) {
        let name = self.number(id.as_bytes());
        let outputs = row.result.iter().flat_map(|r| r.outputs.keys());
        let names: Vec<u32> = outputs.map(|output| self.number(output.as_bytes())).collect();
        self.add(kind::STEP, |out| put_step(out, name, row, &names));
    }

    pub(super) fn add_forget(&mut self, key: &Digest) {
        self.add(kind::FORGET, |out| put_digest(out, key));
    }

    /// The last row of a node without its result.
    fn head(&self, id: &str) -> Option<StepRow> {
        let mut fields = Fields(self.places(id.as_bytes())?.last?.payload(&self.bytes));
        fields.u32()?;
        Some(fields.step_head()?.0)
    }

    pub(super) fn last_key(&self, id: &str) -> Option<Digest> {
        self.head(id).map(|row| row.key)
    }

    pub(super) fn duration(&self, id: &str) -> Option<u64> {
        self.head(id).map(|row| row.duration_ms)
    }

    pub(super) fn durations(&self) -> HashMap<String, u64> {
        let row = |(number, places): (usize, &Places)| {
            let mut fields = Fields(places.last?.payload(&self.bytes));
            Some((self.text(fields.u32().filter(|n| *n as usize == number)?)?, fields.step_head()?.0.duration_ms))
        };
        self.places.iter().enumerate().filter_map(row).collect()
    }

    pub(super) fn stat(&self, path: &Path) -> Option<StatRow> {
        let mut fields = Fields(self.places(path.as_os_str().as_bytes())?.stat?.payload(&self.bytes));
        fields.u32()?;
        fields.stat()
    }

    pub(super) fn add_stat(&mut self, path: &Path, row: &StatRow) {
        let name = self.number(path.as_os_str().as_bytes());
        self.add(kind::STAT, |out| put_stat(out, name, row));
    }

    pub(super) fn scan(&self, content: &Digest) -> Option<Vec<u8>> {
        let mut fields = Fields(self.scans.get(&first(content))?.payload(&self.bytes));
        (fields.digest()? == *content).then(|| fields.0.to_vec())
    }

    pub(super) fn add_scan(&mut self, content: &Digest, found: &[u8]) {
        self.add(kind::SCAN, |out| {
            put_digest(out, content);
            out.extend(found);
        });
    }

    pub(super) fn certificate(&self) -> Option<Vec<u8>> {
        self.certificate.map(|frame| frame.payload(&self.bytes).to_vec()).filter(|bytes| !bytes.is_empty())
    }

    pub(super) fn add_certificate(&mut self, bytes: &[u8]) {
        self.add(kind::CERTIFICATE, |out| out.extend(bytes));
    }

    pub(super) fn meta(&self, name: &str) -> Option<Vec<u8>> {
        let mut fields = Fields(self.places(name.as_bytes())?.meta?.payload(&self.bytes));
        fields.u32()?;
        Some(fields.0.to_vec())
    }

    pub(super) fn add_meta(&mut self, name: &str, bytes: &[u8]) {
        let name = self.number(name.as_bytes());
        self.add(kind::META, |out| {
            out.extend(name.to_le_bytes());
            out.extend(bytes);
        });
    }

    pub(super) fn contents(&self) -> Vec<Digest> {
        let mut contents = Vec::new();
        for places in &self.places {
            for row in [places.last, places.good].into_iter().flatten().filter_map(|frame| self.step(frame)) {
                contents.extend(row.explanation);
                contents.extend(row.result.iter().flat_map(|r| r.outputs.values()));
            }
        }
        contents.sort_unstable();
        contents.dedup();
        contents
    }

    /// An index with only the live rows, in the order in which they were recorded.
    pub(super) fn compacted(&self) -> Index {
        let mut frames: Vec<Frame> = self.scans.values().copied().chain(self.certificate).collect();
        for places in &self.places {
            // A row that is kept only for its result is dropped once the result is forgotten.
            let has_result = |g: &Frame| self.step(*g).is_some_and(|row| row.result.is_some());
            let good = places.good.filter(|g| places.last != Some(*g) && has_result(g));
            frames.extend([places.last, good, places.stat, places.meta].into_iter().flatten());
        }
        frames.sort_unstable_by_key(|frame| frame.start());
        let mut index = Index::new();
        for frame in frames {
            // A frame that cannot be decoded is dropped.
            let _ = self.hand_on(frame, &mut index);
        }
        index
    }

    /// Adds one row to another index, with the numbers of that index.
    fn hand_on(&self, frame: Frame, to: &mut Index) -> Option<()> {
        let payload = frame.payload(&self.bytes);
        let mut fields = Fields(payload);
        match frame.kind {
            kind::STEP => to.add_step(&self.text(fields.u32()?)?, &self.step(frame)?),
            kind::STAT | kind::META => {
                let number = to.number(self.name(fields.u32()?)?);
                to.add(frame.kind, |out| {
                    out.extend(number.to_le_bytes());
                    out.extend(fields.0);
                });
            }
            _ => to.add(frame.kind, |out| out.extend(payload)),
        }
        Some(())
    }
}
