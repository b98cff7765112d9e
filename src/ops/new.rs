//! Creates packages from templates, and workflows for CI. Never overwrites a file.

mod ci;
mod templates;

use std::path::{Path, PathBuf};

pub use self::ci::Ci;
use self::templates::File;
use crate::event::Event;
use crate::{Error, Session};
use kforge_foundation::base::files::write_atomically;
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_pipeline::report::schemas;
use kforge_project::workspace::find::{MANIFEST, tidy};
use kforge_project::workspace::join::{EnclosingWorkspace, JoinError, Joined};

/// The template of a new package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// A kernel that maps each element.
    Elementwise,
    /// A kernel that sums rows.
    RowReduction,
    /// A kernel that multiplies matrices.
    Matmul,
}

impl Template {
    /// The template's name: `row-reduction`.
    pub fn word(self) -> &'static str {
        match self {
            Template::Elementwise => "elementwise",
            Template::RowReduction => "row-reduction",
            Template::Matmul => "matmul",
        }
    }
}

/// The request for a new package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Its name; the name of its folder if none is given.
    pub name: Option<String>,
    /// Its template.
    pub template: Template,
    /// The CI service for which a workflow is written.
    pub ci: Option<Ci>,
}

/// A package that was created.
#[derive(Debug)]
pub struct NewPackage {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The enclosing workspace, if there is one.
    pub around: Option<Surroundings>,
    /// The workflow that was written.
    pub workflow: Option<PathBuf>,
    /// Whether the package is new. Only a workflow was written for one that existed.
    pub is_new: bool,
}

/// The workspace that encloses a new package.
#[derive(Debug)]
pub struct Surroundings {
    /// The manifest of its root.
    pub manifest: PathBuf,
    /// Whether and how the package joined the workspace.
    pub joined: Joined,
}

/// Why a package is not created.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The folder already exists.
    #[error("`{}` exists already", .0.display())]
    FolderExists(PathBuf),
    /// The folder already has a manifest.
    #[error("`{}` already exists", .0.display())]
    ManifestExists(PathBuf),
    /// The name is not valid for a package.
    #[error("{}: expected {NAME}", if name.is_empty() {
        "there is no name for the package".to_string()
    } else {
        format!("`{name}` is not a valid package name")
    })]
    Name {
        /// The name.
        name: String,
        /// Whether the user gave the name, rather than the folder.
        given: bool,
    },
    /// Another package of the workspace has the same name.
    #[error(
        "the workspace of `{}` has a package `{name}` already: choose another name with `--name`",
        manifest.display()
    )]
    Taken {
        /// The manifest of the workspace's root.
        manifest: PathBuf,
        /// The name.
        name: String,
    },
    /// A file of the template, or the workflow, already exists.
    #[error("`{}` already exists, and kforge does not overwrite it", .0.display())]
    FileExists(PathBuf),
    /// The package cannot be added to the workspace's manifest.
    #[error(transparent)]
    NotJoined(#[from] JoinError),
}

/// The name of the file with the schema of manifests.
const SCHEMA: &str = "kernel.schema.json";

/// The form of a package's name.
const NAME: &str = "letters, digits, `_` and `-`, starting with a letter";

/// Creates a package in a new folder. `path` is relative to the session's folder.
///
/// # Errors
/// [`NewError`], or a file cannot be written.
pub fn new(session: &Session, path: &Path, request: &NewRequest) -> Result<NewPackage, Error> {
    let folder = tidy(&session.cwd.join(path));
    if folder.exists() {
        return Err(NewError::FolderExists(folder).into());
    }
    make(session, folder, request)
}

/// Creates a package in the session's folder. If there is one and the request names no package but a CI service, only the workflow is written.
///
/// # Errors
/// [`NewError`], or a file cannot be written.
pub fn init(session: &Session, request: &NewRequest) -> Result<NewPackage, Error> {
    let folder = tidy(&std::path::absolute(&session.cwd).unwrap_or_else(|_| session.cwd.clone()));
    let manifest = folder.join(MANIFEST);
    match request.ci {
        _ if !manifest.exists() => make(session, folder, request),
        Some(ci) if request.name.is_none() => workflow_of(session, folder, ci),
        _ => Err(NewError::ManifestExists(manifest).into()),
    }
}

