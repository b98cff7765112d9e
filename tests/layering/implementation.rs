//! kforge's own code enters the keys of exactly the steps that it executes: the parts that `parts.rs` lists for a step are all the code that the step uses, and
//! an edit of a file changes the implementation of exactly the steps that use it.
//!
//! A file is named by its path below `src`: `numerics/measure/judge.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use kforge::ops::implementation::parts;
use kforge::record::Platform;
use kforge::record::implementation::{Work, work};

use crate::imports::used;
use crate::packages::digest::{self, Part, Source};
use crate::packages::{PACKAGES, Package, src};

/// The sources, with edits.
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

    fn lock(&self) -> String {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
        self.lock.clone().unwrap_or_else(|| fs::read_to_string(lock).unwrap())
    }
}

/// A package of the edited sources.
struct Of<'a>(&'a Package, &'a Edited);

impl Source for Of<'_> {
    fn name(&self) -> String {
        self.0.crate_name.replace('_', "-")
    }

    fn files(&self) -> Vec<String> {
        let folder = self.0.folder();
        let walk = walkdir::WalkDir::new(&folder).sort_by_file_name().into_iter().map(Result::unwrap);
        let files = walk.filter(|e| e.file_type().is_file());
        files.map(|e| e.path().strip_prefix(&folder).unwrap().display().to_string()).collect()
    }

    fn read(&self, file: &str) -> Vec<u8> {
        let name = format!("{}/{file}", self.0.name);
        let edited = self.1.files.get(&name).map(|text| text.clone().into_bytes());
        edited.unwrap_or_else(|| fs::read(src().join(name)).unwrap())
    }

    fn lock(&self) -> String {
        self.1.lock()
    }

    /// Each text is parsed as Rust only once for all tests: there are hundreds of files, in some forty parts, for each edit.
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

/// Every part with its package.
fn all_parts() -> impl Iterator<Item = (&'static Package, &'static Part)> {
    static ALL: OnceLock<Vec<(&Package, Part)>> = OnceLock::new();
    let each = |package: &'static Package| {
        let parts = digest::each(package.parts, &Of(package, &Edited::default())).unwrap();
        parts.into_iter().map(move |part| (package, part))
    };
    ALL.get_or_init(|| PACKAGES.iter().flat_map(each).collect()).iter().map(|(package, part)| (*package, part))
}

/// The digest and size of the code in each part, by name.
type Digests = BTreeMap<&'static str, ([u8; 32], u64)>;

fn digests(edited: &Edited) -> Digests {
    all_parts().map(|(package, part)| (part.name, digest::of(part, &Of(package, edited)).unwrap())).collect()
}

/// The work that uses a part whose digest differs from that of the unedited sources.
fn changed(edited: &Edited) -> BTreeSet<String> {
    static PLAIN: OnceLock<Digests> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| digests(&Edited::default()));
    let now = digests(edited);
    let differs = |(.., parts): &&Work| parts.iter().any(|part| now[part] != plain[part]);
    work().iter().filter(differs).map(name).collect()
}

fn name((kind, platform, _): &Work) -> String {
    match platform {
        Platform::Any => kind.to_string(),
        Platform::Cpu => format!("{kind} cpu"),
        Platform::Device => format!("{kind} device"),
    }
}

/// The files that do this work, by their paths below `src`.
fn listed(work: &Work) -> BTreeSet<String> {
    let plain = Edited::default();
    let used = all_parts().filter(|(_, part)| work.2.contains(&part.name));
    used.flat_map(|(package, part)| {
        let files = digest::listed(part, &Of(package, &plain)).unwrap();
        files.into_iter().map(|file| format!("{}/{file}", package.name)).collect::<Vec<_>>()
    })
    .collect()
}

/// Whether a file is declared to be in no key.
fn is_apart(file: &str) -> bool {
    let (name, inside) = file.split_once('/').unwrap();
    let package = PACKAGES.iter().find(|package| package.name == name).unwrap();
    package.apart.iter().any(|(place, _)| digest::below(inside, place))
}

#[test]
fn what_is_compiled_in_is_the_digest_of_the_sources() {
    let compiled: Digests = parts().into_iter().map(|(name, hash, size)| (name, (hash, size))).collect();
    assert_eq!(compiled, digests(&Edited::default()));
}

