//! Encodes and decodes the journal's records. Knows the order of their fields; does not know which rows are live.
//!
//! | kind | payload |
//! |---|---|
//! | 1 name | the bytes of an id, a path or an output's name; names are numbered from 0 in the order of the file, and other records use the number |
//! | 2 stat | name u32, size u64, mtime, ctime and time of recording in ns i128, inode u64, digest |
//! | 3 step | name u32, key, flags u8 (1 result, 2 explanation), duration u64, explanation, result |
//! | 4 scan | digest, bytes |
//! | 5 certificate | bytes |
//! | 6 meta | name u32, bytes |
//! | 7 forget | key |
//!
//! A digest is its hash and its size u64. A result is: number of outputs u32; for each, name u32 and digest; duration u64; length u32 and bytes of the summary.
//! Then comes the tag, if there is one: the byte 1, which begins no JSON, and 32 bytes. Then come verdict and notes as JSON, unless both are absent: they are
//! rare and small, and their format changes more often than the rest. A program that knows no tags cannot read the result, which is a miss for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine_key::{LENGTH, Tag};
use kforge_foundation::base::Digest;
use kforge_types::record::{Note, StepResult, Verdict};

/// The kinds of records.
pub(super) mod kind {
    pub(in super::super) const NAME: u8 = 1;
    pub(in super::super) const STAT: u8 = 2;
    pub(in super::super) const STEP: u8 = 3;
    pub(in super::super) const SCAN: u8 = 4;
    pub(in super::super) const CERTIFICATE: u8 = 5;
    pub(in super::super) const META: u8 = 6;
    pub(in super::super) const FORGET: u8 = 7;
}

/// The last run of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    /// Its key.
    pub key: Digest,
    /// Its result; none if it failed.
    pub result: Option<StepResult>,
    /// The blob of [`super::super::action::keep_explanation`]: the fields that were hashed into the key.
    pub explanation: Option<Digest>,
    /// The duration of the run in milliseconds.
    pub duration_ms: u64,
    /// The tag of the result.
    pub tag: Option<Tag>,
}

/// What was known of a leaf file. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatRow {
    /// Its size in bytes.
    pub size: u64,
    /// The time of the last modification of its contents.
    pub mtime_ns: i128,
    /// The time of the last change of its inode.
    pub ctime_ns: i128,
    /// Its inode.
    pub inode: u64,
    /// The time at which kforge began to read the file for the digest.
    pub recorded_ns: i128,
    /// The digest of its contents.
    pub digest: Digest,
}

/// The byte that precedes a tag.
const TAGGED: u8 = 1;

/// The part of a result that is stored as JSON.
#[derive(Serialize, Deserialize)]
struct VerdictAndNotes {
    verdict: Option<Verdict>,
    notes: Vec<Note>,
}

/// Appends a digest.
pub(super) fn put_digest(out: &mut Vec<u8>, digest: &Digest) {
    out.extend(digest.hash());
    out.extend(digest.size().to_le_bytes());
}

/// Appends a stat's payload.
pub(super) fn put_stat(out: &mut Vec<u8>, name: u32, row: &StatRow) {
    out.extend(name.to_le_bytes());
    out.extend(row.size.to_le_bytes());
    out.extend(row.mtime_ns.to_le_bytes());
    out.extend(row.ctime_ns.to_le_bytes());
    out.extend(row.recorded_ns.to_le_bytes());
    out.extend(row.inode.to_le_bytes());
    put_digest(out, &row.digest);
}

/// Appends a step's payload. `names` are the numbers of the names of the result's outputs, in order.
pub(super) fn put_step(out: &mut Vec<u8>, name: u32, row: &StepRow, names: &[u32]) {
    out.extend(name.to_le_bytes());
    put_digest(out, &row.key);
    out.push(u8::from(row.result.is_some()) | u8::from(row.explanation.is_some()) << 1);
    out.extend(row.duration_ms.to_le_bytes());
    if let Some(explanation) = &row.explanation {
        put_digest(out, explanation);
    }
    let Some(result) = &row.result else { return };
    out.extend((names.len() as u32).to_le_bytes());
    for (name, digest) in names.iter().zip(result.outputs.values()) {
        out.extend(name.to_le_bytes());
        put_digest(out, digest);
    }
    out.extend(result.duration_ms.to_le_bytes());
    out.extend((result.summary.len() as u32).to_le_bytes());
    out.extend(result.summary.as_bytes());
    if let Some(tag) = &row.tag {
        out.push(TAGGED);
        out.extend(tag.bytes());
    }
    if result.verdict.is_some() || !result.notes.is_empty() {
        let said = VerdictAndNotes { verdict: result.verdict.clone(), notes: result.notes.clone() };
        // Serializing strings and plain enums to memory cannot fail.
        out.extend(serde_json::to_vec(&said).unwrap_or_default());
    }
}

/// Takes fields off the front of a payload; returns none when too few bytes are left.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i128(&mut self) -> Option<i128> {
        self.array().map(i128::from_le_bytes)
    }

    pub(super) fn digest(&mut self) -> Option<Digest> {
        let hash = self.array()?;
        Some(Digest::from_parts(hash, self.u64()?))
    }

    /// The fields of a stat after its name.
    pub(super) fn stat(&mut self) -> Option<StatRow> {
        let size = self.u64()?;
        let (mtime_ns, ctime_ns, recorded_ns) = (self.i128()?, self.i128()?, self.i128()?);
        Some(StatRow { size, mtime_ns, ctime_ns, recorded_ns, inode: self.u64()?, digest: self.digest()? })
    }

    /// The fields of a step between its name and its result, and whether a result follows.
    pub(super) fn step_head(&mut self) -> Option<(StepRow, bool)> {
        let key = self.digest()?;
        let flags = self.array::<1>()?[0];
        let duration_ms = self.u64()?;
        let explanation = if flags & 2 != 0 { Some(self.digest()?) } else { None };
        Some((StepRow { key, result: None, explanation, duration_ms, tag: None }, flags & 1 != 0))
    }

    /// A result and its tag. `name` returns the output name with a number.
    pub(super) fn result(&mut self, name: impl Fn(u32) -> Option<String>) -> Option<(StepResult, Option<Tag>)> {
        let mut outputs = BTreeMap::new();
        for _ in 0..self.u32()? {
            outputs.insert(name(self.u32()?)?, self.digest()?);
        }
        let duration_ms = self.u64()?;
        let length = self.u32()? as usize;
        let summary = std::str::from_utf8(self.take(length)?).ok()?.to_string();
        let tag = match self.0 {
            [TAGGED, ..] => {
                self.take(1)?;
                Some(Tag::of_bytes(self.array::<LENGTH>()?))
            }
            _ => None,
        };
        let said = match self.0 {
            [] => VerdictAndNotes { verdict: None, notes: vec![] },
            json => serde_json::from_slice(json).ok()?,
        };
        Some((StepResult { outputs, verdict: said.verdict, notes: said.notes, summary, duration_ms }, tag))
    }
}
