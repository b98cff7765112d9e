//! git, as a session finds it. Knows where programs are looked for; `release::revision` knows what git is asked.

use std::path::{Path, PathBuf};

use super::open::Session;
use kforge_pipeline::release::revision::Git;

impl Session {
    /// The git of this session's environment; none if it has none.
    pub(crate) fn git(&self) -> Option<Git<'_>> {
        let mut programs = self.environment.path().split(':').map(|folder| Path::new(folder).join("git"));
        let program: PathBuf = programs.find(|path| path.is_absolute() && path.is_file())?;
        Some(Git { program, environment: self.environment.all(), interrupted: &self.interrupted })
    }
}

/// A folder relative to the root of the repository that holds it; none at the root, or outside a repository. The root is the nearest folder with an entry `.git`:
/// a folder, or a file in a worktree or submodule.
pub(crate) fn in_repository(folder: &Path) -> Option<String> {
    let root = folder.ancestors().find(|above| above.join(".git").exists())?;
    let below = folder.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty())?;
    below.to_str().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_told_from_the_root_of_its_repository() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        assert_eq!(in_repository(&deep).as_deref(), Some("a/b"));
        assert_eq!(in_repository(dir.path()), None);
    }
}
