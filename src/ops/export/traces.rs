//! Exports packages of a dataset in FlashInfer-Trace's form: the files of the dataset as they were, and solutions and traces of what kforge knows. Runs nothing.
//! Writes nothing if a file that is not kforge's own differs.

mod dataset;
pub(super) mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::session::places::Places;
use crate::{Error, Session};
use dataset::Dataset;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::traces::trace_line;
use kforge_project::source::import::traces::Faulty;
use kforge_project::workspace::select::SelectionArgs;
use known::{Found, Which, found};

/// The request for an export of traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracesRequest {
    /// The selection.
    pub words: SelectionArgs,
    /// The folder of the dataset to write, relative to the session's folder.
    pub output: PathBuf,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportedTraces {
    /// The folder of the dataset.
    pub folder: PathBuf,
    /// How many definitions it has.
    pub definitions: u64,
    /// How many files of the dataset were written as they were.
    pub files: u64,
    /// How many kernels are new solutions.
    pub solutions: u64,
    /// How many traces are of what kforge knows, those that were there before included.
    pub traces: u64,
    /// What has no trace: the reason, and the kernels with their targets and shapes.
    pub left_out: BTreeMap<String, BTreeSet<String>>,
    /// Files with inputs that workloads name, and that neither the package nor the export has.
    pub blobs: BTreeSet<String>,
}

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// No package of the selection is from such a dataset.
    #[error("no package of the selection is from a dataset in FlashInfer-Trace's form")]
    NoDefinitions,
    /// A file exists, and is not what would be written.
    #[error("`{}` differs from the file of the dataset, and kforge does not overwrite it", .0.display())]
    Differs(PathBuf),
    /// The files of a package's dataset are not what they were.
    #[error("the dataset of package `{package}` cannot be read: {why}")]
    Changed {
        /// The package.
        package: String,
        /// Why.
        #[source]
        why: DatasetFault,
    },
}

