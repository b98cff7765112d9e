//! Checks the order of rooms within a package, and that pure rooms are pure. Cargo enforces the order of packages; a package's `clippy.toml` enforces that a
//! whole package is pure. `src/lib.rs` maps the code.
//!
//! Files are read as tokens, so comments and literals do not count. Every path is followed to its room: in a `use`, in a group or inline, and beginning with
//! `crate` or `super`. A path whose room is unknown (`use crate::*`) is refused, because it could hide a dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

mod errors;
mod implementation;
mod imports;
mod packages;
mod paths;
mod protocols;

use packages::{PACKAGES, Package, sources, src};
use paths::{mentions, tokens};

/// The pure rooms of packages that have other rooms too. `kforge-types` and `kforge-numerics` are entirely pure.
const PURE: [(&str, &str); 4] =
    [("project", "source"), ("pipeline", "plan"), ("pipeline", "optimize"), ("pipeline", "report")];

/// Parts of pure rooms that perform input and output: asking an agent is not a computation. The rest of their rooms is pure.
const WORLDLY: [&[&str]; 1] = [&["optimize", "agents", "ask"]];

/// Whether a module is pure.
fn is_pure(package: &Package, module: &[String]) -> bool {
    let worldly = |part: &&[&str]| module.len() >= part.len() && part.iter().zip(module).all(|(a, b)| a == b);
    let pure = |room: &String| PURE.contains(&(package.name, room.as_str()));
    module.first().is_some_and(pure) && !WORLDLY.iter().any(worldly)
}

/// What pure rooms never mention: modules of `std` by path, and clocks by name, however they are imported.
const IMPURE: [&str; 6] =
    ["std::fs", "std::env", "std::process", "std::net", "std::time::SystemTime", "std::time::Instant"];
const CLOCKS: [&str; 2] = ["SystemTime", "Instant"];

/// The rooms of a package in order, from its root; empty if the package is one room.
fn rooms(root: &str) -> Vec<String> {
    let tokens = tokens(root);
    tokens.windows(3).filter(|w| w[0].0 == "mod" && w[2].0 == ";").map(|w| w[1].0.clone()).collect()
}

