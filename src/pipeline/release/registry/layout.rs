//! A folder in the form of an OCI image layout: `oci-layout`, `index.json` with the tags, and `blobs/sha256/HEX`. Knows files; does not know who else uses the
//! folder: whoever writes holds the lock [`LOCK`] in it.
//!
//! A file gets its name after it is complete, and `index.json` is replaced as a whole. So readers need no lock. A writer that is killed leaves contents that
//! nothing names, and temporary files, which the next writer removes.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::OciDigest;
use super::error::RegistryError;
use super::manifest::{Descriptor, INDEX as IMAGE_INDEX, ImageIndex, LARGEST, MANIFEST, Manifest, REF_NAME};
use super::reference::check_tag;
use super::repository::{Repository, is_artifact};
use kforge_foundation::base::files::write_atomically;

/// The file that a writer locks.
pub const LOCK: &str = ".kforge-publish.lock";
/// The file that marks a layout.
const MARK: &str = "oci-layout";
/// The list of tags.
const INDEX: &str = "index.json";
const BLOBS: &str = "blobs";
/// The only version of the form.
const VERSION: &str = "1.0.0";
/// The most entries of the list that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// The beginning of the names of temporary files.
const TEMP_PREFIX: &str = ".tmp-";

/// `oci-layout`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    image_layout_version: String,
}

/// A folder of published artifacts.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    /// The folder as the user named it.
    name: String,
}

impl Layout {
    /// Whether a folder is marked as a layout.
    pub fn is_at(root: &Path) -> bool {
        root.join(MARK).is_file()
    }

    /// The layout in a folder; `name` is the folder as the user named it.
    ///
    /// # Errors
    /// The folder cannot be read, or is none of this version.
    pub fn open(root: &Path, name: &str) -> Result<Layout, RegistryError> {
        let path = root.join(MARK);
        let bytes = bounded(&path, LARGEST)?.ok_or_else(|| RegistryError::NotLayout(name.into()))?;
        let mark: Mark = serde_json::from_slice(&bytes)
            .map_err(|source| RegistryError::Document { what: format!("`{}`", path.display()), source })?;
        match mark.image_layout_version.as_str() {
            VERSION => Ok(Layout { root: root.into(), name: name.into() }),
            version => {
                Err(RegistryError::LayoutVersion { path: name.into(), version: version.escape_default().to_string() })
            }
        }
    }

    /// Checks that a folder is a layout or can become one. Writes nothing.
    ///
    /// # Errors
    /// It holds other files.
    pub fn check(root: &Path, name: &str) -> Result<(), RegistryError> {
        let entries = match fs::read_dir(root) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(io(root))?,
        };
        let mut is_own = true;
        for entry in entries {
            let entry = entry.map_err(io(root))?.file_name().to_string_lossy().into_owned();
            // What a writer leaves that was killed before it made the mark.
            is_own &= [LOCK, INDEX, BLOBS].contains(&entry.as_str()) || entry.starts_with(TEMP_PREFIX);
        }
        // Asked last: another writer may make the mark while the folder is listed.
        if Layout::is_at(root) {
            return Layout::open(root, name).map(drop);
        }
        if !is_own {
            return Err(RegistryError::NotLayout(name.into()));
        }
        Ok(())
    }

    /// The layout in a folder, made if there is none, and freed of what killed writers left. The caller holds [`LOCK`].
    ///
    /// # Errors
    /// The folder holds other files, or cannot be written.
    pub fn make(root: &Path, name: &str) -> Result<Layout, RegistryError> {
        Layout::check(root, name)?;
        let blobs = root.join(BLOBS).join("sha256");
        fs::create_dir_all(&blobs).map_err(io(&blobs))?;
        for folder in [root, &blobs] {
            for entry in fs::read_dir(folder).map_err(io(folder))? {
                let entry = entry.map_err(io(folder))?;
                let is_file = entry.file_type().is_ok_and(|of| of.is_file());
                if is_file && entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) {
                    fs::remove_file(entry.path()).map_err(io(&entry.path()))?;
                }
            }
        }
        let layout = Layout { root: root.into(), name: name.into() };
        if !Layout::is_at(root) {
            // The mark comes last, so whatever is marked is complete.
            layout.write(&root.join(INDEX), &ImageIndex::default().encode())?;
            let mark = Mark { image_layout_version: VERSION.into() };
            let mark = serde_json::to_vec(&mark)
                .map_err(|source| RegistryError::Document { what: format!("`{MARK}`"), source })?;
            layout.write(&root.join(MARK), &mark)?;
        }
        Layout::open(root, name)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
        write_atomically(path, bytes, true).map_err(io(path))
    }

    fn path(&self, digest: &OciDigest) -> PathBuf {
        self.root.join(BLOBS).join("sha256").join(digest.hex())
    }

    fn index(&self) -> Result<ImageIndex, RegistryError> {
        let path = self.root.join(INDEX);
        let bytes = bounded(&path, LARGEST)?.ok_or_else(|| RegistryError::NotLayout(self.name.clone().into()))?;
        ImageIndex::read(&format!("`{INDEX}` in {}", self.place()), &bytes)
    }

    /// The contents with a digest, if they are there.
    fn read(&self, digest: &OciDigest, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        let Some(bytes) = bounded(&self.path(digest), limit)? else { return Ok(None) };
        match OciDigest::of(&bytes) {
            found if found == *digest => Ok(Some(bytes)),
            found => Err(RegistryError::Changed {
                what: format!("`{}`", self.path(digest).display()),
                found,
                expected: digest.clone(),
            }),
        }
    }

    /// Whether an entry is an artifact of kforge with a tag. What cannot be a tag of an artifact is not offered.
    fn offers(&self, entry: &Descriptor) -> bool {
        let has_tag = entry.annotations.get(REF_NAME).is_some_and(|tag| check_tag(tag).is_ok());
        // Programs that copy a folder may leave out the type in the list. The manifest itself has it.
        let is_untyped = entry.artifact_type.is_none() && entry.media_type == MANIFEST;
        let manifest = || self.read(&entry.digest, LARGEST).ok().flatten();
        has_tag
            && (is_artifact(entry)
                || is_untyped && manifest().is_some_and(|bytes| Manifest::artifact("", &bytes).is_ok()))
    }

    fn entry(&self, tag: &str) -> Result<Option<Descriptor>, RegistryError> {
        let has_tag = |entry: &Descriptor| entry.annotations.get(REF_NAME).is_some_and(|name| name == tag);
        Ok(self.index()?.manifests.into_iter().find(has_tag))
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RegistryError {
    let path = path.to_path_buf();
    move |source| RegistryError::Io { path, source }
}

/// The bytes of a file; none if it does not exist.
fn bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    // Opening a pipe would wait for somebody who writes.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(io(path)(std::io::Error::new(ErrorKind::InvalidInput, "it is no regular file")));
    }
    let file = match fs::File::open(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        file => file.map_err(io(path))?,
    };
    let mut bytes = vec![];
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io(path))?;
    match bytes.len() as u64 > limit {
        true => Err(RegistryError::TooLarge { what: format!("`{}`", path.display()), limit }),
        false => Ok(Some(bytes)),
    }
}

