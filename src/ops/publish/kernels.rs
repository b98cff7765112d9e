//! Publishes to the folder of a repository that Hugging Face `kernels` loads: `build/torch-cuda` with the loader in Python, and a page. Knows files;
//! [`kforge_pipeline::release::bindings`] knows what is in them.
//!
//! | decision | because |
//! |---|---|
//! | the variant changes places with an earlier one in one call of the system | whoever loads it meanwhile, and a process that is killed, sees one or the other |
//! | a variant is replaced only if it holds exactly the files that its own `metadata.json` lists, and that says that kforge wrote it | everything else is somebody's work |
//! | a page that was edited stays | whoever edits it wants it so |
//! | other files and variants in the repository are not looked at | they are other people's |
//! | another version of the package takes the place of an earlier one; the same version with other contents, or another package, needs a flag | the folder has one version at a time, and version control keeps the others |

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{PublishError, PublishRequest, Published};
use crate::bindings::{BindingsError, plan_of};
use crate::event::{Blocked, Event};
use crate::install::place::{check_links, forget_all, put};
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_foundation::base::files::write_atomically;
use kforge_pipeline::release::artifact::ArtifactFiles;
use kforge_pipeline::release::artifact::files::Index;
use kforge_pipeline::release::artifact::tar;
use kforge_pipeline::release::bindings::{card, python, variant};
use kforge_pipeline::release::registry::{Status, layout};

/// What Python leaves in a folder that it loads.
const CACHE: &str = "__pycache__";

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-publish-";

/// What goes to a repository.
struct Repository<'a> {
    root: PathBuf,
    /// The folder as the user named it.
    name: &'a str,
    index: &'a Index,
    /// The files of the variant, relative to it.
    variant: BTreeMap<String, Vec<u8>>,
    card: String,
}

/// Publishes an artifact that is verified.
pub(super) fn publish(
    session: &Session,
    request: &PublishRequest,
    name: &str,
    files: &ArtifactFiles,
) -> Result<Published, Error> {
    let (index, plan) = plan_of(&request.artifact, files)?;
    let failed = |why| BindingsError::Loaders { path: request.artifact.clone(), why };
    let variant = python::package(&plan).map_err(failed)?;
    let to = Repository { root: session.cwd.join(name), name, index: &index, variant, card: card::card(&plan) };
    session.reporter.event(&Event::Publishing(name));
    let status = match request.dry_run {
        true => to.status(request.replace)?,
        false => to.locked(session, request.replace)?,
    };
    let refused = |why| BindingsError::Files { path: request.artifact.clone(), why };
    let signature = files.signature().map_err(refused)?;
    Ok(Published {
        destination: format!("kernels://{name}"),
        tag: None,
        manifest: None,
        signed_by: signature.map(|signature| signature.key().fingerprint()),
        bytes: tar::pack(files).map_err(refused)?.len() as u64,
        status,
        keeps_card: to.card_of_others()?,
        index,
    })
}

impl Repository<'_> {
    fn variant(&self) -> PathBuf {
        self.root.join(python::FOLDER)
    }

    /// Writes what is not there, as the only one who writes.
    fn locked(&self, session: &Session, replace: bool) -> Result<Status, Error> {
        std::fs::create_dir_all(&self.root).map_err(Error::write(&self.root))?;
        let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Folder));
        let lock = Lock::acquire(&self.root.join(layout::LOCK), Mode::Exclusive, session.wait(&mut blocked));
        let lock = lock.map_err(Error::lock(Blocked::Folder))?;
        let written = self.write(replace);
        lock.remove();
        written
    }

    fn write(&self, replace: bool) -> Result<Status, Error> {
        forget_all(&self.root, TEMP_PREFIX)?;
        let status = self.status(replace)?;
        if status != Status::Present {
            let beside = tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(&self.root);
            let beside = beside.map_err(Error::write(&self.root))?;
            let new = beside.path().join("new");
            for (name, bytes) in &self.variant {
                let path = new.join(name);
                let parent = path.parent().unwrap_or(&new);
                std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
                std::fs::write(&path, bytes).map_err(Error::write(&path))?;
                std::fs::File::open(&path).and_then(|file| file.sync_data()).map_err(Error::write(&path))?;
            }
            if check_links(&self.root, python::FOLDER).is_err() {
                let why = format!("a folder above `{}` in it is a symbolic link", python::FOLDER);
                return Err(PublishError::Foreign { folder: self.shown(), why }.into());
            }
            let folder = self.variant();
            let parent = folder.parent().unwrap_or(&self.root);
            std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
            put(&new, &folder, status == Status::Replaced)?;
        }
        let page = self.root.join(card::FILE);
        if !self.card_of_others()? && read(&page)?.is_none_or(|found| found != self.card.as_bytes()) {
            write_atomically(&page, self.card.as_bytes(), false).map_err(Error::write(&page))?;
        }
        Ok(status)
    }

    /// What publishing changes.
    fn status(&self, replace: bool) -> Result<Status, Error> {
        let foreign = |why: String| Error::from(PublishError::Foreign { folder: self.shown(), why });
        let folder = self.variant();
        match folder.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Status::Added),
            Err(e) => return Err(Error::read(&folder)(e)),
            Ok(found) if !found.is_dir() => return Err(foreign("it is no folder".into())),
            Ok(_) => {}
        }
        let found = contents(&folder)?;
        let kforge = variant::origin(&found).map_err(|why| foreign(why.to_string()))?;
        let is_next = kforge.package == self.index.package && kforge.version != self.index.version;
        match found == self.variant {
            true => Ok(Status::Present),
            // The same artifact, as another version of kforge writes it.
            false if replace || is_next || kforge.root == self.index.root => Ok(Status::Replaced),
            false => Err(PublishError::Taken {
                folder: self.shown(),
                found: format!("{} {} ({})", kforge.package, kforge.version, kforge.root),
            }
            .into()),
        }
    }

    /// Whether there is a page that kforge did not write, or that was edited.
    fn card_of_others(&self) -> Result<bool, Error> {
        let found = read(&self.root.join(card::FILE))?;
        Ok(found.is_some_and(|bytes| !std::str::from_utf8(&bytes).is_ok_and(card::is_unedited)))
    }

    fn shown(&self) -> String {
        format!("{}/{}", self.name.trim_end_matches('/'), python::FOLDER)
    }
}

/// The bytes of a file; none if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::read(path)(e)),
    }
}

/// The files below a folder by their names, without what Python leaves. Links and other things count as empty files.
fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut found = BTreeMap::new();
    let entries = walkdir::WalkDir::new(folder).into_iter().filter_entry(|entry| entry.file_name() != CACHE);
    for entry in entries {
        let entry = entry.map_err(|e| Error::read(folder)(e.into()))?;
        let name = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_string_lossy().into_owned();
        if entry.file_type().is_file() {
            found.insert(name, std::fs::read(entry.path()).map_err(Error::read(entry.path()))?);
        } else if !entry.file_type().is_dir() {
            found.insert(name, vec![]);
        }
    }
    Ok(found)
}
