//! kforge's own code enters the keys of exactly the steps that it does: what the table of [`kforge::record::implementation`] lists is all that they use, and an edit of
//! one file is another implementation for the steps that use it and for no other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use kforge::record::StepKind;
use kforge::record::implementation::{of, table};

use crate::paths::{Mention, mentions, module, src, tokens};

#[path = "../../build/digest.rs"]
mod digest;

use digest::Source;

/// The sources as they are, but for edits.
#[derive(Default)]
struct Edited {
    files: BTreeMap<String, String>,
    lock: Option<String>,
}

impl Edited {
    fn file(name: &str, change: impl Fn(&str) -> String) -> Self {
        let text = fs::read_to_string(src().join(name)).unwrap();
        let changed = change(&text);
        assert_ne!(changed, text, "{name}");
        Edited { files: [(name.to_string(), changed)].into(), lock: None }
    }
}

impl Source for Edited {
    fn files(&self) -> Vec<String> {
        let walk = walkdir::WalkDir::new(src()).sort_by_file_name().into_iter().map(Result::unwrap);
        let files = walk.filter(|e| e.file_type().is_file());
        files.map(|e| e.path().strip_prefix(src()).unwrap().display().to_string()).collect()
    }

    fn read(&self, file: &str) -> Vec<u8> {
        self.files.get(file).map_or_else(|| fs::read(src().join(file)).unwrap(), |text| text.clone().into_bytes())
    }

    fn lock(&self) -> String {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
        self.lock.clone().unwrap_or_else(|| fs::read_to_string(lock).unwrap())
    }

    /// Each text is read as Rust once for all tests: hundreds of files, for some twenty kinds of work, as often as there are edits.
    fn code(&self, file: &str, bytes: &[u8]) -> Result<String, String> {
        static KNOWN: Mutex<BTreeMap<(String, Vec<u8>), String>> = Mutex::new(BTreeMap::new());
        let key = (file.to_string(), bytes.to_vec());
        if let Some(known) = KNOWN.lock().unwrap().get(&key) {
            return Ok(known.clone());
        }
        let code = digest::code(&String::from_utf8_lossy(bytes))?;
        KNOWN.lock().unwrap().insert(key, code.clone());
        Ok(code)
    }
}

type Digests = Vec<Result<([u8; 32], u64), String>>;

fn digests(source: &Edited) -> Digests {
    table::WORK.iter().map(|(kind, on, _)| digest::of(kind, on, source)).collect()
}

/// The work whose digest differs from that of the sources as they are.
fn changed(edited: &Edited) -> BTreeSet<String> {
    static PLAIN: OnceLock<Digests> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| digests(&Edited::default()));
    let work = table::WORK.iter().zip(digests(edited)).zip(plain);
    work.filter(|((_, now), plain)| now != *plain).map(|(((kind, on, _), _), _)| name(kind, on)).collect()
}

fn name(kind: &str, on: &str) -> String {
    if on == "any" { kind.to_string() } else { format!("{kind} {on}") }
}

#[test]
fn what_is_compiled_in_is_the_digest_of_the_sources() {
    for (kind, on, _) in table::WORK {
        let (hash, size) = digest::of(kind, on, &Edited::default()).unwrap();
        let params = match *on {
            "any" => serde_json::json!({}),
            "cpu" => serde_json::json!({ "arch": "cpu" }),
            _ => serde_json::json!({ "arch": "sm_90a" }),
        };
        let compiled = of(kind.parse::<StepKind>().unwrap(), &params).unwrap();
        assert_eq!((*compiled.hash(), compiled.size()), (hash, size), "{kind} {on}");
    }
}

#[test]
fn an_edit_is_another_implementation_of_the_steps_that_use_it_and_of_no_other() {
    let cases: [(&str, &[&str]); 25] = [
        ("step/judge.rs", &["calibrate", "judge"]),
        ("measure/judge.rs", &["calibrate", "judge", "oracle", "verify cpu"]),
        ("measure/front.rs", &["calibrate", "judge", "oracle", "verify cpu"]),
        ("measure/select.rs", &["select"]),
        ("measure/stats.rs", &["attribute", "roofline", "search", "select"]),
        ("measure/search/walk.rs", &["search"]),
        ("model/limits.rs", &["compile device", "inspect device", "search"]),
        ("measure/signature.rs", &["match"]),
        ("measure/derived.rs", &["roofline"]),
        ("optimize/round/choose.rs", &["round"]),
        ("optimize/methods/trigger.rs", &["round"]),
        ("optimize/methods/memory.toml", &["round"]),
        ("optimize/round/branches.rs", &[]),
        ("reference/generate.rs", &["oracle", "verify cpu"]),
        ("reference/ops/softmax.rs", &["oracle", "verify cpu"]),
        ("worker/oracle/driver.py", &["oracle", "verify cpu"]),
        ("worker/oracle/reference.h", &["oracle", "verify cpu"]),
        ("worker/judge/buffers.rs", &["verify cpu"]),
        ("worker/emulator/block.rs", &["verify cpu"]),
        ("worker/emulator/build.rs", &["compile cpu", "inspect cpu"]),
        ("worker/emulator/inspect.rs", &["compile cpu", "inspect cpu"]),
        ("worker/emulator/prelude.rs", &["compile cpu", "inspect cpu"]),
        ("worker/cuda/nvrtc.rs", &["compile device", "inspect device"]),
        ("worker/cuda/inspect.rs", &["compile device", "inspect device"]),
        ("cli/console.rs", &[]),
    ];
    for (file, expected) in cases {
        let comment = if file.ends_with(".py") || file.ends_with(".toml") { "#" } else { "//" };
        let code = if file.ends_with(".rs") { "fn another() {}".to_string() } else { format!("{comment} another") };
        let expected: BTreeSet<String> = expected.iter().map(|w| w.to_string()).collect();
        assert_eq!(changed(&Edited::file(file, |text| format!("{text}\n{code}\n"))), expected, "{file}");
    }
    for file in ["report/text.rs", "cli/session/build.rs", "engine/journal.rs", "plan/variants.rs"] {
        let edited = Edited::file(file, |text| format!("{text}\nfn another() {{}}\n"));
        assert_eq!(changed(&edited), BTreeSet::new(), "{file}");
    }
}

