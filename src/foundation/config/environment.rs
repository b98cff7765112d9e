//! The environment of this process, read once. All other code gets its variables from here, so that tests can set them.

use std::collections::BTreeMap;
use std::path::PathBuf;

#[cfg(any(debug_assertions, feature = "reword"))]
use crate::base::words;

/// Variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    vars: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn of_process() -> Self {
        let environment = Environment {
            vars: std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        };
        #[cfg(any(debug_assertions, feature = "reword"))]
        if environment.get(words::VARIABLE).is_some() {
            words::hide();
        }
        environment
    }

    /// An environment with these variables.
    pub fn of(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Environment { vars: vars.into_iter().collect() }
    }

    /// The value of a variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Like [`Environment::get`], but for a variable whose empty value has a meaning: an empty `CUDA_VISIBLE_DEVICES` hides every device.
    pub fn even_empty(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// `PATH`, for finding tools.
    pub fn path(&self) -> &str {
        self.get("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin")
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// The whole environment, for callers that filter it further.
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.vars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_count_as_unset_where_that_says_nothing() {
        let environment = Environment::of([("X".into(), String::new())]);
        assert_eq!(
            (environment.get("X"), environment.even_empty("X"), environment.even_empty("Y")),
            (None, Some(""), None)
        );
    }
}
