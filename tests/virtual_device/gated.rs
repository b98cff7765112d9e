//! `kforge ci` on a device: a slowdown that pairs show, evidence that is missing, and devices that nobody has observed.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::compared::{commit, git, lab, machine, with_cpu, without};
use crate::lab::{Lab, Machine, SOURCE};

/// `kforge ci --base HEAD WORDS`: its document, and what it printed.
#[track_caller]
fn ci(lab: &Lab, words: &[&str], code: i32) -> (Value, String) {
    let words = [&["ci", "--base", "HEAD", "--offline"], words].concat();
    let output = lab.project.command(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let document: Value = serde_json::from_slice(&fs::read(lab.project.target().join("ci/ci.json")).unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/ci.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{document}: {wrong:?}");
    assert_eq!(document["exit"], code);
    (document, said)
}

/// The changes of the rows of the comparison.
fn changes(document: &Value) -> Vec<&str> {
    let rows = document["comparison"]["rows"].as_array().unwrap();
    rows.iter().map(|row| row["decision"]["change"].as_str().unwrap()).collect()
}

#[test]
fn a_slowdown_that_pairs_show_ends_with_102_and_one_within_the_margin_does_not() {
    let lab = lab(1030.0);
    let (document, said) = ci(&lab, &[], 102);
    assert_eq!((changes(&document), &document["conclusion"]), (vec!["slower"], &Value::from("slower")));
    assert!(said.contains("slower     p/k on h at big") && said.contains("slower than allowed"), "{said}");
    assert!(said.contains("; champions at a margin of 1 %: 1 slower (p/k on h at big)"), "{said}");
    let summary = fs::read_to_string(lab.project.target().join("ci/summary.md")).unwrap();
    let legend = "+ means that the head is slower than the base, - that it is faster";
    assert!(said.contains(legend) && summary.contains(legend), "{said}\n{summary}");
    assert!(
        summary.starts_with("## kforge ci: slower than allowed\n") && summary.contains("| **slower** | p/k |"),
        "{summary}"
    );
    assert_eq!(document["skipped"], serde_json::json!([]));
    let records = lab.records();
    assert_eq!(changes(&ci(&lab, &["--margin", "5%"], 0).0), ["same"]);
    // Pairs that were taken before decide without the device.
    lab.on(&without(1030.0));
    assert_eq!(changes(&ci(&lab, &[], 102).0), ["slower"]);
    assert_eq!(lab.records(), records);
}

#[test]
fn a_wrong_kernel_is_worse_than_a_slow_one() {
    let lab = lab(1100.0);
    lab.on(&machine(1100.0).first("block 64,", "ns = 1100.0\nerror = 1.0"));
    let (document, said) = ci(&lab, &[], 100);
    assert_eq!(document["conclusion"], "wrong");
    assert_eq!(document["comparison"]["wrong"][0]["kernel"], "k", "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn documents_name_files_and_lines_and_count_verdicts_as_the_screen_does() {
    // Each thread reads what another one writes, without a barrier between.
    let races = "{ __shared__ float s[64]; int i = blockIdx.x * blockDim.x + threadIdx.x; s[threadIdx.x] = i;\n\
                 if (i < n) y[i] = s[threadIdx.x ^ 1]; }";
    let lab = with_cpu(1000.0, &SOURCE.replace("{}", races));
    let (document, said) = ci(&lab, &[], 100);
    let folder = lab.project.target().join("ci");
    let mut checked = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("@{") && !text.contains("@pc"), "{}: {text}", path.display());
        checked += 1;
    }
    assert!(checked > 8 && !said.contains("@{"), "{said}");
    let because = document["comparison"]["wrong"][0]["because"].as_str().unwrap();
    assert!(because.contains("race") && because.contains("k.cu:2"), "{because}");
    for name in ["summary.md", "comparison.md"] {
        assert!(fs::read_to_string(folder.join(name)).unwrap().contains(because), "{name}");
    }
    for name in ["report.html", "comparison.html"] {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.contains("k.cu:2"), "{name}: {page}");
    }
    // The screen, the document and the summary count the same.
    let counts = ["pass", "fail", "unknown"].map(|kind| document["verdicts"][kind].as_u64().unwrap());
    let [pass, fail, unknown] = counts;
    assert!(pass > 0 && fail > 0, "{counts:?}");
    assert!(said.contains(&format!("their verdicts: {pass} pass, {fail} fail, {unknown} unknown")), "{said}");
    let summary = fs::read_to_string(folder.join("summary.md")).unwrap();
    let all: u64 = counts.iter().sum();
    assert!(
        summary.contains(&format!("{all} verdicts of steps: {pass} pass, {fail} fail, {unknown} unknown\n")),
        "{summary}"
    );
    let output = lab.project.command(&["report", "--format", "summary", "--offline"]).output().unwrap();
    let again = String::from_utf8(output.stdout).unwrap();
    assert!(again.contains(&format!("{all} verdicts of steps: {pass} pass, ")) && !again.contains("@{"), "{again}");
}

