//! The candidates that kforge remembers for each workspace: `candidates/HEX.json`, named by the digest of the workspace's folder. Knows files; does not
//! interpret their contents and does not store sources, which are in the recorded answers and in the workspace.
//!
//! What became of a candidate cannot be recomputed once the source that its rounds started from was edited. So the candidates are stored in the home, which
//! `kforge clean` does not touch, and collection does not touch them either. A file that cannot be read is skipped, and moved aside when a new one is written.
//! A workspace that was moved to another folder keeps its candidates ([`Candidates::moved_from`]).

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::{Doing, Home, named};
use super::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;
use kforge_types::record::candidate::{CANDIDATES_FORMAT, Candidate};

/// The stored candidates of a workspace.
#[derive(Debug, Clone)]
pub struct Candidates {
    place: PathBuf,
    lock: PathBuf,
    before: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    candidates: Vec<Candidate>,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub struct CandidateList {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Why the file could not be read, if it could not.
    pub passed: Option<String>,
}

impl Candidates {
    /// The candidates of the workspace in the folder `root`, stored in `home`.
    pub fn new(home: &Home, root: &Path) -> Self {
        let name = name(root);
        let lock = home.locks().join(format!("candidates-{name}"));
        Candidates { place: home.candidates().join(format!("{name}.json")), lock, before: None }
    }

    /// The same, for a workspace that was moved here from the folder `before`. As long as no candidates are stored for its present folder, those stored for
    /// `before` are used.
    pub fn moved_from(self, home: &Home, before: &Path) -> Self {
        Candidates { before: Some(home.candidates().join(format!("{}.json", name(before)))), ..self }
    }

    /// The file that holds the candidates.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Reads the stored candidates.
    pub fn read(&self) -> io::Result<CandidateList> {
        for place in [Some(&self.place), self.before.as_ref()].into_iter().flatten() {
            let bytes = match std::fs::read(place) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(named(e, Doing::Read, place)),
            };
            return Ok(match decode(&bytes) {
                Ok(candidates) => CandidateList { candidates, passed: None },
                Err(why) => CandidateList { candidates: vec![], passed: Some(format!("`{}` {why}", place.display())) },
            });
        }
        Ok(CandidateList::default())
    }

    /// Stores what `change` returns for the stored candidates. Returns why the old file was skipped, if it was.
    pub fn change(&self, change: impl FnOnce(Vec<Candidate>) -> Vec<Candidate>) -> io::Result<Option<String>> {
        let _lock = Lock::acquire(&self.lock, Mode::Exclusive, Wait::Forever(&mut || ())).map_err(|e| match e {
            LockError::Io { .. } | LockError::Busy(_) | LockError::Interrupted(_) => io::Error::other(e.to_string()),
        })?;
        if let Some(before) = self.before.as_ref().filter(|_| !self.place.exists()) {
            match std::fs::rename(before, &self.place) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(e, Doing::Move, before)),
                _ => {}
            }
        }
        let CandidateList { candidates, passed } = self.read()?;
        if passed.is_some() {
            let aside = self.place.with_extension("passed");
            std::fs::rename(&self.place, &aside).map_err(|e| named(e, Doing::Move, &self.place))?;
        }
        let document = Document { format: CANDIDATES_FORMAT, candidates: change(candidates) };
        let bytes = serde_json::to_vec_pretty(&document)?;
        if !document.candidates.is_empty() {
            self.write(&bytes).map_err(|e| named(e, Doing::Write, &self.place))?;
        }
        Ok(passed)
    }

    /// Syncs the file, so that it survives a power cut: it cannot be recreated.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match std::fs::read(&self.place) {
            Ok(old) if old == bytes => Ok(()),
            _ => write_atomically(&self.place, bytes, true),
        }
    }
}

/// The name of a workspace's file, without its extension.
fn name(root: &Path) -> String {
    Digest::of(root.as_os_str().as_encoded_bytes()).hex()
}

