//! The files of a dataset, sorted by definition. Each file is attributed to one definition and kept as it is, so that writing all of them again gives the same bytes.
//!
//! | form | definition | workloads | solutions | traces |
//! |---|---|---|---|---|
//! | FlashInfer-Trace | `definitions/**/*.json` | `workloads/**/*.jsonl` | `solutions/**/*.json` | `traces/**/*.jsonl` |
//! | SOL-ExecBench | `definition.json` of a folder | `workload*.jsonl` beside it, with or without the definition's name | `solution*.json` beside it | `trace*.jsonl` beside it |

use std::collections::BTreeMap;

use super::definition::{Definition, InputFrom, Workload};
use super::json::{Field, Json, Malformed};
use super::solution::Solution;

/// A definition with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The path of the definition.
    pub path: String,
    /// The definition and its parts, or the first file that is malformed.
    pub parts: Result<Parts, Faulty>,
    /// Its files by path, as they are: the definition, workloads, solutions and traces.
    pub files: BTreeMap<String, String>,
}

/// What a definition and the files that belong to it say.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// The definition.
    pub definition: Definition,
    /// Its workloads.
    pub workloads: Vec<Workload>,
    /// Its solutions by path.
    pub solutions: Vec<(String, Solution)>,
    /// How many traces it has that say what became of a solution.
    pub traces: usize,
}

/// A file that is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {why}")]
pub struct Faulty {
    /// Its path.
    pub path: String,
    /// What is wrong.
    #[source]
    pub why: Malformed,
}

/// A file that belongs to no definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Its path.
    pub path: String,
    /// Why it belongs to none.
    pub why: StrayReason,
}

/// Why a file belongs to no definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrayReason {
    /// It is a definition with the name of another one.
    #[error("`name` is `{name}`, as in `{path}`")]
    SameName {
        /// The name.
        name: String,
        /// The other one.
        path: String,
    },
    /// It is for a definition that there is not.
    #[error("`definition` is `{name}`, which the dataset does not have")]
    NoDefinition {
        /// The name.
        name: String,
    },
    /// Neither its text nor its place names a definition.
    #[error("it names no definition")]
    Unnamed,
}

/// What a file of a dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Definition,
    Workloads,
    Solution,
    Traces,
}

/// Whether a file is part of a dataset, by its path.
pub fn belongs(path: &str) -> bool {
    kind(path).is_some()
}

/// The kind of a file, by its path; none if it is no part of a dataset.
fn kind(path: &str) -> Option<Kind> {
    let (first, name) = (path.split('/').next()?, path.rsplit('/').next()?);
    let is_below = path.contains('/');
    let (stem, extension) = name.rsplit_once('.')?;
    Some(match (first, extension) {
        ("definitions", "json") if is_below => Kind::Definition,
        ("workloads", "jsonl") if is_below => Kind::Workloads,
        ("solutions", "json") if is_below => Kind::Solution,
        ("traces", "jsonl") if is_below => Kind::Traces,
        (_, "json") if stem == "definition" => Kind::Definition,
        (_, "json") if stem.starts_with("solution") => Kind::Solution,
        (_, "jsonl") if stem.starts_with("workload") => Kind::Workloads,
        (_, "jsonl") if stem.starts_with("trace") => Kind::Traces,
        _ => return None,
    })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Set {
    /// The files with inputs that its workloads name, each with the places in the dataset where it may be. None if a part is malformed.
    pub fn blobs(&self) -> Vec<(&str, Vec<String>)> {
        let workloads = self.parts.iter().flat_map(|parts| &parts.workloads);
        let mut paths: Vec<&str> = workloads
            .flat_map(|workload| &workload.inputs)
            .filter_map(|(_, from)| match from {
                InputFrom::Safetensors { path, .. } => Some(path.as_str()),
                _ => None,
            })
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths.into_iter().map(|path| (path, self.places(path))).collect()
    }

    /// The places in the dataset at which a file may be that a workload names: below the dataset's folder, or below that of the definition. None if the path leads
    /// elsewhere.
    pub fn places(&self, path: &str) -> Vec<String> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
        if !path.split('/').all(is_plain) {
            return vec![];
        }
        let beside = (!folder(&self.path).is_empty()).then(|| format!("{}/{path}", folder(&self.path)));
        [path.to_string()].into_iter().chain(beside).collect()
    }
}

