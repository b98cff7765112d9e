//! A confinement as data, for a process that cannot call [`super::confine`] because it runs another language. Knows the same mechanisms; `python_server.py`
//! carries them out.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::{Confinement, calls, files};

/// What such a process has to do, in this order, after it has closed every descriptor but the three standard ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortableConfinement {
    /// The most that it may use of each resource, by the name of the resource in C. A limit that is lower stays.
    pub limits: Vec<(&'static str, u64)>,
    /// What Landlock restricts it to; none if the kernel has no Landlock.
    pub files: Option<PortableRules>,
    /// Programs of seccomp, each as the bytes of its instructions in hexadecimal digits.
    pub filters: Vec<String>,
}

/// A ruleset of Landlock, in the numbers of its system calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortableRules {
    /// The fields of `landlock_ruleset_attr`: rights on files, rights on the network, scopes.
    pub handled: [u64; 3],
    /// Paths and the rights below them. Paths that do not exist are left out.
    pub rules: Vec<(String, u64)>,
}

impl PortableConfinement {
    /// The confinement that [`super::confine`] would apply, for a program that may start others.
    ///
    /// # Errors
    /// The system reports none of it, or a path is not UTF-8.
    pub fn of(keep: &Confinement) -> io::Result<Self> {
        let files = match files::portable(keep) {
            None => None,
            Some((handled, rules)) => {
                let text = |path: &Path| {
                    let not_text = || io::Error::other(format!("`{}` is not UTF-8", path.display()));
                    path.to_str().map(str::to_string).ok_or_else(not_text)
                };
                let rules = rules.into_iter().map(|(path, rights)| Ok((text(&path)?, rights)));
                Some(PortableRules { handled, rules: rules.collect::<io::Result<_>>()? })
            }
        };
        let limits = [
            ("RLIMIT_AS", keep.limits.address_space),
            ("RLIMIT_CPU", keep.limits.cpu_s),
            ("RLIMIT_FSIZE", keep.limits.file_size),
            ("RLIMIT_NOFILE", keep.limits.open_files),
            ("RLIMIT_NPROC", keep.limits.processes),
            ("RLIMIT_CORE", Some(0)),
        ];
        let limits = limits.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
        Ok(PortableConfinement { limits, files, filters: calls::portable(keep)? })
    }
}
