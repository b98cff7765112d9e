//! The digest of the code that does a step, as the table has it. Knows tokens and names; files come through [`Source`], so that tests can edit them. Shared by the
//! build script and the tests.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::table;

/// Where files come from.
pub(crate) trait Source {
    /// Every file below `src`, by its name from there, in order.
    fn files(&self) -> Vec<String>;
    /// The bytes of one.
    fn read(&self, file: &str) -> Vec<u8>;
    /// The text of `Cargo.lock`; empty where there is none.
    fn lock(&self) -> String;

    /// What of a file's bytes is code: see [`code`]. Most files serve several kinds of work, so a source may keep what it was told.
    ///
    /// # Errors
    /// As [`code`].
    fn code(&self, _file: &str, bytes: &[u8]) -> Result<String, String> {
        code(&String::from_utf8_lossy(bytes))
    }
}

/// The digest of what does that work, and how many bytes were hashed.
///
/// # Errors
/// The table names a part, a file or a package that is not there, or a file is not Rust.
pub(crate) fn of(kind: &str, on: &str, source: &dyn Source) -> Result<([u8; 32], u64), String> {
    let (files, packages) = listed(kind, on, source)?;
    let mut encoded = Vec::new();
    let mut add = |bytes: &[u8]| {
        encoded.extend((bytes.len() as u64).to_le_bytes());
        encoded.extend(bytes);
    };
    for file in &files {
        let bytes = source.read(file);
        add(file.as_bytes());
        match file.ends_with(".rs") {
            true => add(source.code(file, &bytes).map_err(|e| format!("`{file}`: {e}"))?.as_bytes()),
            false => add(&bytes),
        }
    }
    locked(&packages, &source.lock())?.iter().for_each(|line| add(line.as_bytes()));
    Ok((*blake3::hash(&encoded).as_bytes(), encoded.len() as u64))
}

/// The files and packages of that work.
///
/// # Errors
/// As [`of`].
pub(crate) fn listed(
    kind: &str,
    on: &str,
    source: &dyn Source,
) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
    let all = source.files();
    let (mut files, mut packages) = (BTreeSet::new(), BTreeSet::new());
    let work = table::WORK.iter().find(|(k, o, _)| *k == kind && *o == on).ok_or("no such work")?;
    for name in work.2 {
        let part = table::PARTS.iter().find(|p| p.name == *name).ok_or_else(|| format!("no part `{name}`"))?;
        let (out, within): (Vec<&str>, Vec<&str>) = part.files.iter().partition(|f| f.starts_with('!'));
        let out: Vec<&str> = out.iter().map(|f| f.trim_start_matches('!')).collect();
        for place in &within {
            let found: Vec<&String> = all.iter().filter(|f| below(f, place) && counts(f)).collect();
            if found.is_empty() {
                return Err(format!("part `{name}` lists `{place}`, which is not there"));
            }
            files.extend(found.into_iter().filter(|f| !out.iter().any(|o| below(f, o))).cloned());
        }
        packages.extend(part.packages.iter().map(|p| p.to_string()));
    }
    Ok((files, packages))
}

/// Whether a file is that place, or lies below it.
pub(crate) fn below(file: &str, place: &str) -> bool {
    file == place || file.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a file is code at all: tests and what they read are not, nor is what enters keys as an input, which is listed as such.
pub(crate) fn counts(file: &str) -> bool {
    let test = |part: &str| matches!(part, "tests" | "fixtures" | "tests.rs") || part.ends_with("_tests.rs");
    let inputs = table::APART.iter().filter(|(_, why)| why.starts_with("enters as an input"));
    !file.split('/').any(test) && !inputs.into_iter().any(|(place, _)| below(file, place))
}

/// A file's tokens without comments, documentation and what only tests see.
///
/// # Errors
/// It is not Rust.
pub(crate) fn code(text: &str) -> Result<String, String> {
    let tokens: TokenStream = text.parse().map_err(|e| format!("it is not Rust: {e}"))?;
    Ok(strip(tokens).to_string())
}

fn strip(tokens: TokenStream) -> TokenStream {
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < all.len() {
        match attribute(&all[at..]) {
            Some((length, text)) if text.starts_with("doc") => at += length,
            Some((length, text)) if text == "cfg (test)" || text == "cfg(test)" => at = item(&all, at + length),
            _ => {
                out.push(match &all[at] {
                    TokenTree::Group(group) => {
                        TokenTree::Group(proc_macro2::Group::new(group.delimiter(), strip(group.stream())))
                    }
                    other => other.clone(),
                });
                at += 1;
            }
        }
    }
    out.into_iter().collect()
}

/// An attribute at the beginning of `tokens`: of how many tokens, and what stands in it.
fn attribute(tokens: &[TokenTree]) -> Option<(usize, String)> {
    let is = |tree: Option<&TokenTree>, c: char| matches!(tree, Some(TokenTree::Punct(p)) if p.as_char() == c);
    if !is(tokens.first(), '#') {
        return None;
    }
    let at = if is(tokens.get(1), '!') { 2 } else { 1 };
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((at + 1, group.stream().to_string()))
        }
        _ => None,
    }
}

/// Where the item that begins at `at` ends: with its block, or its semicolon.
fn item(all: &[TokenTree], mut at: usize) -> usize {
    while at < all.len() {
        match &all[at] {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at + 1,
            TokenTree::Punct(punct) if punct.as_char() == ';' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// A package of `Cargo.lock`.
struct Locked<'a> {
    version: &'a str,
    checksum: &'a str,
    needs: Vec<&'a str>,
}

/// Each of the packages and all that they need, with version and checksum, in order.
fn locked(packages: &BTreeSet<String>, lock: &str) -> Result<Vec<String>, String> {
    if lock.is_empty() {
        return Ok(vec![]);
    }
    let mut known: BTreeMap<&str, Vec<Locked<'_>>> = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let value = |name: &str| {
            let line = block.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'));
            line.unwrap_or_default()
        };
        let needs = block.split_once("dependencies = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
        let needs = needs.split('"').skip(1).step_by(2).collect();
        let package = Locked { version: value("version"), checksum: value("checksum"), needs };
        known.entry(value("name")).or_default().push(package);
    }
    let mut open: Vec<&str> = packages.iter().map(String::as_str).collect();
    let mut found = BTreeSet::new();
    while let Some(wanted) = open.pop() {
        let mut words = wanted.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        let all = known.get(name).ok_or_else(|| format!("`Cargo.lock` has no package `{name}`"))?;
        for package in all.iter().filter(|p| version.is_none_or(|v| v == p.version)) {
            if found.insert(format!("{name} {} {}", package.version, package.checksum)) {
                open.extend(&package.needs);
            }
        }
    }
    Ok(found.into_iter().collect())
}
