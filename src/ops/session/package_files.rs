//! Files of packages as blobs: found by digest, read only when a step needs them, and only if they still match their digest.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kforge_engine::Blobs;
use kforge_foundation::base::Digest;

/// The store, with the files of packages and small documents of the plan in front of it.
pub struct Leaves {
    store: Arc<dyn Blobs>,
    files: HashMap<Digest, PathBuf>,
    documents: BTreeMap<Digest, Vec<u8>>,
}

impl Leaves {
    /// Leaves in front of a store.
    pub fn new(store: Arc<dyn Blobs>, files: HashMap<Digest, PathBuf>, documents: BTreeMap<Digest, Vec<u8>>) -> Self {
        Leaves { store, files, documents }
    }

    /// The files of packages.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.values()
    }

    /// A leaf that is not in the store yet, checked against its digest.
    fn leaf(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.documents.get(digest) {
            return Ok(Some(bytes.clone()));
        }
        let Some(path) = self.files.get(digest) else { return Ok(None) };
        let bytes = std::fs::read(path)
            .map_err(|e| io::Error::new(e.kind(), format!("cannot read `{}`: {e}", path.display())))?;
        if Digest::of(&bytes) != *digest {
            return Err(io::Error::other(format!("`{}` changed while the build ran; run it again", path.display())));
        }
        Ok(Some(bytes))
    }
}

impl Blobs for Leaves {
    fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        match self.leaf(digest)? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.store.get(digest),
        }
    }

    fn path(&self, digest: &Digest) -> io::Result<Option<PathBuf>> {
        if let Some(path) = self.store.path(digest)? {
            return Ok(Some(path));
        }
        match self.leaf(digest)? {
            Some(bytes) => {
                self.store.put(&bytes)?;
                self.store.path(digest)
            }
            None => Ok(None),
        }
    }

    fn fetch(&self, digests: &[Digest]) {
        self.store.fetch(digests);
    }

    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        self.store.put(bytes)
    }

    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        self.store.put_file(path)
    }

    fn has(&self, digest: &Digest) -> bool {
        self.documents.contains_key(digest) || self.files.contains_key(digest) || self.store.has(digest)
    }
}
