//! The build script of every package whose code does steps: it computes the digests of that code, which enter keys. The `build.rs` of a package is a link to
//! this file, so that the package builds by itself; its `parts.rs` says what is digested. See `kforge_types::record::implementation`.
//!
//! It writes a list expression: the name of each part of the package, the digest of its code, and how many bytes were hashed. `tests/layering`
//! uses everything but `main` on edited sources.

#![cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "a build script writes to cargo on standard output and reads what cargo sets in variables"
    )
)]

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Code that belongs together; with a `*` in its name and files, one part for each name that the `*` stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Its name, with that of the package: `numerics/references`, or `pipeline/*`.
    pub(crate) name: &'static str,
    /// Files and folders of the package; a `!` precedes what is left out of them. A `*` stands for one file without its `.rs` or for one folder, as in `step/*`
    /// and `kind/*/documents.rs`.
    pub(crate) files: &'static [&'static str],
    /// Packages of `Cargo.lock` whose behaviour affects what this code produces. Their dependencies are included.
    pub(crate) packages: &'static [&'static str],
}

/// Where files come from.
pub(crate) trait Source {
    /// The package's name: `kforge-numerics`.
    fn name(&self) -> String;
    /// Every file of the package, by its name from the package's folder, in order.
    fn files(&self) -> Vec<String>;
    /// The bytes of one file.
    fn read(&self, file: &str) -> Vec<u8>;
    /// The text of `Cargo.lock`; empty where there is none.
    fn lock(&self) -> String;

    /// The part of a file's bytes that is code: see [`code`]. A source may cache the result.
    ///
    /// # Errors
    /// Those of [`code`].
    fn code(&self, _file: &str, bytes: &[u8]) -> Result<String, String> {
        code(&String::from_utf8_lossy(bytes))
    }
}

/// Every part, with each pattern `*` expanded. A pattern may match nothing.
///
/// # Errors
/// Two parts have the same name.
pub(crate) fn each(parts: &[Part], source: &dyn Source) -> Result<Vec<Part>, String> {
    let all = source.files();
    let mut out: Vec<Part> = vec![];
    for part in parts {
        let Some((before, after)) = part.name.split_once('*') else {
            out.push(*part);
            continue;
        };
        let (left_out, patterns): (Vec<&str>, Vec<&str>) = part.files.iter().partition(|f| f.starts_with('!'));
        let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in all.iter().filter(|f| counts(f) && !left_out.iter().any(|o| below(f, o.trim_start_matches('!')))) {
            for (name, place) in patterns.iter().filter_map(|pattern| stands_for(pattern, file)) {
                named.entry(name).or_default().insert(place);
            }
        }
        // A build script or a test ends soon, so leaking is harmless here.
        let kept = |text: String| -> &'static str { text.leak() };
        out.extend(named.into_iter().map(|(name, places)| Part {
            name: kept(format!("{before}{name}{after}")),
            files: places.into_iter().map(kept).collect::<Vec<_>>().leak(),
            packages: part.packages,
        }));
    }
    let mut names = BTreeSet::new();
    match out.iter().find(|part| !names.insert(part.name)) {
        Some(twice) => Err(format!("two parts are named `{}`", twice.name)),
        None => Ok(out),
    }
}

/// What the `*` of a pattern matches in a file's name, and the path that the pattern then stands for.
fn stands_for(pattern: &str, file: &str) -> Option<(String, String)> {
    let (before, after) = pattern.split_once('*')?;
    let rest = file.strip_prefix(before)?;
    let one = rest.split('/').next()?;
    let place = format!("{before}{one}{after}");
    below(file, &place).then(|| (one.trim_end_matches(".rs").to_string(), place))
}

/// The digest of a part, and how many bytes were hashed.
///
/// # Errors
/// The part lists a file or a package that does not exist, or a file is not Rust.
pub(crate) fn of(part: &Part, source: &dyn Source) -> Result<([u8; 32], u64), String> {
    let mut encoded = Vec::new();
    let mut add = |bytes: &[u8]| {
        encoded.extend((bytes.len() as u64).to_le_bytes());
        encoded.extend(bytes);
    };
    for file in &listed(part, source)? {
        let bytes = source.read(file);
        add(file.as_bytes());
        match file.ends_with(".rs") {
            true => add(source.code(file, &bytes).map_err(|e| format!("`{file}`: {e}"))?.as_bytes()),
            false => add(&bytes),
        }
    }
    locked(part.packages, &source.name(), &source.lock())?.iter().for_each(|line| add(line.as_bytes()));
    Ok((*blake3::hash(&encoded).as_bytes(), encoded.len() as u64))
}