#[test]
fn a_change_whose_evidence_is_missing_ends_with_103_and_is_undecided() {
    let lab = lab(1030.0);
    git(&lab, &["stash", "--quiet"]);
    lab.built(&[]);
    git(&lab, &["stash", "pop", "--quiet"]);
    lab.on(&without(1030.0));
    let (document, said) = ci(&lab, &[], 103);
    assert_eq!((changes(&document), &document["conclusion"]), (vec!["unknown"], &Value::from("no-evidence")));
    let missing: Vec<&str> =
        document["missing_evidence"].as_array().unwrap().iter().map(|of| of["step"].as_str().unwrap()).collect();
    assert!(missing.contains(&"p/k/V=1/h/big/bench"), "{missing:?}");
    let summary = fs::read_to_string(lab.project.target().join("ci/summary.md")).unwrap();
    assert!(summary.starts_with("## kforge ci: evidence is missing or undecided\n"), "{summary}");
    assert!(
        summary.contains("\n### Steps without evidence\n\n* no ") && summary.contains(" steps, the first `p/k/"),
        "{summary}"
    );
    assert!(said.contains("evidence is missing or undecided"), "{said}");
    let (document, said) = ci(&lab, &["--allow-missing-evidence"], 0);
    assert_eq!(document["missing_evidence"].as_array().unwrap().len(), missing.len());
    assert!(said.contains("have no evidence:\n") && said.contains(" steps: no device"), "{said}");
    assert!(ci(&lab, &["--allow-missing-evidence", "-v"], 0).1.contains("p/k/V=1/h/big/bench: "));
    // Pairs of a device under hardware slowdown decide nothing.
    lab.on(&machine(1030.0).first("block 64,", "ns = 1030.0\nthrottled = 1.0"));
    assert_ne!(changes(&ci(&lab, &[], 103).0), ["same"]);
}

/// A machine on which V=2 takes 1000 with blocks of 32 and `ns` with blocks of 64, and the other variants 1200 and 1300.
fn where_v2_leads(ns: f64) -> Machine {
    let machine = Machine { noise: 0.004, ..Machine::default() };
    let machine = machine.rule("^k<2>.*block 64,", &format!("ns = {ns:.1}")).rule("^k<2>", "ns = 1000.0");
    machine.rule("block 64,", "ns = 1300.0").rule("", "ns = 1200.0")
}

/// A workspace whose committed kernel has these variants and blocks of 32; V=2 leads. What is not committed has blocks of 64. On `machine`, it was built with the
/// variants of `before` and has those of `after` now. There is no device any more.
fn with_blocks_of_64(machine: &Machine, (before, after): (&str, &str), verified: bool) -> Lab {
    let lab = Lab::new(machine).manifest("[1, 2, 4]", after);
    git(&lab, &["init", "--quiet"]);
    commit(&lab, "first");
    lab.built(&[]);
    let lab = lab.manifest("block = [\"32\"]", "block = [\"64\"]").manifest(after, before);
    lab.built(&[]);
    let lab = lab.manifest(before, after);
    if verified {
        assert!(lab.project.command(&["verify", "--offline"]).output().unwrap().status.success());
    }
    lab.on(&Machine { device: None, ..machine.clone() });
    lab
}

/// The champions of the head and of the base at the first shape, the decision, and its reason.
#[track_caller]
fn first_row(document: &Value) -> [&str; 4] {
    let row = &document["comparison"]["rows"][0];
    [&row["head"], &row["base"], &row["decision"]["change"], &row["decision"]["because"]].map(|of| of.as_str().unwrap())
}

/// Why a slower champion is undecided.
const MAY_BE_FASTER: &str = "; the base's champion `V=2` has no evidence in the head that counts, and may be faster";

