//! The content store: bytes under their digest, shared by many threads and processes. Knows digests and files; does not know what the bytes mean.
//!
//! A content is the read-only file `cas/xx/HEX`. The file gets its name by a rename, so no process sees a partly written content. Nothing is synced: after a
//! power cut or a disk fault a file may hold other bytes than those written. So contents are checked before use:
//!
//! | call | checks |
//! |---|---|
//! | `has` | the size, or the listing read by [`Store::preload`] |
//! | `get` | the size, then the hash, always |
//! | `path` | the size always, the hash at first use in this process |
//! | `put`, `put_file` | the size and, at first use in this process, the hash of an existing file; writes if the file is missing or damaged |
//!
//! A damaged content is removed and counts as missing: the step that produces it runs again.

use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use rayon::prelude::*;

use super::Blobs;
use super::home::{Doing, Home, TEMP_PREFIX, hash_of, named, persist, publish, shard};
use kforge_foundation::base::Digest;

/// The file mode of every content.
const READ_ONLY: u32 = 0o444;

/// A content store in a [`Home`].
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    tmp: PathBuf,
    /// The contents whose bytes this process has checked.
    checked: Mutex<HashSet<Digest>>,
    /// What the store held at [`Store::preload`].
    listing: RwLock<HashSet<[u8; 32]>>,
}

impl Store {
    /// The store of `home`.
    pub fn new(home: &Home) -> Store {
        Store { root: home.cas(), tmp: home.tmp(), checked: Mutex::default(), listing: RwLock::default() }
    }

    /// Reads the listing of the store once, so that `has` needs no system call for the listed contents. Worthwhile before thousands of calls. The listing is
    /// valid as long as the cache lock is held; without the lock, contents may be collected.
    pub fn preload(&self) -> io::Result<()> {
        let list = |shard: u32| -> io::Result<Vec<[u8; 32]>> {
            let folder = self.root.join(format!("{shard:02x}"));
            match std::fs::read_dir(&folder) {
                Ok(entries) => Ok(entries.filter_map(|entry| hash_of(&entry.ok()?.file_name())).collect()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(vec![]),
                Err(e) => Err(named(e, Doing::Read, &folder)),
            }
        };
        let shards: io::Result<Vec<_>> = (0..256u32).into_par_iter().map(list).collect();
        let listing = shards?.into_iter().flatten().collect();
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = listing;
        Ok(())
    }

    /// The path at which the store keeps the bytes of `digest`, if it has them.
    pub fn place(&self, digest: &Digest) -> PathBuf {
        self.root.join(shard(digest))
    }

    /// Opens the file of a digest if its size is correct. Removes a file that does not match its name.
    fn open(&self, digest: &Digest) -> io::Result<Option<File>> {
        let path = self.place(digest);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(named(e, Doing::Read, &path)),
        };
        let seen = file.metadata().map_err(|e| named(e, Doing::Read, &path))?;
        if seen.is_file() && seen.len() == digest.size() {
            return Ok(Some(file));
        }
        // The caller's digest may state the wrong size, while the file is correct.
        if Digest::of_reader(&file).map_err(|e| named(e, Doing::Read, &path))?.hash() != digest.hash() {
            self.remove(&path, &file)?;
        }
        Ok(None)
    }

