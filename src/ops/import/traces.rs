//! Imports datasets in FlashInfer-Trace's form, SOL-ExecBench's included: reads their files, and writes a package for each definition. Runs nothing of them. A
//! definition that cannot be imported does not stop the others. Never overwrites a file, and leaves nothing half written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::python::parsed;
use super::tasks::files::package_name;
use super::tasks::torch::is_release;
use super::tasks::{ImportedShape, ImportedTasks, Origin, TaskOutcome, TaskResult, TasksRequest, write};
use super::{ImportError, SkipReason, SkippedFile};
use crate::{Error, Session};
use kforge_harness::oracle::stored::{self, StoredHeader};
use kforge_project::source::import::tasks::{ImportedTask, Refusal};
use kforge_project::source::import::traces::{
    DefinitionRequest, ImportedDefinition, NotStored, Parts, SIDECAR, Set, StoredInput, belongs, sets, write_definition,
};
use kforge_project::workspace::find::{MANIFEST, tidy};

/// `ast` of the interpreter; see its head.
const READER: &str = include_str!("trace_reader.py");
/// The file of the reference in a package.
const REFERENCE: &str = "ref.py";
/// The name of the problem set.
pub const SET: &str = "flashinfer-trace";

/// The arguments of functions by source and name, as [`READER`] gives them.
type Functions = BTreeMap<String, Option<BTreeMap<String, Option<Vec<String>>>>>;

/// Writes a package for each definition of a dataset, unless the request is a dry run. `told` hears of each as soon as it is done.
///
/// # Errors
/// [`ImportError`], there is no Python, or a file cannot be written.
pub fn flashinfer_trace(
    session: &Session,
    request: &TasksRequest,
    told: &mut dyn FnMut(&TaskResult),
) -> Result<ImportedTasks, Error> {
    if let Some(release) = request.torch.as_ref().filter(|release| !is_release(release)) {
        return Err(ImportError::TorchRelease(release.clone()).into());
    }
    let absolute = |path: &Path| {
        let path = session.cwd.join(path);
        tidy(&std::path::absolute(&path).unwrap_or(path))
    };
    let output = absolute(request.output.as_deref().unwrap_or(Path::new(SET)));
    let root = absolute(&request.path);
    let unread = |why: std::io::Error| ImportError::Source { path: request.path.clone(), why: why.into() };
    std::fs::read_dir(&root).map_err(unread)?;
    let mut skipped = vec![];
    let texts = texts(&root, &mut skipped);
    let (sets, strays) = sets(&texts);
    skipped.extend(
        strays
            .into_iter()
            .map(|stray| SkippedFile { path: PathBuf::from(stray.path), why: SkipReason::Stray(stray.why) }),
    );
    let functions = functions(session, &sets)?;
    let mut tasks: Vec<TaskResult> = vec![];
    let mut workspace = None;
    for set in &sets {
        let mut result = place(set, &output);
        let is_taken = tasks.iter().any(|other| other.folder == result.folder);
        // Also a link that leads nowhere.
        if !is_taken && result.folder.symlink_metadata().is_err() {
            let blobs = Blobs::of(&root, set);
            result.outcome = match described(request, &result.package, set, &functions, &blobs) {
                Ok(done) => {
                    if workspace.is_none() && !request.dry_run {
                        workspace = write::root(&output, &result.folder)?;
                    }
                    let kept: Vec<(String, &str)> =
                        set.files.iter().map(|(path, text)| (format!("{SIDECAR}/{path}"), text.as_str())).collect();
                    let own = done.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
                    let kept = kept.iter().map(|(path, text)| (path.as_str(), *text));
                    let files: Vec<(&str, &str)> = own.chain(kept).chain([(MANIFEST, done.text.as_str())]).collect();
                    let around = match request.dry_run {
                        true => None,
                        false => write::package(&result.folder, &files, &blobs.copies())?,
                    };
                    TaskOutcome::Imported(Box::new(task(done)), vec![], around)
                }
                Err(refusal) => TaskOutcome::Refused(refusal),
            };
        }
        told(&result);
        tasks.push(result);
    }
    if tasks.iter().all(|task| matches!(task.outcome, TaskOutcome::Refused(_))) {
        let form = "there is no definition: neither `definitions/` nor a `definition.json`";
        return Err(ImportError::NoTasks { path: request.path.clone(), form, tasks, skipped, others: 0 }.into());
    }
    tasks.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(ImportedTasks { set: SET, folder: output, tasks, skipped, others: 0, workspace, strangers: vec![] })
}

