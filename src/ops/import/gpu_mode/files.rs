//! Finds `task.yml` files, and reads the files that they name. Runs nothing of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::import::{ImportError, SkipReason, SkippedFile};
use kforge_project::source::import::gpu_mode::{ADAPTER, FileEntry, KERNEL, SUBMISSION, TaskYaml};
use kforge_project::source::import::tasks::Refusal;
use kforge_project::workspace::find::{MANIFEST, tidy};

/// The names of a task's file.
const NAMES: [&str; 2] = ["task.yml", "task.yaml"];

/// A task and the files that it names.
#[derive(Debug, Clone)]
pub(super) struct TaskFiles {
    /// The path of its `task.yml`, from the folder that was named.
    pub(super) path: String,
    /// The name of that file.
    pub(super) file: String,
    /// Its text.
    pub(super) text: String,
    /// What it says.
    pub(super) yaml: TaskYaml,
    /// The texts of the files that its reference may import, by name.
    pub(super) texts: BTreeMap<String, String>,
    /// The task's name: that of its folder.
    pub(super) name: String,
    /// The folders above that one, from the folder that was named.
    pub(super) below: PathBuf,
    /// Why it cannot be read.
    pub(super) refused: Option<Refusal>,
}

/// Tasks by path, and those that were not read.
pub(super) struct Found {
    pub(super) tasks: Vec<TaskFiles>,
    pub(super) skipped: Vec<SkippedFile>,
}

/// Finds the tasks below a folder, or takes the one that is named. Hidden folders, outputs of builds and packages are left out. `shown` is the path as the user
/// wrote it.
pub(super) fn find(path: &Path, shown: &Path) -> Result<Found, Error> {
    let unread = |why: std::io::Error| ImportError::Source { path: shown.to_path_buf(), why: why.into() };
    let mut found = Found { tasks: vec![], skipped: vec![] };
    if !path.metadata().map_err(unread)?.is_dir() {
        let folder = path.parent().unwrap_or(path);
        let task = read(path, folder).map_err(|why| ImportError::Source { path: shown.to_path_buf(), why })?;
        found.tasks.push(task);
        return Ok(found);
    }
    let visible = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let is_left_out = || name.starts_with('.') || entry.file_type().is_dir() && name == "target";
        entry.depth() == 0 || !(is_left_out() || entry.path().join(MANIFEST).is_file())
    };
    for entry in walkdir::WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let at = error.path().unwrap_or(path).to_path_buf();
                found.skipped.push(SkippedFile { path: at, why: SkipReason::Unreadable(error.into()) });
                continue;
            }
        };
        if entry.file_type().is_dir() || !NAMES.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let task = if entry.file_type().is_symlink() { Err(SkipReason::Link) } else { read(entry.path(), path) };
        match task {
            Ok(task) => found.tasks.push(task),
            Err(why) => found.skipped.push(SkippedFile { path: entry.path().to_path_buf(), why }),
        }
    }
    Ok(found)
}

fn read(path: &Path, root: &Path) -> Result<TaskFiles, SkipReason> {
    let named = path.strip_prefix(root).unwrap_or(path).to_str().ok_or(SkipReason::Name)?.to_string();
    let file = path.file_name().and_then(|name| name.to_str()).ok_or(SkipReason::Name)?.to_string();
    let text = String::from_utf8(std::fs::read(path)?).map_err(|_| SkipReason::NotText)?;
    let folder = path.parent().unwrap_or(root);
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or("task").to_string();
    let below = folder.strip_prefix(root).ok().and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
    let mut task = TaskFiles {
        path: named,
        file,
        text,
        yaml: TaskYaml::default(),
        texts: BTreeMap::new(),
        name,
        below,
        refused: None,
    };
    match serde_saphyr::from_str::<TaskYaml>(&task.text) {
        Ok(yaml) => task.yaml = yaml,
        Err(why) => {
            let line = why.location().and_then(|at| u32::try_from(at.line()).ok());
            let why = why.to_string();
            let why = why.lines().next().unwrap_or_default();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            let message = format!("`{}` is malformed: {why}", task.file);
            task.refused = Some(Refusal { kind: "malformed".into(), message, line });
            return Ok(task);
        }
    }
    // A task's files lie below the folder that was named, or beside the task's own folder.
    let roots = [root, folder.parent().unwrap_or(folder)];
    let read: Result<BTreeMap<String, String>, String> =
        task.yaml.sources().map(|entry| source(entry, folder, roots)).collect();
    match read {
        Ok(texts) => task.texts = texts,
        Err(message) => task.refused = Some(Refusal { kind: "form".into(), message, line: None }),
    }
    Ok(task)
}

/// The name and the text of a file that a task names.
fn source(entry: &FileEntry, folder: &Path, roots: [&Path; 2]) -> Result<(String, String), String> {
    let FileEntry { name, source } = entry;
    let stem = name.strip_suffix(".py").unwrap_or(name);
    let is_module = !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_module || [ADAPTER, KERNEL, SUBMISSION].contains(&name.as_str()) {
        return Err(format!("names a file `{}`, which cannot be one of a package", name.escape_debug()));
    }
    let path = tidy(&folder.join(source));
    let shown = source.escape_debug();
    if !roots.iter().any(|root| path.starts_with(root)) {
        return Err(format!("names the file `{shown}`, which is neither below the folder nor beside that of the task"));
    }
    let is_file = path.symlink_metadata().is_ok_and(|data| data.is_file());
    if !is_file {
        return Err(format!("names `{shown}`, which is no file"));
    }
    let bytes = std::fs::read(&path).map_err(|why| format!("names `{shown}`, which cannot be read: {why}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("names `{shown}`, which is not UTF-8"))?;
    Ok((name.clone(), text))
}
