//! Submissions to tasks: finds files with a `custom_kernel`, and the task that each of them is for. Reads files; runs nothing of them.
//!
//! | file | is for |
//! |---|---|
//! | one with a line `#!POPCORN leaderboard grayscale` | the task of that name |
//! | `grayscale/mine.py`, `grayscale/solutions/correct/ref.py` | the task of the innermost folder that has the name of a task |
//! | `grayscale.py` | the task of that name |
//! | the file that is named itself, if there is one task | that task |

use std::path::Path;

use crate::Error;
use crate::import::tasks::CandidateKernel;
use crate::import::{ImportError, SkipReason, SkippedFile};

/// The function of a submission.
const FUNCTION: &str = "custom_kernel";
/// How a line begins that names the task.
const LEADERBOARD: &str = "#!POPCORN leaderboard ";

/// A file with a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submission {
    /// Its path, from the folder that was named.
    path: String,
    /// Its text.
    text: String,
    /// The task that it states.
    stated: Option<String>,
    /// The folders above it, innermost first, from the folder that was named; that folder's own name is the last.
    folders: Vec<String>,
    /// Its name without its ending.
    stem: String,
    /// Whether it is for the only task.
    is_only: bool,
}

/// Finds the submissions below a folder, or takes the one that is named. `shown` is the path as the user wrote it.
pub(super) fn find(path: &Path, shown: &Path, tasks: usize) -> Result<(Vec<Submission>, Vec<SkippedFile>), Error> {
    let unread = |why: std::io::Error| ImportError::Source { path: shown.to_path_buf(), why: why.into() };
    if !path.metadata().map_err(unread)?.is_dir() {
        let root = path.parent().unwrap_or(path);
        let one = read(path, root).map_err(|why| ImportError::Source { path: shown.to_path_buf(), why })?;
        return Ok((vec![Submission { is_only: tasks == 1, ..one }], vec![]));
    }
    let (mut found, mut skipped) = (vec![], vec![]);
    let visible = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name.starts_with('.') || entry.file_type().is_dir() && name == "__pycache__")
    };
    for entry in walkdir::WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let at = error.path().unwrap_or(path).to_path_buf();
                skipped.push(SkippedFile { path: at, why: SkipReason::Unreadable(error.into()) });
                continue;
            }
        };
        if entry.file_type().is_dir() || entry.path().extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let file = if entry.file_type().is_symlink() { Err(SkipReason::Link) } else { read(entry.path(), path) };
        match file {
            // Files beside submissions: references, evaluators that call what they are given.
            Ok(one) if one.has_function() => found.push(one),
            Ok(_) => {}
            Err(why) => skipped.push(SkippedFile { path: entry.path().to_path_buf(), why }),
        }
    }
    Ok((found, skipped))
}

fn read(path: &Path, root: &Path) -> Result<Submission, SkipReason> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let named = below.to_str().ok_or(SkipReason::Name)?.to_string();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or(SkipReason::Name)?.to_string();
    let text = String::from_utf8(std::fs::read(path)?).map_err(|_| SkipReason::NotText)?;
    let stated = text.lines().find_map(|line| line.strip_prefix(LEADERBOARD)).map(|name| name.trim().to_string());
    let inside = below.parent().into_iter().flat_map(Path::components);
    let name = |part: std::path::Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    let mut folders: Vec<String> =
        root.file_name().map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
    folders.extend(inside.map(name));
    folders.reverse();
    Ok(Submission { path: named, text, stated, folders, stem, is_only: false })
}

impl Submission {
    fn has_function(&self) -> bool {
        let wanted = format!("def {FUNCTION}(");
        self.text.lines().any(|line| line.starts_with(&wanted))
            || self.text.lines().any(|line| line.starts_with(&format!("{FUNCTION} =")))
    }

    /// The task that it is for, among those with these names.
    fn task<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        let known = |name: &str| names.iter().copied().find(|own| *own == name);
        if self.is_only {
            return names.first().copied();
        }
        match &self.stated {
            Some(stated) => known(stated),
            None => self.folders.iter().find_map(|folder| known(folder)).or_else(|| known(&self.stem)),
        }
    }

    /// The name of the kernel, before names are made unique: that of the file, with its folder's where that says more than the task.
    fn kernel(&self, task: &str) -> String {
        let folder = self.folders.first().filter(|folder| *folder != task && self.folders.len() > 1);
        let text = match folder {
            Some(folder) if self.stem != task => format!("{folder}_{}", self.stem),
            Some(folder) => folder.clone(),
            None => self.stem.clone(),
        };
        let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("submission_{plain}") }
    }
}

/// The submissions of a task as kernels, in order of their paths.
pub(super) fn of_task(all: &[Submission], task: &str) -> Vec<CandidateKernel> {
    let mut kernels: Vec<CandidateKernel> = vec![];
    for one in all.iter().filter(|one| one.task(&[task]).is_some()) {
        let name = one.kernel(task);
        let is_free = |name: &String| kernels.iter().all(|other| other.kernel != *name);
        let numbered = (2..).map(|n: u32| format!("{name}_{n}"));
        let kernel = std::iter::once(name.clone()).chain(numbered).find(is_free);
        let Some(kernel) = kernel else { continue };
        kernels.push(CandidateKernel { path: one.path.clone(), kernel, text: one.text.clone() });
    }
    kernels
}

/// The paths of the submissions that are for none of these tasks.
pub(super) fn strangers(all: &[Submission], tasks: &[&str]) -> Vec<String> {
    all.iter().filter(|one| one.task(tasks).is_none()).map(|one| one.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(root: &Path, path: &str, head: &str) -> Submission {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("{head}def custom_kernel(data):\n    return data\n")).unwrap();
        read(&file, root).unwrap()
    }

    #[test]
    fn a_submission_is_for_the_task_that_it_states_or_whose_folder_it_is_in() {
        let root = tempfile::tempdir().unwrap();
        let tasks = ["scale", "sort"];
        let of = |path: &str, head: &str| submission(root.path(), path, head).task(&tasks);
        assert_eq!(of("sort/solutions/correct/ref.py", ""), Some("sort"));
        assert_eq!(of("sort/a.py", "#!POPCORN leaderboard scale\n#!POPCORN gpu A100\n"), Some("scale"));
        assert_eq!(of("scale.py", ""), Some("scale"));
        assert_eq!((of("other/x.py", ""), of("sort/b.py", "#!POPCORN leaderboard other\n")), (None, None));
        let other = submission(root.path(), "x.py", "");
        assert_eq!(strangers(std::slice::from_ref(&other), &tasks), ["x.py"]);
        assert_eq!(Submission { is_only: true, ..other }.task(&["scale"]), Some("scale"));
    }

    #[test]
    fn submissions_of_one_task_have_names_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let paths = [
            "sort/submission.py",
            "sort/solutions/wrong/empty.py",
            "sort/solutions/wrong/em-pty.py",
            "sort/solutions/wrong/em_pty.py",
            "sort/2.py",
        ];
        let all: Vec<Submission> = paths.iter().map(|path| submission(root.path(), path, "")).collect();
        let kernels = of_task(&all, "sort");
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.kernel.as_str()).collect();
        assert_eq!(names, ["submission", "wrong_empty", "wrong_em_pty", "wrong_em_pty_2", "submission_2"]);
        // What only calls a kernel is none.
        let caller =
            Submission { text: "from submission import custom_kernel\ncustom_kernel(1)\n".into(), ..all[0].clone() };
        assert!(all[0].has_function() && !caller.has_function());
    }
}
