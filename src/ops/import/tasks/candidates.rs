//! Candidates of tasks: finds files with a `ModelNew`, and the task that each of them is for. Reads files; runs nothing of them.
//!
//! | file | is for |
//! |---|---|
//! | `level_1_problem_33_sample_0_kernel.py`, as runs of KernelBench name them | task 33 of level 1 |
//! | `level1/33_BatchNorm.py`, or another name with the number | task 33 of level 1 |
//! | a file without a number | the task whose file has the same name |
//! | the file that is named itself, if there is one task | that task |

use std::path::{Path, PathBuf};

use super::files::{TaskFile, level, numbered};
use crate::Error;
use crate::import::{ImportError, SkipReason, SkippedFile};

/// The class of a candidate.
pub(super) const CLASS: &str = "ModelNew";
/// The name of a candidate's file in its folder.
pub(super) const SOURCE: &str = "kernel.py";

/// A file with a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its path, from the folder that was named.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
    /// The name of the kernel, before names are made unique.
    name: String,
    of: Of,
}

/// The task that a candidate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Of {
    /// The one with this level, if it is known, and number.
    Number(Option<u32>, u32),
    /// The one whose file has this name.
    Name(String),
    /// The only one.
    Only,
}

/// A candidate as a kernel of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateKernel {
    /// Its file, from the folder that was named.
    pub path: String,
    /// The kernel's name, which is also that of its folder.
    pub kernel: String,
    /// Its text.
    pub text: String,
}

/// Finds the candidates below a folder, or takes the one that is named. `shown` is the path as the user wrote it.
pub(super) fn find(path: &Path, shown: &Path, tasks: usize) -> Result<(Vec<Candidate>, Vec<SkippedFile>), Error> {
    let unread = |why: std::io::Error| ImportError::Source { path: shown.to_path_buf(), why: why.into() };
    if !path.metadata().map_err(unread)?.is_dir() {
        let root = path.parent().unwrap_or(path);
        let mut one = read(path, root).map_err(|why| ImportError::Source { path: shown.to_path_buf(), why })?;
        if tasks == 1 {
            one.of = Of::Only;
        }
        return Ok((vec![one], vec![]));
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
            Ok(one) if has_class(&one.text) => found.push(one),
            // Files beside candidates: references, scripts.
            Ok(_) => {}
            Err(why) => skipped.push(SkippedFile { path: entry.path().to_path_buf(), why }),
        }
    }
    Ok((found, skipped))
}

fn read(path: &Path, root: &Path) -> Result<Candidate, SkipReason> {
    let named = path.strip_prefix(root).unwrap_or(path).to_str().ok_or(SkipReason::Name)?.to_string();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or(SkipReason::Name)?;
    let text = String::from_utf8(std::fs::read(path)?).map_err(|_| SkipReason::NotText)?;
    let (of, name) = match of_run(stem) {
        Some((level, number, sample)) => (Of::Number(Some(level), number), format!("sample_{sample}")),
        None => match numbered(stem) {
            (Some(number), _) => (Of::Number(level(path), number), above(path, root)),
            (None, name) => (Of::Name(name.to_string()), above(path, root)),
        },
    };
    Ok(Candidate { path: named, text, name: kernel_name(&name), of })
}

/// The level, problem and sample in `level_1_problem_33_sample_0_kernel`.
fn of_run(stem: &str) -> Option<(u32, u32, u32)> {
    let (level, rest) = stem.strip_prefix("level_")?.split_once("_problem_")?;
    let (problem, rest) = rest.split_once("_sample_")?;
    let sample = rest.split_once('_').map_or(rest, |(sample, _)| sample);
    Some((level.parse().ok()?, problem.parse().ok()?, sample.parse().ok()?))
}

/// The folder above a file that is not its level's: what several candidates of one task differ in.
fn above(path: &Path, root: &Path) -> String {
    let folders = path.strip_prefix(root).ok().and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
    let names = folders.components().rev().filter_map(|part| part.as_os_str().to_str());
    let is_level = |name: &&str| level(&PathBuf::from(format!("{name}/x.py"))).is_some();
    names.into_iter().find(|name| !is_level(name)).unwrap_or("candidate").to_string()
}

/// What can be the name of a kernel.
fn kernel_name(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("candidate_{plain}") }
}

fn has_class(text: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == CLASS)
}

