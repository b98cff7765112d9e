//! The workflow file that a new package gets for a CI service, from `templates/ci/`. Knows where each service looks for it, and the placeholders in its text;
//! does not know what its jobs do.
//!
//! A service reads workflows only at the root of a repository, so the file goes there, and its jobs change to the folder whose `target` a build writes.

use std::path::{Component, Path, PathBuf};

/// A CI service for which kforge writes a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ci {
    /// GitHub Actions.
    Github,
    /// GitLab CI/CD.
    Gitlab,
}

impl Ci {
    /// The service's name in a command: `github`.
    pub fn word(self) -> &'static str {
        match self {
            Ci::Github => "github",
            Ci::Gitlab => "gitlab",
        }
    }

    /// The workflow's path below the root of the repository.
    pub fn place(self) -> &'static str {
        match self {
            Ci::Github => ".github/workflows/kforge.yml",
            Ci::Gitlab => ".gitlab-ci.yml",
        }
    }

    /// The workflow for a package or workspace in `folder`, a path below the repository's root; empty for the root itself.
    pub(super) fn workflow(self, folder: &Path) -> String {
        let template = match self {
            Ci::Github => include_str!("../templates/ci/github.yml"),
            Ci::Gitlab => include_str!("../templates/ci/gitlab.yml"),
        };
        template.replace("{{version}}", env!("CARGO_PKG_VERSION")).replace("{{directory}}", &quoted(folder))
    }
}

/// The root of the repository that a folder lies in; the folder itself if it lies in none. The folder need not exist.
pub(super) fn repository(folder: &Path) -> &Path {
    enclosing_repository(folder).unwrap_or(folder)
}

/// The root of the repository that a folder lies in, if it lies in one. The folder need not exist.
pub(super) fn enclosing_repository(folder: &Path) -> Option<&Path> {
    // A worktree and a submodule have a file in place of the folder.
    folder.ancestors().find(|above| above.join(".git").exists())
}

/// The workflow's file for a package in `folder`.
pub(super) fn file(ci: Ci, folder: &Path) -> PathBuf {
    repository(folder).join(ci.place())
}

/// A relative folder, as it stands between single quotes in YAML.
fn quoted(folder: &Path) -> String {
    let parts: Vec<_> = folder.components().filter(|c| matches!(c, Component::Normal(_))).collect();
    if parts.is_empty() {
        return ".".into();
    }
    let path: PathBuf = parts.into_iter().collect();
    path.display().to_string().replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_names_its_folder_and_leaves_no_placeholder() {
        for ci in [Ci::Github, Ci::Gitlab] {
            let text = ci.workflow(Path::new("kernels/it's"));
            assert!(text.contains("'kernels/it''s/target/kforge/ci'"), "{text}");
            assert!(text.contains(&format!("KFORGE_VERSION: '{}'", env!("CARGO_PKG_VERSION"))));
            assert!(!text.replace("${{", "").contains("{{"), "{text}");
            assert!(ci.workflow(Path::new("")).contains("'./target/kforge/ci'"));
        }
    }

    #[test]
    fn a_workflow_lies_at_the_root_of_the_repository() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("repository/.git")).unwrap();
        std::fs::create_dir_all(root.join("repository/sub")).unwrap();
        std::fs::write(root.join("repository/sub/.git"), "gitdir: elsewhere").unwrap();
        let place = |folder: &str| file(Ci::Gitlab, &root.join(folder));
        assert_eq!(place("repository/a/b"), root.join("repository/.gitlab-ci.yml"));
        assert_eq!(place("repository/sub/b"), root.join("repository/sub/.gitlab-ci.yml"));
    }
}