impl Repository for Layout {
    fn place(&self) -> String {
        format!("`{}`", self.name)
    }

    fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let entries = self.index()?.manifests;
        let offered = entries.iter().take(MOST_ENTRIES).filter(|entry| self.offers(entry));
        Ok(offered.filter_map(|entry| entry.annotations.get(REF_NAME)).cloned().collect())
    }

    fn others(&self) -> Result<Vec<String>, RegistryError> {
        let entries = self.index()?.manifests;
        let others = entries.iter().take(MOST_ENTRIES).filter(|entry| !self.offers(entry));
        let in_words = |entry: &Descriptor| {
            let kind = entry.artifact_type.as_ref().unwrap_or(&entry.media_type).escape_default();
            match entry.annotations.get(REF_NAME) {
                Some(tag) => format!("`{}` of the type `{kind}`", tag.escape_default()),
                None => format!("{} of the type `{kind}` without a tag", entry.digest),
            }
        };
        // The lists of signatures are no contents of their own.
        Ok(others.filter(|entry| entry.media_type != IMAGE_INDEX).map(in_words).collect())
    }

    fn tagged(&self, tag: &str) -> Result<Option<Vec<u8>>, RegistryError> {
        let Some(entry) = self.entry(tag)? else { return Ok(None) };
        let missing = || RegistryError::Missing { place: self.place(), digest: entry.digest.clone() };
        self.read(&entry.digest, LARGEST)?.ok_or_else(missing).map(Some)
    }

    fn manifest(&self, digest: &OciDigest) -> Result<Option<Vec<u8>>, RegistryError> {
        self.read(digest, LARGEST)
    }

    fn blob(&self, blob: &Descriptor) -> Result<Vec<u8>, RegistryError> {
        let missing = || RegistryError::Missing { place: self.place(), digest: blob.digest.clone() };
        let bytes = self.read(&blob.digest, blob.size)?.ok_or_else(missing)?;
        match bytes.len() as u64 {
            found if found == blob.size => Ok(bytes),
            found => {
                let what = format!("`{}`", self.path(&blob.digest).display());
                Err(RegistryError::Size { what, found, stated: blob.size })
            }
        }
    }

    fn has_blob(&self, blob: &Descriptor) -> Result<bool, RegistryError> {
        match self.read(&blob.digest, blob.size) {
            Ok(found) => Ok(found.is_some()),
            // A file that is not what its name says is written again.
            Err(RegistryError::Changed { .. } | RegistryError::TooLarge { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn put_blob(&self, blob: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        self.write(&self.path(&blob.digest), bytes)
    }

    fn put_manifest(&self, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        self.put_blob(manifest, bytes)
    }

    fn tag(&self, tag: &str, manifest: &Descriptor, _: &[u8]) -> Result<(), RegistryError> {
        let mut index = self.index()?;
        index.manifests.retain(|entry| entry.annotations.get(REF_NAME).is_none_or(|name| name != tag));
        let mut entry = manifest.clone();
        entry.annotations.insert(REF_NAME.into(), tag.into());
        index.manifests.push(entry);
        self.write(&self.root.join(INDEX), &index.encode())
    }

    fn referrers(&self, subject: &OciDigest) -> Result<Vec<Descriptor>, RegistryError> {
        Ok(self.fallback(subject)?.manifests)
    }

    fn refer(&self, subject: &OciDigest, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        self.put_manifest(manifest, bytes)?;
        let mut list = self.fallback(subject)?;
        list.manifests.retain(|entry| entry.digest != manifest.digest);
        list.manifests.push(manifest.clone());
        let list = list.encode();
        let descriptor = Descriptor::of(super::manifest::INDEX, &list);
        self.put_manifest(&descriptor, &list)?;
        self.tag(&subject.fallback_tag(), &descriptor, &list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        fs::write(&file, "abc").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(bounded(&file, 3).unwrap().as_deref(), Some(&b"abc"[..]));
        assert!(matches!(bounded(&file, 2), Err(RegistryError::TooLarge { limit: 2, .. })));
        assert!(bounded(&dir.path().join("none"), 3).unwrap().is_none());
        let refused = bounded(&pipe, 3).unwrap_err().to_string();
        assert!(refused.contains("it is no regular file"), "{refused}");
    }
}