/// The manifest of a definition, or why there is none.
fn described(
    request: &TasksRequest,
    package: &str,
    set: &Set,
    functions: &Functions,
    blobs: &Blobs<'_>,
) -> Result<ImportedDefinition, Refusal> {
    let refusal = |kind: &str, message: String, line| Refusal { kind: kind.into(), message, line };
    // The place is part of the sentence: the file need not be that of the definition.
    let parts = set.parts.as_ref().map_err(|why| refusal("malformed", why.to_string(), None))?;
    let arguments = |source: &str, function: &str| functions.get(source)?.as_ref()?.get(function)?.clone();
    write_definition(&DefinitionRequest {
        package,
        file: REFERENCE,
        torch: request.torch.as_deref(),
        parts,
        arguments: &arguments,
        stored: &|path, key| blobs.tensor(path, key),
    })
    .map_err(|why| refusal("unsupported", format!("`{}`: {why}", set.path), None))
}

/// The files with inputs of a definition.
struct Blobs<'a> {
    root: &'a Path,
    /// By the path in the workloads: the place in the dataset.
    places: BTreeMap<String, String>,
}

impl<'a> Blobs<'a> {
    /// Those that are files of the dataset. A link is none: it leads elsewhere.
    fn of(root: &'a Path, set: &Set) -> Self {
        let is_file = |place: &String| root.join(place).symlink_metadata().is_ok_and(|data| data.is_file());
        let found = |(path, places): (&str, Vec<String>)| Some((path.to_string(), places.into_iter().find(is_file)?));
        Blobs { root, places: set.blobs().into_iter().filter_map(found).collect() }
    }

    /// A tensor of the file that a workload names.
    fn tensor(&self, path: &str, key: &str) -> Result<StoredInput, NotStored> {
        let place = self.places.get(path).ok_or(NotStored::NoFile)?;
        let found = stored::header(&self.root.join(place), key).map_err(|why| NotStored::Unfit(Box::new(why)));
        let StoredHeader { dtype, said, shape } = found?;
        let dtype = dtype.map_or(said, |dtype| dtype.to_string());
        Ok(StoredInput { place: place.clone(), dtype, shape })
    }

    /// Where the files go in a package, and where they are.
    fn copies(&self) -> Vec<(String, PathBuf)> {
        self.places.values().map(|place| (format!("{SIDECAR}/{place}"), self.root.join(place))).collect()
    }
}

/// The package of a definition, before anything is known about it.
fn place(set: &Set, output: &Path) -> TaskResult {
    let stem = || set.path.rsplit('/').next().and_then(|name| name.strip_suffix(".json")).unwrap_or(&set.path);
    let (name, op_type) = match &set.parts {
        Ok(Parts { definition, .. }) => (definition.name.clone(), definition.op_type.clone()),
        Err(_) => (stem().to_string(), None),
    };
    let package = package_name(&name);
    let folder = match op_type {
        Some(op_type) => output.join(package_name(&op_type)).join(&package),
        None => output.join(&package),
    };
    let origin = Origin { set: SET.into(), level: None, number: None, name };
    TaskResult { path: set.path.clone(), package, folder, origin, outcome: TaskOutcome::Exists }
}

fn task(done: ImportedDefinition) -> ImportedTask {
    ImportedTask {
        text: done.text,
        operator: done.operator,
        shapes: done.shapes.into_iter().map(|(name, dims)| ImportedShape { name, dims }).collect(),
        train: None,
        findings: done.findings,
        reference_bytes: None,
    }
}

/// What Python's parser says of references and solutions.
fn functions(session: &Session, sets: &[Set]) -> Result<Functions, Error> {
    let parts = || sets.iter().filter_map(|set| set.parts.as_ref().ok());
    let references = parts().map(|parts| &parts.definition.reference);
    let solutions = parts().flat_map(|parts| &parts.solutions).flat_map(|(_, solution)| &solution.sources);
    let sources = solutions.filter(|(path, _)| path.ends_with(".py")).map(|(_, text)| text);
    let texts: BTreeMap<&String, &String> = references.chain(sources).map(|text| (text, text)).collect();
    if texts.is_empty() { Ok(BTreeMap::new()) } else { parsed(session, READER, &texts) }
}

/// The texts of the files of a dataset, by path below its folder.
fn texts(root: &Path, skipped: &mut Vec<SkippedFile>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let visible = |entry: &walkdir::DirEntry| {
        entry.depth() == 0
            || !entry.file_name().to_string_lossy().starts_with('.') && !entry.path().join(MANIFEST).is_file()
    };
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root).to_path_buf();
                skipped.push(SkippedFile { path, why: SkipReason::Unreadable(error.into()) });
                continue;
            }
        };
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let Some(name) = path.to_str().filter(|name| !entry.file_type().is_dir() && belongs(name)) else { continue };
        let text = match entry.file_type().is_symlink() {
            true => Err(SkipReason::Link),
            false => std::fs::read(entry.path())
                .map_err(SkipReason::from)
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| SkipReason::NotText)),
        };
        match text {
            Ok(text) => drop(out.insert(name.to_string(), text)),
            Err(why) => skipped.push(SkippedFile { path: path.to_path_buf(), why }),
        }
    }
    out
}
