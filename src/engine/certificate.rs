//! The certificate: a proof, written when a build has nothing left to do, that the same build still has nothing to do. Knows files, stores and bytes; does not
//! know what was built and does not interpret the message to the user that it carries.
//!
//! A build depends on a few thousand files and a few settings. As long as those are unchanged and the results are still in the store, planning again would give
//! the same plan. So it is enough to check them, which takes one system call each.
//!
//! # Contents, and why
//!
//! | part | holds if | covers |
//! |---|---|---|
//! | question | the question is the same now | the command's arguments, settings, environment and program; the caller forms it |
//! | still | size, times and inode are unchanged | files read (manifests, settings, lockfile, sources, headers, tools), and folders whose entries mattered |
//! | own | the same | the files that kforge itself wrote at the end: the journal, the report |
//! | absent | the path still does not exist | a manifest, setting, header or tool that would have been used if it had existed |
//! | contents | the store has them, with the correct size, untouched since | the outputs of results: if one is missing or damaged, its step runs again |
//! | open | there is still neither a result nor a record under the key | steps that could not run here: another workspace or an import may add a result |
//!
//! # When it may be written
//!
//! Every file in *still* must have been unchanged since before the command began to read, by more than the granularity of the file system's clock. Then the
//! file is now as it was read, and a later change shows in its times. So a build that closely follows an edit writes no certificate, and the next build writes
//! one.
//!
//! *Own* files change while the build runs. Nothing reads them afterwards, so it is enough that no other process has changed them since. Contents enter the
//! store while the build runs, too: a certificate written within the clock's granularity after the last content never holds, and the next build writes another.
//! If a content was damaged before and the build did not notice, the certificate does not notice either; `kforge cache verify` finds it.
//!
//! # Format
//!
//! The header, the hash of the rest, then the rest. Integers are little-endian; texts and lists follow their length, a u32. Where only this machine's own
//! results count, the hash is keyed with its key: a certificate that another machine wrote, or that was written for a build that takes claims, does not hold.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::home::{Home, shard};
use super::machine_key::{MachineKey, Tag};
use super::stat::{Stat, ns_of};
use kforge_foundation::base::files::write_atomically;
use kforge_foundation::base::{Digest, Witness};

/// The first bytes of every certificate of this version.
const HEADER: &[u8; 16] = b"kforge-proof  \n\x01";

/// A proof that a build has nothing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    question: Digest,
    /// When the certificate was made, in nanoseconds since the Unix epoch.
    made_ns: i128,
    /// The files that kforge wrote itself, then all others, sorted.
    still: Vec<(PathBuf, Stat)>,
    absent: Vec<PathBuf>,
    contents: Vec<Digest>,
    open: Vec<Digest>,
    /// The message to show, in the caller's own format.
    pub answer: Vec<u8>,
}

/// Collects what a certificate needs while a build runs.
#[derive(Debug)]
pub struct Maker {
    question: Digest,
    began_ns: i128,
    witness: Witness,
    own: Vec<PathBuf>,
    contents: BTreeSet<Digest>,
    open: BTreeSet<Digest>,
}

impl Maker {
    /// Begins a certificate for `question`. `began` must be before anything was read.
    pub fn new(question: Digest, began: SystemTime) -> Maker {
        Maker {
            question,
            began_ns: ns_of(began),
            witness: Witness::default(),
            own: vec![],
            contents: BTreeSet::new(),
            open: BTreeSet::new(),
        }
    }

    /// Adds the files and folders that the build read or looked for.
    pub fn saw(&mut self, witness: Witness) {
        self.witness.add(witness);
    }

    /// Adds a file that kforge itself wrote.
    pub fn wrote(&mut self, path: &Path) {
        self.own.push(path.to_path_buf());
    }

    /// Adds outputs that must be in the store.
    pub fn needs(&mut self, contents: impl IntoIterator<Item = Digest>) {
        self.contents.extend(contents);
    }

    /// Adds the key of a step that could not run here and has no known result.
    pub fn unknown(&mut self, key: Digest) {
        self.open.insert(key);
    }

    /// The certificate with `answer`; none if something has changed since the command began.
    pub fn done(self, home: &Home, answer: Vec<u8>) -> Option<Certificate> {
        let mut still = Vec::new();
        for path in self.own {
            still.push((path.clone(), look(&path)?));
        }
        let mut paths: Vec<PathBuf> = self.witness.files.into_iter().chain(self.witness.folders).collect();
        paths.par_sort_unstable();
        let stats: Option<Vec<(PathBuf, Stat)>> = paths
            .into_par_iter()
            .map(|path| look(&path).filter(|stat| stat.older_than(self.began_ns)).map(|stat| (path, stat)))
            .collect();
        still.extend(stats?);
        let mut absent: Vec<PathBuf> = self.witness.absent.into_iter().collect();
        absent.par_sort_unstable();
        let certificate = Certificate {
            question: self.question,
            made_ns: ns_of(SystemTime::now()),
            still,
            absent,
            contents: self.contents.into_iter().collect(),
            open: self.open.into_iter().collect(),
            answer,
        };
        certificate.nothing_came(home).then_some(certificate)
    }
}

/// The metadata of the file at `path`, following links.
fn look(path: &Path) -> Option<Stat> {
    std::fs::metadata(path).ok().map(|metadata| Stat::of(&metadata))
}

/// Whether `path` does not exist. A path that cannot be checked counts as existing.
fn is_absent(path: &Path) -> bool {
    let absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    std::fs::metadata(path).is_err_and(|e| absent(&e))
}

