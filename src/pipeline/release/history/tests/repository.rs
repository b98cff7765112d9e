//! What is found in a real repository: which commits, which bundles, and where limits end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::super::read::{Limits, NoHistory, read};
use super::super::{Cut, History};
use crate::release::revision::Git;
use crate::release::trust::Trust;

/// A repository with a workspace in a folder of it.
struct Repository {
    place: tempfile::TempDir,
    program: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Repository {
    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and looks for git on PATH")]
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let program = kforge_project::toolchain::on_path("git", &path).unwrap();
        let environment = [("HOME", place.path().to_str().unwrap()), ("PATH", &path)];
        let environment = environment.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let repository = Repository { place, program, environment };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    fn top(&self) -> PathBuf {
        self.place.path().join("repository")
    }

    fn root(&self) -> PathBuf {
        self.top().join("work")
    }

    #[track_caller]
    fn git(&self, words: &[&str]) -> String {
        fs::create_dir_all(self.top()).unwrap();
        let mut command = std::process::Command::new(&self.program);
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
        let output = command.args(words).current_dir(self.top()).env_clear().envs(&self.environment).output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits everything, and returns the commit.
    fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn read(&self, limits: Limits) -> Result<History, NoHistory> {
        self.read_at(&self.root(), limits)
    }

    fn read_at(&self, root: &Path, limits: Limits) -> Result<History, NoHistory> {
        let interrupted = AtomicBool::new(false);
        let git = Git { program: self.program.clone(), environment: &self.environment, interrupted: &interrupted };
        let now = jiff::Timestamp::UNIX_EPOCH;
        read(&git, root, &Trust::nobody(now), limits, now)
    }
}

fn subjects(history: &History) -> Vec<&str> {
    history.commits.iter().map(|commit| commit.subject.as_str()).collect()
}

#[test]
fn a_folder_of_no_repository_a_repository_of_no_commit_and_commits_of_no_bundle_have_no_history() {
    let outside = tempfile::tempdir().unwrap();
    let repository = Repository::new();
    fs::create_dir_all(repository.root()).unwrap();
    assert!(matches!(repository.read_at(outside.path(), Limits::PAGE), Err(NoHistory::NoRepository { .. })));
    assert!(matches!(repository.read(Limits::PAGE), Err(NoHistory::NoCommit)));
    repository.write("kernel.toml", "");
    // The first is beside no manifest, the second in no folder for bundles.
    repository.write("other/evidence/a.kfe", "a");
    repository.write("bundles/a.kfe", "a");
    repository.commit("first");
    assert!(matches!(repository.read(Limits::PAGE), Err(NoHistory::NoBundle)));
}

#[test]
fn the_commits_that_changed_a_bundle_are_listed_along_first_parents() {
    let repository = Repository::new();
    repository.write("kernel.toml", "");
    repository.commit("no bundle");
    repository.write("evidence/a.kfe", "a");
    let first = repository.commit("first");
    repository.write("README.md", "");
    repository.commit("no change");
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.write("member/kernel.toml", "");
    repository.write("member/evidence/b \u{e9}.kfe", "b");
    repository.commit("on the side");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("member/evidence/notes.txt", "");
    repository.commit("no bundle either");
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "merged", "side"]);
    let merged = repository.git(&["rev-parse", "HEAD"]);
    fs::remove_file(repository.root().join("evidence/a.kfe")).unwrap();
    repository.write("elsewhere/evidence/c.kfe", "c");
    repository.commit("removed");
    // A bundle that is beside no manifest changes nothing.
    repository.write("elsewhere/evidence/c.kfe", "d");
    let head = repository.commit("not of the workspace");
    let history = repository.read(Limits::PAGE).unwrap();
    assert_eq!(subjects(&history), ["first", "merged", "removed"]);
    let bundles: Vec<u64> = history.commits.iter().map(|commit| commit.bundles).collect();
    assert_eq!((bundles, &history.head, history.folder.as_deref()), (vec![1, 2, 1], &head, Some("work")));
    assert_eq!((history.cut, history.shallow), (None, false));
    // None of them is a bundle. Each is named once, with the oldest commit that holds it.
    let unread: Vec<(&str, &str)> = history.unread.iter().map(|one| (one.path.as_str(), one.commit.as_str())).collect();
    assert_eq!(unread, [("evidence/a.kfe", first.as_str()), ("member/evidence/b \u{e9}.kfe", merged.as_str())]);
    assert!(history.unread.iter().all(|one| one.why.contains("not a bundle of evidence")), "{:?}", history.unread);
}

#[test]
fn a_limit_leaves_out_older_commits_and_is_named() {
    let repository = Repository::new();
    repository.write("kernel.toml", "");
    for number in 0..4 {
        repository.write("evidence/a.kfe", &format!("bundle {number}"));
        repository.write("evidence/same.kfe", "the same bundle");
        repository.commit(&format!("{number}"));
    }
    let with = |limits| {
        let history = repository.read(limits).unwrap();
        (subjects(&history).join(" "), history.cut)
    };
    let all = Limits::PAGE;
    assert_eq!(with(all), ("0 1 2 3".into(), None));
    assert_eq!(with(Limits { commits: 4, ..all }), ("0 1 2 3".into(), None));
    assert_eq!(with(Limits { commits: 2, ..all }), ("2 3".into(), Some(Cut::Commits(2))));
    // The bundle that stays the same counts once.
    assert_eq!(with(Limits { bundles: 5, ..all }), ("0 1 2 3".into(), None));
    assert_eq!(with(Limits { bundles: 3, ..all }), ("2 3".into(), Some(Cut::Bundles(3))));
    assert_eq!(with(Limits { bytes: 15 + 8 + 8, ..all }), ("2 3".into(), Some(Cut::Bytes(31))));
    // The newest commit is shown as far as it was read, and the rest is named.
    let history = repository.read(Limits { bundles: 1, ..all }).unwrap();
    assert_eq!((subjects(&history), history.cut), (vec!["3"], Some(Cut::Bundles(1))));
    assert_eq!(history.unread.iter().filter(|one| one.why.contains("limit")).count(), 1, "{:?}", history.unread);
}

#[test]
fn links_are_no_bundles_and_a_shallow_clone_is_said_to_be_one() {
    let repository = Repository::new();
    repository.write("kernel.toml", "");
    repository.write("evidence/a.kfe", "a");
    repository.commit("first");
    std::os::unix::fs::symlink("a.kfe", repository.root().join("evidence/link.kfe")).unwrap();
    repository.write("evidence/a.kfe", "b");
    repository.commit("second");
    let history = repository.read(Limits::PAGE).unwrap();
    let link = history.unread.iter().find(|one| one.path == "evidence/link.kfe").unwrap();
    assert_eq!(link.why, "it is no file");
    let (from, to) = (format!("file://{}", repository.top().display()), repository.place.path().join("clone"));
    repository.git(&["clone", "--quiet", "--depth", "1", &from, to.to_str().unwrap()]);
    let history = repository.read_at(&to.join("work"), Limits::PAGE).unwrap();
    assert_eq!((subjects(&history), history.shallow), (vec!["second"], true));
    assert!(history.notices()[0].contains("the clone is shallow"), "{:?}", history.notices());
}

#[test]
fn patterns_of_paths_mean_the_same_whatever_the_environment_says() {
    let mut repository = Repository::new();
    repository.write("kernel.toml", "");
    repository.write("evidence/a.kfe", "a");
    repository.commit("first");
    repository.environment.insert("GIT_LITERAL_PATHSPECS".into(), "1".into());
    assert_eq!(subjects(&repository.read(Limits::PAGE).unwrap()), ["first"]);
}
