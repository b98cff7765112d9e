//! Imports kernels that somebody has: finds sources in CUDA C++ or Triton below a folder, and writes a manifest for their kernels. Never overwrites a file.

pub mod gpu_mode;
mod python;
pub mod tasks;
pub mod traces;
pub mod tuner;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::new::{NewError, Surroundings, is_name};
use crate::{Error, Session};
use kforge_foundation::base::files::write_atomically;
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::source::import::traces::StrayReason;
use kforge_project::source::import::triton::import_triton;
use kforge_project::source::import::{ImportedManifest, import};
use kforge_project::workspace::find::{MANIFEST, tidy};
use kforge_project::workspace::join::EnclosingWorkspace;

/// The request for a manifest of existing kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportRequest {
    /// A source, or a folder with sources below it. Relative to the session's folder.
    pub path: PathBuf,
    /// The package's name; the name of its folder if none is given.
    pub name: Option<String>,
    /// Where the manifest goes.
    pub output: ImportOutput,
}

/// Where a manifest goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ImportOutput {
    /// `kernel.toml` in the folder, or beside the source.
    #[default]
    Beside,
    /// A file, whose folder is the package's.
    File(PathBuf),
    /// Nowhere: only the result holds it.
    Nowhere,
}

/// A manifest of existing kernels.
#[derive(Debug)]
pub struct Imported {
    /// The package's name.
    pub package: String,
    /// The package's folder.
    pub folder: PathBuf,
    /// The file that was written, if one was.
    pub file: Option<PathBuf>,
    /// The manifest.
    pub manifest: ImportedManifest,
    /// How many sources were read.
    pub sources: usize,
    /// Files that were not read, and why.
    pub skipped: Vec<SkippedFile>,
    /// The workspace that encloses the package, if there is one and `kernel.toml` was written.
    pub around: Option<Surroundings>,
}

/// A file that was not read.
#[derive(Debug)]
pub struct SkippedFile {
    /// Its path.
    pub path: PathBuf,
    /// Why.
    pub why: SkipReason,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum SkipReason {
    /// It is a link: a package holds its files itself.
    #[error("it is a symbolic link")]
    Link,
    /// It is not text.
    #[error("it is not UTF-8")]
    NotText,
    /// A manifest cannot name it.
    #[error("its name is not UTF-8")]
    Name,
    /// An `#include` cannot name it.
    #[error("no `#include` can name a file with `\"`, `\\` or a control character in its path")]
    Unnameable,
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It belongs to no definition of its dataset.
    #[error(transparent)]
    Stray(StrayReason),
}

/// Why kernels are not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file already exists.
    #[error("`{}` already exists, and kforge does not overwrite it", .0.display())]
    FileExists(PathBuf),
    /// There is no such file or folder, or it cannot be read.
    #[error("cannot read `{}`: {why}", path.display())]
    Source {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        why: SkipReason,
    },
    /// The sources are not below the manifest's folder.
    #[error("`{}` is not below `{}`, the folder of the manifest", source_path.display(), folder.display())]
    Outside {
        /// The sources.
        source_path: PathBuf,
        /// The folder of the manifest.
        folder: PathBuf,
    },
    /// No source has a kernel.
    #[error("no kernel was found in `{}`: {}", path.display(), match sources {
        0 => format!("there is no {files} file"),
        1 => "one source was read".to_string(),
        n => format!("{n} sources were read"),
    })]
    NoKernels {
        /// The file or folder.
        path: PathBuf,
        /// How names of sources end.
        files: &'static str,
        /// How many sources were read.
        sources: usize,
        /// Files that were not read, and why.
        skipped: Vec<SkippedFile>,
        /// Files that were read and whose kernels are left out, and why.
        left_out: Vec<(String, String)>,
    },
    /// No file is a task that can be imported.
    #[error("no task was imported from `{}`: {}", path.display(), match tasks.len() {
        0 => (*form).to_string(),
        1 => "the one that was found is refused".to_string(),
        n => format!("all {n} that were found are refused"),
    })]
    NoTasks {
        /// The file or folder.
        path: PathBuf,
        /// What no file is.
        form: &'static str,
        /// The tasks, all of them refused.
        tasks: Vec<tasks::TaskResult>,
        /// Files that were not read, and why.
        skipped: Vec<SkippedFile>,
        /// How many files are no tasks.
        others: usize,
    },
    /// The text names no release of PyTorch.
    #[error("`{0}` is no release of PyTorch: expected `system`, or one such as `2.9` or `2.9.1`")]
    TorchRelease(String),
    /// Tasks cannot be described.
    #[error(transparent)]
    Describe(kforge_harness::problem_sets::DescribeError),
    /// The parser of Python sources cannot be run.
    #[error("cannot read Python sources with `{}`: {why}", python.display())]
    Parser {
        /// The interpreter.
        python: PathBuf,
        /// Why.
        why: String,
    },
}