impl Certificate {
    /// The certificate in a file, if the file holds a complete one. With a key, only if it was written with that key.
    pub fn read(path: &Path, key: Option<&MachineKey>) -> Option<Certificate> {
        Certificate::decode(&std::fs::read(path).ok()?, key)
    }

    /// Writes the certificate, replacing an existing one.
    pub fn write(&self, path: &Path, key: Option<&MachineKey>) -> io::Result<()> {
        write_atomically(path, &self.encode(key), false)
    }

    /// Whether the answer is still valid for `question`.
    pub fn holds(&self, question: &Digest, home: &Home) -> bool {
        self.question == *question
            && self.still.par_iter().with_min_len(64).all(|(path, stat)| look(path).as_ref() == Some(stat))
            && self.nothing_came(home)
            && self.store_has_all(&home.cas())
    }

    fn nothing_came(&self, home: &Home) -> bool {
        let (actions, evidence) = (home.actions(), home.evidence());
        let unknown = |key: &Digest| is_absent(&actions.join(shard(key))) && is_absent(&evidence.join(key.hex()));
        self.absent.par_iter().with_min_len(64).all(|path| is_absent(path))
            && self.open.par_iter().with_min_len(64).all(unknown)
    }

    /// Whether the store has all contents, as `Store::has` checks, and nothing has touched them. Resolves each file relative to its shard's folder, to save
    /// path lookups.
    fn store_has_all(&self, cas: &Path) -> bool {
        let shards: Vec<&[Digest]> = self.contents.chunk_by(|a, b| a.hash()[0] == b.hash()[0]).collect();
        shards.par_iter().all(|shard| {
            let folder = cas.join(&shard[0].hex()[..2]);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(folder) = rustix::fs::open(&folder, flags, Mode::empty()) else { return false };
            shard.iter().all(|digest| {
                let seen = rustix::fs::statat(&folder, digest.hex().as_str(), AtFlags::empty());
                seen.is_ok_and(|s| {
                    let stat = Stat::of_raw(&s);
                    FileType::from_raw_mode(s.st_mode).is_file()
                        && stat.size == digest.size()
                        && stat.older_than(self.made_ns)
                })
            })
        })
    }

    fn encode(&self, key: Option<&MachineKey>) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 160 * self.still.len() + 40 * self.contents.len() + self.answer.len());
        out.extend(HEADER);
        out.extend([0; 32]);
        put_digest(&mut out, &self.question);
        out.extend(self.made_ns.to_le_bytes());
        put_len(&mut out, self.still.len());
        for (path, stat) in &self.still {
            put_bytes(&mut out, path.as_os_str().as_bytes());
            out.extend(stat.size.to_le_bytes());
            out.extend(stat.mtime_ns.to_le_bytes());
            out.extend(stat.ctime_ns.to_le_bytes());
            out.extend(stat.inode.to_le_bytes());
        }
        put_len(&mut out, self.absent.len());
        self.absent.iter().for_each(|path| put_bytes(&mut out, path.as_os_str().as_bytes()));
        for digests in [&self.contents, &self.open] {
            put_len(&mut out, digests.len());
            digests.iter().for_each(|digest| put_digest(&mut out, digest));
        }
        put_bytes(&mut out, &self.answer);
        let hash = hash(&out[HEADER.len() + 32..], key);
        out[HEADER.len()..HEADER.len() + 32].copy_from_slice(hash.bytes());
        out
    }

    fn decode(bytes: &[u8], key: Option<&MachineKey>) -> Option<Certificate> {
        let (stored, rest) = bytes.strip_prefix(HEADER)?.split_first_chunk::<32>()?;
        if hash(rest, key) != Tag::of_bytes(*stored) {
            return None;
        }
        let mut fields = Fields(rest);
        let (question, made_ns) = (fields.digest()?, fields.i128()?);
        let still = fields.list(|f| {
            let path = f.path()?;
            let (size, mtime_ns, ctime_ns) = (f.u64()?, f.i128()?, f.i128()?);
            Some((path, Stat { size, mtime_ns, ctime_ns, inode: f.u64()? }))
        })?;
        let absent = fields.list(Fields::path)?;
        let (contents, open) = (fields.list(Fields::digest)?, fields.list(Fields::digest)?);
        let answer = fields.bytes()?.to_vec();
        fields.0.is_empty().then_some(Certificate { question, made_ns, still, absent, contents, open, answer })
    }
}

/// The hash of everything after it.
fn hash(rest: &[u8], key: Option<&MachineKey>) -> Tag {
    match key {
        Some(key) => key.of_certificate(rest),
        None => Tag::of_bytes(*blake3::hash(rest).as_bytes()),
    }
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    // A list or text of 2^32 elements does not fit in memory twice. A wrapped length would only make the certificate unreadable, hence void.
    out.extend((len as u32).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend(bytes);
}

fn put_digest(out: &mut Vec<u8>, digest: &Digest) {
    out.extend(digest.hash());
    out.extend(digest.size().to_le_bytes());
}

/// Takes fields off the front; returns none when too few bytes are left.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i128(&mut self) -> Option<i128> {
        self.array().map(i128::from_le_bytes)
    }

    fn len(&mut self) -> Option<usize> {
        self.array().map(|n| u32::from_le_bytes(n) as usize)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()).into())
    }

    fn digest(&mut self) -> Option<Digest> {
        let hash = self.array()?;
        Some(Digest::from_parts(hash, self.u64()?))
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.len()?;
        // Every item takes at least four bytes.
        let mut items = Vec::with_capacity(len.min(self.0.len() / 4));
        for _ in 0..len {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests;