    /// Removes a damaged file, unless another process has replaced it by a correct one in the meantime.
    fn remove(&self, path: &Path, wrong: &File) -> io::Result<()> {
        let same = match (std::fs::symlink_metadata(path), wrong.metadata()) {
            (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
            _ => false,
        };
        if same {
            if let Some(hash) = path.file_name().and_then(hash_of) {
                self.listing.write().unwrap_or_else(PoisonError::into_inner).remove(&hash);
            }
            match std::fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(e, Doing::RemoveCorrupt, path)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the store has the correct bytes. Computes their hash unless this process has already checked it. Removes damaged files.
    fn sound(&self, digest: &Digest) -> io::Result<bool> {
        let Some(file) = self.open(digest)? else { return Ok(false) };
        if self.seen(digest) {
            return Ok(true);
        }
        let path = self.place(digest);
        if Digest::of_reader(&file).map_err(|e| named(e, Doing::Read, &path))? == *digest {
            self.saw(digest);
            return Ok(true);
        }
        self.remove(&path, &file)?;
        Ok(false)
    }

    fn seen(&self, digest: &Digest) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    fn saw(&self, digest: &Digest) {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(*digest);
    }

    /// Moves `from` into the store if no other process can write to it afterwards. Returns none if the file must be copied instead.
    fn adopt(&self, from: &Path) -> io::Result<Option<Digest>> {
        let seen = std::fs::symlink_metadata(from)?;
        // Through a second hard link or the target of a symbolic link, others could change the stored content.
        if !seen.is_file() || seen.nlink() != 1 {
            return Ok(None);
        }
        let name = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(&self.tmp)?.into_temp_path();
        // The file is on another file system, or this process may not move it.
        if std::fs::rename(from, &name).is_err() {
            return Ok(None);
        }
        // From here on only this process can find the file, so the hash is computed after the move.
        std::fs::set_permissions(&name, Permissions::from_mode(READ_ONLY))?;
        let digest = Digest::of_file(&name)?;
        if !self.sound(&digest)? {
            let file = File::open(&name)?;
            persist(tempfile::NamedTempFile::from_parts(file, name), &self.place(&digest))?;
            self.saw(&digest);
        }
        Ok(Some(digest))
    }

    fn copy(&self, from: &Path) -> io::Result<Digest> {
        let mut reader = File::open(from).map_err(|e| named(e, Doing::Read, from))?;
        let mut temp = tempfile::Builder::new();
        let mut temp = temp
            .prefix(TEMP_PREFIX)
            .permissions(Permissions::from_mode(READ_ONLY))
            .tempfile_in(&self.tmp)
            .map_err(|e| named(e, Doing::WriteIn, &self.tmp))?;
        let mut hashing = Hashing { inner: &mut reader, to: temp.as_file_mut(), failed: None };
        let digest = Digest::of_reader(&mut hashing);
        if let Some(error) = hashing.failed {
            return Err(named(error, Doing::WriteIn, &self.tmp));
        }
        let digest = digest.map_err(|e| named(e, Doing::Read, from))?;
        if !self.sound(&digest)? {
            persist(temp, &self.place(&digest))?;
            self.saw(&digest);
        }
        Ok(digest)
    }
}

/// Copies to `to` what is read through it, so that the bytes that are hashed are the bytes that are written.
struct Hashing<'a> {
    inner: &'a mut File,
    to: &'a mut File,
    /// The error of writing; an error of reading is returned instead.
    failed: Option<io::Error>,
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Err(error) = self.to.write_all(&buffer[..n]) {
            self.failed = Some(error);
            return Ok(0);
        }
        Ok(n)
    }
}

impl Blobs for Store {
    fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        let Some(mut file) = self.open(digest)? else { return Ok(None) };
        let path = self.place(digest);
        let mut bytes = Vec::with_capacity(usize::try_from(digest.size()).unwrap_or(0));
        file.read_to_end(&mut bytes).map_err(|e| named(e, Doing::Read, &path))?;
        if Digest::of(&bytes) == *digest {
            self.saw(digest);
            return Ok(Some(bytes));
        }
        self.remove(&path, &file)?;
        Ok(None)
    }

    fn path(&self, digest: &Digest) -> io::Result<Option<PathBuf>> {
        Ok(self.sound(digest)?.then(|| self.place(digest)))
    }

    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        if !self.sound(&digest)? {
            publish(&self.tmp, &self.place(&digest), bytes, READ_ONLY)?;
            self.saw(&digest);
        }
        Ok(digest)
    }

    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        match self.adopt(path).map_err(|e| named(e, Doing::Keep, path))? {
            Some(digest) => Ok(digest),
            None => self.copy(path),
        }
    }

    fn has(&self, digest: &Digest) -> bool {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).contains(digest.hash())
            || std::fs::metadata(self.place(digest)).is_ok_and(|m| m.len() == digest.size())
    }
}

#[cfg(test)]
mod tests;
