//! Bundles in the repository: every `evidence/*.kfe` next to a package's manifest and next to the root's. Knows folders; the index decides which record answers
//! which question.
//!
//! Bundles are found by their location, so every committed bundle counts: nothing has to be declared, imported or kept in sync. Bundles are only read. A
//! refused bundle is a warning, because everything except its evidence remains valid.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::archive::{self, EXTENSION};
use super::bundle::{Step, digest};
use super::trust::{Distrusted, Trust};
use kforge_engine::evidence::{About, Beside, IndexedRecord};
use kforge_foundation::base::{Digest, Witness};
use kforge_types::record::StepKind;

/// The folder next to a manifest that holds bundles.
pub const FOLDER: &str = "evidence";

/// The bundles of a repository.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// Their records by question. The origin of a record is its bundle's path from the root.
    pub records: Beside,
    /// The number of their observations of each binary that they contain.
    pub about: About,
    /// The kind and the steps that asked each question where the bundles were made.
    pub names: BTreeMap<Digest, (StepKind, Vec<Step>)>,
    /// The contents that the records name.
    pub contents: BTreeMap<Digest, Vec<u8>>,
    /// The bundles whose signature does not count: path from the root, and why. They are used as if they were unsigned.
    pub distrusted: Vec<(String, Distrusted)>,
    /// The bundles that were refused: path from the root, and why.
    pub refused: Vec<(String, String)>,
    /// The files and folders that were read.
    pub witness: Witness,
}

/// Reads the bundles next to the manifests of these folders. `root` is the workspace's; `trust` says whose signatures count.
pub fn read(root: &Path, folders: impl IntoIterator<Item = PathBuf>, trust: &Trust) -> Committed {
    let mut found = Committed::default();
    let folders: BTreeSet<PathBuf> = folders.into_iter().chain([root.to_path_buf()]).collect();
    for folder in folders.iter().map(|folder| folder.join(FOLDER)) {
        for path in bundles(&folder, &mut found.witness) {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let unpacked = archive::bytes(&path).and_then(|bytes| archive::unpack(&bytes, archive::LIMITS));
            let archive::Unpacked { bundle, document, signature, .. } = match unpacked {
                Ok(unpacked) => unpacked,
                Err(why) => {
                    found.refused.push((name, why.to_string()));
                    continue;
                }
            };
            let signer = match signature.map(|signature| trust.judge(&document, &signature)) {
                Some(Ok(signer)) => Some(signer.principals),
                Some(Err(why)) => {
                    found.distrusted.push((name.clone(), why));
                    None
                }
                None => None,
            };
            for question in &bundle.questions {
                let (_, steps) = found.names.entry(question.key).or_insert_with(|| (question.spec.kind, vec![]));
                for step in &question.steps {
                    if !steps.contains(step) {
                        steps.push(step.clone());
                    }
                }
            }
            for (binary, known) in bundle.about() {
                let most = found.about.entry(binary).or_default();
                *most = known.max(*most);
            }
            for record in bundle.records() {
                let seen = IndexedRecord {
                    record: record.clone(),
                    digest: digest(record),
                    origin: name.clone(),
                    signer: signer.clone(),
                };
                found.records.entry(record.question).or_default().push(seen);
            }
            found.contents.extend(bundle.contents);
        }
    }
    found
}

/// The bundles in a folder, in the order of their names.
fn bundles(folder: &Path, witness: &mut Witness) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        witness.saw(folder, folder.exists());
        return vec![];
    };
    witness.listed(folder);
    let named = |path: &PathBuf| path.extension().is_some_and(|e| e == EXTENSION);
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(named).collect();
    paths.sort();
    paths.iter().for_each(|path| witness.saw(path, path.exists()));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_looked_for_beside_manifests_and_bad_ones_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/evidence")).unwrap();
        std::fs::create_dir_all(root.join("b")).unwrap();
        std::fs::write(root.join("a/evidence/x.kfe"), "no bundle").unwrap();
        std::fs::write(root.join("a/evidence/README.md"), "").unwrap();
        let found = read(root, [root.join("a"), root.join("b")], &Trust::nobody(jiff::Timestamp::UNIX_EPOCH));
        let [(name, why)] = &found.refused[..] else { panic!("{:?}", found.refused) };
        assert_eq!(name, "a/evidence/x.kfe");
        assert!(why.contains("not a bundle of evidence"), "{why}");
        assert!(found.records.is_empty() && found.contents.is_empty());
        let seen = found.witness;
        assert_eq!(seen.folders, [root.join("a/evidence")].into());
        assert_eq!(seen.files, [root.join("a/evidence/x.kfe")].into());
        assert_eq!(seen.absent, [root.join("b/evidence"), root.join("evidence")].into());
    }
}
