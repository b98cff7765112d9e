//! Digests kforge's own code by what it does, for keys: see `src/record/implementation`. Knows files of this package; compiles nothing.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script speaks to cargo through its output and hears it through variables"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[path = "build/digest.rs"]
mod digest;
#[expect(unreachable_pub, reason = "it is public in the library")]
#[path = "src/record/implementation/table.rs"]
mod table;

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    for watched in ["build.rs", "build", "src", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    // A test starts many processes of an unoptimised kforge. Where it lies at a fixed place, the loader has a quarter of a million pointers less to set, each start.
    let is_gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if variable("PROFILE") == "debug" && is_gnu {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    let source = Tree(root, RefCell::default());
    let mut text = String::from(
        "/// Kind, what it is for, and the digest of what does it with its size.\nconst DIGESTS: &[(&str, &str, [u8; 32], u64)] = &[\n",
    );
    for (kind, on, _) in table::WORK {
        let (hash, size) = digest::of(kind, on, &source).unwrap_or_else(|e| panic!("{kind} on {on}: {e}"));
        text += &format!("    ({kind:?}, {on:?}, {hash:?}, {size}),\n");
    }
    text += "];\n";
    let out = PathBuf::from(variable("OUT_DIR")).join("implementation.rs");
    std::fs::write(&out, text).unwrap_or_else(|e| panic!("cannot write `{}`: {e}", out.display()));
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo does not say `{name}`"))
}

/// This package's files, and what of them is code as far as that was asked.
struct Tree(PathBuf, RefCell<BTreeMap<String, String>>);

impl digest::Source for Tree {
    fn files(&self) -> Vec<String> {
        let (root, mut open, mut files) = (self.0.join("src"), vec![self.0.join("src")], vec![]);
        while let Some(folder) = open.pop() {
            let entries =
                std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("cannot read `{}`: {e}", folder.display()));
            for path in entries.map(|e| e.map(|e| e.path())).map(|p| p.expect("a folder's entry can be read")) {
                match path.is_dir() {
                    true => open.push(path),
                    false => files.push(name(&path, &root)),
                }
            }
        }
        files.sort();
        files
    }

    fn read(&self, file: &str) -> Vec<u8> {
        let path = self.0.join("src").join(file);
        std::fs::read(&path).unwrap_or_else(|e| panic!("cannot read `{}`: {e}", path.display()))
    }

    fn lock(&self) -> String {
        std::fs::read_to_string(self.0.join("Cargo.lock")).unwrap_or_default()
    }

    fn code(&self, file: &str, bytes: &[u8]) -> Result<String, String> {
        if let Some(known) = self.1.borrow().get(file) {
            return Ok(known.clone());
        }
        let code = digest::code(&String::from_utf8_lossy(bytes))?;
        self.1.borrow_mut().insert(file.to_string(), code.clone());
        Ok(code)
    }
}

fn name(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