/// Texts by name, the names of those whose kernels are imported, and files that were not read.
#[derive(Default)]
struct Texts {
    all: BTreeMap<String, String>,
    mains: Vec<String>,
    skipped: Vec<SkippedFile>,
}

/// Writes a manifest for the kernels of a source in CUDA C++ or of all such sources below a folder.
///
/// # Errors
/// [`ImportError`], [`NewError`] for the package's name, or the manifest cannot be written.
pub fn cuda(session: &Session, request: &ImportRequest) -> Result<Imported, Error> {
    imported(session, request, &CUDA, &|name, texts| Ok(import(name, &texts.all, &texts.mains)))
}

/// Writes a manifest for the kernels of a source in Triton or of all Python sources below a folder. Nothing of them is executed.
///
/// # Errors
/// Those of [`cuda`], or there is no Python to parse the sources.
pub fn triton(session: &Session, request: &ImportRequest) -> Result<Imported, Error> {
    imported(session, request, &TRITON, &|name, texts| {
        let mains = texts.all.iter().filter(|(name, _)| texts.mains.contains(name));
        Ok(import_triton(name, &python::read(session, mains)?))
    })
}

/// The files of a language.
struct Files {
    /// Endings of sources.
    sources: &'static [&'static str],
    /// Endings of other files that sources use.
    others: &'static [&'static str],
    /// The sources for messages.
    shown: &'static str,
}

const CUDA: Files = Files { sources: &["cu", "cuh"], others: &["h", "hpp", "inl"], shown: "`.cu` or `.cuh`" };
const TRITON: Files = Files { sources: &["py"], others: &[], shown: "`.py`" };

fn imported(
    session: &Session,
    request: &ImportRequest,
    of: &Files,
    manifest_of: &dyn Fn(&str, &Texts) -> Result<ImportedManifest, Error>,
) -> Result<Imported, Error> {
    let absolute = |path: &Path| {
        let path = session.cwd.join(path);
        tidy(&std::path::absolute(&path).unwrap_or(path))
    };
    let path = absolute(&request.path);
    let unread = |why: io::Error| ImportError::Source { path: request.path.clone(), why: why.into() };
    let is_folder = path.metadata().map_err(unread)?.is_dir();
    let beside = if is_folder { path.clone() } else { path.parent().unwrap_or(&path).to_path_buf() };
    let file = match &request.output {
        ImportOutput::Beside => Some(beside.join(MANIFEST)),
        ImportOutput::File(file) => Some(absolute(file)),
        ImportOutput::Nowhere => None,
    };
    // Also a link that leads nowhere.
    if let Some(file) = file.as_ref().filter(|file| file.symlink_metadata().is_ok()) {
        return Err(ImportError::FileExists(file.clone()).into());
    }
    let folder = file.as_ref().and_then(|file| file.parent()).unwrap_or(&beside).to_path_buf();
    if !path.starts_with(&folder) {
        return Err(ImportError::Outside { source_path: path, folder }.into());
    }
    let of_folder = || named_after(&folder.file_name().map(|n| n.to_string_lossy()).unwrap_or_default());
    let name = request.name.clone().unwrap_or_else(of_folder);
    if !is_name(&name) {
        return Err(NewError::Name { name, given: request.name.is_some() }.into());
    }
    let is_manifest = file.as_ref().and_then(|file| file.file_name()).is_some_and(|file| file == MANIFEST);
    let around = if is_manifest { EnclosingWorkspace::find(&folder) } else { None };
    if let Some(around) = around.as_ref().filter(|a| a.names(&TEMPLATES).contains(&name)) {
        return Err(NewError::Taken { manifest: around.manifest.clone(), name }.into());
    }
    let mut texts = read(&folder, &beside, of);
    if !is_folder {
        let named = path.strip_prefix(&folder).unwrap_or(&path);
        let named = named.to_str().map(str::to_string);
        let refused = || ImportError::Source { path: request.path.clone(), why: SkipReason::Name };
        let named = named.ok_or_else(refused)?;
        if let Some(at) = texts.skipped.iter().position(|skipped| skipped.path == path) {
            let SkippedFile { why, .. } = texts.skipped.swap_remove(at);
            return Err(ImportError::Source { path: request.path.clone(), why }.into());
        }
        if !texts.all.contains_key(&named) {
            let text = std::fs::read_to_string(&path).map_err(unread)?;
            texts.all.insert(named.clone(), text);
        }
        texts.mains = vec![named];
        texts.skipped.clear();
    }
    let manifest = manifest_of(&name, &texts)?;
    let Texts { mains, skipped, .. } = texts;
    if manifest.kernels.is_empty() {
        let left_out = left_out(&manifest);
        let (path, sources) = (request.path.clone(), mains.len());
        return Err(ImportError::NoKernels { path, files: of.shown, sources, skipped, left_out }.into());
    }
    if let Some(file) = &file {
        write_atomically(file, manifest.text.as_bytes(), false).map_err(Error::write(file))?;
    }
    let join = |around: EnclosingWorkspace| {
        let joined = around.join(&folder).map_err(|error| {
            // All or nothing: a second try must not find the manifest of the first.
            if let Some(file) = &file {
                let _ = std::fs::remove_file(file);
            }
            NewError::NotJoined(error)
        })?;
        Ok::<_, NewError>(Surroundings { manifest: around.manifest, joined })
    };
    let around = around.map(join).transpose()?;
    Ok(Imported { package: name, folder, file, manifest, sources: mains.len(), skipped, around })
}

