//! Writes loaders of an artifact: its digests are compared, then programs are generated that launch its kernels. Knows files;
//! [`kforge_pipeline::release::bindings`] knows what a loader is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::verify_artifact::read;
use crate::{Error, Session};
use kforge_pipeline::release::artifact::files::{Index, sha256};
use kforge_pipeline::release::artifact::{ArtifactError, ArtifactFiles, KernelsDocument};
use kforge_pipeline::release::bindings::{self as loaders, Language, Plan};

/// The file by which a folder of loaders is known.
const MARKER: &str = "kforge-bindings.json";

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-bindings-";

/// The request for loaders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingsRequest {
    /// The folder or the archive of the artifact.
    pub path: PathBuf,
    /// The language.
    pub language: Language,
    /// The folder to write; `PACKAGE-LANGUAGE` if there is none.
    pub output: Option<PathBuf>,
    /// Also write a wheel.
    pub wheel: bool,
}

/// Written loaders.
#[derive(Debug)]
pub struct WrittenBindings {
    /// The index of the artifact.
    pub index: Index,
    /// The folder.
    pub folder: PathBuf,
    /// The files in it, sorted.
    pub files: Vec<String>,
    /// The functions, in the order of the manifest.
    pub functions: Vec<String>,
}

/// Why there are no loaders.
#[derive(Debug, thiserror::Error)]
pub enum BindingsError {
    /// The files are not those of an artifact, or differ from its index.
    #[error("`{}` is refused: {why}", path.display())]
    Files {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// The reason.
        why: ArtifactError,
    },
    /// It has what loaders cannot do.
    #[error("`{}`: {why}", path.display())]
    Loaders {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// The reason.
        why: loaders::BindingsError,
    },
    /// A wheel of another language.
    #[error("`--wheel` is for `--language python`")]
    NoWheel,
    /// Another folder has the place.
    #[error("`{}` exists and was not written by `kforge bindings`: move it away, or name another folder with `--output`", .0.display())]
    Occupied(PathBuf),
    /// Something in the folder would be lost.
    #[error("`{}` is not replaced: `{file}` in it was not written by `kforge bindings`, or was changed since; move it away, or name another folder with `--output`", folder.display())]
    Changed {
        /// The folder.
        folder: PathBuf,
        /// The file, relative to it.
        file: String,
    },
}

/// What a folder of loaders is of, and what it holds beside this.
#[derive(Serialize)]
struct Marker<'a> {
    format_version: u32,
    kforge: &'a str,
    language: &'a str,
    package: &'a str,
    version: &'a str,
    root: &'a str,
    /// The SHA-256 digests of the other files by name.
    files: BTreeMap<&'a str, String>,
}

/// What is read of it.
#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Writes loaders of an artifact.
///
/// # Errors
/// [`BindingsError`], or files cannot be written. Nothing is written then.
pub fn bindings(session: &Session, request: &BindingsRequest) -> Result<WrittenBindings, Error> {
    let path = &request.path;
    if request.wheel && request.language != Language::Python {
        return Err(BindingsError::NoWheel.into());
    }
    let refused = |why| Error::from(BindingsError::Files { path: path.clone(), why });
    let artifact = read(&session.cwd.join(path), path).map_err(refused)?;
    let (index, plan) = plan_of(path, &artifact)?;
    let failed = |why| Error::from(BindingsError::Loaders { path: path.clone(), why });
    let mut files = loaders::files(&plan, request.language).map_err(failed)?;
    if request.wheel {
        let (name, bytes) = loaders::wheel(&plan).map_err(failed)?;
        files.insert(format!("dist/{name}"), bytes);
    }
    let marker = Marker {
        format_version: 1,
        kforge: env!("CARGO_PKG_VERSION"),
        language: request.language.name(),
        package: &index.package,
        version: &index.version,
        root: &index.root,
        files: files.iter().map(|(name, bytes)| (name.as_str(), sha256(bytes))).collect(),
    };
    let marker = [serde_json::to_vec_pretty(&marker)?, b"\n".to_vec()].concat();
    files.insert(MARKER.into(), marker);
    let name = || PathBuf::from(format!("{}-{}", index.package, request.language.name()));
    let folder = session.cwd.join(request.output.clone().unwrap_or_else(name));
    write(&folder, &files)?;
    let functions = plan.functions.iter().map(|function| function.name.clone()).collect();
    Ok(WrittenBindings { folder, files: files.into_keys().collect(), functions, index })
}

/// What the loaders of an artifact do, and its index. `path` is the artifact, as the user named it.
pub(crate) fn plan_of(path: &Path, artifact: &ArtifactFiles) -> Result<(Index, Plan), BindingsError> {
    let refused = |why| BindingsError::Files { path: path.into(), why };
    let index = artifact.index().map_err(refused)?;
    let document = KernelsDocument::of(artifact).map_err(refused)?;
    let plan = loaders::plan(&index, artifact, &document);
    plan.map(|plan| (index, plan)).map_err(|why| BindingsError::Loaders { path: path.into(), why })
}

/// Writes a folder in place of an earlier one. It appears under its name only when it is complete.
fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), Error> {
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if std::fs::symlink_metadata(folder).is_ok() && !folder.join(MARKER).is_file() && !is_empty() {
        return Err(BindingsError::Occupied(folder.into()).into());
    }
    if let Some(file) = foreign(folder)? {
        return Err(BindingsError::Changed { folder: folder.into(), file }.into());
    }
    let parent = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
    let temporary = tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(parent).map_err(Error::write(parent))?;
    for (name, bytes) in files {
        let path = temporary.path().join("new").join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
        std::fs::write(&path, bytes).map_err(Error::write(&path))?;
    }
    if folder.exists() {
        std::fs::rename(folder, temporary.path().join("old")).map_err(Error::write(folder))?;
    }
    std::fs::rename(temporary.path().join("new"), folder).map_err(Error::write(folder))
}

/// The first file in a folder of loaders that is not as it was written, if there is one. What compilers and interpreters leave there is nobody's work.
fn foreign(folder: &Path) -> Result<Option<String>, Error> {
    let marker = folder.join(MARKER);
    let Ok(text) = std::fs::read(&marker) else { return Ok(None) };
    let Ok(listed) = serde_json::from_slice::<Listed>(&text) else { return Ok(Some(MARKER.into())) };
    let is_left = |entry: &walkdir::DirEntry| {
        let is_cache = entry.file_type().is_dir() && entry.file_name() == "__pycache__";
        is_cache || entry.depth() == 1 && (entry.file_name() == "target" || entry.file_name() == "Cargo.lock")
    };
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(|entry| !is_left(entry));
    for entry in entries {
        let entry = entry.map_err(|error| Error::read(folder)(error.into()))?;
        let name = entry.path().strip_prefix(folder).unwrap_or(entry.path()).display().to_string();
        if entry.file_type().is_dir() || name == MARKER {
            continue;
        }
        let known = listed.files.get(&name).filter(|_| entry.file_type().is_file());
        let is_same = |digest: &String| std::fs::read(entry.path()).is_ok_and(|bytes| sha256(&bytes) == *digest);
        if !known.is_some_and(is_same) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
