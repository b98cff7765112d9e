//! Builds and packages a package twice under changed circumstances and reports every byte that differs. Knows copies of a workspace and the program of the
//! session; [`crate::package`] knows artifacts.
//!
//! | changes from one run to the other | how |
//! |---|---|
//! | folder | another path, of another length |
//! | home | an empty one, with only the toolchains of the user's |
//! | user, `HOME`, locale, time zone | variables of the environment |
//! | time | when the run starts, and the times of all files |
//! | environment | a further variable of many bytes; variables of compilers are left out |
//! | parallelism | one step at a time, or as many as there are processors |
//!
//! What devices observed is the same in both: a second measurement gives other samples. So the evidence that is known here is brought along, and both runs take
//! it as claimed. The user's name changes in the environment only; a run as another user needs that user's rights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::event::Event;
use crate::evidence::{EvidenceError, ExportRequest, export};
use crate::{Error, Session};
use kforge_engine::Blobs;
use kforge_engine::evidence::BINARY;
use kforge_engine::temporary::{Purpose, Temporary};
use kforge_foundation::process::{Command, End, run_heard};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::archive::EXTENSION;
use kforge_pipeline::release::artifact::{ArtifactError, tar};
use kforge_pipeline::release::committed::FOLDER;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::event::Event as StepEvent;

/// The request to build twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReproduceRequest {
    /// The packages and targets.
    pub words: SelectionArgs,
}

/// What two builds gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reproduced {
    /// The number of binaries for GPUs that were compared.
    pub binaries: u64,
    /// The number of artifacts that were compared; zero if the packages cannot be packaged.
    pub artifacts: u64,
    /// What differs.
    pub differences: Vec<ByteDifference>,
    /// Why a run gave no artifact, as it said so itself.
    pub unpackaged: Option<String>,
}

/// Two files that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteDifference {
    /// The step whose binary it is, or the archive and the file in it.
    pub what: String,
    /// Their sizes in bytes; none for a file that one of the two lacks.
    pub sizes: (Option<u64>, Option<u64>),
    /// The number of bytes that differ, where the longer file counts whole beyond the end of the other.
    pub bytes: u64,
    /// The offset of the first of them.
    pub first: u64,
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A run did not build.
    #[error("the {run} build failed, so nothing was compared:\n{said}")]
    NotBuilt {
        /// `first` or `second`.
        run: &'static str,
        /// What it said.
        said: String,
    },
    /// A run cannot be started.
    #[error("cannot run `{}`: {source}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// An archive cannot be read: a bug.
    #[error("BUG: the archive of a run cannot be read: {0}")]
    Archive(ArtifactError),
}

/// The circumstances of a run.
struct Circumstances {
    name: &'static str,
    /// The run and what is special about it, for people who wait for it.
    about: &'static str,
    /// The folder of the run, below the temporary one.
    folder: &'static str,
    /// Variables of the environment.
    vars: &'static [(&'static str, &'static str)],
    /// The number of steps to run in parallel; all processors if none.
    jobs: Option<&'static str>,
    /// The time of all files, in seconds after 1970.
    time: u64,
}

const RUNS: [Circumstances; 2] = [
    Circumstances {
        name: "first",
        about: "the first of two builds, one step at a time, with files dated 2001",
        folder: "a",
        vars: &[("USER", "first"), ("LOGNAME", "first"), ("TZ", "Pacific/Kiritimati"), ("LC_ALL", "C"), ("LANG", "C")],
        jobs: Some("1"),
        time: 1_000_000_000,
    },
    Circumstances {
        name: "second",
        about: "the second of two builds, with another folder, home, user, locale, time zone and environment, files dated 2023, and all processors",
        folder: "second/run/in-a-folder/whose-path-is-longer",
        vars: &[
            ("USER", "another"),
            ("LOGNAME", "another"),
            ("TZ", "America/Adak"),
            ("LC_ALL", "tr_TR.UTF-8"),
            ("LANG", "tr_TR.UTF-8"),
            (
                "KFORGE_REPRODUCE_FILLER",
                "a variable that moves whatever lies behind the environment of a process to other addresses",
            ),
        ],
        jobs: None,
        time: 1_700_000_000,
    },
];

/// Variables that are not passed on: compilers read them, or they name a place of this run.
const LEFT_OUT: [&str; 3] = ["HOME", "KFORGE_HOME", "KFORGE_MACHINE_KEY"];

/// A run that ended.
struct Ran {
    workspace: PathBuf,
    home: PathBuf,
    /// The archives by name; none if it did not package.
    archives: Result<BTreeMap<String, Vec<u8>>, String>,
}

