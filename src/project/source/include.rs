//! The includes of sources, and the files of a tree that they find. Knows how compilers search; decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, tokens};
use super::{File, SourceTree};

/// An `#include` of a file.
pub(super) struct Include {
    pub(super) name: String,
    quoted: bool,
}

impl Include {
    pub(super) fn of(operand: &str) -> Option<Self> {
        let (close, quoted) = match operand.chars().next()? {
            '"' => ('"', true),
            '<' => ('>', false),
            _ => return None,
        };
        Some(Include { name: operand[1..].split(close).next()?.to_string(), quoted })
    }

    /// The file of the tree that the include of `from` finds.
    pub(super) fn resolve(&self, from: &str, tree: &SourceTree<'_>) -> Option<String> {
        let beside = |file: &str| file.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string());
        let own = self.quoted.then(|| beside(from));
        // A compiler of one file also looks beside that file and in the root.
        let folders =
            own.into_iter().chain([beside(tree.main)]).chain(tree.include.iter().cloned()).chain([String::new()]);
        folders
            .map(|folder| tidy(&folder, &self.name))
            .find_map(|name| name.filter(|name| tree.files.contains_key(name)))
    }
}

/// The path of a name in a folder, without `.` and `..`; none if it leaves the tree.
fn tidy(folder: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return None;
    }
    let mut steps: Vec<&str> = vec![];
    for step in folder.split('/').chain(name.split('/')) {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()?),
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

/// The includes of a file, with the positions of their tokens.
pub(super) fn includes(file: &File) -> impl Iterator<Item = (usize, Include)> {
    file.tokens.iter().enumerate().filter_map(|(at, token)| {
        let (word, operand) = token.directive()?;
        (word == "include").then(|| Include::of(operand)).flatten().map(|include| (at, include))
    })
}

/// The positions of the tokens of a file's includes outside every condition.
pub(super) fn unconditional(file: &File) -> BTreeSet<usize> {
    let (mut found, mut depth) = (BTreeSet::new(), 0_usize);
    for (at, token) in file.tokens.iter().enumerate() {
        match token.directive() {
            Some(("if" | "ifdef" | "ifndef", _)) => depth += 1,
            Some(("endif", _)) => depth = depth.saturating_sub(1),
            Some(("include", _)) if depth == 0 => drop(found.insert(at)),
            _ => {}
        }
    }
    found
}

/// The names of the files that the main one includes, itself among them, in order; all files if a macro computes an include.
pub(super) fn included_files(tree: &SourceTree<'_>) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut open = vec![tree.main.to_string()];
    while let Some(name) = open.pop() {
        let Some(text) = tree.files.get(&name).filter(|_| found.insert(name.clone())) else { continue };
        for token in tokens(text).0 {
            let Some(("include", operand)) = token.directive() else { continue };
            match Include::of(operand) {
                Some(include) => open.extend(include.resolve(&name, tree)),
                None => return tree.files.keys().cloned().collect(),
            }
        }
    }
    found
}

/// The folders from which a source includes files that no other rule finds: for each such name, the only folder of the tree that has a file of that name. In the
/// order in which the source asks for them.
pub(super) fn include_folders(files: &BTreeMap<String, String>, main: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    loop {
        let tree = SourceTree { files, main, include: &found };
        let lacking = included_files(&tree).into_iter().find_map(|name| {
            let all = tokens(&files[&name]).0;
            let asked = all.iter().filter_map(Token::directive).filter(|(word, _)| *word == "include");
            let lost =
                asked.filter_map(|(_, operand)| Include::of(operand)).filter(|i| i.resolve(&name, &tree).is_none());
            { lost }.find_map(|include| only_folder(files, &include.name))
        });
        match lacking {
            Some(folder) => found.push(folder),
            None => return found,
        }
    }
}

/// The folder of the only file with these last steps of its path; none for a header that every compiler has.
fn only_folder(files: &BTreeMap<String, String>, name: &str) -> Option<String> {
    if super::needs::is_standard(name) || name.split('/').any(|step| step == "..") {
        return None;
    }
    let mut folders = files.keys().filter_map(|file| file.strip_suffix(name)?.strip_suffix('/'));
    let first = folders.next()?;
    folders.next().is_none().then(|| first.to_string())
}

/// The headers whose existence a file asks about.
pub(super) fn asked(file: &File) -> Vec<String> {
    let conditions = file.tokens.iter().filter_map(Token::directive).filter(|(word, _)| matches!(*word, "if" | "elif"));
    conditions
        .flat_map(|(_, text)| text.split("__has_include").skip(1))
        .filter_map(|text| Include::of(text.trim_start().strip_prefix('(')?.trim_start()))
        .map(|include| include.name)
        .collect()
}

/// The files that a file includes inside a declaration.
pub(super) fn inner_includes(file: &File, tree: &SourceTree<'_>) -> Vec<String> {
    let inside = |(at, _): &(usize, Include)| file.declarations.inside.contains(at);
    includes(file).filter(inside).filter_map(|(_, include)| include.resolve(&file.name, tree)).collect()
}