impl Candidate {
    /// Whether it is for a task.
    fn fits(&self, task: &TaskFile) -> bool {
        match &self.of {
            Of::Only => true,
            Of::Number(level, number) => {
                let same = level.is_none() || task.origin.level.is_none() || *level == task.origin.level;
                same && task.origin.number == Some(*number)
            }
            Of::Name(name) => task.origin.name == *name,
        }
    }
}

/// The candidates of a task as kernels, in order of their paths.
pub(super) fn of_task(all: &[Candidate], task: &TaskFile) -> Vec<CandidateKernel> {
    let mut kernels: Vec<CandidateKernel> = vec![];
    for one in all.iter().filter(|one| one.fits(task)) {
        let is_free = |name: &String| kernels.iter().all(|other| other.kernel != *name);
        let numbered = (2..).map(|n: u32| format!("{}_{n}", one.name));
        let kernel = std::iter::once(one.name.clone()).chain(numbered).find(is_free);
        let Some(kernel) = kernel else { continue };
        kernels.push(CandidateKernel { path: one.path.clone(), kernel, text: one.text.clone() });
    }
    kernels
}

/// The paths of the candidates that are for none of these tasks.
pub(super) fn strangers(all: &[Candidate], tasks: &[TaskFile]) -> Vec<String> {
    all.iter().filter(|one| !tasks.iter().any(|task| one.fits(task))).map(|one| one.path.clone()).collect()
}

/// What the manifest of a task says of its candidates.
pub(super) fn manifest(operator: &str, kernels: &[CandidateKernel]) -> String {
    let of = |one: &CandidateKernel| {
        let name = &one.kernel;
        format!(
            "\n[kernel.{name}]\noperator = \"{operator}\"\nlanguage = \"torch\"\ntargets = [\"cpu\"]\nsource = \"{name}/{SOURCE}::{CLASS}\"\n"
        )
    };
    kernels.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tasks::Origin;

    fn task(level: Option<u32>, number: Option<u32>, name: &str) -> TaskFile {
        let origin = Origin { set: "kernelbench".into(), level, number, name: name.into() };
        let (path, text, package, folder) = Default::default();
        TaskFile { path, text, package, folder, origin }
    }

    fn candidate(folder: &Path, path: &str) -> Candidate {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "class ModelNew: pass\n").unwrap();
        read(&file, folder).unwrap()
    }

    #[test]
    fn candidates_are_those_of_the_task_with_their_level_and_number_or_name() {
        let folder = tempfile::tempdir().unwrap();
        let run = candidate(folder.path(), "level_1_problem_33_sample_4_kernel.py");
        assert_eq!((run.name.as_str(), &run.of), ("sample_4", &Of::Number(Some(1), 33)));
        assert!(run.fits(&task(Some(1), Some(33), "BatchNorm")) && run.fits(&task(None, Some(33), "x")));
        assert!(!run.fits(&task(Some(2), Some(33), "x")) && !run.fits(&task(Some(1), Some(3), "x")));
        let level = candidate(folder.path(), "mine/level2/7_Conv.py");
        assert_eq!((level.name.as_str(), &level.of), ("mine", &Of::Number(Some(2), 7)));
        let named = candidate(folder.path(), "softmax.py");
        assert_eq!((named.name.as_str(), &named.of), ("candidate", &Of::Name("softmax".into())));
        assert!(named.fits(&task(None, None, "softmax")) && !named.fits(&task(None, None, "other")));
        let all = [run, level, named];
        assert_eq!(strangers(&all, &[task(Some(2), Some(7), "Conv")]), [all[0].path.clone(), all[2].path.clone()]);
    }

    #[test]
    fn kernels_of_one_task_have_names_of_their_own_and_are_readable_manifests() {
        let folder = tempfile::tempdir().unwrap();
        let all = ["a b/33_X.py", "a-b/33_X.py", "33_X.py"].map(|path| candidate(folder.path(), path));
        let kernels = of_task(&all, &task(None, Some(33), "X"));
        let names: Vec<&str> = kernels.iter().map(|one| one.kernel.as_str()).collect();
        assert_eq!(names, ["a_b", "a_b_2", "candidate"]);
        let text = manifest("x", &kernels);
        assert!(text.contains("[kernel.a_b_2]") && text.contains("source = \"a_b_2/kernel.py::ModelNew\""), "{text}");
        assert!(!has_class("class Model: pass") && has_class("class ModelNew(nn.Module):"));
    }
}