/// Builds and packages twice, and compares.
///
/// # Errors
/// [`ReproduceError`], or the workspace cannot be opened or copied.
pub fn reproduce(session: &Session, request: &ReproduceRequest) -> Result<Reproduced, Error> {
    let opened = session.open()?;
    session.select(&opened.workspace, &request.words)?;
    let temporary = Temporary::create(Purpose::Reproduce).map_err(Error::write(std::env::temp_dir()))?;
    let place = temporary.path();
    let bundle = place.join(format!("known.{EXTENSION}"));
    let known = ExportRequest { words: request.words.clone(), output: Some(bundle.clone()), all: false };
    match export(session, &known) {
        Ok(_) | Err(Error::Evidence(EvidenceError::Nothing | EvidenceError::Open { .. })) => {}
        Err(error) => return Err(error),
    }
    let mut runs = vec![];
    for circumstances in &RUNS {
        session.reporter.event(&Event::Building(circumstances.about));
        let folder = place.join(circumstances.folder);
        let workspace = folder.join("workspace");
        copy(&opened.workspace.root, &workspace, &opened.target)?;
        if bundle.exists() {
            let to = workspace.join(FOLDER).join(format!("known-here.{EXTENSION}"));
            std::fs::create_dir_all(workspace.join(FOLDER)).map_err(Error::write(&workspace))?;
            std::fs::copy(&bundle, &to).map_err(Error::write(&to))?;
        }
        date(&workspace, circumstances.time)?;
        let within = session.cwd.strip_prefix(&opened.workspace.root).unwrap_or(Path::new(""));
        runs.push(one(session, request, circumstances, &folder, workspace.join(within))?);
    }
    let [first, second] = [&runs[0], &runs[1]];
    let mut found = Reproduced::default();
    binaries(session, request, (first, second), &mut found)?;
    match (&first.archives, &second.archives) {
        (Ok(a), Ok(b)) => archives(a, b, &mut found)?,
        (Err(said), _) | (_, Err(said)) => found.unpackaged = Some(said.clone()),
    }
    Ok(found)
}

/// One build, and the archives that it gives.
fn one(
    session: &Session,
    request: &ReproduceRequest,
    circumstances: &Circumstances,
    folder: &Path,
    workspace: PathBuf,
) -> Result<Ran, Error> {
    let home = folder.join("home");
    crate::session::fresh_home::fresh_home(session, &home)?;
    let program = session.worker.program();
    let kforge = |words: &[&str], heard: &mut dyn FnMut(&[u8])| -> Result<(End, String), Error> {
        let mut command = Command::new(program).args(words).dir(&workspace);
        for (name, value) in session.environment.all().iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())) {
            command = command.env(name, value);
        }
        for (name, value) in circumstances.vars {
            command = command.env(name, value);
        }
        let user = folder.join("user");
        command =
            command.env("HOME", &user).env("KFORGE_HOME", &home).env("KFORGE_MACHINE_KEY", folder.join("machine-key"));
        let ended = run_heard(&command, None, &session.interrupted, heard)
            .map_err(|source| ReproduceError::NotStarted { program: program.into(), source })?;
        Ok((ended.end, ended.stderr.text()))
    };
    let mut chosen: Vec<&str> = vec!["--offline"];
    let words = &request.words;
    words.packages.iter().for_each(|name| chosen.extend(["--package", name]));
    words.exclude.iter().for_each(|name| chosen.extend(["--exclude", name]));
    words.targets.iter().for_each(|name| chosen.extend(["--target", name]));
    chosen.extend(words.workspace.then_some("--workspace"));
    let trust = trust_file(session)?.map(|file| file.display().to_string());
    trust.iter().for_each(|file| chosen.extend(["--trust", file]));
    let mut build = vec!["build", "--keep-going", "--message-format", "json"];
    circumstances.jobs.iter().for_each(|jobs| build.extend(["-j", jobs]));
    build.extend(&chosen);
    let mut watch = session.reporter.observer().watch_elsewhere();
    let mut lines = vec![];
    let built = kforge(&build, &mut |bytes| {
        lines.extend_from_slice(bytes);
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = lines.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice::<StepEvent>(&line) {
                watch.event(&event);
            }
        }
    });
    watch.ended();
    let (end, said) = built?;
    if end == End::Interrupted {
        return Err(Error::Interrupted);
    }
    if !end.success() {
        return Err(ReproduceError::NotBuilt { run: circumstances.name, said }.into());
    }
    let out = folder.join("artifacts");
    let to = out.display().to_string();
    let mut pack = vec!["package", "--allow-claimed", "--output", &to];
    pack.extend(&chosen);
    let (end, said) = kforge(&pack, &mut |_| {})?;
    let archives = match end.success() {
        true => Ok(read(&out)?),
        false => Err(said),
    };
    Ok(Ran { workspace, home, archives })
}

