//! Who sends a request: bearer tokens from a file. Knows tokens only as digests.

use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use crate::service::Client;
use kforge_foundation::base::Digest;

/// The name of the client if no tokens are required.
const ANYBODY: &str = "anybody";

/// The fewest characters of a token.
const SHORTEST: usize = 16;

/// The most characters of a client's name.
const LONGEST_NAME: usize = 64;

/// Why tokens cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("cannot read the tokens in `{}`: {source}", path.display())]
    NotRead {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others may read the file.
    #[error("other users may read the tokens in `{}`: run `chmod 600` on it", .0.display())]
    Readable(PathBuf),
    /// The file belongs to another user.
    #[error("the tokens in `{}` belong to another user", .0.display())]
    Owner(PathBuf),
    /// A line is no token.
    #[error("line {line} of `{}` is not a token: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no token.
    #[error("`{}` has no token: expected lines `NAME TOKEN`", .0.display())]
    Empty(PathBuf),
}

/// The tokens of clients.
pub struct Tokens(Vec<([u8; 32], Client)>);

impl Tokens {
    /// Reads a file of lines `NAME TOKEN`. A client may have several tokens. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, other users may read it, or it is malformed.
    pub fn read(path: &Path) -> Result<Tokens, TokensError> {
        let failed = |source| TokensError::NotRead { path: path.into(), source };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(TokensError::Readable(path.into()));
        }
        if !owns(about.uid(), rustix::process::geteuid().as_raw()) {
            return Err(TokensError::Owner(path.into()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let mut all: Vec<([u8; 32], Client)> = vec![];
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why| TokensError::Line { path: path.into(), line: at + 1, why };
            let (name, token) = line.split_once([' ', '\t']).ok_or_else(|| wrong("expected `NAME TOKEN`"))?;
            let token = token.trim();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if name.len() > LONGEST_NAME || !name.chars().all(plain) {
                return Err(wrong(
                    "the name has other characters than letters, digits and `.`, `_`, `-`, or more than 64",
                ));
            }
            if token.len() < SHORTEST || !token.chars().all(|c| c.is_ascii_graphic()) {
                return Err(wrong("the token has fewer than 16 characters, or others than visible ones of ASCII"));
            }
            let digest = *Digest::of(token.as_bytes()).hash();
            if all.iter().any(|(known, _)| *known == digest) {
                return Err(wrong("the token is that of a line before"));
            }
            all.push((digest, Client::new(name)));
        }
        if all.is_empty() { Err(TokensError::Empty(path.into())) } else { Ok(Tokens(all)) }
    }

    /// The client of a token. Takes the same time for every token that is not known.
    fn client(&self, token: &str) -> Option<Client> {
        let digest = Digest::of(token.as_bytes());
        let mut found = None;
        for (known, client) in &self.0 {
            if bool::from(known[..].ct_eq(&digest.hash()[..])) {
                found = Some(client.clone());
            }
        }
        found
    }
}

/// Whether a file of this user is one of the server's user.
fn owns(owner: u32, user: u32) -> bool {
    owner == user
}

/// Whether a page of a browser may have sent a request: it has an origin, or a host that an attacker's name server can lead here. Addresses, names without a
/// dot, and names of the domains that no public name server knows are none of those.
pub(crate) fn is_from_a_page(headers: &HeaderMap) -> bool {
    if headers.contains_key(header::ORIGIN) {
        return true;
    }
    let Some(host) = headers.get(header::HOST) else { return false };
    let Ok(host) = host.to_str() else { return true };
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return true };
    let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    let is_private = !name.contains('.') || [".localhost", ".local", ".internal"].iter().any(|end| name.ends_with(end));
    !is_private && address.parse::<std::net::IpAddr>().is_err()
}

/// How requests are authenticated.
pub(crate) enum Auth {
    /// By tokens.
    Tokens(Tokens),
    /// Not at all: all requests are those of one client.
    Open,
}

impl Auth {
    /// Whether requests need no token.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Auth::Open)
    }

    /// The client of a request; none if its token is missing or unknown.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Option<Client> {
        let tokens = match self {
            Auth::Open => return Some(Client::new(ANYBODY)),
            Auth::Tokens(tokens) => tokens,
        };
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        tokens.client(token.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, mode: u32) -> Result<Tokens, TokensError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Tokens::read(&path)
    }

    #[test]
    fn a_client_is_known_by_any_of_its_tokens() {
        let tokens = read("# ours\n\nalice 0123456789abcdef\nbob\t fedcba9876543210\nalice 0000111122223333\n", 0o600);
        let auth = Auth::Tokens(tokens.unwrap());
        let client = |value: &str| {
            let headers = [(header::AUTHORIZATION, value.parse().unwrap())].into_iter().collect();
            auth.client(&headers).map(|client| client.name().to_string())
        };
        assert_eq!(client("Bearer 0123456789abcdef").as_deref(), Some("alice"));
        assert_eq!(client("bearer 0000111122223333").as_deref(), Some("alice"));
        assert_eq!(client("Bearer fedcba9876543210").as_deref(), Some("bob"));
        for wrong in ["Bearer 0123456789abcdee", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer", "Bearer "] {
            assert_eq!(client(wrong), None, "{wrong}");
        }
        assert!(auth.client(&HeaderMap::new()).is_none());
    }

    #[test]
    fn a_file_of_tokens_is_private_and_well_formed() {
        assert!(matches!(read("a 0123456789abcdef", 0o640), Err(TokensError::Readable(_))));
        assert!(matches!(read("# none\n", 0o600), Err(TokensError::Empty(_))));
        let twice = "a 0123456789abcdef\nb 0123456789abcdef";
        for (text, line) in
            [("a", 1), (twice, 2), ("\na short", 2), ("a/b 0123456789abcdef", 1), ("a 0123456789abcdéf", 1)]
        {
            assert!(matches!(read(text, 0o600), Err(TokensError::Line { line: at, .. }) if at == line), "{text}");
        }
    }

    #[test]
    fn a_page_of_a_browser_has_an_origin_or_a_public_name() {
        let from = |name: header::HeaderName, value: &str| {
            is_from_a_page(&[(name, value.parse().unwrap())].into_iter().collect())
        };
        assert!(from(header::ORIGIN, "http://localhost:7377") && from(header::ORIGIN, "null"));
        for host in ["evil.example", "evil.example:7377", "127.0.0.1.evil.example", "evil.example.", "", "a@b.example"]
        {
            assert!(from(header::HOST, host), "{host}");
        }
        for host in ["localhost:7377", "127.0.0.1:7377", "[::1]:7377", "10.0.0.2", "gpu-1", "gpu.internal", "a.local:1"]
        {
            assert!(!from(header::HOST, host), "{host}");
        }
        assert!(!is_from_a_page(&HeaderMap::new()));
        assert!(owns(7, 7) && !owns(1000, 0), "nor does root take the tokens of another user");
    }
}
