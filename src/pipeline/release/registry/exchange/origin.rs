//! Where a request goes: a scheme, a host and a port. Knows addresses; does not know who may be asked.

use ureq::http::Uri;

use crate::optimize::agents::ask::is_here;

/// A scheme with a host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Origin {
    pub(in super::super) https: bool,
    pub(in super::super) host: String,
    port: u16,
}

impl Origin {
    /// The origin of an address; none if it has no host, another scheme, or a user's name.
    pub(in super::super) fn of(address: &str) -> Option<Origin> {
        let uri: Uri = address.parse().ok()?;
        let https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host().to_ascii_lowercase();
        let rest = authority.as_str().get(host.len()..)?;
        let port = match (rest.strip_prefix(':'), rest.is_empty(), https) {
            (Some(port), ..) => port.parse().ok()?,
            (None, true, true) => 443,
            (None, true, false) => 80,
            // A user's name.
            (None, false, _) => return None,
        };
        let is_plain = !authority.as_str().contains('@') && !host.is_empty();
        is_plain.then_some(Origin { https, host, port })
    }

    pub(super) fn is_here(&self) -> bool {
        is_here(&self.host)
    }

    pub(super) fn address(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        match (self.https, self.port) {
            (true, 443) | (false, 80) => format!("{scheme}://{}", self.host),
            (_, port) => format!("{scheme}://{}:{port}", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_scheme_a_host_and_a_port_and_no_user() {
        let of = |address: &str| Origin::of(address).map(|origin| origin.address());
        assert_eq!(of("https://A.b/c").as_deref(), Some("https://a.b"));
        assert_eq!(of("http://[::1]:5000/c").as_deref(), Some("http://[::1]:5000"));
        assert_eq!(Origin::of("https://a.b:443/"), Origin::of("https://a.b/x"));
        for address in ["https://user@a.b/", "ftp://a.b/", "/v2/", "a.b", "https://:80/", "https://a.b:99999/"] {
            assert_eq!(of(address), None, "{address}");
        }
    }
}
