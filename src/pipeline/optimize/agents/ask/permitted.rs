//! Which keys may go to which hosts. A manifest names the variable and the address, and a manifest may be somebody else's: so the user says, outside every
//! repository, which variable may be sent where. Knows names; reads no environment and sends nothing.
//!
//! | decision | because |
//! |---|---|
//! | a permission binds a variable to a host | with a list of variables only, a manifest could send a permitted key to an address of its own |
//! | it is the setting `agents.keys`, which no repository can set | the first run prints the line, so an honest manifest costs one paste |
//! | no key over plain `http`, except to this machine | everybody between here and there could read it |

use ureq::http::Uri;

/// The setting that holds the permissions: `VARIABLE=HOST`, separated by commas.
pub const SETTING: &str = "agents.keys";

/// The permitted keys, as the user states them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermittedKeys(Vec<(String, String)>);

/// Why a key is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The address has no host.
    #[error("`{0}` names no host")]
    NoHost(String),
    /// It would go over a network in plain text.
    #[error(
        "its key would go to `{0}` in plain text: expected `https://`, or `http://` with an address of this machine"
    )]
    Plain(String),
    /// The user has not permitted it.
    #[error(
        "kernel.toml names the variable `{variable}` and the host `{host}`, and you have not permitted to send one to the other; if that is what you want, \
         set `{SETTING}` to \"{setting}\" in the configuration of your home (by default ~/.kforge/config.toml), or add `--config {SETTING}={setting}`"
    )]
    NotPermitted {
        /// The variable.
        variable: String,
        /// The host.
        host: String,
        /// The setting with the permission added.
        setting: String,
    },
}

impl PermittedKeys {
    /// The permissions in the text of the setting.
    pub fn parse(text: &str) -> PermittedKeys {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        PermittedKeys(pairs.map(|(variable, host)| (variable.trim().into(), host.trim().into())).collect())
    }

    /// Checks that the key in a variable may be sent to an address.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn check(&self, variable: &str, url: &str) -> Result<(), NotSent> {
        let no_host = || NotSent::NoHost(url.into());
        let uri: Uri = url.parse().map_err(|_| no_host())?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(no_host)?.to_ascii_lowercase();
        if uri.scheme_str() != Some("https") && !is_here(&host) {
            return Err(NotSent::Plain(host));
        }
        let with_port = uri.port_u16().map(|port| format!("{host}:{port}"));
        let fits = |stated: &str| {
            let stated = stated.to_ascii_lowercase();
            stated == host || Some(&stated) == with_port.as_ref()
        };
        if self.0.iter().any(|(name, stated)| name == variable && fits(stated)) {
            return Ok(());
        }
        let added = [(variable.to_string(), host.clone())];
        let all: Vec<String> = self.0.iter().chain(&added).map(|(name, host)| format!("{name}={host}")).collect();
        Err(NotSent::NotPermitted { variable: variable.into(), host, setting: all.join(",") })
    }
}

/// Whether a host is this machine.
pub(crate) fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_only_where_the_user_lets_it() {
        let permitted = PermittedKeys::parse("A=api.example.com, B=Other.example:8443");
        for (variable, url, goes) in [
            ("A", "https://api.example.com/v1", true),
            ("A", "https://API.example.com:8443/v1", true),
            ("B", "https://other.example:8443/v1", true),
            ("B", "https://other.example/v1", false),
            ("B", "https://api.example.com/v1", false),
            ("C", "https://api.example.com/v1", false),
            // Addresses that only look like the permitted one.
            ("A", "https://api.example.com@evil.example/v1", false),
            ("A", "https://evil.example/api.example.com", false),
            ("A", "https://evil.example#@api.example.com", false),
            ("A", "https://api.example.com.evil.example/v1", false),
        ] {
            assert_eq!(permitted.check(variable, url).is_ok(), goes, "{variable} to {url}");
        }
        let why = permitted.check("C", "https://api.example.com/v1").unwrap_err();
        let NotSent::NotPermitted { setting, .. } = &why else { panic!("{why}") };
        assert!(PermittedKeys::parse(setting).check("C", "https://api.example.com/v1").is_ok(), "{setting}");
        assert!(PermittedKeys::parse(setting).check("A", "https://api.example.com/v1").is_ok(), "{setting}");
    }

    #[test]
    fn no_key_goes_over_a_network_in_plain_text() {
        let permitted = PermittedKeys::parse(
            "A=api.example.com,A=127.0.0.1,A=localhost,A=[::1],A=10.0.0.1,A=127.0.0.1.evil.example",
        );
        for (url, goes) in [
            ("http://api.example.com/v1", false),
            ("http://10.0.0.1:8000/v1", false),
            ("http://127.0.0.1.evil.example/v1", false),
            ("http://127.0.0.1:8000/v1", true),
            ("http://localhost:8000/v1", true),
            ("http://[::1]:8000/v1", true),
        ] {
            let checked = permitted.check("A", url);
            assert_eq!(checked.is_ok(), goes, "{url}");
            assert!(goes || matches!(checked, Err(NotSent::Plain(_))), "{url}");
        }
        // An address of this machine is no permission.
        assert!(PermittedKeys::default().check("A", "http://127.0.0.1:8000/v1").is_err());
        assert_eq!(permitted.check("A", "http:///v1"), Err(NotSent::NoHost("http:///v1".into())));
    }
}