/// The files whose kernels a manifest leaves out, with the reasons.
pub fn left_out(manifest: &ImportedManifest) -> Vec<(String, String)> {
    let open = manifest.unfinished.iter().map(|open| {
        let line = open.place.line;
        let why = match open.closes {
            true => format!("it has a {} at line {line} that closes nothing", open.what),
            false => format!("it ends inside {} that opens at line {line}", open.what),
        };
        (open.place.file.clone(), why)
    });
    open.chain(manifest.unread.iter().map(|file| (file.file.clone(), file.why.clone()))).collect()
}

/// The name for a package in a folder of this name: what no name of a package may contain, such as the dots of a version, becomes `-`.
fn named_after(folder: &str) -> String {
    folder.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}

/// Whether a path has a character that ends or changes it in an `#include`.
fn is_unnameable(path: &str) -> bool {
    path.contains(|c: char| c.is_control() || matches!(c, '"' | '\\'))
}

/// Reads the sources and headers below a folder, in order of name. Names are relative to `root`. Hidden folders and the output of builds are left out.
fn read(root: &Path, folder: &Path, of: &Files) -> Texts {
    let mut texts = Texts::default();
    let visible = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name.starts_with('.') || entry.file_type().is_dir() && name == "target")
    };
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_path_buf();
                texts.skipped.push(SkippedFile { path, why: SkipReason::Unreadable(error.into()) });
                continue;
            }
        };
        let path = entry.path();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let source = of.sources.contains(&extension);
        if entry.file_type().is_dir() || !source && !of.others.contains(&extension) {
            continue;
        }
        let named = path.strip_prefix(root).unwrap_or(path).to_str();
        let text = match (entry.file_type().is_symlink(), named) {
            (true, _) => Err(SkipReason::Link),
            (false, None) => Err(SkipReason::Name),
            (false, Some(name)) if is_unnameable(name) => Err(SkipReason::Unnameable),
            (false, Some(_)) => std::fs::read(path)
                .map_err(SkipReason::from)
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| SkipReason::NotText)),
        };
        match text {
            Ok(text) => {
                let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                if source {
                    texts.mains.push(name.clone());
                }
                texts.all.insert(name, text);
            }
            Err(why) if source => texts.skipped.push(SkippedFile { path: path.to_path_buf(), why }),
            Err(_) => {}
        }
    }
    texts
}