/// What is wrong with the files of a package's dataset.
#[derive(Debug, thiserror::Error)]
pub enum DatasetFault {
    /// A file is malformed.
    #[error(transparent)]
    Malformed(#[from] Faulty),
    /// There is not exactly one definition.
    #[error("it has {0} definitions, expected one")]
    Definitions(usize),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
}

/// A file of the export.
struct Written {
    text: String,
    /// Whether only kforge writes it: an earlier one is replaced.
    own: bool,
}

/// Exports what is known of the selection.
///
/// # Errors
/// [`TracesError`], the plan cannot be made, or a file cannot be written.
pub fn traces(session: &Session, request: &TracesRequest) -> Result<ExportedTraces, Error> {
    let looking = session.look(&request.words, Goal::Build)?;
    let folder = session.cwd.join(&request.output);
    let mut done = ExportedTraces { folder: folder.clone(), ..ExportedTraces::default() };
    let mut files: BTreeMap<String, Written> = BTreeMap::new();
    let mut copies: BTreeMap<String, PathBuf> = BTreeMap::new();
    looking.plan_of(session, |opened, packages, ready| {
        let known = ready.with_services(session, opened, |services| {
            kforge_engine::known(ready.graph.clone(), &ready.options, services)
        });
        let nodes: Vec<_> = known.steps.iter().map(|(node, _)| node).collect();
        let places = Places::of_steps(&nodes, &ready.journal, &*ready.leaves);
        let report = super::assembled(ready, &known, &places);
        let last = crate::build::report::last(session, &opened.workspace).ok();
        for member in packages.all().filter_map(|package| packages.member(&package.name)) {
            let Some(mut dataset) = Dataset::of(member)? else { continue };
            done.definitions += 1;
            done.files += dataset.set.files.len() as u64;
            for (path, from) in dataset.blobs() {
                match from {
                    Some(from) => drop(copies.insert(path, from)),
                    None if folder.join(&path).exists() => {}
                    None => drop(done.blobs.insert(path)),
                }
            }
            let mut lines = vec![];
            for found in found(Which::Chosen, member, (&report, last.as_ref()), ready, &known.steps, &places) {
                match line(&mut dataset, &found) {
                    Ok(line) => lines.push(line?),
                    Err(why) => drop(done.left_out.entry(why).or_default().insert(found.place())),
                }
            }
            done.solutions += dataset.new.len() as u64;
            let path = dataset.traces_path();
            let text = joined(&folder.join(&path), dataset.set.files.get(&path), lines);
            done.traces += text.lines().count() as u64;
            let kept = dataset.set.files.into_iter().chain(dataset.new);
            files.extend(kept.map(|(path, text)| (path, Written { text, own: false })));
            if !text.is_empty() {
                files.insert(path, Written { text, own: true });
            }
        }
        Ok::<_, Error>(())
    })?;
    if done.definitions == 0 {
        return Err(TracesError::NoDefinitions.into());
    }
    done.files += copies.len() as u64;
    write(&folder, &files, &copies)?;
    Ok(done)
}

/// The line of a trace; or why there is none.
fn line(dataset: &mut Dataset, found: &Found) -> Result<Result<String, serde_json::Error>, String> {
    let evaluation = found.evaluation(dataset.is_extended()).map_err(|why| why.to_string())?;
    let workload = dataset.workload(&found.shape).ok_or("the shape is no workload of the dataset")?.json.clone();
    let name = dataset.solution(&found.solution)?;
    Ok(trace_line(&dataset.name, &workload, &name, &evaluation))
}

/// The lines of a file of kforge's own: those of the folder, those of the dataset, and new ones, each once.
fn joined(there: &Path, earlier: Option<&String>, new: Vec<String>) -> String {
    let there = std::fs::read_to_string(there).unwrap_or_default();
    let earlier = earlier.map_or("", String::as_str);
    let mut out = String::new();
    let mut known = BTreeSet::new();
    for line in there.lines().chain(earlier.lines()).map(String::from).chain(new) {
        if !line.trim().is_empty() && known.insert(line.clone()) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

/// Writes the files, and the copies of those with inputs. Checks all of them first, so that a file that stands in the way leaves the folder as it is.
fn write(folder: &Path, files: &BTreeMap<String, Written>, copies: &BTreeMap<String, PathBuf>) -> Result<(), Error> {
    let mut missing = vec![];
    for (path, from) in copies {
        let place = folder.join(path);
        match place.symlink_metadata() {
            Err(_) => missing.push((place, from)),
            Ok(_) if is_same(&place, from).map_err(Error::read(from))? => {}
            Ok(_) => return Err(TracesError::Differs(place).into()),
        }
    }
    for (path, written) in files.iter().filter(|(_, written)| !written.own) {
        let place = folder.join(path);
        let is_other = place.symlink_metadata().is_ok()
            && !std::fs::read(&place).is_ok_and(|there| there == written.text.as_bytes());
        if is_other {
            return Err(TracesError::Differs(place).into());
        }
    }
    for (path, written) in files {
        let place = folder.join(path);
        let above = place.parent().unwrap_or(folder);
        std::fs::create_dir_all(above).map_err(Error::write(above))?;
        write_if_changed(&place, written.text.as_bytes()).map_err(Error::write(&place))?;
    }
    for (place, from) in missing {
        let above = place.parent().unwrap_or(folder);
        std::fs::create_dir_all(above).map_err(Error::write(above))?;
        std::fs::copy(from, &place).map_err(Error::write(&place))?;
    }
    Ok(())
}

/// Whether two files have the same content. They can be large, so they are not read whole.
fn is_same(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut of_a, mut of_b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = a.read(&mut of_a)?;
        if n == 0 {
            return Ok(true);
        }
        b.read_exact(&mut of_b[..n])?;
        if of_a[..n] != of_b[..n] {
            return Ok(false);
        }
    }
}