fn make(session: &Session, folder: PathBuf, request: &NewRequest) -> Result<NewPackage, Error> {
    let of_folder = || folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = request.name.clone().unwrap_or_else(of_folder);
    if !is_name(&name) {
        return Err(NewError::Name { name, given: request.name.is_some() }.into());
    }
    let around = EnclosingWorkspace::find(&folder);
    if let Some(around) = around.as_ref().filter(|a| a.names(&TEMPLATES).contains(&name)) {
        return Err(NewError::Taken { manifest: around.manifest.clone(), name }.into());
    }
    let place = |file: &'static File| (folder.join(file.name.replace("{{name}}", &name)), file);
    let places: Vec<(PathBuf, &File)> = templates::of(request.template).iter().map(place).collect();
    // Existing files stay. An existing README or .gitignore is fine, but an existing source would not fit the manifest.
    if let Some((path, _)) = places.iter().find(|(path, file)| path.exists() && !file.is_optional()) {
        return Err(NewError::FileExists(path.clone()).into());
    }
    let workflow = request.ci.map(|ci| (ci, ci::file(ci, &folder)));
    // Also a link that leads nowhere.
    if let Some((_, path)) = workflow.as_ref().filter(|(_, path)| path.symlink_metadata().is_ok()) {
        return Err(NewError::FileExists(path.clone()).into());
    }
    let schema = schema_of(&folder, around.as_ref());
    if !schema.exists() {
        write_atomically(&schema, manifest_schema().as_bytes(), false).map_err(Error::write(&schema))?;
    }
    for (path, file) in &places {
        if path.exists() {
            session.reporter.event(&Event::FileKept(path));
            continue;
        }
        let mut text = file.text.replace("{{name}}", &name);
        if file.name == MANIFEST {
            text.insert_str(0, &format!("#:schema {}\n", path_from(&folder, &schema)));
        }
        write_atomically(path, text.as_bytes(), false).map_err(Error::write(path))?;
    }
    let join = |around: EnclosingWorkspace| {
        let joined = around.join(&folder).map_err(NewError::NotJoined)?;
        Ok::<_, NewError>(Surroundings { manifest: around.manifest, joined })
    };
    let around = around.map(join).transpose()?;
    if let Some((ci, path)) = &workflow {
        let built = built_in(&folder, around.as_ref());
        let below = built.strip_prefix(ci::repository(&folder)).unwrap_or(Path::new(""));
        write_atomically(path, ci.workflow(below).as_bytes(), false).map_err(Error::write(path))?;
    }
    Ok(NewPackage { name, folder, around, workflow: workflow.map(|(_, path)| path), is_new: true })
}

/// Writes the workflow of a package that exists.
fn workflow_of(session: &Session, folder: PathBuf, ci: Ci) -> Result<NewPackage, Error> {
    let path = ci::file(ci, &folder);
    if path.symlink_metadata().is_ok() {
        return Err(NewError::FileExists(path).into());
    }
    let opened = session.open()?;
    let (root, repository) = (tidy(&opened.workspace.root), ci::repository(&folder));
    let built = if root.starts_with(repository) { &root } else { &folder };
    let below = built.strip_prefix(repository).unwrap_or(Path::new(""));
    write_atomically(&path, ci.workflow(below).as_bytes(), false).map_err(Error::write(&path))?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(NewPackage { name, folder, around: None, workflow: Some(path), is_new: false })
}

/// The file with the schema of manifests, for editors: in the root of the workspace around a new package, unless that is outside the package's repository, else
/// in the package.
fn schema_of(folder: &Path, around: Option<&EnclosingWorkspace>) -> PathBuf {
    let repository = ci::enclosing_repository(folder);
    let root = around.and_then(|around| around.manifest.parent());
    let root = root.filter(|root| repository.is_none_or(|repository| root.starts_with(repository)));
    root.unwrap_or(folder).join(SCHEMA)
}

/// The schema of `kernel.toml`, as `kforge schema manifest` prints it.
fn manifest_schema() -> String {
    let schema = schemas::schema("manifest").expect("BUG: manifests have a schema");
    format!("{schema:#}\n")
}

/// The path of a file from a folder in or below the file's own folder, with `/`.
fn path_from(folder: &Path, file: &Path) -> String {
    let home = file.parent().unwrap_or(Path::new(""));
    let below = folder.strip_prefix(home).map_or(0, |below| below.components().count());
    "../".repeat(below) + SCHEMA
}

/// The folder in which a new package is built, whose `target` takes the output: that of the workspace, if the package is a member and the repository holds it.
fn built_in<'a>(folder: &'a Path, around: Option<&'a Surroundings>) -> &'a Path {
    let root = around.filter(|around| around.joined != Joined::Excluded).and_then(|around| around.manifest.parent());
    root.filter(|root| root.starts_with(ci::repository(folder))).unwrap_or(folder)
}

/// Whether a package can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for good in ["norms", "rms_norm", "flash-attention", "K2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "2fast", "a b", "../x", "-x", "é", "a.b", "a/b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
