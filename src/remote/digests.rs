//! Digests as the server knows them. Knows hash functions; does not know what is hashed.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use kforge_foundation::base::Digest;
use reapi::digest_function::Value as Function;
use sha2::Digest as _;

/// A hash function that kforge and the server both use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashFunction {
    /// kforge's own: the server's digest of a content is that of kforge.
    Blake3,
    /// The function of most servers.
    Sha256,
}

impl HashFunction {
    /// The first function among those that a server announces that kforge prefers; none if it announces neither. A server may not be asked with another one: some
    /// ignore the field.
    pub(crate) fn preferred(announced: &[i32]) -> Option<HashFunction> {
        [HashFunction::Blake3, HashFunction::Sha256].into_iter().find(|function| announced.contains(&function.number()))
    }

    /// Its number in the API.
    pub(crate) fn number(self) -> i32 {
        match self {
            HashFunction::Blake3 => Function::Blake3 as i32,
            HashFunction::Sha256 => Function::Sha256 as i32,
        }
    }

    /// The part of a resource's name that says the function. SHA-256 is not named.
    pub(crate) fn in_names(self) -> &'static str {
        match self {
            HashFunction::Blake3 => "blake3/",
            HashFunction::Sha256 => "",
        }
    }

    /// The digest of a content that has this digest of kforge, where both use the same function.
    pub(crate) fn named(self, digest: &Digest) -> reapi::Digest {
        reapi::Digest { hash: digest.hex(), size_bytes: i64::try_from(digest.size()).unwrap_or(i64::MAX) }
    }

    /// The digest of some bytes.
    pub(crate) fn of(self, bytes: &[u8]) -> reapi::Digest {
        let hash = match self {
            HashFunction::Blake3 => Digest::of(bytes).hex(),
            HashFunction::Sha256 => sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        reapi::Digest { hash, size_bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_is_one_that_the_server_announces() {
        let (sha256, blake3, other) = (Function::Sha256 as i32, Function::Blake3 as i32, Function::Sha384 as i32);
        assert_eq!(HashFunction::preferred(&[sha256, blake3]), Some(HashFunction::Blake3));
        assert_eq!(HashFunction::preferred(&[other, sha256]), Some(HashFunction::Sha256));
        assert_eq!(HashFunction::preferred(&[other]), None);
        // The digests of no bytes, from the definitions of the functions.
        assert!(HashFunction::Sha256.of(b"").hash.starts_with("e3b0c44298fc1c14"));
        assert!(HashFunction::Blake3.of(b"").hash.starts_with("af1349b9f5f9a1a6"));
    }
}