/// Sorts the files of a dataset, given by path, by definition. Files that are no part of the form are passed over.
pub fn sets(files: &BTreeMap<String, String>) -> (Vec<Set>, Vec<Stray>) {
    let mut sets: Vec<Set> = vec![];
    // By index: how others find it. A definition that cannot be read goes by its file's name.
    let mut names: Vec<String> = vec![];
    let mut strays = vec![];
    for (path, text) in files.iter().filter(|(path, _)| kind(path) == Some(Kind::Definition)) {
        let read = Definition::read(text);
        let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".json")).unwrap_or(path);
        let name = read.as_ref().map_or(stem.to_string(), |definition| definition.name.clone());
        if let Some(at) = names.iter().position(|other| *other == name) {
            let other = sets[at].path.clone();
            strays.push(Stray { path: path.clone(), why: StrayReason::SameName { name, path: other } });
            continue;
        }
        let parts = |definition| Parts { definition, workloads: vec![], solutions: vec![], traces: 0 };
        let parts = read.map(parts).map_err(|why| Faulty { path: path.clone(), why });
        sets.push(Set { path: path.clone(), parts, files: [(path.clone(), text.clone())].into() });
        names.push(name);
    }
    for (path, text) in files {
        let Some(kind) = kind(path).filter(|kind| *kind != Kind::Definition) else { continue };
        match whose(path, text, kind, &sets, &names) {
            Ok(at) => {
                sets[at].files.insert(path.clone(), text.clone());
                add(&mut sets[at], path, text, kind);
            }
            Err(why) => strays.push(Stray { path: path.clone(), why }),
        }
    }
    for set in &mut sets {
        let Ok(parts) = &set.parts else { continue };
        if let Some(twice) = twice(parts) {
            set.parts = Err(Faulty { path: set.path.clone(), why: twice });
        }
    }
    (sets, strays)
}

/// A workload or a solution that is there twice.
fn twice(parts: &Parts) -> Option<Malformed> {
    let again = |names: Vec<&String>| {
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| (*name).clone())
    };
    let workload = again(parts.workloads.iter().map(|workload| &workload.uuid).collect());
    let solution = again(parts.solutions.iter().map(|(_, solution)| &solution.name).collect());
    let workload = workload.map(|name| Malformed::new("workload.uuid", format!("is `{name}` in two workloads")));
    workload.or_else(|| solution.map(|name| Malformed::new("solution.name", format!("is `{name}` in two solutions"))))
}

/// The definition that a file is for: the one that it names, otherwise the one in its folder, otherwise the one in its path.
fn whose(path: &str, text: &str, kind: Kind, sets: &[Set], names: &[String]) -> Result<usize, StrayReason> {
    let first = match kind {
        Kind::Solution | Kind::Definition => text,
        Kind::Workloads | Kind::Traces => text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default(),
    };
    let named = Json::read(first).ok().and_then(|json| {
        let field = Field::root(&json).get("definition").ok()??;
        field.text().ok().map(String::from)
    });
    if let Some(name) = named {
        return names.iter().position(|own| *own == name).ok_or(StrayReason::NoDefinition { name });
    }
    let beside = sets
        .iter()
        .position(|set| set.path.rsplit('/').next() == Some("definition.json") && folder(&set.path) == folder(path));
    let stem = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(stem, _)| stem);
    let above = folder(path).rsplit('/').next().unwrap_or_default();
    let by_path = || names.iter().position(|own| own == stem || kind == Kind::Solution && own == above);
    beside.or_else(by_path).ok_or(StrayReason::Unnamed)
}

/// Adds what a file says to a set whose files are sound so far.
fn add(set: &mut Set, path: &str, text: &str, kind: Kind) {
    let Ok(parts) = &mut set.parts else { return };
    let added = match kind {
        Kind::Definition => Ok(()),
        Kind::Solution => Solution::read(text).map(|solution| parts.solutions.push((path.to_string(), solution))),
        Kind::Workloads | Kind::Traces => lines(text, parts),
    };
    if let Err(why) = added {
        set.parts = Err(Faulty { path: path.to_string(), why });
    }
}

/// Adds the workloads of a file with a document in each line, and counts its traces. The workload of a trace with a solution is that of another line.
fn lines(text: &str, parts: &mut Parts) -> Result<(), Malformed> {
    for (at, line) in (1u32..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let json = Json::read(line).map_err(|why| why.at(at))?;
        one(&Field::root(&json), parts).map_err(|why| why.at(at))?;
    }
    Ok(())
}

fn one(root: &Field<'_>, parts: &mut Parts) -> Result<(), Malformed> {
    if let Some(name) = root.get("definition")? {
        let text = name.text()?;
        if text != parts.definition.name {
            let message = format!("is `{text}`, and the file is of `{}`", parts.definition.name);
            return Err(name.wrong(message));
        }
    }
    // SOL-ExecBench writes workloads as they are, FlashInfer-Trace as traces without a solution.
    let own = root.get("workload")?;
    let workload = Workload::read(own.as_ref().unwrap_or(root), &parts.definition)?;
    match (root.get("solution")?, root.get("evaluation")?) {
        (None, None) => parts.workloads.push(workload),
        (solution, evaluation) => {
            solution.ok_or_else(|| Malformed::new("solution", "is missing beside an `evaluation`"))?.text()?;
            evaluation
                .ok_or_else(|| Malformed::new("evaluation", "is missing beside a `solution`"))?
                .need("status")?
                .text()?;
            parts.traces += 1;
        }
    }
    Ok(())
}
