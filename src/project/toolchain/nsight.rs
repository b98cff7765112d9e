//! NVIDIA's tools that run a program under their control: Nsight Compute (`ncu`) and Compute Sanitizer. Knows where they are installed and how they report
//! their version; runs no candidate. These tools enter no key: their results are observations of a device, made with the tool of the machine at hand.
//!
//! | looked for, in order | because |
//! |---|---|
//! | the setting `toolchain.ncu`, `toolchain.compute-sanitizer` | the user's choice; kforge then looks nowhere else |
//! | `PATH` | the usual way of choosing among several |
//! | `/usr/local/cuda/bin`, `/usr/local/cuda-*/bin` | toolkits that are not on `PATH` are installed here; the newest first |
//! | `/opt/nvidia/nsight-compute/*` | separate packages of Nsight Compute are installed here; the newest first |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Error;
use super::run::{ask, compiler_environment, find as named, is_executable, on_path};

/// One of these tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nsight {
    /// Nsight Compute, which reads counters.
    Compute,
    /// Compute Sanitizer, which checks memory accesses and barriers.
    Sanitizer,
}

impl Nsight {
    /// The name of the tool's program, which is also its name in requests to workers.
    pub fn program(self) -> &'static str {
        match self {
            Nsight::Compute => "ncu",
            Nsight::Sanitizer => "compute-sanitizer",
        }
    }

    /// The setting that holds the tool's path.
    pub fn setting(self) -> &'static str {
        match self {
            Nsight::Compute => "toolchain.ncu",
            Nsight::Sanitizer => "toolchain.compute-sanitizer",
        }
    }

    /// The name of the tool in messages.
    pub fn name(self) -> &'static str {
        match self {
            Nsight::Compute => "Nsight Compute",
            Nsight::Sanitizer => "Compute Sanitizer",
        }
    }

    /// Finds the tool. `explicit` is the value of its setting.
    ///
    /// # Errors
    /// The tool was not found.
    pub fn find(self, explicit: Option<&Path>, path_var: &str) -> Result<PathBuf, Error> {
        match explicit {
            Some(_) => named(explicit, &[], path_var, self.name()),
            None => self.find_below(Path::new("/"), path_var),
        }
    }

    fn find_below(self, root: &Path, path_var: &str) -> Result<PathBuf, Error> {
        let program = self.program();
        let local = root.join("usr/local");
        let toolkits = newest(&local, "cuda-").into_iter().map(|folder| folder.join("bin"));
        let mut folders: Vec<PathBuf> = std::iter::once(local.join("cuda/bin")).chain(toolkits).collect();
        if self == Nsight::Compute {
            folders.extend(newest(&root.join("opt/nvidia/nsight-compute"), ""));
        }
        let elsewhere = || folders.iter().map(|folder| folder.join(program)).find(|file| is_executable(file));
        on_path(program, path_var).or_else(elsewhere).ok_or(Error::NoNsight(self))
    }

    /// The version of a tool that was found, as it reports it: `2025.3.0.0`.
    ///
    /// # Errors
    /// The tool cannot be run, or reports no version.
    pub fn version(self, path: &Path, path_var: &str) -> Result<String, Error> {
        let environment: BTreeMap<String, String> = compiler_environment(path_var);
        let said = ask(path, &["--version"], &environment, "")?;
        version_in(&said.out).ok_or_else(|| Error::NoVersion(path.to_owned()))
    }
}

/// The word after `Version` at the beginning of a line: `Version 2025.3.0.0 (build 36273991) (public-release)`.
fn version_in(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Version "))?;
    line.split_whitespace().next().map(String::from)
}

/// Folders in `folder` whose names begin with `prefix`, the highest version first.
fn newest(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version: Option<Vec<u32>> = name.strip_prefix(prefix)?.split('.').map(|n| n.parse().ok()).collect();
            Some((version?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn install(root: &Path, place: &str) -> PathBuf {
        let file = root.join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "#!/bin/sh\necho 'NVIDIA (R) Tool'\necho 'Version 2025.3.1.0 (build 1) (public)'\n")
            .unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn a_tool_is_found_on_path_then_in_the_newest_toolkit_then_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let find = |tool: Nsight, path: &str| tool.find_below(dir.path(), path);
        assert!(find(Nsight::Compute, "/nowhere").unwrap_err().to_string().contains("setting `toolchain.ncu`"));
        let alone = install(dir.path(), "opt/nvidia/nsight-compute/2025.3.1/ncu");
        install(dir.path(), "opt/nvidia/nsight-compute/2025.3.0/ncu");
        assert_eq!(find(Nsight::Compute, "/nowhere").unwrap(), alone);
        let new = install(dir.path(), "usr/local/cuda-13.0/bin/ncu");
        install(dir.path(), "usr/local/cuda-9.2/bin/ncu");
        assert_eq!(find(Nsight::Compute, "/nowhere").unwrap(), new);
        let usual = install(dir.path(), "usr/local/cuda/bin/ncu");
        assert_eq!(find(Nsight::Compute, "/nowhere").unwrap(), usual);
        let on_path = install(dir.path(), "mine/ncu");
        assert_eq!(find(Nsight::Compute, &on_path.parent().unwrap().display().to_string()).unwrap(), on_path);
        assert!(find(Nsight::Sanitizer, "/nowhere").unwrap_err().to_string().contains("no `compute-sanitizer`"));
        let sanitizer = install(dir.path(), "usr/local/cuda-13.0/bin/compute-sanitizer");
        assert_eq!(find(Nsight::Sanitizer, "/nowhere").unwrap(), sanitizer);
    }

    #[test]
    fn what_the_user_names_is_taken_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let named = install(dir.path(), "ncu-wrapper");
        assert_eq!(Nsight::Compute.find(Some(&named), "/nowhere").unwrap(), named.clone());
        let gone = dir.path().join("gone");
        assert!(
            Nsight::Compute
                .find(Some(&gone), "/usr/bin")
                .unwrap_err()
                .to_string()
                .contains("is not an executable file")
        );
        assert_eq!(Nsight::Compute.version(&named, "/usr/bin:/bin").unwrap(), "2025.3.1.0");
    }

    #[test]
    fn a_version_is_the_word_after_version() {
        assert_eq!(version_in("Copyright\nVersion 2025.3.0.0 (build 36273991)\n").as_deref(), Some("2025.3.0.0"));
        assert_eq!(version_in("no such thing"), None);
    }
}
