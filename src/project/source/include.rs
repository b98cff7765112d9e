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

/// Names of headers whose existence a text may ask about by `__has_include`: those of its directives, and those that a macro may name there.
pub fn headers_asked_about(text: &str) -> BTreeSet<String> {
    const OPERATOR: &str = "__has_include";
    if !text.contains(OPERATOR) {
        return BTreeSet::new();
    }
    let (all, _) = tokens(text);
    let directives = || all.iter().filter_map(Token::directive);
    let operands = |text: &str| -> Vec<String> {
        let rest = text.split(OPERATOR).skip(1).map(|rest| rest.strip_prefix("_next").unwrap_or(rest).trim_start());
        rest.filter_map(|rest| Some(rest.strip_prefix('(')?.trim_start().to_string())).collect()
    };
    let asked: Vec<String> = directives().flat_map(|(_, text)| operands(text)).collect();
    let mut names: BTreeSet<String> = asked.iter().filter_map(|operand| Some(Include::of(operand)?.name)).collect();
    if asked.iter().any(|operand| Include::of(operand).is_none()) {
        let bodies = directives()
            .filter(|(word, _)| *word == "define")
            .filter_map(|(_, text)| text.find(['<', '"']).map(|at| &text[at..]));
        names.extend(
            bodies.filter_map(|body| Some(Include::of(body)?.name)).filter(|name| !name.contains(char::is_whitespace)),
        );
    }
    names
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_a_text_asks_about_are_found_also_behind_a_macro() {
        let of = |text: &str| headers_asked_about(text).into_iter().collect::<Vec<_>>();
        assert_eq!(
            of("#if defined(A) && __has_include(<a/b.h>) || __has_include_next( \"c.h\" )\n#endif\n"),
            ["a/b.h", "c.h"]
        );
        assert_eq!(of("#define HAS_D __has_include(<d.h>)\n#if HAS_D\n#endif\n"), ["d.h"]);
        assert_eq!(of("#define NAME <e.h>\n#if __has_include(NAME)\n#endif\n"), ["e.h"]);
        assert!(of("// __has_include(<no.h>)\n#include <f.h>\n#define LESS a < b\n").is_empty());
    }
}
