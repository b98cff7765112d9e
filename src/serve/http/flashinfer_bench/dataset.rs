//! A dataset in FlashInfer-Trace's form: its definitions and workloads, read when the server starts. Looks into neither beyond their names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kforge_foundation::base::Digest;
use serde_json::Value;

/// A dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSet {
    /// By name.
    pub(super) definitions: BTreeMap<String, DefinitionFile>,
    /// The digest of all definitions and workloads.
    pub(super) id: String,
}

/// A definition and its workloads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DefinitionFile {
    /// The text of the file.
    pub(super) text: String,
    /// The same as JSON.
    pub(super) value: Value,
    /// The lines of its workloads by uuid, in the order of the files.
    pub(super) workloads: Vec<(String, Value)>,
}

/// Why a dataset cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceSetError {
    /// A file or a folder cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    NotRead {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has another form.
    #[error("`{}` is not in FlashInfer-Trace's form: {why}", path.display())]
    Malformed {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no definition.
    #[error("`{}` has no definitions: expected files `definitions/*/*.json`", .0.display())]
    Empty(PathBuf),
}

impl TraceSet {
    /// Reads a folder with `definitions` and `workloads`.
    ///
    /// # Errors
    /// A file cannot be read or is malformed, or there is no definition.
    pub fn read(folder: &Path) -> Result<TraceSet, TraceSetError> {
        let mut definitions = BTreeMap::new();
        let mut all = String::new();
        for path in files(&folder.join("definitions"), "json")? {
            let text = text(&path)?;
            let value = json(&path, &text)?;
            let name = named(&path, &value, "name")?;
            all += &text;
            if definitions.insert(name.clone(), DefinitionFile { text, value, workloads: vec![] }).is_some() {
                return Err(TraceSetError::Malformed { path, why: format!("another file defines `{name}` as well") });
            }
        }
        if definitions.is_empty() {
            return Err(TraceSetError::Empty(folder.into()));
        }
        for path in files(&folder.join("workloads"), "jsonl")? {
            let text = text(&path)?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let value = json(&path, line)?;
                let definition = named(&path, &value, "definition")?;
                let uuid = named(&path, &value["workload"], "uuid")?;
                let Some(definition) = definitions.get_mut(&definition) else { continue };
                definition.workloads.push((uuid, value));
            }
            all += &text;
        }
        Ok(TraceSet { definitions, id: Digest::of(all.as_bytes()).hex() })
    }

    /// A workload by its uuid.
    pub(super) fn workload(&self, uuid: &str) -> Option<&Value> {
        let mut all = self.definitions.values().flat_map(|definition| &definition.workloads);
        all.find(|(name, _)| name == uuid).map(|(_, line)| &line["workload"])
    }
}

/// The files below a folder with this extension, in order; none if there is no such folder.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, TraceSetError> {
    let failed = |source| TraceSetError::NotRead { path: folder.into(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(failed)?,
    };
    let mut found = vec![];
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // A link leads elsewhere.
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            found.extend(files(&entry.path(), extension)?);
        } else if kind.is_file() && entry.path().extension().is_some_and(|end| end == extension) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn text(path: &Path) -> Result<String, TraceSetError> {
    std::fs::read_to_string(path).map_err(|source| TraceSetError::NotRead { path: path.into(), source })
}

fn json(path: &Path, text: &str) -> Result<Value, TraceSetError> {
    serde_json::from_str(text).map_err(|error| TraceSetError::Malformed { path: path.into(), why: error.to_string() })
}

fn named(path: &Path, value: &Value, key: &str) -> Result<String, TraceSetError> {
    let found = value.get(key).and_then(Value::as_str).map(String::from);
    found.ok_or_else(|| TraceSetError::Malformed { path: path.into(), why: format!("expected a text as `{key}`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_workloads_are_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(matches!(TraceSet::read(folder.path()), Err(TraceSetError::Empty(_))));
        write("definitions/a/one.json", "{\"name\": \"one\"}");
        write("definitions/a/README.md", "unrelated");
        write("workloads/a/one.jsonl", "{\"definition\": \"one\", \"workload\": {\"uuid\": \"u\", \"axes\": {}}}\n\n");
        let set = TraceSet::read(folder.path()).unwrap();
        assert_eq!((set.definitions["one"].workloads.len(), set.workload("u").is_some()), (1, true));
        assert_eq!(set.workload("v"), None);
        write("workloads/a/two.jsonl", "{\"definition\": \"one\", \"workload\": {}}\n");
        assert!(TraceSet::read(folder.path()).unwrap_err().to_string().contains("`uuid`"));
        write("workloads/a/two.jsonl", "");
        assert_ne!(TraceSet::read(folder.path()).unwrap().id, "", "it has an id");
        write("definitions/b/one.json", "{\"name\": \"one\"}");
        assert!(TraceSet::read(folder.path()).unwrap_err().to_string().contains("another file"));
        write("definitions/b/one.json", "{");
        assert!(matches!(TraceSet::read(folder.path()), Err(TraceSetError::Malformed { .. })));
    }
}
