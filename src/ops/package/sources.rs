//! The sources of an artifact: everything that a build of the package reads, as a package of its own, and the sources that templates gave. Knows which files
//! kernels and references reach; reads through the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::PackageError;
use crate::Error;
use crate::session::build::Ready;
use kforge_engine::Blobs;
use kforge_foundation::base::Digest;
use kforge_pipeline::release::artifact::check::is_license;
use kforge_pipeline::release::artifact::{GENERATED, SOURCE};
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::lockfile::{FILE_NAME, Lockfile};
use kforge_project::workspace::standalone::{DEPENDENCIES, standalone};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::Dependency;

/// The files of a package by their names in an artifact.
pub(super) fn sources(
    workspace: &Workspace,
    ready: &Ready<'_>,
    member: &Member,
    lock: &Lockfile,
) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let package = &member.package;
    let root = root_manifest(workspace)?;
    let manifest = standalone(&package.file.text, &root)
        .map_err(|why| PackageError::Manifest { package: package.name.clone(), why: why.to_string() })?;
    let mut files = BTreeMap::from([
        (format!("{SOURCE}/{MANIFEST}"), manifest.into_bytes()),
        (format!("{SOURCE}/{FILE_NAME}"), lock.to_text().into_bytes()),
    ]);
    let generated: BTreeSet<&str> = package
        .kernels
        .iter()
        .filter(|kernel| kernel.generate.is_some())
        .map(|kernel| kernel.source.as_str())
        .collect();
    let mut add = |name: &str, digest: &Digest| -> Result<(), Error> {
        let place = match name.strip_prefix('@') {
            // The lockfile pins dependencies that are wheels; those that are folders are packed.
            Some(file) => match package.dependencies.get(file.split('/').next().unwrap_or_default()) {
                Some(Dependency::Path { .. }) => format!("{SOURCE}/{DEPENDENCIES}/{file}"),
                _ => return Ok(()),
            },
            None if generated.contains(name) => format!("{GENERATED}/{name}"),
            None => format!("{SOURCE}/{name}"),
        };
        let bytes = ready.leaves.get(digest).map_err(Error::read(name))?;
        let bytes = bytes.ok_or_else(|| Error::read(name)(std::io::ErrorKind::NotFound.into()))?;
        files.insert(place, bytes);
        Ok(())
    };
    for (name, digest) in &ready.expander.reached(&package.name) {
        add(name, digest)?;
    }
    files.extend(licenses(&member.folder, &workspace.root)?);
    Ok(files)
}

/// The text of the workspace's root manifest.
fn root_manifest(workspace: &Workspace) -> Result<String, Error> {
    let path = workspace.root.join(MANIFEST);
    std::fs::read_to_string(&path).map_err(Error::read(&path))
}

/// The files with the terms of the licence: those of the package's folder, else those of the workspace's root.
fn licenses(folder: &Path, root: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    for folder in [folder, root] {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
            let path = entry.map_err(Error::read(folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_file() && is_license(name) {
                found.insert(name.to_string(), std::fs::read(&path).map_err(Error::read(&path))?);
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(BTreeMap::new())
}
