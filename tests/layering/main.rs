//! The house's order, held: a room uses only rooms above its own in `src/lib.rs`, and pure rooms touch no file, clock, environment or process.
//!
//! Read as tokens, not as text: comments and literals say nothing. Every path is followed to its room, whether it stands in a `use`, in a group of one or inline,
//! and whether it begins with `crate` or climbs there by `super`. A path whose room cannot be told (`use crate::*`) is refused, because it could hide an edge.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

mod implementation;
mod paths;

use paths::{mentions, module, sources, src, tokens};

/// Rooms that decide and compute, and nothing else.
const PURE: [&str; 6] = ["model", "record", "measure", "plan", "optimize", "report"];

/// Parts of pure rooms that touch the world: asking an agent is no computation. All else of their rooms stays pure.
const WORLDLY: [&[&str]; 1] = [&["optimize", "agents", "ask"]];

/// Whether a module only decides and computes.
fn is_pure(module: &[String]) -> bool {
    let worldly = |part: &&[&str]| module.len() >= part.len() && part.iter().zip(module).all(|(a, b)| a == b);
    module.first().is_some_and(|room| PURE.contains(&room.as_str())) && !WORLDLY.iter().any(worldly)
}

/// What pure rooms never mention: modules of `std` by path, and clocks by name however they come in.
const IMPURE: [&str; 6] =
    ["std::fs", "std::env", "std::process", "std::net", "std::time::SystemTime", "std::time::Instant"];
const CLOCKS: [&str; 2] = ["SystemTime", "Instant"];

/// The rooms in their order, from the library's root.
fn rooms(root: &str) -> Vec<String> {
    let tokens = tokens(root);
    tokens.windows(3).filter(|w| w[0].0 == "mod" && w[2].0 == ";").map(|w| w[1].0.clone()).collect()
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
        if is_pure(&module) && IMPURE.iter().any(|w| impure(w)) {
            out.push(format!("{}: {} is pure and mentions `{text}`", place(line), module[0]));
        }
    }
    if is_pure(&module) {
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

/// `Cargo.toml` has no examples in documentation run, which would cost a pass over the crate each time.
#[test]
fn no_documentation_holds_an_example_that_nobody_would_run() {
    let mut files = vec![];
    sources(&src(), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let docs = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
        });
        let fences = docs.map(str::trim).filter(|line| line.starts_with("```"));
        for begun in fences.step_by(2) {
            assert_eq!(begun, "```text", "{}", file.display());
        }
    }
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
        for (file, found) in
            [("optimize/agents/ask/a.rs", false), ("optimize/agents/asking.rs", true), ("optimize/a/ask/b.rs", true)]
        {
            let rooms = rooms("pub mod base;\npub mod optimize;\n");
            assert_eq!(!faults(Path::new(file), text, &rooms).is_empty(), found, "{file}: {text}");
        }
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
