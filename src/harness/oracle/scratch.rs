//! Bytes that can be computed again, by content, in a folder with a size limit. Knows digests and files; does not know what the bytes mean.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;

/// A folder of bytes that can be computed again. Several processes may use it at once: if one removes bytes that another needs, the other computes them again.
#[derive(Debug, Clone)]
pub struct Scratch {
    folder: PathBuf,
    limit: u64,
}

impl Scratch {
    /// The scratch in `folder`, with at most `limit` bytes.
    pub fn new(folder: &Path, limit: u64) -> Self {
        Scratch { folder: folder.to_path_buf(), limit }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }

    /// The bytes of a digest, if they are still stored and undamaged. Renews their time of last use.
    pub fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path(digest);
        let bytes = fs::read(&path).ok()?;
        if Digest::of_long(&bytes) != *digest {
            let _ = fs::remove_file(&path);
            return None;
        }
        // A failure affects only the order of removal.
        let _ = fs::File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Stores bytes, and removes the least recently used ones beyond the limit. Bytes larger than the limit are not stored.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of_long(bytes);
        if digest.size() > self.limit {
            return Ok(digest);
        }
        if !self.path(&digest).exists() {
            write_atomically(&self.path(&digest), bytes, false)?;
        }
        self.trim(&digest)?;
        Ok(digest)
    }

    fn trim(&self, newest: &Digest) -> io::Result<()> {
        let newest = self.path(newest);
        let mut files = vec![];
        for entry in fs::read_dir(&self.folder)?.flatten() {
            // Another process may have removed the file in the meantime.
            let Ok(meta) = entry.metadata() else { continue };
            files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()));
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        files.sort();
        for (_, size, path) in files {
            if total <= self.limit {
                break;
            }
            if path != newest {
                let _ = fs::remove_file(path);
                total -= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn age(scratch: &Scratch, digest: &Digest, seconds: u64) {
        let file = fs::File::options().append(true).open(scratch.path(digest)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(dir.path(), 25);
        let [a, b] = [b"aaaaaaaaaa", b"bbbbbbbbbb"].map(|bytes| scratch.put(bytes).unwrap());
        age(&scratch, &a, 10);
        age(&scratch, &b, 20);
        assert!(scratch.get(&b).is_some(), "reading makes `b` the one used last");
        scratch.put(b"cccccccccc").unwrap();
        assert_eq!((scratch.get(&a), scratch.get(&b)), (None, Some(b"bbbbbbbbbb".to_vec())));
    }

    #[test]
    fn spoilt_bytes_are_not_given_and_large_ones_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(dir.path(), 100);
        let digest = scratch.put(b"expected").unwrap();
        fs::write(scratch.path(&digest), b"forged!!").unwrap();
        assert_eq!(scratch.get(&digest), None);
        assert!(!scratch.path(&digest).exists());
        let large = scratch.put(&[0; 101]).unwrap();
        assert_eq!((large, scratch.get(&large)), (Digest::of(&[0; 101]), None));
    }
}
