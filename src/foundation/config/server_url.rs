//! The address of a server, as a setting gives it.

use std::fmt;
use std::str::FromStr;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// The host and, after a colon, the port.
    pub authority: String,
}

/// Text that is not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `grpcs://HOST:PORT`, or `grpc://HOST:PORT` for a connection that is not encrypted")]
pub struct NotAServer;

impl FromStr for ServerUrl {
    type Err = NotAServer;

    fn from_str(text: &str) -> Result<Self, NotAServer> {
        let (scheme, rest) = text.split_once("://").ok_or(NotAServer)?;
        let is_encrypted = match scheme {
            "grpcs" | "https" => true,
            "grpc" | "http" => false,
            _ => return Err(NotAServer),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let is_plain = |host: &str| {
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        };
        let fine = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) => {
                host.parse::<std::net::Ipv6Addr>().is_ok()
                    && (after.is_empty() || after.strip_prefix(':').is_some_and(port))
            }
            None => match authority.split_once(':') {
                Some((host, after)) => is_plain(host) && port(after),
                None => is_plain(authority),
            },
        };
        if fine { Ok(ServerUrl { is_encrypted, authority: authority.to_string() }) } else { Err(NotAServer) }
    }
}

impl ServerUrl {
    /// The host, without brackets and port.
    pub fn host(&self) -> &str {
        match self.authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, _)) => host,
            None => self.authority.split(':').next().unwrap_or_default(),
        }
    }

    /// Whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The address for HTTP, with a port.
    pub fn http(&self) -> String {
        let (scheme, default) = if self.is_encrypted { ("https", 443) } else { ("http", 80) };
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match has_port && !self.authority.ends_with(']') {
            true => format!("{scheme}://{}", self.authority),
            false => format!("{scheme}://{}:{default}", self.authority),
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_encrypted { "grpcs" } else { "grpc" }, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_and_a_host() {
        let of = |text: &str| text.parse::<ServerUrl>().map(|url| (url.to_string(), url.http(), url.is_loopback()));
        let yes = |shown: &str, http: &str, here| Ok((shown.to_string(), http.to_string(), here));
        assert_eq!(of("grpc://localhost:50051"), yes("grpc://localhost:50051", "http://localhost:50051", true));
        assert_eq!(
            of("https://cache.example.com/"),
            yes("grpcs://cache.example.com", "https://cache.example.com:443", false)
        );
        assert_eq!(of("grpcs://[::1]"), yes("grpcs://[::1]", "https://[::1]:443", true));
        assert_eq!(of("http://[::1]:80"), yes("grpc://[::1]:80", "http://[::1]:80", true));
        assert_eq!(
            of("grpc://127.0.0.1.evil.example"),
            yes("grpc://127.0.0.1.evil.example", "http://127.0.0.1.evil.example:80", false)
        );
        for text in [
            "",
            "localhost:1",
            "ftp://x",
            "grpc://",
            "grpc://a b",
            "grpc://a:0",
            "grpc://a:99999",
            "grpc://a/b",
            "grpc://u@h",
            "grpc://[x]",
        ] {
            assert_eq!(of(text), Err(NotAServer), "{text}");
        }
    }
}