/// The file of trusted keys that the user names, if any. It is absolute, because a run has another folder, and passed on, because a run has another home.
fn trust_file(session: &Session) -> Result<Option<PathBuf>, Error> {
    let source = session.named_trust();
    let file = source.as_ref().and_then(|source| source.file());
    file.map(|file| std::path::absolute(file).map_err(Error::read(file))).transpose()
}

/// The archives in a folder by name.
fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut archives = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
        let path = entry.map_err(Error::read(folder))?.path();
        if path.extension().is_some_and(|extension| extension == tar::EXTENSION) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archives.insert(name, std::fs::read(&path).map_err(Error::read(&path))?);
        }
    }
    Ok(archives)
}

/// Compares the binaries that two runs compiled for GPUs, by step.
fn binaries(
    session: &Session,
    request: &ReproduceRequest,
    (first, second): (&Ran, &Ran),
    found: &mut Reproduced,
) -> Result<(), Error> {
    let (a, b) = (compiled(session, request, first)?, compiled(session, request, second)?);
    for step in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        found.binaries += 1;
        found.differences.extend(difference(step.clone(), a.get(step), b.get(step)));
    }
    Ok(())
}

/// The binaries of a run by step.
fn compiled(session: &Session, request: &ReproduceRequest, ran: &Ran) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut elsewhere = session.elsewhere(ran.workspace.clone(), PathBuf::from("target"));
    elsewhere.options.target_dir = None;
    elsewhere.options.trust = trust_file(session)?;
    elsewhere.settings.home.clone_from(&ran.home);
    elsewhere.look(&request.words, Goal::Build)?.plan(&elsewhere, |opened, ready| {
        let known = ready.with_services(&elsewhere, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        let mut binaries = BTreeMap::new();
        for made in known.made {
            let Some(digest) = made.result.outputs.get(BINARY) else { continue };
            if let Some(bytes) = ready.leaves.get(digest)? {
                binaries.insert(made.node.id, bytes);
            }
        }
        Ok::<_, Error>(binaries)
    })
}

/// Compares archives, file by file.
fn archives(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, found: &mut Reproduced) -> Result<(), Error> {
    for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        found.artifacts += 1;
        if a.get(name) == b.get(name) {
            continue;
        }
        let unpacked = |archives: &BTreeMap<String, Vec<u8>>| {
            let files = archives.get(name).map(|bytes| tar::unpack(bytes)).transpose();
            files
                .map(|files| files.map(|files| files.all().clone()).unwrap_or_default())
                .map_err(ReproduceError::Archive)
        };
        let (a, b) = (unpacked(a)?, unpacked(b)?);
        for file in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
            found.differences.extend(difference(format!("{name}: {file}"), a.get(file), b.get(file)));
        }
    }
    Ok(())
}

/// How two files differ; none if they are equal.
fn difference(what: String, a: Option<&Vec<u8>>, b: Option<&Vec<u8>>) -> Option<ByteDifference> {
    if a == b {
        return None;
    }
    let empty = vec![];
    let sizes = (a.map(|a| a.len() as u64), b.map(|b| b.len() as u64));
    let (a, b) = (a.unwrap_or(&empty), b.unwrap_or(&empty));
    let differing = a.iter().zip(b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
    let first = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    Some(ByteDifference { what, sizes, bytes: differing as u64, first: first as u64 })
}

/// Copies a workspace without the outputs of builds and without git's folder.
fn copy(from: &Path, to: &Path, target: &Path) -> Result<(), Error> {
    let is_kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        (name != ".git" && !target.starts_with(entry.path())) || entry.depth() == 0
    };
    for entry in walkdir::WalkDir::new(from).follow_links(true).into_iter().filter_entry(is_kept) {
        let entry = entry.map_err(|e| Error::read(from)(e.into()))?;
        let place = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&place).map_err(Error::write(&place))?;
        } else if entry.path().is_file() {
            std::fs::copy(entry.path(), &place).map_err(Error::write(&place))?;
        }
    }
    Ok(())
}

/// Gives every file this time.
fn date(folder: &Path, seconds: u64) -> Result<(), Error> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.map_err(|e| Error::read(folder)(e.into()))?;
        if entry.file_type().is_file() {
            // Whoever owns a file may date it, also where nobody may write it.
            let file = std::fs::File::open(entry.path());
            file.and_then(|file| file.set_modified(time)).map_err(Error::write(entry.path()))?;
        }
    }
    Ok(())
}
