//! The house's order, held: a room uses only rooms above its own in `src/lib.rs`, and pure rooms touch no file, clock, environment or process.
//!
//! Read as tokens, not as text: comments and literals say nothing. Every path is followed to its room, whether it stands in a `use`, in a group of one or inline,
//! and whether it begins with `crate` or climbs there by `super`. A path whose room cannot be told (`use crate::*`) is refused, because it could hide an edge.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that decide and compute, and nothing else.
const PURE: [&str; 6] = ["model", "record", "measure", "plan", "optimize", "report"];

/// What pure rooms never mention: modules of `std` by path, and clocks by name however they come in.
const IMPURE: [&str; 6] =
    ["std::fs", "std::env", "std::process", "std::net", "std::time::SystemTime", "std::time::Instant"];
const CLOCKS: [&str; 2] = ["SystemTime", "Instant"];

/// The words and marks of a file; comments, literals and lifetimes are left out.
fn tokens(text: &str) -> Vec<(String, usize)> {
    let bytes: Vec<char> = text.chars().collect();
    let (mut out, mut at, mut line) = (vec![], 0, 1);
    let starts = |at: usize, with: &str| with.chars().enumerate().all(|(i, c)| bytes.get(at + i) == Some(&c));
    while at < bytes.len() {
        let begun = at;
        let c = bytes[at];
        if starts(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            loop {
                if starts(at, "/*") {
                    (depth, at) = (depth + 1, at + 2);
                } else if starts(at, "*/") {
                    (depth, at) = (depth - 1, at + 2);
                } else {
                    at += 1;
                }
                if depth == 0 || at >= bytes.len() {
                    break;
                }
            }
        } else if let Some(end) = raw_string(&bytes, at) {
            at = end;
        } else if c == '"' || (matches!(c, 'b' | 'c') && bytes.get(at + 1) == Some(&'"')) {
            at += if c == '"' { 1 } else { 2 };
            while at < bytes.len() && bytes[at] != '"' {
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if c == '\'' {
            // A character, or a lifetime, which is followed by no second quote.
            let character = bytes.get(at + 1) == Some(&'\\') || bytes.get(at + 2) == Some(&'\'');
            at += if character { 2 } else { 1 };
            while character && at < bytes.len() && bytes[at] != '\'' {
                at += 1;
            }
            at += usize::from(character);
            while !character && at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else if is_word(c) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            let word: String = bytes[begun..at].iter().collect();
            out.push((word.trim_start_matches("r#").to_string(), line));
        } else {
            at += if starts(at, "::") { 2 } else { 1 };
            if !c.is_whitespace() {
                out.push((bytes[begun..at].iter().collect(), line));
            }
        }
        at = at.min(bytes.len());
        line += bytes[begun..at].iter().filter(|c| **c == '\n').count();
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The end of a raw string that begins there.
fn raw_string(bytes: &[char], at: usize) -> Option<usize> {
    let mut next = at + usize::from(matches!(bytes.get(at), Some('b' | 'c')));
    if bytes.get(next) != Some(&'r') || (at > 0 && is_word(bytes[at - 1])) {
        return None;
    }
    next += 1;
    let hashes = bytes[next..].iter().take_while(|c| **c == '#').count();
    next += hashes;
    if bytes.get(next) != Some(&'"') {
        return None;
    }
    next += 1;
    let closes = |at: usize| bytes[at] == '"' && (1..=hashes).all(|i| bytes.get(at + i) == Some(&'#'));
    (next..bytes.len()).find(|at| closes(*at)).map(|at| at + 1 + hashes)
}

/// A path that a file mentions, from `crate` or `std` on, and its line. A `*` or an alias of the root itself is kept as it stands.
type Mention = (Vec<String>, usize);

/// Every path of a file. `module` is the file's own path in the crate.
fn mentions(text: &str, module: &[String]) -> Vec<Mention> {
    let tokens = tokens(text);
    let mut found = vec![];
    let (mut scopes, mut braces): (Vec<(String, usize)>, usize) = (vec![], 0);
    let mut at = 0;
    while at < tokens.len() {
        let word = tokens[at].0.as_str();
        let before = at.checked_sub(1).map_or("", |i| tokens[i].0.as_str());
        match word {
            // `mod name {` opens a module of its own: from inside it `super` climbs one step less.
            "mod" if tokens.get(at + 2).is_some_and(|t| t.0 == "{") => {
                scopes.push((tokens[at + 1].0.clone(), braces));
                (braces, at) = (braces + 1, at + 3);
                continue;
            }
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if scopes.last().is_some_and(|s| s.1 == braces) {
                    scopes.pop();
                }
            }
            "kforge" | "std" | "core" if tokens.get(at + 1).is_none_or(|t| t.0 != "::") => {}
            "crate" | "super" | "self" | "std" | "core" | "kforge" if before != "::" => {
                let inside: Vec<String> = module.iter().cloned().chain(scopes.iter().map(|s| s.0.clone())).collect();
                // `pub(crate)` and `pub(super)` name nothing.
                let visibility = before == "(" && at >= 2 && tokens[at - 2].0 == "pub";
                // A braced group opens and closes here, so that its braces are not counted as a scope's.
                let end = path(&tokens, at, &[], &inside, &mut found);
                if visibility {
                    found.pop();
                }
                at = end.max(at + 1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads a path or a group of paths at `at` that goes on from `prefix`, and notes each of its ends. Gives what comes after.
fn path(
    tokens: &[(String, usize)],
    mut at: usize,
    prefix: &[String],
    module: &[String],
    found: &mut Vec<Mention>,
) -> usize {
    let is = |at: usize, what: &str| tokens.get(at).is_some_and(|t| t.0 == what);
    let mut parts = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |t| t.1);
    while let Some((word, _)) = tokens.get(at) {
        if word == "{" {
            at += 1;
            while at < tokens.len() && !is(at, "}") {
                let next = path(tokens, at, &parts, module, found);
                at = if next == at || is(next, ",") { next.max(at) + 1 } else { next };
                // An alias within a group.
                while at < tokens.len() && !is(at, ",") && !is(at, "}") && !word_at(tokens, at) {
                    at += 1;
                }
            }
            return at + 1;
        }
        if !(word.chars().all(is_word) || word == "*") {
            break;
        }
        step(&mut parts, word, module);
        at += 1;
        if is(at, "as") {
            at += 2;
        }
        if !is(at, "::") {
            break;
        }
        at += 1;
    }
    if !parts.is_empty() {
        found.push((parts, line));
    }
    at
}

fn word_at(tokens: &[(String, usize)], at: usize) -> bool {
    tokens.get(at).is_some_and(|t| t.0.chars().all(is_word) || t.0 == "{" || t.0 == "*")
}

/// Goes on by one part of a path; what climbs is turned into a path from `crate`.
fn step(parts: &mut Vec<String>, word: &str, module: &[String]) {
    let from_root = |up: usize| -> Vec<String> {
        let here = &module[..module.len().saturating_sub(up)];
        std::iter::once("crate".to_string()).chain(here.iter().cloned()).collect()
    };
    match (word, parts.is_empty()) {
        ("super", true) => *parts = from_root(1),
        ("super", false) => {
            if parts.len() > 1 {
                parts.pop();
            }
        }
        ("self", true) => *parts = from_root(0),
        ("self", false) => {}
        // The library under its name, as the program sees it.
        ("kforge", true) => parts.push("crate".into()),
        ("core", true) => parts.push("std".into()),
        _ => parts.push(word.into()),
    }
}

/// The rooms in their order, from the library's root.
fn rooms(root: &str) -> Vec<String> {
    let tokens = tokens(root);
    tokens.windows(3).filter(|w| w[0].0 == "mod" && w[2].0 == ";").map(|w| w[1].0.clone()).collect()
}

/// The module that a file below `src` is.
fn module(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib" || p == "main") {
        parts.pop();
    }
    parts
}

/// What is wrong with a file, a line each. `file` is relative to `src`.
fn faults(file: &Path, text: &str, rooms: &[String]) -> Vec<String> {
    let module = module(file);
    let mut out = vec![];
    let own = module.first().and_then(|m| rooms.iter().position(|r| r == m));
    let place = |line: usize| format!("src/{}:{line}", file.display());
    for (path, line) in mentions(text, &module) {
        if path[0] == "crate" && own.is_some() {
            match path.get(1).and_then(|room| rooms.iter().position(|r| r == room)) {
                Some(room) if Some(room) > own => {
                    out.push(format!("{}: {} uses {}, which stands below it", place(line), module[0], rooms[room]));
                }
                Some(_) => {}
                None => out.push(format!("{}: the room of `{}` cannot be told", place(line), path.join("::"))),
            }
        }
        let text = path.join("::");
        let impure = |what: &str| text == what || text.starts_with(&format!("{what}::"));
        if module.first().is_some_and(|m| PURE.contains(&m.as_str())) && IMPURE.iter().any(|w| impure(w)) {
            out.push(format!("{}: {} is pure and mentions `{text}`", place(line), module[0]));
        }
    }
    if module.first().is_some_and(|m| PURE.contains(&m.as_str())) {
        for (word, line) in tokens(text) {
            if CLOCKS.contains(&word.as_str()) {
                out.push(format!("{}: {} is pure and mentions `{word}`", place(line), module[0]));
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn every_room_uses_only_rooms_above_its_own_and_pure_rooms_are_pure() {
    let rooms = rooms(&fs::read_to_string(src().join("lib.rs")).unwrap());
    let mut files = vec![];
    sources(&src(), &mut files);
    let faults: Vec<String> = files
        .iter()
        .flat_map(|f| faults(f.strip_prefix(src()).unwrap(), &fs::read_to_string(f).unwrap(), &rooms))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_folder_is_a_room_and_every_room_a_folder() {
    let listed: BTreeSet<String> = rooms(&fs::read_to_string(src().join("lib.rs")).unwrap()).into_iter().collect();
    let folders = fs::read_dir(src()).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir());
    let found: BTreeSet<String> = folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, found);
    assert!(PURE.iter().all(|room| listed.contains(*room)));
}

/// Faults of a file of a house of four rooms: `base`, `model`, `engine`, `cli`.
fn planted(file: &str, text: &str) -> Vec<String> {
    let rooms = rooms("//! pub mod other;\npub mod base;\nmod model;\npub mod engine;\npub mod cli;\n");
    assert_eq!(rooms, ["base", "model", "engine", "cli"]);
    faults(Path::new(file), text, &rooms)
}

#[test]
fn planted_edges_that_run_back_are_found() {
    let wrong = [
        ("model/a.rs", "use crate::engine::X;"),
        ("model/a.rs", "use crate::{base::Y, engine::X};"),
        ("model/a.rs", "use crate::{\n    base::{self, Y},\n    engine,\n};"),
        ("model/a.rs", "use crate::{base::{A as B, C}, engine as other};"),
        ("model/a.rs", "fn f() { let x = crate::engine::x(); }"),
        ("model/a.rs", "type T = Vec<crate::cli::X>;"),
        ("model/a.rs", "use super::super::engine::X;"),
        ("model/a.rs", "use super::{b, super::engine::X};"),
        ("model/mod.rs", "use super::engine::X;"),
        ("model.rs", "use super::engine::X;"),
        ("model/a/b.rs", "fn f() { super::super::super::engine::x() }"),
        ("model/a.rs", "mod tests { use super::super::super::engine::X; }"),
        ("model/a.rs", "macro_rules! m { () => { $crate::engine::x() } }"),
        ("base/a.rs", "pub use crate::model;"),
        ("engine/a.rs", "#[cfg(test)] mod tests { use crate::cli::X; }"),
        ("engine/a.rs", "fn f<'a>(x: &'a str) -> char { let c = '\"'; crate::cli::x(); 'x' }"),
        ("engine/a.rs", "const T: &str = r#\"quote \" inside\"#; use crate::cli::X;"),
        ("engine/a.rs", "use kforge::cli::X;"),
    ];
    for (file, text) in wrong {
        assert_eq!(planted(file, text).len(), 1, "{file}: {text}: {:?}", planted(file, text));
    }
}

#[test]
fn roots_that_could_hide_an_edge_are_refused() {
    for text in ["use crate::*;", "use crate as root;", "use super::super::*;", "use crate::{self as root};"] {
        assert_eq!(planted("model/a.rs", text).len(), 1, "{text}: {:?}", planted("model/a.rs", text));
    }
}

#[test]
fn planted_impurities_are_found() {
    let wrong = [
        "use std::fs;",
        "use std::{collections::BTreeMap, fs::File};",
        "fn f() { std::env::var(\"X\"); }",
        "use std::process::{self, Command};",
        "use std::time::{Duration, SystemTime};",
        "fn f(t: &impl Clock<Instant>) {}",
        "use std::net::TcpStream;",
    ];
    for text in wrong {
        assert!(!planted("model/a.rs", text).is_empty(), "{text}");
        assert!(planted("engine/a.rs", text).is_empty(), "only pure rooms: {text}");
    }
}

#[test]
fn what_is_allowed_is_not_accused() {
    let right = [
        ("engine/a.rs", "use crate::{base::Y, model::{self, Z}};\nuse super::b;\nuse super::super::model;"),
        ("engine/a/b.rs", "use super::super::c; // crate::cli\n/* crate::cli /* nested */ crate::cli */"),
        ("engine/a.rs", "pub(crate) struct X; pub(super) struct Y; pub(in crate::engine) fn f() {}"),
        ("engine/a.rs", "const T: &str = \"use crate::cli;\"; const R: &str = r#\"\"crate::cli\"#;"),
        ("engine/a.rs", "mod tests { use super::super::b; use super::*; }"),
        ("engine/a.rs", "impl X { fn f(&self) { self.cli(); Self::g(); } }"),
        ("engine/a.rs", "struct X { kforge: String, std: u32 }"),
        ("model/a.rs", "use std::{collections::{BTreeMap, BTreeSet}, fmt, time::Duration};"),
        ("lib.rs", "pub mod base; use crate::cli::X;"),
        ("main.rs", "fn main() { kforge::cli::run() }"),
    ];
    for (file, text) in right {
        assert_eq!(planted(file, text), Vec::<String>::new(), "{file}: {text}");
    }
}
