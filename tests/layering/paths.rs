//! Every path that a Rust file mentions, read as tokens. Knows Rust's syntax of paths; does not know which paths are allowed.

use std::path::Path;

/// The words and punctuation of a file, without comments, literals and lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<(String, usize)> {
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
            // A character, or a lifetime, which has no second quote after it.
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

/// The end of the raw string that begins at this position.
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

/// Paths that begin with these words, or with the name of a package, are followed.
const ROOTS: [&str; 5] = ["crate", "super", "self", "std", "core"];

/// A path that a file mentions, starting at `crate`, a package or `std`, and its line. A `*` or an alias of the root is kept as written.
pub(crate) type Mention = (Vec<String>, usize);

/// Every path of a file. `module` is the file's own path in the crate.
pub(crate) fn mentions(text: &str, module: &[String]) -> Vec<Mention> {
    let tokens = tokens(text);
    let mut found = vec![];
    let (mut scopes, mut braces): (Vec<(String, usize)>, usize) = (vec![], 0);
    let mut at = 0;
    while at < tokens.len() {
        let word = tokens[at].0.as_str();
        let before = at.checked_sub(1).map_or("", |i| tokens[i].0.as_str());
        match word {
            // `mod name {` opens a nested module, inside which `super` climbs one level less.
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
            "std" | "core" if tokens.get(at + 1).is_none_or(|t| t.0 != "::") => {}
            _ if word.starts_with("kforge_") && tokens.get(at + 1).is_none_or(|t| t.0 != "::") => {}
            _ if before != "::" && (ROOTS.contains(&word) || word.starts_with("kforge_")) => {
                let inside: Vec<String> = module.iter().cloned().chain(scopes.iter().map(|s| s.0.clone())).collect();
                // `pub(crate)` and `pub(super)` name nothing.
                let visibility = before == "(" && at >= 2 && tokens[at - 2].0 == "pub";
                // A braced group is parsed here, so that its braces are not counted as those of a scope.
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

/// Parses a path or a group of paths at `at` that continues `prefix`, and records each complete path. Returns the position after it.
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

/// Appends one part to a path. A part that climbs makes the path begin with `crate`.
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
        ("core", true) => parts.push("std".into()),
        _ => parts.push(word.into()),
    }
}

/// The module of a package's file.
pub(crate) fn module(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib" || p == "main") {
        parts.pop();
    }
    parts
}
