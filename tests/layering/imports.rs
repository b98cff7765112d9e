//! Finds the files that a file uses, by following its paths through re-exports to the definitions. Knows packages; does not know which uses are allowed.
//!
//! A file is named by its path below `src`: `numerics/measure/judge.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::packages::{PACKAGES, Package, src};
use crate::paths::{mentions, module, tokens};

/// The result of [`used`] for each file that was asked for. Several tests follow the same files.
static USED: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// The files that define the names in a file's code, without its unit tests.
pub(crate) fn used(file: &str) -> BTreeSet<String> {
    if let Some(known) = USED.lock().unwrap().get(file) {
        return known.clone();
    }
    let found = follow(file);
    USED.lock().unwrap().insert(file.to_owned(), found.clone());
    found
}

fn follow(file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(src().join(file)).unwrap();
    let (own, inside) = file.split_once('/').unwrap();
    // Unit tests are at the end.
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    mentions(code, &module(Path::new(inside))).iter().flat_map(|(path, _)| leads_to(path, own, 4)).collect()
}

/// The package of a path, and the path from the package's root. The path begins with `crate`, in the package of that name, or with a package.
fn at<'p>(path: &'p [String], own: &str) -> Option<(&'static Package, &'p [String])> {
    let package = PACKAGES.iter().find(|package| match path[0].as_str() {
        "crate" => package.name == own,
        other => package.crate_name == other,
    });
    package.map(|package| (package, &path[1..]))
}

/// The file of a package's module, by its path below `src`, if there is one.
fn file_of(package: &Package, path: &[String]) -> Option<String> {
    let joined = path.join("/");
    let names = [format!("{joined}.rs"), format!("{joined}/mod.rs"), "lib.rs".to_string()];
    let name = names.into_iter().take(if path.is_empty() { 3 } else { 2 }).find(|f| package.folder().join(f).is_file());
    name.map(|name| format!("{}/{name}", package.name))
}

/// The targets of a module's `pub use`: `(name, path from the root)`.
fn exports(text: &str, module: &[String]) -> Vec<(String, Vec<String>)> {
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(|t| t.0.as_str()).collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        if words[at] != "use" || at == 0 || words[at - 1] != "pub" && words[at - 1] != ")" {
            continue;
        }
        let end = at + words[at..].iter().position(|w| *w == ";").unwrap_or(0);
        let mut path: Vec<String> = module.to_vec();
        let mut next = at + 1;
        while next + 1 < end && words[next + 1] == "::" {
            match words[next] {
                "self" => {}
                "crate" => path.clear(),
                part => path.push(part.to_string()),
            }
            next += 2;
        }
        for word in words[next..end].iter().filter(|w| w.chars().all(|c| c.is_alphanumeric() || c == '_')) {
            found.push((word.to_string(), path.iter().cloned().chain([word.to_string()]).collect()));
        }
    }
    found
}

/// The files that define what a path names.
fn leads_to(path: &[String], own: &str, depth: u8) -> Vec<String> {
    let Some((package, path)) = at(path, own) else { return vec![] };
    let found = (0..=path.len()).rev().find_map(|n| file_of(package, &path[..n]).map(|f| (n, f)));
    let Some((length, file)) = found else { return vec![] };
    let text = fs::read_to_string(src().join(&file)).unwrap();
    match path.get(length) {
        Some(name) if depth > 0 => {
            let through = exports(&text, &path[..length]).into_iter().find(|(n, _)| n == name);
            match through {
                Some((_, to)) if to[..] != path[..] => {
                    let from_root: Vec<String> = std::iter::once("crate".to_string()).chain(to).collect();
                    leads_to(&from_root, package.name, depth - 1)
                }
                _ => vec![file],
            }
        }
        _ => vec![file],
    }
}
