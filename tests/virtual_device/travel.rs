//! Evidence in bundles: a machine without a device shows the observations of another machine, imported or from a file in the repository; and damaged evidence
//! does not count.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use kforge::release::archive;
use serde_json::Value;

use crate::lab::{Lab, Machine, SOURCE, champion, steps};
use crate::project::Built;

const METHOD: &str = r#"
[kernel.k.methods."memory.vectorized_access"]
off = { V = 8 }
sass.any = ['LDG\.E\.128']
"#;

fn machine() -> Machine {
    let times = [(1, 1004.0), (2, 1000.0), (4, 1500.0), (8, 1300.0)];
    Machine { noise: 0.004, ..Machine::with(&times) }
}

fn without() -> Machine {
    Machine { device: None, ..machine() }
}

/// A kernel whose champion is decided by pairs, and whose method has an attribution.
fn lab() -> Lab {
    let lab = Lab::new(&machine());
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{METHOD}"));
    lab.project.write("k.cu", &format!("#pragma sass k<(1|2)> LDG.E.128 2\n{SOURCE}"));
    lab
}

/// Adds a kernel `j`.
fn with_another(lab: &Lab) {
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let (_, kernel) = manifest.split_once("[kernel.k]").unwrap();
    let kernel = kernel.replace(METHOD, "").replace("k.cu", "j.cu").replace("k<V>", "j<V>");
    lab.project.write("kernel.toml", &format!("{manifest}\n[kernel.j]{kernel}"));
    lab.project.write("j.cu", "template <int V> __global__ void j(const float *x, float *y, int n) {}\n");
    lab.on(&machine().rule("^j<", "ns = 900.0"));
}

