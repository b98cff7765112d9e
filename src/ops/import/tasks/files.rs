//! Finds task files below a folder, and the places of their packages. Reads files; does not look into them.

use std::path::{Path, PathBuf};

use super::{Origin, TaskOutcome, TaskResult};
use crate::Error;
use crate::import::{ImportError, SkipReason, SkippedFile};
use kforge_project::workspace::find::MANIFEST;

/// A file that may be a task.
#[derive(Debug, Clone)]
pub(super) struct TaskFile {
    /// Its path, from the folder that was named.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
    /// The name of its package.
    pub(super) package: String,
    /// The folder of its package.
    pub(super) folder: PathBuf,
    /// Where it is from, by its path.
    pub(super) origin: Origin,
}

impl TaskFile {
    pub(super) fn result(&self, outcome: TaskOutcome) -> TaskResult {
        TaskResult {
            path: self.path.clone(),
            package: self.package.clone(),
            folder: self.folder.clone(),
            origin: self.origin.clone(),
            outcome,
        }
    }
}

/// Files that may be tasks, by path, and those that were not read.
pub(super) struct Found {
    pub(super) files: Vec<TaskFile>,
    pub(super) skipped: Vec<SkippedFile>,
}

/// Finds the Python files below a folder, or takes the one that is named. Hidden folders, outputs of builds and packages are left out. `shown` is the path as
/// the user wrote it.
pub(super) fn find(path: &Path, output: &Path, shown: &Path) -> Result<Found, Error> {
    let unread = |why: std::io::Error| ImportError::Source { path: shown.to_path_buf(), why: why.into() };
    let mut found = Found { files: vec![], skipped: vec![] };
    if !path.metadata().map_err(unread)?.is_dir() {
        let folder = path.parent().unwrap_or(path);
        let file = read(path, folder, output).map_err(|why| ImportError::Source { path: shown.to_path_buf(), why })?;
        found.files.push(file);
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
        if entry.file_type().is_dir() || entry.path().extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let file = match entry.file_type().is_symlink() {
            true => Err(SkipReason::Link),
            false => read(entry.path(), path, output),
        };
        match file {
            Ok(file) => found.files.push(file),
            Err(why) => found.skipped.push(SkippedFile { path: entry.path().to_path_buf(), why }),
        }
    }
    Ok(found)
}

fn read(path: &Path, root: &Path, output: &Path) -> Result<TaskFile, SkipReason> {
    let named = path.strip_prefix(root).unwrap_or(path).to_str().ok_or(SkipReason::Name)?.to_string();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or(SkipReason::Name)?;
    let text = String::from_utf8(std::fs::read(path)?).map_err(|_| SkipReason::NotText)?;
    let (number, name) = numbered(stem);
    let level = level(path);
    let above = path.strip_prefix(root).ok().and_then(Path::parent).unwrap_or(Path::new(""));
    let below = match level {
        Some(level) => PathBuf::from(format!("level{level}")),
        None => above.to_path_buf(),
    };
    let prefix = below.to_string_lossy().replace('/', "_");
    let package = if prefix.is_empty() { stem.to_string() } else { format!("{prefix}_{stem}") };
    let origin = Origin { set: "kernelbench".into(), level, number, name: name.to_string() };
    Ok(TaskFile { path: named, text, package: package_name(&package), folder: output.join(below).join(stem), origin })
}

/// The number and the name in `33_BatchNorm`.
pub(super) fn numbered(stem: &str) -> (Option<u32>, &str) {
    match stem.split_once('_') {
        Some((number, name)) if !name.is_empty() => match number.parse() {
            Ok(number) => (Some(number), name),
            Err(_) => (None, stem),
        },
        _ => (None, stem),
    }
}

/// The level in a folder of the path, as in `level1/33_BatchNorm.py`: the innermost counts.
pub(super) fn level(path: &Path) -> Option<u32> {
    let folders = path.parent()?.components().rev().filter_map(|part| part.as_os_str().to_str());
    folders.filter_map(|name| name.strip_prefix("level")?.trim_start_matches(['_', '-']).parse().ok()).next()
}

/// What can be the name of a package: letters, digits, `_` and `-`, and a letter first.
pub(in crate::import) fn package_name(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("task_{plain}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_and_number_are_those_of_the_path() {
        assert_eq!(numbered("33_BatchNorm"), (Some(33), "BatchNorm"));
        assert_eq!(numbered("BatchNorm"), (None, "BatchNorm"));
        assert_eq!(numbered("33_"), (None, "33_"));
        assert_eq!(level(Path::new("/a/level1/b/33_X.py")), Some(1));
        assert_eq!(level(Path::new("/a/level2/level-3/33_X.py")), Some(3));
        assert_eq!(level(Path::new("/a/levels/level1.py")), None);
        assert_eq!(package_name("33_x.y"), "task_33_x-y");
        assert_eq!(package_name("level1_33_x"), "level1_33_x");
    }
}
