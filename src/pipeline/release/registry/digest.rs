//! The digest by which a registry names contents: `sha256:` and 64 hexadecimal digits. Knows no other algorithm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::release::artifact::files::sha256;

/// The SHA-256 of contents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OciDigest {
    hex: String,
}

/// A text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a digest: expected `sha256:` and 64 lower-case hexadecimal digits", .0.escape_default())]
pub struct NotOciDigest(pub String);

impl OciDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> OciDigest {
        OciDigest { hex: sha256(bytes) }
    }

    /// The 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// The tag under which the referrers of these contents are listed where there is no API for them.
    pub fn fallback_tag(&self) -> String {
        format!("sha256-{}", self.hex)
    }
}

impl fmt::Display for OciDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex)
    }
}

impl FromStr for OciDigest {
    type Err = NotOciDigest;

    fn from_str(text: &str) -> Result<Self, NotOciDigest> {
        let is_hex = |hex: &&str| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let hex = text.strip_prefix("sha256:").filter(is_hex);
        hex.map(|hex| OciDigest { hex: hex.into() }).ok_or_else(|| NotOciDigest(text.into()))
    }
}

impl TryFrom<String> for OciDigest {
    type Error = NotOciDigest;

    fn try_from(text: String) -> Result<Self, NotOciDigest> {
        text.parse()
    }
}

impl From<OciDigest> for String {
    fn from(digest: OciDigest) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha256_and_64_lower_case_digits() {
        let digest = OciDigest::of(b"{}");
        assert_eq!(digest.to_string(), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(digest.to_string().parse(), Ok(digest.clone()));
        let other = digest.to_string();
        for text in [&other[..70], &other.to_uppercase(), &other.replace("sha256", "sha512"), &format!("{other}0"), ""]
        {
            assert_eq!(text.parse::<OciDigest>(), Err(NotOciDigest(text.into())));
        }
    }
}