/// The files of a part.
///
/// # Errors
/// The part lists a path that does not exist.
pub(crate) fn listed(part: &Part, source: &dyn Source) -> Result<BTreeSet<String>, String> {
    let all = source.files();
    let (out, within): (Vec<&str>, Vec<&str>) = part.files.iter().partition(|f| f.starts_with('!'));
    let out: Vec<&str> = out.iter().map(|f| f.trim_start_matches('!')).collect();
    let mut files = BTreeSet::new();
    for place in &within {
        let found: Vec<&String> = all.iter().filter(|f| below(f, place) && counts(f)).collect();
        if found.is_empty() {
            return Err(format!("part `{}` lists `{place}`, which does not exist", part.name));
        }
        files.extend(found.into_iter().filter(|f| !out.iter().any(|o| below(f, o))).cloned());
    }
    Ok(files)
}

/// Whether a file is that path, or lies below it; `.` is the package.
pub(crate) fn below(file: &str, place: &str) -> bool {
    place == "." || file == place || file.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}

/// What lies in a package's folder but is not its code. These files differ between a checkout and an unpacked crate.
const NO_CODE: [&str; 7] =
    [".cargo-ok", ".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "build.rs", "parts.rs"];

/// Whether a file is code. Tests, the files that tests read, and the files that cargo reads are not.
pub(crate) fn counts(file: &str) -> bool {
    let test =
        |part: &str| matches!(part, "tests" | "fixtures" | "tests.rs" | "testing.rs") || part.ends_with("_tests.rs");
    !NO_CODE.contains(&file) && !file.ends_with("clippy.toml") && !file.split('/').any(test)
}

/// A file's tokens without comments, documentation and test-only items.
///
/// # Errors
/// The text is not Rust.
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

/// An attribute at the beginning of `tokens`: its number of tokens, and its contents.
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

/// Where the item that begins at `at` ends: after its block, or after its semicolon.
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

/// Each package that `own` depends on, and their dependencies, with version and checksum, in order. The lockfile of a workspace may hold other
/// versions of them, which other packages use.
fn locked(packages: &[&str], own: &str, lock: &str) -> Result<Vec<String>, String> {
    if lock.is_empty() || packages.is_empty() {
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
    let own =
        known.get(own).and_then(|all| all.first()).ok_or_else(|| format!("`Cargo.lock` has no package `{own}`"))?;
    let needed = |name: &&str| {
        let needed = own.needs.iter().find(|needed| needed.split(' ').next() == Some(*name));
        needed.copied().ok_or_else(|| format!("the package does not depend on `{name}`"))
    };
    let mut open: Vec<&str> = packages.iter().map(needed).collect::<Result<_, _>>()?;
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

// Beside each `build.rs`, which is a link to this file. rustfmt would look for it beside this file.
#[cfg(not(test))]
#[rustfmt::skip]
mod parts;

#[cfg(not(test))]
fn main() {
    let root = std::path::PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let lock = root.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file());
    println!("cargo::rerun-if-changed=.");
    if let Some(lock) = &lock {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    let files = Files { root, lock };
    let parts = each(parts::PARTS, &files).unwrap_or_else(|e| panic!("{e}"));
    let digests = parts.iter().map(|part| {
        let (hash, size) = of(part, &files).unwrap_or_else(|e| panic!("{}: {e}", part.name));
        format!("    ({:?}, {hash:?}, {size}),\n", part.name)
    });
    let text = format!("&[\n{}]\n", digests.collect::<String>());
    let out = std::path::PathBuf::from(variable("OUT_DIR")).join("implementation.rs");
    std::fs::write(&out, text).unwrap_or_else(|e| panic!("cannot write `{}`: {e}", out.display()));
}

#[cfg(not(test))]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo does not set `{name}`"))
}

/// The package as it lies on the disk, and the `Cargo.lock` nearest to it: its own where it was unpacked from a registry, else the workspace's.
#[cfg(not(test))]
struct Files {
    root: std::path::PathBuf,
    lock: Option<std::path::PathBuf>,
}

#[cfg(not(test))]
impl Files {
    fn bytes(path: &std::path::Path) -> Vec<u8> {
        std::fs::read(path).unwrap_or_else(|e| panic!("cannot read `{}`: {e}", path.display()))
    }
}

#[cfg(not(test))]
impl Source for Files {
    fn name(&self) -> String {
        variable("CARGO_PKG_NAME")
    }

    fn files(&self) -> Vec<String> {
        let (mut open, mut files) = (vec![self.root.clone()], vec![]);
        while let Some(folder) = open.pop() {
            let entries =
                std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("cannot read `{}`: {e}", folder.display()));
            for path in entries
                .map(|e| e.map(|e| e.path()))
                .map(|p| p.unwrap_or_else(|e| panic!("cannot list a folder of the package: {e}")))
            {
                match path.is_dir() {
                    true => open.push(path),
                    false => files.push(path.strip_prefix(&self.root).unwrap_or(&path).display().to_string()),
                }
            }
        }
        files.sort();
        files
    }

    fn read(&self, file: &str) -> Vec<u8> {
        Files::bytes(&self.root.join(file))
    }

    fn lock(&self) -> String {
        self.lock.as_deref().map(|lock| String::from_utf8_lossy(&Files::bytes(lock)).into_owned()).unwrap_or_default()
    }
}