#[test]
fn a_slower_champion_is_undecided_while_the_base_s_has_no_evidence_in_the_head() {
    let machine = where_v2_leads(1000.0);
    let lab = with_blocks_of_64(&machine, ("[1]", "[1, 2, 4]"), false);
    let (document, said) = ci(&lab, &[], 103);
    let [head, base, change, because] = first_row(&document);
    assert_eq!((head, base, change), ("V=1", "V=2", "undecided"), "{document}");
    assert!(because.ends_with(MAY_BE_FASTER), "{because}");
    assert_eq!(document["conclusion"], "no-evidence");
    assert!(said.contains("undecided  p/k on h at big") && said.contains(MAY_BE_FASTER), "{said}");
    assert_eq!(changes(&ci(&lab, &["--allow-missing-evidence"], 0).0), ["undecided"]);
    lab.on(&machine);
    assert_eq!(changes(&ci(&lab, &[], 0).0), ["same"]);
}

#[test]
fn missing_evidence_of_other_variants_and_of_methods_hides_no_slower_champion() {
    let lab = with_blocks_of_64(&where_v2_leads(1400.0), ("[1, 2]", "[1, 2, 4]"), false);
    let of_other = ci(&lab, &["--allow-missing-evidence"], 102).0;
    assert_eq!(first_row(&of_other)[..3], ["V=1", "V=2", "slower"], "{of_other}");
    // V=2 leads in both states. A method adds a variant of that name without it, which nobody has verified.
    let lab = with_blocks_of_64(&where_v2_leads(1100.0), ("[1, 2]", "[1, 2, 4]"), false);
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let method = "[kernel.k.methods.\"memory.vectorized_access\"]\noff = { flags = [\"-DSLOW\"] }\n";
    lab.project.write("kernel.toml", &format!("{manifest}{method}"));
    let (of_itself, said) = ci(&lab, &["--allow-missing-evidence"], 102);
    assert_eq!(first_row(&of_itself)[..3], ["V=2", "V=2", "slower"], "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn times_of_few_samples_alone_and_shapes_of_other_classes_count_as_they_should() {
    // Everything is verified, but V=2 was not timed with few samples.
    let all = ["[1, 3, 4, 5, 6, 7, 8, 9, 10]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"];
    let lab = with_blocks_of_64(&where_v2_leads(1000.0), (all[0], all[1]), true);
    let document = ci(&lab, &[], 103).0;
    let [head, base, change, because] = first_row(&document);
    assert_eq!((head, base, change), ("V=1", "V=2", "undecided"), "{document}");
    assert!(because.ends_with(MAY_BE_FASTER), "{because}");
    // At `big` everything is known. At another shape nothing is, and it has a champion of its own.
    let lab = with_blocks_of_64(&where_v2_leads(1400.0), ("[1, 2]", "[1, 2, 4]"), false);
    let lab = lab.manifest("shapes.big", "shapes.zoo = { n = 200, role = \"bench\" }\nshapes.big");
    let lab = lab.manifest("tune.V", "select = { per = \"shape\" }\ntune.V");
    let document = ci(&lab, &["--allow-missing-evidence"], 102).0;
    assert_eq!(first_row(&document)[..3], ["V=1", "V=2", "slower"], "{document}");
}

#[test]
fn a_device_that_nobody_has_observed_is_skipped_by_name() {
    let lab = lab(1030.0);
    lab.on(&without(1030.0));
    let (document, said) = ci(&lab, &[], 0);
    let skipped = serde_json::json!([{ "package": "p", "target": "h", "arch": "sm_90a", "device": null }]);
    assert_eq!((&document["skipped"], &document["comparison"]), (&skipped, &Value::Null));
    assert!(said.contains("`h` of `p` is skipped: there is no observation of a device of it (sm_90a)"), "{said}");
    assert_eq!(document["missing_evidence"], serde_json::json!([]));
    // One of another product does not help a target that names its own.
    let lab = lab.manifest("arch = \"sm_90a\"", "arch = \"sm_90a\"\ndevice = \"Other\"");
    lab.on(&machine(1030.0));
    assert_eq!(ci(&lab, &[], 0).0["skipped"][0]["device"], "Other");
}

#[test]
fn an_unaffected_kernel_without_evidence_fails_nothing() {
    let lab = lab(1000.0).manifest("block = [\"64\"]", "block = [\"32\"]");
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let kernel = &manifest[manifest.find("[kernel.k]").unwrap()..];
    let other = kernel.replace("kernel.k", "kernel.other").replace("\"32\"", "\"96\"");
    lab.project.write("kernel.toml", &format!("{manifest}\n{other}"));
    commit(&lab, "two kernels");
    let lab = lab.manifest("block = [\"32\"]", "block = [\"64\"]");
    assert_eq!(changes(&ci(&lab, &[], 0).0), ["same"]);
    lab.on(&without(1000.0));
    let (document, said) = ci(&lab, &[], 0);
    assert_eq!((changes(&document), &document["affected"]["unaffected"]), (vec!["same"], &Value::from(1)));
    assert!(!document["steps"].to_string().contains("p/other") && !said.contains("p/other"), "{said}");
    lab.project.build(&["--require-evidence"]).expect(103).says("p/other/");
}

#[test]
fn a_base_that_cannot_be_built_leaves_its_champions_unknown() {
    let lab = lab(1000.0).manifest("block = [\"64\"]", "block = [\"32\"]");
    // The stub compiler reads no other encoding.
    fs::write(lab.project.root().join("k.cu"), [SOURCE.as_bytes(), b"// caf\xe9\n"].concat()).unwrap();
    commit(&lab, "not UTF-8");
    lab.project.write("k.cu", SOURCE);
    let (document, said) = ci(&lab, &[], 103);
    assert_eq!((&document["comparison"], &document["missing_evidence"]), (&Value::Null, &serde_json::json!([])));
    assert!(document["not_compared"].as_str().unwrap().ends_with(" could not be built"), "{document}");
    assert!(said.contains("champions are not compared: HEAD ("), "{said}");
    ci(&lab, &["--allow-missing-evidence"], 0);
    // What is broken in the change itself is not built.
    git(&lab, &["checkout", "--quiet", "."]);
    lab.project.edit("kernel.toml", "block = [\"32\"]", "block = [\"64\"]");
    assert_eq!(ci(&lab, &[], 101).0["conclusion"], "not-built");
}

#[test]
fn without_a_base_everything_is_built_and_nothing_compared() {
    let lab = lab(1000.0);
    let run = |code| {
        let output = lab.project.command(&["ci", "--offline"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value =
            serde_json::from_slice(&fs::read(lab.project.target().join("ci/ci.json")).unwrap()).unwrap();
        document
    };
    lab.on(&without(1000.0));
    let document = run(0);
    assert_eq!(document["skipped"][0]["target"], "h");
    assert_eq!([&document["base"], &document["affected"], &document["comparison"]], [&Value::Null; 3]);
    lab.on(&machine(1000.0));
    let document = run(0);
    assert_eq!(document["skipped"], serde_json::json!([]));
    assert!(document["steps"].to_string().contains("p/k/V=1/h/big/bench"), "{document}");
    // A device was observed, but not with this version of the kernel.
    lab.on(&without(1000.0));
    lab.project.edit("kernel.toml", "block = [\"64\"]", "block = [\"96\"]");
    assert_eq!(run(103)["conclusion"], "no-evidence");
}

#[test]
fn evidence_and_declarations_that_only_later_steps_read_touch_their_kernel() {
    let lab = lab(1000.0);
    lab.built(&[]);
    commit(&lab, "blocks of 64");
    let affected = || -> Value {
        let output = lab.project.command(&["affected", "HEAD", "--format", "json", "--offline"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let found = affected();
    assert_eq!((&found["reason"], &found["affected"]), (&"affected".into(), &serde_json::json!([])));
    let words = ["evidence", "export", "--offline", "--output", "evidence/h.kfe"];
    fs::create_dir_all(lab.project.root().join("evidence")).unwrap();
    assert!(lab.project.command(&words).output().unwrap().status.success());
    let found = affected();
    assert_eq!(found["affected"][0]["because"][0]["code"], "evidence", "{found}");
    assert_eq!(found["affected"][0]["targets"][0]["target"], "h");
    commit(&lab, "evidence");
    assert_eq!(affected()["affected"], serde_json::json!([]));
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let method = "[kernel.k.methods.\"memory.vectorized_access\"]\noff = { V = 1 }\nsass.any = ['LDG']\n";
    lab.project.write("kernel.toml", &format!("{manifest}\n{method}"));
    let found = affected();
    let because = serde_json::json!({ "code": "declared", "step": null, "steps": 0, "field": "kernel.k" });
    assert_eq!(found["affected"][0]["because"], serde_json::json!([because]));
}
