//! Stages a step's inputs in a folder and collects its outputs from another. Knows the store and files; does not know their contents.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path};

use super::task::file_name;
use kforge_engine::Blobs;
use kforge_foundation::base::Digest;
use kforge_types::record::spec::Tree;
use kforge_types::record::{Form, Spec};

/// Stages every input that is not absent under `dir`, which must be empty or missing: a file each, or a folder for a tree. Files are read-only, and links to
/// those of the store if possible.
pub fn prepare(spec: &Spec, blobs: &dyn Blobs, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for (name, input) in &spec.inputs {
        let Some(digest) = &input.digest else { continue };
        let to = dir.join(file_name(name));
        if Path::new(&file_name(name)).components().count() != 1 {
            return Err(io::Error::other(format!("`{name}` is not a valid name for an input")));
        }
        match input.form {
            Form::Blob => place(blobs, digest, &to)?,
            Form::Tree => {
                fs::create_dir(&to)?;
                let bytes = blobs.get(digest)?.ok_or_else(|| missing(digest))?;
                let tree: Tree = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
                // The files of a folder mostly follow each other, so the folder that was created last is remembered.
                let mut made = to.clone();
                for (relative, digest) in &tree.files {
                    let path = inside(&to, relative)?;
                    if let Some(folder) = path.parent().filter(|folder| *folder != made) {
                        fs::create_dir_all(folder)?;
                        made = folder.to_path_buf();
                    }
                    place(blobs, digest, &path)?;
                }
            }
        }
    }
    Ok(())
}

/// An input whose staged contents are not those that the spec names, or a file that is none of its inputs; none if every byte is the spec's.
///
/// # Errors
/// A file cannot be read.
pub fn differing(spec: &Spec, dir: &Path) -> io::Result<Option<String>> {
    let mut named: BTreeMap<String, (&Digest, Form)> = BTreeMap::new();
    for (name, input) in &spec.inputs {
        let Some(digest) = &input.digest else { continue };
        if named.insert(file_name(name), (digest, input.form)).is_some() {
            return Ok(Some(name.clone()));
        }
    }
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !named.contains_key(&name) {
            return Ok(Some(name));
        }
    }
    for (name, (digest, form)) in named {
        let place = dir.join(&name);
        let staged = match form {
            Form::Blob if place.symlink_metadata().is_ok_and(|of| of.is_file()) => Digest::of_file(&place)?,
            Form::Tree if place.symlink_metadata().is_ok_and(|of| of.is_dir()) => {
                let mut tree = Tree::default();
                if !files_below(&place, "", &mut tree)? {
                    return Ok(Some(name));
                }
                Digest::of(&serde_json::to_vec(&tree).map_err(io::Error::other)?)
            }
            Form::Blob | Form::Tree => return Ok(Some(name)),
        };
        if staged != *digest {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Adds the files below a folder to a tree. Returns whether there is nothing else but folders, such as a link.
fn files_below(dir: &Path, prefix: &str, tree: &mut Tree) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        let is_plain = match (kind.is_dir(), kind.is_file()) {
            (true, _) => files_below(&entry.path(), &format!("{name}/"), tree)?,
            (_, true) => {
                tree.files.insert(name, Digest::of_file(&entry.path())?);
                true
            }
            _ => false,
        };
        if !is_plain {
            return Ok(false);
        }
    }
    Ok(true)
}

fn missing(digest: &Digest) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the store no longer has {digest}: run the command again"))
}

/// The path of a tree's file. Refuses names that would leave the tree.
fn inside(root: &Path, relative: &str) -> io::Result<std::path::PathBuf> {
    let path = Path::new(relative);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    match plain && !relative.is_empty() && !relative.contains('\0') {
        true => Ok(root.join(path)),
        false => Err(io::Error::other(format!("`{relative}` would lie outside its tree"))),
    }
}

fn place(blobs: &dyn Blobs, digest: &Digest, to: &Path) -> io::Result<()> {
    let from = blobs.path(digest)?.ok_or_else(|| missing(digest))?;
    // If the store is on another file system, or the system forbids hard links to other users' files, a copy serves as well.
    if fs::hard_link(&from, to).is_err() {
        fs::copy(&from, to)?;
        let mut permissions = fs::metadata(to)?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(to, permissions)?;
    }
    Ok(())
}

/// The name of an output. Refuses links and folders.
pub(crate) fn name_of_output(entry: &fs::DirEntry) -> io::Result<String> {
    let name = entry.file_name();
    let name =
        name.into_string().map_err(|name| io::Error::other(format!("{name:?} is not a valid name for an output")))?;
    match entry.file_type()?.is_file() {
        true => Ok(name),
        false => Err(io::Error::other(format!("the output `{name}` is not a regular file"))),
    }
}