/// The faults of a file, one per line. `file` is relative to the package's folder. A package without `rooms` has no order.
fn faults(package: &Package, file: &Path, text: &str, rooms: Option<&[String]>) -> Vec<String> {
    let module = paths::module(file);
    let mut out = vec![];
    let of = |room: Option<&String>| rooms.and_then(|rooms| rooms.iter().position(|r| Some(r) == room));
    let own = of(module.first());
    let place = |line: usize| format!("{}/{}:{line}", package.name, file.display());
    for (path, line) in mentions(text, &module) {
        if path[0] == "crate" && own.is_some() {
            match of(path.get(1)) {
                Some(room) if Some(room) > own => {
                    out.push(format!("{}: {} uses {}, which stands below it", place(line), module[0], path[1]));
                }
                Some(_) => {}
                None => out.push(format!("{}: the room of `{}` cannot be told", place(line), path.join("::"))),
            }
        }
        let text = path.join("::");
        let impure = |what: &str| text == what || text.starts_with(&format!("{what}::"));
        if is_pure(package, &module) && IMPURE.iter().any(|w| impure(w)) {
            out.push(format!("{}: {} is pure and mentions `{text}`", place(line), module[0]));
        }
    }
    if is_pure(package, &module) {
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

/// Every Rust file of a package, relative to its folder, with its text.
fn files(package: &Package) -> Vec<(std::path::PathBuf, String)> {
    let folder = package.folder();
    let read = |file: std::path::PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        (file.strip_prefix(&folder).unwrap().to_path_buf(), text)
    };
    sources(&folder).into_iter().map(read).collect()
}

#[test]
fn every_room_uses_only_rooms_above_its_own_and_pure_rooms_are_pure() {
    let mut wrong = vec![];
    for package in PACKAGES {
        let rooms = rooms(&fs::read_to_string(package.folder().join("lib.rs")).unwrap());
        let rooms = package.rooms.then_some(&rooms[..]);
        wrong.extend(files(package).iter().flat_map(|(file, text)| faults(package, file, text, rooms)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The manifests disable tests of examples in documentation, which would cost a pass over each package.
#[test]
fn no_documentation_holds_an_example_that_nobody_would_run() {
    for (package, (file, text)) in PACKAGES.iter().flat_map(|p| files(p).into_iter().map(move |f| (p, f))) {
        let docs = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
        });
        let fences = docs.map(str::trim).filter(|line| line.starts_with("```"));
        for begun in fences.step_by(2) {
            assert_eq!(begun, "```text", "{}/{}", package.name, file.display());
        }
    }
}

#[test]
fn every_folder_of_a_package_of_rooms_is_a_room_and_every_room_a_folder() {
    for package in PACKAGES.iter().filter(|package| package.rooms) {
        let root = fs::read_to_string(package.folder().join("lib.rs")).unwrap();
        let listed: BTreeSet<String> = rooms(&root).into_iter().collect();
        let folders = fs::read_dir(package.folder()).unwrap().map(Result::unwrap);
        let folders = folders.filter(|e| e.path().is_dir()).map(|e| e.file_name().to_string_lossy().into_owned());
        // Packages below this one, and folders without code, are not its rooms.
        let found: BTreeSet<String> =
            folders.filter(|f| !package.folder().join(f).join("Cargo.toml").is_file() && f != "templates").collect();
        assert_eq!(listed, found, "{}", package.name);
    }
    let exists = |(package, room): &(&str, &str)| src().join(package).join(room).is_dir();
    assert!(PURE.iter().all(exists));
}

/// A package with four rooms: `base`, `model`, `engine`, `cli`.
const FOUR: Package = Package { name: "pipeline", crate_name: "kforge_pipeline", rooms: true, parts: &[], apart: &[] };

/// The faults of a file in that package.
fn planted(file: &str, text: &str) -> Vec<String> {
    let rooms = rooms("//! pub mod other;\npub mod base;\nmod model;\npub mod engine;\npub mod cli;\n");
    assert_eq!(rooms, ["base", "model", "engine", "cli"]);
    faults(&FOUR, Path::new(file), text, Some(&rooms))
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
    let rooms = rooms("pub mod plan;\npub mod optimize;\npub mod step;\n");
    for text in wrong {
        let of = |file: &str| faults(&FOUR, Path::new(file), text, Some(&rooms));
        for (file, found) in [
            ("plan/a.rs", true),
            ("step/a.rs", false),
            ("optimize/agents/ask/a.rs", false),
            ("optimize/agents/asking.rs", true),
            ("optimize/a/ask/b.rs", true),
        ] {
            assert_eq!(!of(file).is_empty(), found, "{file}: {text}");
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
        ("engine/a.rs", "use kforge_foundation::base::Digest;"),
        ("model/a.rs", "use std::{collections::{BTreeMap, BTreeSet}, fmt, time::Duration};"),
        ("lib.rs", "pub mod base; use crate::cli::X;"),
    ];
    for (file, text) in right {
        assert_eq!(planted(file, text), Vec::<String>::new(), "{file}: {text}");
    }
}

/// Words for printing, arguments and exit codes, which only the command line may use.
const OF_THE_COMMAND_LINE: [&str; 7] = ["clap", "anstream", "indicatif", "Exit", "ExitCode", "println", "eprintln"];

#[test]
fn operations_know_no_command_line_and_no_command_uses_another() {
    let mut wrong = vec![];
    for path in sources(&src().join("ops")) {
        for (word, line) in tokens(&fs::read_to_string(&path).unwrap()) {
            if OF_THE_COMMAND_LINE.contains(&word.as_str()) {
                wrong.push(format!("{}:{line}: `{word}` is of the command line", path.display()));
            }
        }
    }
    let commands = src().join("cli/commands");
    let is_command = |name: &String| {
        let text = fs::read_to_string(commands.join(format!("{name}.rs")));
        text.is_ok_and(|text| text.contains("-> Ran"))
    };
    let files = sources(&commands).into_iter().filter(|path| !path.ends_with("commands/mod.rs"));
    for path in files {
        let module = paths::module(path.strip_prefix(src()).unwrap());
        for (used, line) in mentions(&fs::read_to_string(&path).unwrap(), &module) {
            let other = used.get(3).filter(|name| used[1..3] == module[..2] && **name != module[2] && is_command(name));
            wrong.extend(other.map(|name| format!("{}:{line}: uses the command `{name}`", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