#[test]
fn an_edit_is_another_implementation_of_the_steps_that_use_it_and_of_no_other() {
    let cases: [(&str, &[&str]); 28] = [
        ("pipeline/step/judge.rs", &["calibrate", "judge", "rate"]),
        ("pipeline/step/rate.rs", &["rate"]),
        ("numerics/measure/judge.rs", &["calibrate", "judge", "oracle", "rate", "verify cpu"]),
        ("numerics/measure/front.rs", &["calibrate", "judge", "oracle", "rate", "verify cpu"]),
        ("numerics/measure/select.rs", &["select"]),
        ("numerics/measure/stats.rs", &["attribute", "rate", "roofline", "search", "select"]),
        ("numerics/measure/search/walk.rs", &["search"]),
        ("types/model/limits.rs", &["compile device", "inspect device", "search"]),
        ("numerics/measure/signature.rs", &["match"]),
        ("numerics/measure/derived.rs", &["roofline"]),
        ("pipeline/optimize/round/choose.rs", &["round"]),
        ("pipeline/optimize/methods/trigger.rs", &["round"]),
        ("pipeline/optimize/methods/memory.toml", &["round"]),
        ("pipeline/optimize/round/branches.rs", &[]),
        ("numerics/reference/generate.rs", &["oracle", "verify cpu"]),
        ("numerics/reference/ops/softmax.rs", &["oracle", "verify cpu"]),
        ("harness/oracle/driver.py", &["oracle", "verify cpu"]),
        ("harness/oracle/reference.h", &["oracle", "verify cpu"]),
        ("worker/steps/verifier/buffers.rs", &["verify cpu"]),
        ("emulator/block.rs", &["verify cpu"]),
        ("emulator/compile.rs", &["compile cpu", "inspect cpu"]),
        ("emulator/inspect.rs", &["compile cpu", "inspect cpu"]),
        ("emulator/prelude.rs", &["compile cpu", "inspect cpu"]),
        ("cuda/nvrtc.rs", &["compile device", "inspect device"]),
        ("cuda/inspect.rs", &["compile device", "inspect device"]),
        ("cuda/fatbinary.rs", &["fatbin device"]),
        ("types/record/fatbin.rs", &["compile device", "inspect device"]),
        ("cuda/device/verify.rs", &[]),
    ];
    for (file, expected) in cases {
        let comment = if file.ends_with(".py") || file.ends_with(".toml") { "#" } else { "//" };
        let code = if file.ends_with(".rs") { "fn another() {}".to_string() } else { format!("{comment} another") };
        let expected: BTreeSet<String> = expected.iter().map(|w| w.to_string()).collect();
        assert_eq!(changed(&Edited::file(file, |text| format!("{text}\n{code}\n"))), expected, "{file}");
    }
    for file in ["pipeline/report/text.rs", "engine/journal.rs", "pipeline/plan/variants.rs"] {
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
        assert_eq!(changed(&Edited::file("numerics/measure/compare.rs", change)), BTreeSet::new());
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
    // The dependencies of matrixmultiply count too.
    assert_eq!(other("rawpointer"), set(&["oracle", "verify cpu"]));
    assert_eq!(other("regex-automata"), set(&["match"]));
    assert_eq!(other("clap"), set(&[]));
    assert_eq!(other("serde_json").len(), work().len());
}

/// Packages in which any code may affect a result. In other packages, only the code that steps use counts.
const WHOLE: [&str; 5] = ["numerics", "harness", "emulator", "cuda", "worker"];

#[test]
fn every_file_that_could_shape_a_result_is_listed_or_said_to_be_apart() {
    let listed: BTreeSet<String> = work().iter().flat_map(listed).collect();
    let plain = Edited::default();
    let mut missing = vec![];
    for package in PACKAGES {
        let files: Vec<String> = Of(package, &plain).files().into_iter().filter(|file| digest::counts(file)).collect();
        let shapes =
            |file: &String| WHOLE.contains(&package.name) || package.name == "pipeline" && digest::below(file, "step");
        let names = files.iter().filter(|file| shapes(file)).map(|file| format!("{}/{file}", package.name));
        missing.extend(names.filter(|name| !listed.contains(name) && !is_apart(name)));
        for (place, why) in package.apart {
            let exists = files.iter().any(|file| digest::below(file, place));
            assert!(!why.is_empty() && exists, "`{place}` of {} is not there", package.name);
        }
    }
    assert!(
        missing.is_empty(),
        "list these for the steps that they do, or say in `APART` why no key holds them: {missing:#?}"
    );
    let work = work();
    let used = |part: &Part| work.iter().any(|(.., parts)| parts.contains(&part.name));
    assert!(all_parts().all(|(_, part)| used(part)), "a part that no step uses");
}

#[test]
fn what_listed_code_uses_is_listed_with_it_or_apart() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = BTreeSet::new();
    let mut followed = 0;
    for work in &work() {
        let listed = listed(work);
        let mut open: VecDeque<&String> = listed.iter().filter(|f| f.ends_with(".rs")).collect();
        while let Some(file) = open.pop_front() {
            let used = uses.entry(file.clone()).or_insert_with(|| used(file));
            followed += used.len();
            for other in used.iter().filter(|f| !listed.contains(*f) && !is_apart(f)) {
                // A file that only declares the modules of a package or room computes nothing.
                if !other.ends_with("/mod.rs") && !other.ends_with("/lib.rs") {
                    wrong.insert(format!("{} uses `{other}` through `{file}`", name(work)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(followed > 1000, "{followed} edges were followed");
}

/// A package of empty files.
struct Few(&'static [&'static str]);

impl Source for Few {
    fn name(&self) -> String {
        "few".into()
    }

    fn files(&self) -> Vec<String> {
        self.0.iter().map(|file| file.to_string()).collect()
    }

    fn read(&self, _: &str) -> Vec<u8> {
        vec![]
    }

    fn lock(&self) -> String {
        String::new()
    }
}

#[test]
fn a_star_stands_for_each_file_and_each_folder() {
    let few = Few(&["kind/a.rs", "kind/a/documents.rs", "step/a.rs", "step/b/c.rs", "step/b/mod.rs", "step/mod.rs"]);
    let part = |name, files| Part { name, files, packages: &[] };
    let each = |parts: &[Part]| digest::each(parts, &few);
    let parts = [part("steps/*", &["step/*", "!step/mod.rs"]), part("kinds/*", &["kind/*/documents.rs"])];
    let found: Vec<(&str, Vec<String>)> = each(&parts)
        .unwrap()
        .iter()
        .map(|part| (part.name, digest::listed(part, &few).unwrap().into_iter().collect()))
        .collect();
    let of = |files: &[&str]| files.iter().map(|file| file.to_string()).collect::<Vec<_>>();
    let expected = [
        ("steps/a", of(&["step/a.rs"])),
        ("steps/b", of(&["step/b/c.rs", "step/b/mod.rs"])),
        ("kinds/a", of(&["kind/a/documents.rs"])),
    ];
    assert_eq!(found, expected);
    let twice = each(&[parts[0], part("steps/a", &["kind/a.rs"])]).unwrap_err();
    assert_eq!(twice, "two parts are named `steps/a`");
}