#[test]
fn comments_documentation_and_unit_tests_are_no_code() {
    for change in [
        |text: &str| format!("{text}\n// another line\n"),
        |text: &str| text.replacen("pub fn ", "/// Documented otherwise.\npub fn ", 1),
        |text: &str| text.replacen("#[test]", "#[test]\nfn one_more() { assert!(true); }\n#[test]", 1),
    ] {
        assert_eq!(changed(&Edited::file("measure/compare.rs", change)), BTreeSet::new());
    }
}

#[test]
fn another_version_of_a_package_that_computes_is_another_implementation() {
    let lock = Edited::default().lock();
    let other = |package: &str| {
        let start = lock.find(&format!("name = \"{package}\"\n")).unwrap();
        let line = lock[start..].lines().nth(1).unwrap();
        let text = lock[..start].to_string() + &lock[start..].replacen(line, "version = \"99.0.0\"", 1);
        changed(&Edited { lock: Some(text), ..Edited::default() })
    };
    let set = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(other("libm"), set(&["oracle", "verify cpu"]));
    // What matrixmultiply needs counts with it.
    assert_eq!(other("rawpointer"), set(&["oracle", "verify cpu"]));
    assert_eq!(other("regex-automata"), set(&["match", "round"]));
    assert_eq!(other("clap"), set(&[]));
    assert_eq!(other("serde_json").len(), table::WORK.len());
}

#[test]
fn every_file_that_could_shape_a_result_is_listed_or_said_to_be_apart() {
    let source = Edited::default();
    let mut listed = BTreeSet::new();
    for (kind, on, _) in table::WORK {
        listed.extend(digest::listed(kind, on, &source).unwrap().0);
    }
    let apart = |file: &str| table::APART.iter().any(|(place, _)| digest::below(file, place));
    let rooms = ["reference", "measure", "worker", "step"];
    let missing: Vec<String> = source
        .files()
        .into_iter()
        .filter(|f| rooms.iter().any(|r| digest::below(f, r)) && digest::counts(f))
        .filter(|f| !listed.contains(f) && !apart(f))
        .collect();
    assert!(
        missing.is_empty(),
        "list these for the steps that they do, or say in `APART` why no key holds them: {missing:#?}"
    );
    for (place, why) in table::APART {
        assert!(!why.is_empty() && source.files().iter().any(|f| digest::below(f, place)), "`{place}` is not there");
    }
}

/// The file of a module, if the path is one.
fn file_of(path: &[String]) -> Option<String> {
    let joined = path.join("/");
    [format!("{joined}.rs"), format!("{joined}/mod.rs")].into_iter().find(|f| src().join(f).is_file())
}

/// Where the names of a module's `pub use` lead: `(name, path from the root)`.
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

/// The files in which what a path names is defined.
fn leads_to(path: &[String], depth: u8) -> Vec<String> {
    let Some((length, file)) = (1..=path.len()).rev().find_map(|n| file_of(&path[..n]).map(|f| (n, f))) else {
        return vec![];
    };
    let text = fs::read_to_string(src().join(&file)).unwrap();
    match path.get(length) {
        Some(name) if depth > 0 => {
            let through = exports(&text, &path[..length]).into_iter().find(|(n, _)| n == name);
            match through {
                Some((_, to)) if to[..] != path[..] => leads_to(&to, depth - 1),
                _ => vec![file],
            }
        }
        _ => vec![file],
    }
}

#[test]
fn what_listed_code_uses_is_listed_with_it_or_apart() {
    let source = Edited::default();
    let all: BTreeSet<String> = source.files().into_iter().collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = BTreeSet::new();
    for (kind, on, _) in table::WORK {
        let listed = digest::listed(kind, on, &source).unwrap().0;
        let mut open: VecDeque<&String> = listed.iter().filter(|f| f.ends_with(".rs")).collect();
        while let Some(file) = open.pop_front() {
            let used = uses.entry(file.clone()).or_insert_with(|| {
                let text = fs::read_to_string(src().join(file)).unwrap();
                // Unit tests stand at the end.
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                let paths: Vec<Mention> = mentions(code, &module(Path::new(file)));
                let own = paths.iter().filter(|(path, _)| path[0] == "crate");
                own.flat_map(|(path, _)| leads_to(&path[1..], 4)).filter(|f| all.contains(f)).collect()
            });
            let room = |f: &str| f.split('/').next().unwrap_or_default().to_string();
            for other in used.iter().filter(|f| !listed.contains(*f)) {
                let carried =
                    table::APART.iter().any(|(place, _)| digest::below(other, place) || room(other) == *place);
                if !carried {
                    wrong.insert(format!("{} uses `{other}` through `{file}`", name(kind, on)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