fn decode(bytes: &[u8]) -> Result<Vec<Candidate>, String> {
    #[derive(Deserialize)]
    struct Form {
        format: u32,
    }
    let damaged = |e: serde_json::Error| format!("is damaged: {e}");
    match serde_json::from_slice::<Form>(bytes).map_err(damaged)?.format {
        CANDIDATES_FORMAT => Ok(serde_json::from_slice::<Document>(bytes).map_err(damaged)?.candidates),
        format => Err(format!("has format {format}; this kforge reads format {CANDIDATES_FORMAT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::candidate::Became;

    fn candidate(kernel: &str) -> Candidate {
        Candidate {
            language: kforge_types::model::Language::Cuda,
            package: "p".into(),
            kernel: kernel.into(),
            operator: "o".into(),
            types: String::new(),
            target: "cpu".into(),
            arch: "cpu".into(),
            contract: Digest::of(b"c"),
            pattern: None,
            level: None,
            chain: None,
            round: 0,
            attempt: 0,
            variant: Some(String::new()),
            methods: vec![],
            became: Became::Correct,
            time_ns: None,
            speedup: None,
            champion: true,
            source: None,
        }
    }

    fn added(kernel: &str) -> impl FnOnce(Vec<Candidate>) -> Vec<Candidate> {
        let new = candidate(kernel);
        |mut all| {
            all.push(new);
            all
        }
    }

    #[test]
    fn each_workspace_remembers_its_own_and_a_new_one_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let of = |root: &str| Candidates::new(&home, Path::new(root));
        of("/a").change(added("k")).unwrap();
        of("/a").change(added("l")).unwrap();
        of("/b").change(added("m")).unwrap();
        let kernels =
            |root: &str| -> Vec<String> { of(root).read().unwrap().candidates.into_iter().map(|c| c.kernel).collect() };
        assert_eq!(
            (kernels("/a"), kernels("/b"), kernels("/c").len()),
            (vec!["k".into(), "l".into()], vec!["m".into()], 0)
        );
    }

    #[test]
    fn what_is_remembered_goes_with_a_workspace_that_was_moved_unless_something_is_remembered_there() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let of = |root: &str| Candidates::new(&home, Path::new(root));
        let held = |store: &Candidates| store.read().unwrap().candidates.len();
        of("/a").change(added("k")).unwrap();
        let moved = of("/b").moved_from(&home, Path::new("/a"));
        assert_eq!((held(&moved), held(&of("/b")), held(&of("/a"))), (1, 0, 1), "to read moves nothing");
        moved.change(added("l")).unwrap();
        assert_eq!((held(&moved), held(&of("/b")), held(&of("/a"))), (2, 2, 0));
        of("/c").change(added("m")).unwrap();
        let other = of("/c").moved_from(&home, Path::new("/b"));
        other.change(added("n")).unwrap();
        assert_eq!((held(&other), held(&of("/b"))), (2, 2));
        // No candidates are stored for either folder.
        of("/e").moved_from(&home, Path::new("/d")).change(added("k")).unwrap();
        assert_eq!(held(&of("/e")), 1);
    }

    #[test]
    fn what_cannot_be_read_is_named_moved_aside_and_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let store = Candidates::new(&home, Path::new("/a"));
        for (bad, why) in [("{", "is damaged"), ("{ \"format\": 99, \"candidates\": 3 }", "has format 99")] {
            std::fs::write(&store.place, bad).unwrap();
            let held = store.read().unwrap();
            assert!(held.candidates.is_empty() && held.passed.unwrap().contains(why));
            let passed = store.change(added("k")).unwrap();
            assert!(passed.unwrap().contains(why));
            assert_eq!(std::fs::read_to_string(store.place.with_extension("passed")).unwrap(), bad);
            assert_eq!(store.read().unwrap().candidates.len(), 1);
        }
    }
}