/// Runs `kforge WORDS`, checks the exit code, and returns standard error.
#[track_caller]
fn run(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = output(lab, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

fn output(lab: &Lab, words: &[&str]) -> Output {
    lab.project.command(&[words, &["--offline"]].concat()).output().unwrap()
}

/// The path of a lab's bundle, outside its workspace.
fn place(lab: &Lab, name: &str) -> PathBuf {
    lab.project.place().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn export(lab: &Lab, name: &str) -> PathBuf {
    let path = place(lab, name);
    run(lab, &["evidence", "export", "--output", text(&path)], 0);
    path
}

/// A copy of the workspace with another home, on a machine without a device.
fn laptop(lab: &Lab, name: &str) -> Lab {
    let other = lab.anew(name);
    other.on(&without());
    other
}

/// The steps that asked a device, or could not.
fn open(built: &Built) -> Vec<String> {
    let kinds = ["verify", "bench", "pairs", "profile", "peaks"];
    let of = |kind: &&str| ["executed", "unavailable"].map(|o| steps(built, kind, o)).into_iter().flatten();
    kinds.iter().flat_map(of).collect()
}

/// The lines of `evidence list`.
fn listed(lab: &Lab, words: &[&str]) -> Vec<Value> {
    let words = [&["evidence", "list", "--message-format", "json"], words].concat();
    let output = output(lab, &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/holdings.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).unwrap();
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.iter().all(|line| schema.is_valid(line)), "{lines:?}");
    lines
}

#[test]
#[ignore = "second tier: many builds"]
fn an_imported_bundle_shows_a_clone_without_a_device_all_that_was_said() {
    let lab = lab();
    let first = lab.built(&[]);
    let bundle = export(&lab, "h.kfe");
    let laptop = laptop(&lab, "laptop");
    let refused = laptop.project.build(&["--require-evidence=claimed"]).expect(103);
    refused.says(" steps: no device").says(" more\n").says("-v lists every step");
    laptop.project.build(&["--require-evidence=claimed", "-v"]).expect(103).says("p/k/V=1/h/big/bench: no device");
    let said = run(&laptop, &["evidence", "import", text(&bundle)], 0);
    assert!(said.contains("Imported 20 records of Virtual H (sm_90, driver 580)"), "{said}");
    assert!(said.contains("only claimed"), "{said}");
    let built = laptop.built(&["--require-evidence=claimed"]);
    assert_eq!(open(&built), Vec::<String>::new());
    assert_eq!((built.keys(), champion(&built)), (first.keys(), champion(&first)));
    assert_eq!((laptop.project.report(), laptop.fates()), (lab.project.report(), lab.fates()));
    assert_eq!(laptop.fates()["memory.vectorized_access"].0, "effective");
    for step in built.finished().filter(|s| ["verify", "bench", "pairs", "profile"].iter().any(|k| s["kind"] == *k)) {
        assert_eq!((&step["outcome"], &step["cache"]), (&"fresh".into(), &"evidence".into()), "{step}");
        let evidence = &step["evidence"];
        assert_eq!((&evidence["origin"], &evidence["driver"]), (&"h.kfe".into(), &"580.1".into()), "{evidence}");
        assert_eq!(evidence["kforge"], env!("CARGO_PKG_VERSION"));
    }
    let said = run(&laptop, &["build"], 0);
    let line = said.lines().find(|l| l.contains("Reusing")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("16 observations of Virtual H (sm_90, driver 580) claimed by `h.kfe`"), "{line}");
    assert!(line.contains("days ago") || line.contains("in the future"), "{line}");
    // A second import adds nothing, and imported records are exported unchanged.
    let again = run(&laptop, &["evidence", "import", text(&bundle)], 0);
    assert!(again.contains("Imported 0 records") && again.contains("20 held already"), "{again}");
    assert_eq!(fs::read(export(&laptop, "again.kfe")).unwrap(), fs::read(&bundle).unwrap());
}

#[test]
#[ignore = "second tier: many builds"]
fn a_bundle_in_the_repository_answers_as_it_lies_there() {
    let lab = lab();
    let first = lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let name = "evidence/virtual-h.kfe";
    let bytes = fs::read(lab.project.root().join(name)).unwrap();
    let laptop = laptop(&lab, "laptop");
    let built = laptop.built(&["--require-evidence=claimed"]);
    assert_eq!((open(&built), built.keys()), (vec![], first.keys()));
    assert_eq!(laptop.fates(), lab.fates());
    let step = built.finished().find(|s| s["kind"] == "pairs").unwrap();
    assert_eq!((&step["cache"], &step["evidence"]["origin"]), (&"evidence".into(), &name.into()));
    assert_eq!(laptop.records(), 0, "nothing is imported");
    assert_eq!(fs::read(laptop.project.root().join(name)).unwrap(), bytes);
    let again = laptop.built(&["--require-evidence=claimed"]);
    assert_eq!((again.count("executed"), again.count("fresh")), (0, first.finished().count() as u64));
    // The file is read each time: a missing bundle does not answer.
    fs::rename(laptop.project.root().join(name), place(&lab, "away.kfe")).unwrap();
    let built = laptop.built(&[]);
    assert_eq!((champion(&built), steps(&built, "bench", "unavailable").len()), (("V=1".into(), true), 3));
    // On the device itself, the bundle in the repository answers as the home's own records do.
    lab.on(&machine());
    fs::remove_dir_all(lab.project.home().join("evidence")).unwrap();
    let built = lab.built(&[]);
    assert_eq!((built.count("executed"), built.keys()), (0, first.keys()));
}

/// The output of `kforge WORDS`.
#[track_caller]
fn printed(lab: &Lab, words: &[&str]) -> String {
    let output = output(lab, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_tree_says_of_each_step_what_a_build_would() {
    let lab = lab();
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    let verify = |lab: &Lab| -> String {
        let tree = printed(lab, &["tree"]);
        tree.lines().find(|l| l.contains("p/k/V=1/h/big/verify")).unwrap_or_else(|| panic!("{tree}")).to_string()
    };
    let said = verify(&laptop);
    assert!(said.contains("(unavailable unless its result is known: no device of architecture sm_90a here)"), "{said}");
    laptop.built(&["--require-evidence=claimed"]);
    let tree = printed(&laptop, &["tree"]);
    assert!(tree.contains("pairs") && !tree.contains("unavailable"), "{tree}");
    laptop.project.edit("k.cu", "{}", "{ return; }");
    laptop.built(&[]);
    let said = verify(&laptop);
    assert!(said.contains("(unavailable: no device of architecture sm_90a here, and no evidence from one)"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn what_evidence_answered_is_explained_as_such_and_after_an_edit_by_what_changed() {
    let lab = lab();
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    laptop.built(&["--require-evidence=claimed"]);
    for step in ["p/k/V=1/h/big/bench", "p/k/V=1/h/tiny/verify"] {
        let said = printed(&laptop, &["explain", step]);
        assert!(said.contains("it has not run here: its result came from evidence"), "{said}");
        assert!(!said.contains("last ran") && !said.contains("no result before"), "{said}");
        let said = printed(&lab, &["explain", step]);
        assert!(said.contains("it last ran because it had no result before"), "{said}");
    }
    laptop.project.edit("k.cu", "{}", "{ return; }");
    // Before the build, its binary does not exist yet; after the build, its binary is another. The file is named in both cases.
    let before = printed(&laptop, &["explain", "p/k/V=1/h/big/bench"]);
    laptop.built(&[]);
    let after = printed(&laptop, &["explain", "p/k/V=1/h/big/bench"]);
    assert!(before.contains("it waits for the binary"), "{before}");
    assert!(after.contains("because its binary changed"), "{after}");
    for said in [before, after] {
        assert!(said.contains("is unavailable: no device of architecture sm_90a here"), "{said}");
        assert!(said.contains("file `k.cu` changed"), "{said}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn after_an_edit_the_last_known_time_is_that_of_an_earlier_version() {
    let lab = lab();
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    let said = run(&laptop, &["build"], 0);
    assert!(said.contains(" us at big") && !said.contains("of an earlier version"), "{said}");
    laptop.project.edit("k.cu", "{}", "{ return; }");
    // The second build has nothing to do, and a further edit changes nothing about what was last known.
    let edited = [run(&laptop, &["build"], 0), run(&laptop, &["build"], 0)];
    laptop.project.edit("k.cu", "{ return; }", "{ return; ; }");
    for said in edited.into_iter().chain([run(&laptop, &["build"], 0), printed(&laptop, &["report"])]) {
        assert!(said.contains(" us at big of an earlier version"), "{said}");
    }
    let report: Value = serde_json::from_str(&printed(&laptop, &["report", "--format", "json"])).unwrap();
    let earlier = &report["packages"][0]["kernels"][0]["targets"][0]["earlier"];
    assert!(earlier["shape"] == "big" && earlier["ns"].as_f64().is_some_and(|ns| ns > 900.0), "{earlier}");
    laptop.project.edit("k.cu", "{ return; ; }", "{}");
    assert!(!run(&laptop, &["build"], 0).contains("of an earlier version"), "the first version has its time");
    // Evidence that is gone is not that of an earlier version.
    fs::remove_dir_all(laptop.project.root().join("evidence")).unwrap();
    let said = run(&laptop, &["build"], 0);
    assert!(!said.contains("of an earlier version") && !said.contains(" us at big"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn records_of_another_version_are_counted_where_a_build_ends() {
    let lab = lab();
    let first = lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    assert!(!run(&laptop, &["build"], 0).contains("other versions"));
    laptop.project.edit("k.cu", "{}", "{ return; }");
    let n = open(&laptop.built(&[])).len();
    assert!(n > 0 && n < first.finished().count());
    let line = format!("Unused `evidence/virtual-h.kfe` holds {n} records of other versions of these kernels");
    // A build that plans reports this once, and so does a build that finds nothing to do.
    for _ in 0..3 {
        let said = run(&laptop, &["build"], 0);
        assert_eq!(said.matches("other versions").count(), 1, "{said}");
        assert!(said.contains(&line), "{line}: {said}");
    }
    // Records in the home have no names. They are found by the earlier questions in this workspace's journal.
    let other = lab.anew("other");
    other.on(&without());
    let bundle = other.project.root().join("evidence/virtual-h.kfe");
    run(&other, &["evidence", "import", text(&bundle)], 0);
    fs::remove_file(&bundle).unwrap();
    other.built(&["--require-evidence=claimed"]);
    other.project.edit("k.cu", "{}", "{ return; }");
    let said = run(&other, &["build"], 0);
    assert!(said.contains(&line.replace("evidence/", "")), "{said}");
    // No record is reported for a new kernel, and a selection with all answers lacks nothing.
    with_another(&laptop);
    laptop.on(&without());
    assert!(run(&laptop, &["build"], 0).contains(&line));
    assert!(!run(&laptop, &["build", "--kernel", "j"], 0).contains("other versions"));
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_held_is_listed_by_the_names_of_bundles_until_it_is_known_what_is_asked() {
    let lab = lab();
    with_another(&lab);
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let records = archive::read(&lab.project.root().join("evidence/virtual-h.kfe")).unwrap().records().count();
    let laptop = laptop(&lab, "laptop");
    let kinds = |lines: Vec<Value>| lines.iter().map(|l| l["kind"].to_string()).collect::<Vec<_>>();
    assert_eq!(kinds(listed(&laptop, &[])), kinds(listed(&laptop, &["evidence/virtual-h.kfe"])));
    let said = run(&laptop, &["evidence", "list"], 0);
    assert!(said.contains(&format!("Found {records} records of evidence: ")), "{said}");
    assert!(said.contains("it is not known which records answer them"), "{said}");
    assert_eq!(
        printed(&laptop, &["evidence", "list"]),
        printed(&laptop, &["evidence", "list", "evidence/virtual-h.kfe"])
    );
    let of_j = listed(&laptop, &["--kernel", "j"]);
    assert!(of_j.iter().all(|l| l["steps"][0]["labels"]["kernel"] != "k") && of_j.len() < records, "{}", of_j.len());
    let said = run(&laptop, &["evidence", "list", "--kernel", "j"], 0);
    assert!(said.contains(&format!("; {} more belong to no known step", records - of_j.len())), "{said}");
    laptop.built(&[]);
    assert!(!run(&laptop, &["evidence", "list"], 0).contains("which records answer them"));
    assert_eq!(listed(&laptop, &[]).len(), records);
}

#[test]
fn evidence_of_a_binary_that_no_compiler_makes_again_is_of_another_binary() {
    let lab = lab();
    let source = fs::read_to_string(lab.project.root().join("k.cu")).unwrap();
    lab.project.write("k.cu", &format!("#pragma unlike\n{source}"));
    let first = lab.built(&[]);
    let bundle = export(&lab, "h.kfe");
    let laptop = laptop(&lab, "laptop");
    // Compiled here, the binary is a different one, without any evidence.
    let open_before = open(&laptop.built(&[]));
    assert!(!open_before.is_empty());
    assert_eq!(open(&laptop.built(&[])), open_before);
    // The bundle brings the binary along, but nobody whom this build trusts signed it, so it does not take the place of the compilation.
    run(&laptop, &["evidence", "import", text(&bundle)], 0);
    let built = laptop.project.build(&["--require-evidence=claimed"]).expect(103);
    assert_eq!(open(&built), open_before);
    assert_ne!(built.keys(), first.keys());
    let said = "evidence is of another binary than this compiler makes (claimed by `h.kfe`)";
    let of_binaries = built.finished().filter(|s| s["kind"] == "bench");
    for step in of_binaries.chain(built.finished().filter(|s| s["kind"] == "verify")) {
        assert!(step["outcome"]["unavailable"].as_str().unwrap().ends_with(said), "{step}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn an_edited_kernel_loses_its_own_evidence_and_no_other() {
    let lab = lab();
    with_another(&lab);
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    laptop.built(&["--require-evidence=claimed"]);
    laptop.project.edit("j.cu", "{}", "{ return; }");
    let built = laptop.built(&[]);
    let open = open(&built);
    assert_eq!(open.len(), 9, "six verifications and three benches: {open:?}");
    assert!(open.iter().all(|id| id.starts_with("p/j/")), "{open:?}");
    let refused = laptop.project.build(&["--require-evidence=claimed", "-v"]).expect(103);
    let lines = refused.stderr().lines().filter(|l| l.starts_with("  p/"));
    assert!(lines.clone().count() == 9 && lines.clone().all(|l| l.starts_with("  p/j/")), "{}", refused.stderr());
    laptop.project.build(&["--require-evidence=claimed", "--kernel", "k"]).expect(0);
}

#[test]
fn a_bundle_holds_what_the_selection_asks() {
    let lab = lab();
    assert!(run(&lab, &["evidence", "export"], 101).contains("run `kforge build` with the same selection"));
    with_another(&lab);
    lab.built(&[]);
    let of = |words: &[&str]| {
        let path = place(&lab, "some.kfe");
        run(&lab, &[&["evidence", "export", "-o", text(&path)], words].concat(), 0);
        archive::read(&path).unwrap()
    };
    let kernels = |words: &[&str]| -> Vec<String> {
        let bundle = of(words);
        let mut all: Vec<String> =
            bundle.questions.iter().flat_map(|q| &q.steps).filter_map(|s| s.labels.kernel.clone()).collect();
        all.sort();
        all.dedup();
        all
    };
    assert_eq!(kernels(&[]), ["j", "k"]);
    assert_eq!(kernels(&["--kernel", "j", "--target", "h", "-p", "p"]), ["j"]);
    assert_eq!(
        of(&["--kernel", "j"]).records().count(),
        6 + 2 + 3 + 2 + 1 + 1 + 3,
        "each is near the best, but for the best, which is confirmed and profiled; what the device does at most; and three binaries"
    );
    run(&lab, &["evidence", "export", "--kernel", "nothing"], 4);
    let laptop = laptop(&lab, "laptop");
    laptop.built(&[]);
    run(&laptop, &["evidence", "export"], 103);
    assert!(!laptop.project.root().join("evidence").exists());
}

#[test]
#[ignore = "second tier: many builds"]
fn records_of_one_question_are_all_kept_and_the_newest_answers() {
    let lab = lab();
    lab.built(&[]);
    let old = export(&lab, "old.kfe");
    lab.on(&Machine { day: 2, seed: 9, ..machine() });
    lab.built(&["--remeasure"]);
    let new = export(&lab, "new.kfe");
    let both = place(&lab, "both.kfe");
    run(&lab, &["evidence", "export", "--all", "--output", text(&both)], 0);
    let count = |path: &Path| archive::read(path).unwrap().records().count();
    assert_eq!((count(&old), count(&new), count(&both)), (20, 20, 36));
    // A binary is listed under the time of its first observation in the bundle.
    for (name, bundles, records) in [("a", vec![&old, &new], 40), ("b", vec![&new, &old], 40), ("c", vec![&both], 36)] {
        let laptop = laptop(&lab, name);
        let words = ["evidence", "import"].into_iter().chain(bundles.iter().map(|b| text(b)));
        run(&laptop, &words.collect::<Vec<_>>(), 0);
        assert_eq!(laptop.records(), records);
        let built = laptop.built(&["--require-evidence=claimed"]);
        let step = built.step("p/k/V=2/h/big/bench");
        assert_eq!(step["evidence"]["measured_at"], "2026-01-02T00:00:00Z", "{name}");
        assert_eq!(listed(&laptop, &[]).len(), records);
    }
}

#[test]
fn what_is_damaged_is_refused_whole_and_a_build_goes_on_without_it() {
    let lab = lab();
    lab.built(&[]);
    let good = export(&lab, "good.kfe");
    let bytes = fs::read(&good).unwrap();
    let bad = place(&lab, "bad.kfe");
    let laptop = laptop(&lab, "laptop");
    for damaged in [&bytes[..bytes.len() / 2], b"", b"evidence"] {
        fs::write(&bad, damaged).unwrap();
        // If one of several bundles is refused, the others are not imported either.
        let said = run(&laptop, &["evidence", "import", text(&good), text(&bad)], 101);
        assert!(said.contains("bad.kfe` is refused") && said.contains("damaged"), "{said}");
        assert_eq!(said.matches("error").count(), 1, "{said}");
        let held: Vec<_> = fs::read_dir(laptop.project.home()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(held, ["machine"], "nothing was even begun");
    }
    run(&laptop, &["evidence", "import", "nowhere.kfe"], 101);
    run(&laptop, &["evidence", "import"], 2);
    fs::create_dir(laptop.project.root().join("evidence")).unwrap();
    fs::copy(&bad, laptop.project.root().join("evidence/bad.kfe")).unwrap();
    laptop.project.build(&[]).expect(0).says("the bundle of evidence `evidence/bad.kfe`");
    fs::copy(&good, laptop.project.root().join("evidence/good.kfe")).unwrap();
    laptop.project.build(&["--require-evidence=claimed"]).expect(0).says("`evidence/bad.kfe`");
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_held_is_listed_by_who_asks_and_who_said_it() {
    let lab = lab();
    lab.built(&[]);
    let lines = listed(&lab, &[]);
    assert_eq!(lines.len(), 16);
    let of = |kind: &str| lines.iter().filter(|l| l["kind"] == kind).count();
    assert_eq!((of("verify"), of("bench"), of("pairs")), (9, 3, 2));
    assert!(lines.iter().all(|l| l["origin"] == "here" && l["provenance"]["device"]["product"] == "Virtual H"));
    assert!(lines.iter().all(|l| (l["steps"][0]["labels"]["kernel"] == "k") != (l["kind"] == "peaks")));
    run(&lab, &["evidence", "export"], 0);
    let laptop = laptop(&lab, "laptop");
    laptop.built(&[]);
    assert!(listed(&laptop, &[]).iter().all(|l| l["origin"] == "evidence/virtual-h.kfe"));
    let human = |words: &[&str]| {
        let output = output(&laptop, &[&["evidence", "list"], words].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let said = human(&[]);
    assert!(said.starts_with("p on h\n") && said.contains("\np/k on h\n"), "{said}");
    for kind in
        ["verify       9", "bench        3", "pairs        2", "profile      1", "peaks        1", "compile      4"]
    {
        let line = said.lines().find(|l| l.trim_start().starts_with(kind)).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains("Virtual H (sm_90, driver 580), driver 580.1"), "{line}");
        assert!(line.ends_with("claimed by `evidence/virtual-h.kfe`"), "{line}");
    }
    // A bundle can be listed from any path. Records that answer no question here are left out but counted.
    assert!(human(&["evidence/virtual-h.kfe"]).contains("p/k on h\n"));
    laptop.project.edit("k.cu", "{}", "{ return; }");
    laptop.built(&[]);
    assert_eq!(listed(&laptop, &[]).len(), 0);
    assert!(run(&laptop, &["evidence", "list"], 0).contains("20 more answer no question of this plan"));
    assert!(human(&["--all"]).starts_with("no step here asks for it\n"));
}

#[test]
fn a_bundle_is_as_its_schema_says() {
    let lab = lab();
    lab.built(&[]);
    let file = fs::File::open(export(&lab, "h.kfe")).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let document: Value = serde_json::from_reader(archive.by_name("evidence.json").unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/bundle.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap();
    let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((&document["format_version"], &document["signed"]), (&2.into(), &Value::Null));
    let [champion] = &document["champions"].as_array().unwrap()[..] else { panic!("{}", document["champions"]) };
    let words = ["package", "kernel", "types", "target", "shape", "variant"].map(|w| champion[w].as_str().unwrap());
    assert_eq!(words, ["p", "k", "", "h", "big", "V=1"]);
}

#[test]
fn an_observation_that_decides_nothing_is_no_evidence_where_that_is_required() {
    let lab = lab();
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let path = lab.project.root().join("evidence/virtual-h.kfe");
    let mut bundle = archive::read(&path).unwrap();
    // One verification in which no trial finished.
    let of_tiny = |q: &&mut kforge::release::bundle::Question| q.steps[0].id == "p/k/V=4/h/tiny/verify";
    let question = bundle.questions.iter_mut().find(of_tiny).unwrap();
    let observation = question.records[0].result.outputs.get_mut("observation").unwrap();
    let mut seen: Value = serde_json::from_slice(&bundle.contents[observation]).unwrap();
    seen["trials"] = serde_json::json!([]);
    let bytes = serde_json::to_vec(&seen).unwrap();
    let old = std::mem::replace(observation, kforge::base::Digest::of(&bytes));
    bundle.contents.insert(*observation, bytes);
    if !bundle.records().any(|r| r.result.outputs.values().any(|o| *o == old)) {
        bundle.contents.remove(&old);
    }
    fs::write(&path, archive::encode(&bundle).unwrap()).unwrap();
    let laptop = laptop(&lab, "laptop");
    laptop.project.build(&[]).expect(0);
    laptop.project.build(&["--require-evidence=claimed"]).expect(103).says("p/k/V=4/h/tiny/judge: ");
}
