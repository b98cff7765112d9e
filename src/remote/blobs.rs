//! The store of this machine, with the contents of a remote cache behind it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kforge_engine::Blobs;
use kforge_foundation::base::Digest;

use super::cache::Remote;

/// A store, and behind it the contents that hits of a remote cache have named. They are fetched when they are read.
pub struct RemoteBlobs {
    store: Arc<dyn Blobs>,
    remote: Arc<Remote>,
}

impl RemoteBlobs {
    /// The store that the remote cache fills, and that cache.
    pub fn new(store: Arc<dyn Blobs>, remote: Arc<Remote>) -> RemoteBlobs {
        RemoteBlobs { store, remote }
    }
}

impl Blobs for RemoteBlobs {
    fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        match self.store.get(digest)? {
            None if self.remote.fetch(&[*digest]) => self.store.get(digest),
            found => Ok(found),
        }
    }

    fn path(&self, digest: &Digest) -> io::Result<Option<PathBuf>> {
        match self.store.path(digest)? {
            None if self.remote.fetch(&[*digest]) => self.store.path(digest),
            found => Ok(found),
        }
    }

    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        self.store.put(bytes)
    }

    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        self.store.put_file(path)
    }

    fn has(&self, digest: &Digest) -> bool {
        self.store.has(digest) || self.remote.names(digest)
    }

    fn fetch(&self, digests: &[Digest]) {
        self.remote.fetch(digests);
    }
}
