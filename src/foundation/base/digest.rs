//! Content digests. Knows bytes and files; does not know what they mean.
//!
//! A digest is written `blake3:<64 hex digits>:<size in bytes>`. The prefix leaves room for another hash function. The size lets a store refuse a file of the
//! wrong length without reading it.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The blake3 hash of some bytes, and their number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    hash: [u8; 32],
    size: u64,
}

/// Text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: expected `blake3:<64 hex digits>:<size>`")]
pub struct NotADigest(pub String);

impl Digest {
    /// A digest from its parts.
    pub fn from_parts(hash: [u8; 32], size: u64) -> Self {
        Digest { hash, size }
    }

    /// The digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Digest { hash: *blake3::hash(bytes).as_bytes(), size: bytes.len() as u64 }
    }

    /// The digest of bytes in memory, computed on all processors. For large inputs.
    pub fn of_long(bytes: &[u8]) -> Self {
        // Below this size, distributing the work takes longer than hashing.
        if bytes.len() < 1 << 20 {
            return Self::of(bytes);
        }
        let hash = blake3::Hasher::new().update_rayon(bytes).finalize();
        Digest { hash: *hash.as_bytes(), size: bytes.len() as u64 }
    }

    /// The digest of what a reader yields until its end.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0u8; 1 << 16];
        let mut size = 0u64;
        loop {
            let n = reader.read(&mut buffer)?;
            if n == 0 {
                return Ok(Digest { hash: *hasher.finalize().as_bytes(), size });
            }
            hasher.update(&buffer[..n]);
            size += n as u64;
        }
    }

    /// The digest of a file's contents.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Self::of_reader(std::fs::File::open(path)?)
    }

    /// The hash itself.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// How many bytes were hashed.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The hash as 64 hexadecimal digits. Stores name files by this text.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.hash {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        text
    }

    /// The first twelve hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.hex()[..12].to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}:{}", self.hex(), self.size)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let wrong = || NotADigest(text.to_string());
        let rest = text.strip_prefix("blake3:").ok_or_else(wrong)?;
        let (hex, size) = rest.split_once(':').ok_or_else(wrong)?;
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(wrong());
        }
        let mut hash = [0u8; 32];
        for (i, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Digest { hash, size: size.parse().map_err(|_| wrong())? })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "function, hash in hexadecimal, size in bytes",
            "pattern": "^blake3:[0-9a-f]{64}:[0-9]+$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let digest = Digest::of(b"kernel");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert_eq!(digest.size(), 6);
    }

    #[test]
    fn refuses_other_text() {
        let good = Digest::of(b"x").to_string();
        for bad in
            ["", "blake3:00:1", &good.replace("blake3", "sha256"), &good.replace(":1", ":"), &good.to_uppercase()]
        {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reader_gives_the_digest_of_its_bytes() {
        let bytes = vec![7u8; 200_000];
        assert_eq!(Digest::of_reader(&bytes[..]).unwrap(), Digest::of(&bytes));
    }
}
