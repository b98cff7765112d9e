//! The environment of this process, read once. Everything else gets what it needs from here, so that a test can state it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    vars: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn of_process() -> Self {
        Environment {
            vars: std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        }
    }

    /// A stated one.
    pub fn of(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Environment { vars: vars.into_iter().collect() }
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// `PATH`, for finding tools.
    pub fn path(&self) -> &str {
        self.get("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin")
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// The variables a package installer needs so that users' mirrors and proxies work, and nothing else.
    pub fn for_installers(&self) -> BTreeMap<String, String> {
        let wanted = |name: &str| {
            let upper = name.to_ascii_uppercase();
            upper.starts_with("PIP_")
                || upper.starts_with("UV_")
                || upper.starts_with("SSL_CERT_")
                || matches!(
                    upper.as_str(),
                    "HTTP_PROXY" | "HTTPS_PROXY" | "ALL_PROXY" | "NO_PROXY" | "REQUESTS_CA_BUNDLE" | "CURL_CA_BUNDLE"
                )
                || matches!(name, "HOME" | "PATH" | "TMPDIR" | "XDG_CONFIG_HOME" | "XDG_CACHE_HOME" | "LANG" | "NETRC")
        };
        self.vars.iter().filter(|(k, _)| wanted(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Variables whose names start with `prefix`.
    pub fn starting_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.vars.iter().filter(move |(k, _)| k.starts_with(prefix)).map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installers_get_mirrors_and_proxies_and_no_secrets() {
        let all = ["PIP_INDEX_URL", "https_proxy", "HOME", "AWS_SECRET_ACCESS_KEY", "CPATH"]
            .map(|k| (k.to_string(), "x".to_string()));
        let kept = Environment::of(all).for_installers();
        assert_eq!(kept.keys().map(String::as_str).collect::<Vec<_>>(), ["HOME", "PIP_INDEX_URL", "https_proxy"]);
    }

    #[test]
    fn empty_variables_count_as_unset() {
        assert_eq!(Environment::of([("X".into(), String::new())]).get("X"), None);
    }
}