/// Stores every file of `dir`, by name. Refuses links and folders: the target of a link is not an output.
pub fn collect(dir: &Path, blobs: &dyn Blobs) -> io::Result<BTreeMap<String, Digest>> {
    let mut outputs = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = name_of_output(&entry)?;
        outputs.insert(name, blobs.put_file(&entry.path())?);
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::{Input, StepKind};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Folder(tempfile::TempDir);

    impl Blobs for Folder {
        fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
            self.path(digest)?.map(fs::read).transpose()
        }
        fn path(&self, digest: &Digest) -> io::Result<Option<PathBuf>> {
            Ok(Some(self.0.path().join(digest.hex())).filter(|path| path.exists()))
        }
        fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
            let digest = Digest::of(bytes);
            fs::write(self.0.path().join(digest.hex()), bytes).map(|()| digest)
        }
        fn put_file(&self, path: &Path) -> io::Result<Digest> {
            self.put(&fs::read(path)?)
        }
        fn has(&self, digest: &Digest) -> bool {
            self.0.path().join(digest.hex()).exists()
        }
    }

    fn spec(inputs: &[(&str, Option<Digest>, Form)]) -> Spec {
        let inputs =
            inputs.iter().map(|(name, digest, form)| (name.to_string(), Input { digest: *digest, form: *form }));
        Spec {
            kind: StepKind::Compile,
            version: 1,
            implementation: None,
            params: serde_json::json!({}),
            inputs: inputs.collect(),
        }
    }

    #[test]
    fn what_is_laid_out_and_taken_up_again_is_the_same() {
        let store = Folder(tempfile::tempdir().unwrap());
        let header = store.put(b"#pragma once").unwrap();
        let tree = Tree { files: [("a/b.h".to_string(), header), ("main.cu".to_string(), header)].into() };
        let tree = store.put(&serde_json::to_vec(&tree).unwrap()).unwrap();
        let spec = spec(&[
            ("tree:source", Some(tree), Form::Tree),
            ("expected:0", Some(header), Form::Blob),
            ("absent", None, Form::Blob),
        ]);
        let dir = tempfile::tempdir().unwrap();
        prepare(&spec, &store, &dir.path().join("in")).unwrap();
        let read = |name: &str| fs::read(dir.path().join("in").join(name)).ok();
        assert_eq!(read("tree-source/a/b.h").as_deref(), Some(&b"#pragma once"[..]));
        assert_eq!(read("tree-source/main.cu"), read("expected-0"));
        assert_eq!(read("absent"), None);
        fs::remove_dir_all(dir.path().join("in/tree-source")).unwrap();
        assert_eq!(collect(&dir.path().join("in"), &store).unwrap(), [("expected-0".to_string(), header)].into());
    }

    #[test]
    fn a_tree_cannot_leave_its_folder() {
        let store = Folder(tempfile::tempdir().unwrap());
        let file = store.put(b"x").unwrap();
        for name in ["../x", "/x", "a/../../x", "", "a/./../.."] {
            let tree = Tree { files: [(name.to_string(), file)].into() };
            let tree = store.put(&serde_json::to_vec(&tree).unwrap()).unwrap();
            let dir = tempfile::tempdir().unwrap();
            assert!(prepare(&spec(&[("t", Some(tree), Form::Tree)]), &store, dir.path()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_link_is_no_output() {
        let store = Folder(tempfile::tempdir().unwrap());
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("binary")).unwrap();
        assert!(collect(dir.path(), &store).unwrap_err().to_string().contains("`binary` is not a regular file"));
    }

    #[test]
    fn a_lost_blob_is_said() {
        let store = Folder(tempfile::tempdir().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let lost = spec(&[("a", Some(Digest::of(b"gone")), Form::Blob)]);
        let error = prepare(&lost, &store, dir.path()).unwrap_err();
        assert!(error.to_string().starts_with("the store no longer has blake3:"), "{error}");
    }

    #[test]
    fn staged_inputs_are_those_of_the_spec_byte_for_byte_and_file_for_file() {
        let store = Folder(tempfile::tempdir().unwrap());
        let file = store.put(b"text").unwrap();
        let tree = Tree { files: [("a/b.h".to_string(), file), ("k.cu".to_string(), file)].into() };
        let tree = store.put(&serde_json::to_vec(&tree).unwrap()).unwrap();
        let spec =
            spec(&[("binary:a", Some(file), Form::Blob), ("source", Some(tree), Form::Tree), ("c", None, Form::Blob)]);
        let staged = || {
            let dir = tempfile::tempdir().unwrap();
            let place = dir.path().join("in");
            prepare(&spec, &store, &place).unwrap();
            (dir, place)
        };
        let (_dir, place) = staged();
        assert_eq!(differing(&spec, &place).unwrap(), None);
        let replaced = |path: &Path| {
            fs::remove_file(path).unwrap();
            fs::write(path, b"other").unwrap();
        };
        type Change<'c> = (&'static str, &'static str, &'c dyn Fn(&Path));
        let changes: [Change<'_>; 7] = [
            ("other bytes", "binary-a", &|place| replaced(&place.join("binary-a"))),
            ("a link to the same bytes", "binary-a", &|place| {
                fs::remove_file(place.join("binary-a")).unwrap();
                symlink(place.join("source/k.cu"), place.join("binary-a")).unwrap();
            }),
            ("a lost file", "binary-a", &|place| fs::remove_file(place.join("binary-a")).unwrap()),
            ("an input that the spec lacks", "c", &|place| fs::write(place.join("c"), "text").unwrap()),
            ("other bytes in a folder", "source", &|place| replaced(&place.join("source/a/b.h"))),
            ("one more file in a folder", "source", &|place| fs::write(place.join("source/a/more.h"), "").unwrap()),
            ("a link in a folder", "source", &|place| symlink("k.cu", place.join("source/link")).unwrap()),
        ];
        for (what, name, change) in changes {
            let (_dir, place) = staged();
            change(&place);
            assert_eq!(differing(&spec, &place).unwrap().as_deref(), Some(name), "{what}");
        }
    }
}
