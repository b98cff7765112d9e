//! Rehashes everything in the stores and removes what is damaged. Knows the stores' files; does not recreate anything.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use rayon::prelude::*;

use super::super::action::{Read, parse};
use super::super::home::{Doing, Home, files_in, hash_of, named, sharded};
use super::super::{blobs::Store, evidence};
use super::Tally;
use crate::Blobs;
use kforge_foundation::base::Digest;
use kforge_types::record::spec::Tree;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Contents that are intact.
    pub contents: Tally,
    /// Contents whose bytes do not match the hash in their name; removed.
    pub corrupt: Vec<PathBuf>,
    /// Trees that refer to a missing file; removed, so that the steps that produced them run again.
    pub incomplete_trees: u64,
    /// Results that are undamaged and whose outputs are stored.
    pub results: Tally,
    /// Results that were damaged or refer to a missing content; removed.
    pub results_removed: u64,
    /// Records of evidence that are undamaged and whose outputs are stored.
    pub evidence: Tally,
    /// Records of evidence that are damaged or have lost outputs. They are kept, because they cannot be recreated, but they do not answer.
    pub evidence_unusable: Vec<PathBuf>,
}

/// Rehashes everything. Builds may run at the same time: they would remove the same files on reading them.
pub fn verify(home: &Home) -> io::Result<Checked> {
    let store = Store::new(home);
    let mut checked = Checked::default();
    let mut trees = Vec::new();
    let files = sharded(&home.cas())?;
    let looked: Vec<io::Result<(PathBuf, Option<Look>)>> =
        files.into_par_iter().map(|path| look(&path).map(|l| (path, l))).collect();
    for look in looked {
        match look? {
            (_, Some(Look::Intact(size, tree))) => {
                checked.contents.add(size);
                trees.extend(tree);
            }
            (path, Some(Look::Corrupt)) => {
                remove(&path)?;
                checked.corrupt.push(path);
            }
            // Not a content, or removed in the meantime.
            (_, None) => {}
        }
    }

    for (digest, tree) in trees {
        if !tree.files.values().all(|file| store.has(file)) {
            remove(&store.place(&digest))?;
            checked.incomplete_trees += 1;
        }
    }

    for path in sharded(&home.actions())? {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let whole = match parse(&bytes) {
            Read::Entry(body) => body.result.outputs.values().all(|output| store.has(output)),
            Read::Foreign => continue,
            Read::Corrupt => false,
        };
        if whole {
            checked.results.add(bytes.len() as u64);
        } else {
            remove(&path)?;
            checked.results_removed += 1;
        }
    }

    for folder in evidence::folders(&home.evidence())? {
        let is_note = |path: &PathBuf| path.extension().is_some_and(|e| e == evidence::ABOUT || e == evidence::SIGNED);
        for path in files_in(&folder)?.into_iter().filter(|path| !is_note(path)) {
            let outputs: Option<HashSet<Digest>> =
                evidence::read(&path).map(|seen| seen.record.result.outputs.into_values().collect());
            if outputs.is_some_and(|outputs| outputs.iter().all(|output| store.has(output))) {
                checked.evidence.add(path.metadata().map_or(0, |m| m.len()));
            } else {
                checked.evidence_unusable.push(path);
            }
        }
    }
    Ok(checked)
}

/// The result of checking a file in the content store.
enum Look {
    /// The bytes match the name: the size, and the tree if the content is one.
    Intact(u64, Option<(Digest, Tree)>),
    Corrupt,
}

fn look(path: &std::path::Path) -> io::Result<Option<Look>> {
    let Some(hash) = path.file_name().and_then(hash_of) else { return Ok(None) };
    let digest = match Digest::of_file(path) {
        Ok(digest) => digest,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(named(e, Doing::Read, path)),
    };
    if *digest.hash() != hash {
        return Ok(Some(Look::Corrupt));
    }
    let tree = (digest.size() <= super::DOCUMENT).then(|| std::fs::read(path).ok().and_then(|b| tree(&b))).flatten();
    Ok(Some(Look::Intact(digest.size(), tree.map(|tree| (digest, tree)))))
}

/// Parses a tree: an object whose only key is `files`.
fn tree(bytes: &[u8]) -> Option<Tree> {
    if !bytes.starts_with(b"{") {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    if value.as_object()?.keys().ne(["files"]) {
        return None;
    }
    serde_json::from_value(value).ok()
}

fn remove(path: &std::path::Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(named(e, Doing::Remove, path)),
        _ => Ok(()),
    }
}
