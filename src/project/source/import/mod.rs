//! A manifest for kernels that somebody has: reads kernels and their launches in CUDA C++ sources, and writes `kernel.toml` from what they say. Pure: takes texts,
//! gives a text.
//!
//! | decision | reason |
//! |---|---|
//! | macros are expanded, and functions that only return an expression are inlined | so launches by macros and `CEIL_DIV(n, 256)` in any spelling give one form |
//! | a parameter of the kernel names a dim, also where the launcher names it otherwise | the kernel's names are those of `args` |
//! | names mean what they mean at the launch: in its blocks, function, class and namespaces, with macros as they are defined there | a name may have another meaning elsewhere |
//! | a variable that changes has no value, and one that is assigned in branches has one of several, which the line to check names | branches are not followed |
//! | an argument of a template is kept as the launch spells it, with its namespaces | the entry stands after the last line of the source |
//! | each axis of a grid is tried at several blocks and a rest | one block shows no wrong index of a block, no missing check and no race between blocks |
//! | a size exceeds the threads of a block, and the limits of a block and of a grid if that is few enough | a forgotten loop passes at smaller ones |
//! | below a block's limit of threads, a size is whole warps | part of a warp has no threads for the shuffles of an honest kernel |
//! | a size that would hide a forgotten check is not left out | a kernel that serves only some sizes fails, and the person says so |
//! | what kforge's own reader refuses is a comment with the reason, and names that it refuses get a suffix | the manifest loads |
//! | the first launch that can be stated most completely counts | a launch by variables of a tensor library says less than one by numbers |
//! | what a kernel computes is guessed from its name only where its parameters fit | the line is marked, and a wrong guess fails when it is verified |
//! | what cannot be known is a placeholder with a comment `# check: ...` at its place | nothing passes by a placeholder |
//! | a kernel whose operator is unknown is written as a comment, after all others | the others build at once |
//! | kernels share an operator if name, types and roles are equal; sizes that one does not serve are in its `requires` | they are compared at the shapes that they share, and a ragged shape goes to those that serve it |
//! | where one folder of the package alone has a header that a source includes, the kernel's `include` names it | its build passes that folder to the compiler |

mod arithmetic;
mod checked;
mod constants;
mod covers;
mod demands;
mod expression;
mod extent;
mod guess;
mod host;
mod kernel;
mod launch;
mod manifest;
mod naming;
mod operators;
mod parameter;
mod scope;
mod sizes;
mod strides;
mod structs;
mod template;
mod through;
pub mod gpu_mode;
pub mod tasks;
pub mod traces;
pub mod triton;
pub mod tuner;

use std::collections::{BTreeMap, BTreeSet};

use super::declarations::DEEPEST;
use super::include::include_folders;
use super::{Place, SourceTree, Sources, Unfinished};
use host::launched;
use kernel::kernels;
pub(super) use parameter::dtype;

/// A kernel in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedKernel {
    /// Its name in the manifest.
    pub name: String,
    /// Where it is defined.
    pub place: Place,
    /// Its entry.
    pub entry: String,
    /// Its operator.
    pub operator: String,
    /// Whether the operator has a reference.
    pub known: bool,
    /// Why its tables are a comment although the operator is known: what kforge says to them.
    pub refused: Option<String>,
    /// The launch that was read, if there is one.
    pub launched: Option<Place>,
    /// How many places of the kernel's tables are to be checked.
    pub checks: usize,
}

/// A manifest, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedManifest {
    /// Its text.
    pub text: String,
    /// Its kernels, by file and line.
    pub kernels: Vec<ImportedKernel>,
    /// The number of its operators.
    pub operators: usize,
    /// How many of them have a reference.
    pub known: usize,
    /// How many places are to be checked.
    pub checks: usize,
    /// Files that end inside something, whose kernels are left out.
    pub unfinished: Vec<Unfinished>,
    /// Files with kernels that could not be told apart from what is around them.
    pub unread: Vec<UnreadFile>,
}

/// A file whose kernels are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadFile {
    /// Its name.
    pub file: String,
    /// Why.
    pub why: String,
}

/// Writes the manifest of a package for the kernels in the files that `mains` names; `files` also holds the headers. Names are relative to the package's folder.
pub fn import(package: &str, files: &BTreeMap<String, String>, mains: &[String]) -> ImportedManifest {
    let mut found = vec![];
    let mut unfinished = vec![];
    let mut unread = vec![];
    let mut launches = vec![];
    let include: Vec<Vec<String>> = mains.iter().map(|main| include_folders(files, main)).collect();
    let trees = mains.iter().zip(&include).map(|(main, include)| SourceTree { files, main: main.as_str(), include });
    let sources: Vec<Sources<'_>> = trees.map(Sources::read).collect();
    for source in &sources {
        launches.extend(launched(source));
    }
    // A header that is no source itself is compiled with the first source that includes it.
    let mut headers = BTreeSet::new();
    for source in &sources {
        match source.unfinished().filter(|open| open.place.file == source.tree.main) {
            Some(open) => unfinished.push(open),
            None => {
                let own = |file: &str| {
                    file == source.tree.main || !mains.iter().any(|m| m == file) && !headers.contains(file)
                };
                let before = found.len();
                found.extend(kernels(source, &launches, &own));
                unread.extend(unread_file(source).filter(|_| found.len() == before));
                headers.extend(source.files.iter().map(|file| file.name.clone()));
            }
        }
    }
    let mut skipped: Vec<String> = unfinished.iter().map(ToString::to_string).collect();
    skipped.extend(unread.iter().map(|file: &UnreadFile| format!("`{}`: {}", file.file, file.why)));
    let written = manifest::manifest(package, &found, &skipped);
    let checks = written.checks;
    let (known, operators) = written.operators;
    ImportedManifest { text: written.text, kernels: written.kernels, operators, known, checks, unfinished, unread }
}

/// The main file of a source, if it defines a kernel and its declarations could not be told apart.
fn unread_file(source: &Sources<'_>) -> Option<UnreadFile> {
    let file = source.files.iter().find(|file| file.name == source.tree.main)?;
    if !file.declarations.broken || !file.tokens.iter().any(|t| t.is("__global__")) {
        return None;
    }
    let mut depth = 0_usize;
    let deepest = file.tokens.iter().map(|t| {
        if ["(", "[", "{"].iter().any(|open| t.is(open)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|close| t.is(close)) {
            depth = depth.saturating_sub(1);
        }
        depth
    });
    let why = match deepest.max().is_some_and(|depth| depth > DEEPEST) {
        true => format!("its brackets nest deeper than {DEEPEST}"),
        false => "branches of its conditions open or close different brackets".to_string(),
    };
    Some(UnreadFile { file: file.name.clone(), why })
}

#[cfg(test)]
mod tests;
