//! What is remembered of the candidates of each workspace: `candidates/HEX.json`, by the workspace's folder. Knows files; reads no meaning into what they hold, and holds
//! no source: those are with the recorded answers, and in the workspace.
//!
//! What a candidate came to cannot be found out again once the source that its rounds started from was edited: so it lies in the home, where cleaning a workspace does
//! not reach it, and collection leaves it alone. A file that cannot be read is passed over, and makes room for a new one by moving aside.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::{Home, named};
use super::lock::{Lock, LockError, Mode, Wait};
use crate::base::Digest;
use crate::base::files::write_atomically;
use crate::record::candidate::{CANDIDATES_FORMAT, Candidate};

/// The candidates of a workspace, as they are kept.
#[derive(Debug, Clone)]
pub struct Candidates {
    place: PathBuf,
    lock: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    candidates: Vec<Candidate>,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Held {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Why they could not be read, if they could not.
    pub passed: Option<String>,
}

impl Candidates {
    /// Those of the workspace in the folder `root`, in that home.
    pub fn new(home: &Home, root: &Path) -> Self {
        let name = Digest::of(root.as_os_str().as_encoded_bytes()).hex();
        let lock = home.locks().join(format!("candidates-{name}"));
        Candidates { place: home.candidates().join(format!("{name}.json")), lock }
    }

    /// What is remembered.
    pub fn read(&self) -> io::Result<Held> {
        let bytes = match std::fs::read(&self.place) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Held::default()),
            Err(e) => return Err(named(e, "read", &self.place)),
        };
        Ok(match decode(&bytes) {
            Ok(candidates) => Held { candidates, passed: None },
            Err(why) => Held { candidates: vec![], passed: Some(format!("`{}` {why}", self.place.display())) },
        })
    }

    /// Remembers what `change` makes of what is remembered. Gives what was passed over for it.
    pub fn change(&self, change: impl FnOnce(Vec<Candidate>) -> Vec<Candidate>) -> io::Result<Option<String>> {
        let _lock = Lock::acquire(&self.lock, Mode::Exclusive, Wait::Forever(&mut || ())).map_err(|e| match e {
            LockError::Io { .. } | LockError::Busy(_) | LockError::Interrupted(_) => io::Error::other(e.to_string()),
        })?;
        let Held { candidates, passed } = self.read()?;
        if passed.is_some() {
            let aside = self.place.with_extension("passed");
            std::fs::rename(&self.place, &aside).map_err(|e| named(e, "move", &self.place))?;
        }
        let document = Document { format: CANDIDATES_FORMAT, candidates: change(candidates) };
        let bytes = serde_json::to_vec_pretty(&document)?;
        if !document.candidates.is_empty() {
            self.write(&bytes).map_err(|e| named(e, "write", &self.place))?;
        }
        Ok(passed)
    }

    /// Survives a power cut: nothing could make it again.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match std::fs::read(&self.place) {
            Ok(old) if old == bytes => Ok(()),
            _ => write_atomically(&self.place, bytes, true),
        }
    }
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
    use crate::record::candidate::Became;

    fn candidate(kernel: &str) -> Candidate {
        Candidate {
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
            became: Became::Right,
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
