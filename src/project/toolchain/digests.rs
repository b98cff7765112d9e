//! Combines digests into fingerprints. Knows digests, but not tools.

use std::io;
use std::path::Path;

use kforge_foundation::base::Digest;

/// Computes the digest of a file's contents. The caller may answer from a cache keyed by the file's stat.
pub type DigestFile<'a> = &'a dyn Fn(&Path) -> io::Result<Digest>;

/// One digest for several, in order.
pub(crate) fn digest_of_sequence(digests: &[Digest]) -> Digest {
    let mut bytes = Vec::with_capacity(40 * digests.len());
    for digest in digests {
        bytes.extend(digest.hash());
        bytes.extend(digest.size().to_le_bytes());
    }
    Digest::of(&bytes)
}
