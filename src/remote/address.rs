//! Where a result lies: the digest of an action that holds kforge's key as its salt.
//!
//! The action has the same command and an empty input root for every key, so no blob needs to be uploaded for it, and no other client of the server uses such
//! an action.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use kforge_foundation::base::Digest;
use prost::Message as _;

use super::digests::HashFunction;

/// The address of the result of a key.
pub(crate) fn address(function: HashFunction, key: &Digest) -> reapi::Digest {
    let command = reapi::Command { arguments: vec!["kforge".into(), "key".into()], ..Default::default() };
    let action = reapi::Action {
        command_digest: Some(function.of(&command.encode_to_vec())),
        input_root_digest: Some(function.of(&reapi::Directory::default().encode_to_vec())),
        salt: key.to_string().into_bytes(),
        ..Default::default()
    };
    function.of(&action.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_what_they_are_and_differ_by_key_and_function() {
        let of = |function, key: &[u8]| address(function, &Digest::of(key)).hash;
        let golden = of(HashFunction::Sha256, b"key");
        assert_eq!(
            golden, "e4a1a8bccd9b812aa038cf763af467930b05f4c0cd1b1cd746d32d700e1c7cf2",
            "another address: no result that is stored today would be found"
        );
        assert_ne!(golden, of(HashFunction::Sha256, b"other"));
        assert_ne!(golden, of(HashFunction::Blake3, b"key"));
    }
}
