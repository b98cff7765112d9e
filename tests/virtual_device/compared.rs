//! The regression gate: present champions compared with those of a revision, a bundle or a binary; in pairs if there is a device, else by records.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::lab::{Lab, Machine, SOURCE};

/// A machine on which blocks of 32 threads take 1000, and blocks of 64 take `ns`.
pub(crate) fn machine(ns: f64) -> Machine {
    let machine = Machine { noise: 0.004, drift: 0.01, ..Machine::default() };
    machine.rule("block 64,", &format!("ns = {ns:.1}")).rule("block 32,", "ns = 1000.0").rule("", "ns = 1000.0")
}

pub(crate) fn without(ns: f64) -> Machine {
    Machine { device: None, ..machine(ns) }
}

/// A workspace under version control whose kernel has blocks of 32, with an uncommitted change to blocks of 64.
pub(crate) fn lab(ns: f64) -> Lab {
    let lab = Lab::new(&machine(ns)).manifest("[1, 2, 4]", "[1]");
    git(&lab, &["init", "--quiet"]);
    commit(&lab, "first");
    lab.manifest("block = [\"32\"]", "block = [\"64\"]")
}

#[track_caller]
pub(crate) fn git(lab: &Lab, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
    command.args(words).current_dir(lab.project.root()).env("HOME", lab.project.place());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn commit(lab: &Lab, message: &str) {
    git(lab, &["add", "--all"]);
    git(lab, &["commit", "--quiet", "-m", message]);
}

/// `kforge compare WORDS`.
struct Compared {
    output: Output,
}

impl Compared {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.output.status.code(), Some(code), "{}\n{}", self.out(), self.said());
        self
    }

    fn out(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        let all = self.out() + &self.said();
        assert!(all.contains(text), "no `{text}` in:\n{all}");
        self
    }
}

fn compare(lab: &Lab, words: &[&str]) -> Compared {
    let words = [&["compare"], words, &["--offline"]].concat();
    Compared { output: lab.project.command(&words).output().unwrap() }
}

/// A comparison as JSON.
#[track_caller]
fn document(lab: &Lab, words: &[&str]) -> Value {
    let compared = compare(lab, &[words, &["--message-format", "json"]].concat());
    let document: Value = serde_json::from_str(&compared.out()).unwrap_or_else(|e| panic!("{e}: {}", compared.said()));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/comparison.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap();
    assert!(schema.is_valid(&document), "{document}");
    document
}

/// The only row of a comparison as JSON.
#[track_caller]
fn row(lab: &Lab, words: &[&str]) -> Value {
    let document = document(lab, words);
    let [row] = &document["rows"].as_array().unwrap()[..] else { panic!("{document}") };
    row.clone()
}

fn change(row: &Value) -> &str {
    row["decision"]["change"].as_str().unwrap()
}

fn because(row: &Value) -> &str {
    row["decision"]["because"].as_str().unwrap()
}

fn export(lab: &Lab, name: &str) -> PathBuf {
    let path = lab.project.place().join(name);
    let words = ["evidence", "export", "--offline", "--output", path.to_str().unwrap()];
    let output = lab.project.command(&words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

fn laptop(lab: &Lab, name: &str, ns: f64) -> Lab {
    let other = lab.anew(name);
    other.on(&without(ns));
    other
}

#[test]
fn a_slowdown_beyond_the_margin_ends_with_102_and_nothing_of_the_repository_changes() {
    let lab = lab(1030.0);
    let status =
        || (git(&lab, &["status", "--porcelain"]), git(&lab, &["worktree", "list"]), git(&lab, &["stash", "list"]));
    let before = status();
    let said = compare(&lab, &["HEAD"]).expect(102).says("slower     p/k on h at big");
    let said = said.says(" at a margin of 1 %: 1 slower (p/k on h at big)\n");
    let legend =
        "+ means that the head is slower than the base, - that it is faster; brackets hold the interval of 95 %";
    assert_eq!(said.out().matches(legend).count(), 1, "{}", said.out());
    assert_eq!(status(), before);
    let left = fs::read_dir(lab.project.target()).unwrap().map(|e| e.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("compare-")), "the checkout is gone");
    let records = lab.records();
    let row = row(&lab, &["HEAD"]);
    assert_eq!((change(&row), lab.records()), ("slower", records), "what was measured is not measured again");
    let [low, high] = [0, 1].map(|end| row["decision"]["difference"][1][end].as_f64().unwrap());
    assert!(0.02 < low && low < high && high < 0.04, "{row}");
    compare(&lab, &["HEAD", "--html"]).expect(102).says("Wrote");
    let page = fs::read_to_string(lab.project.target().join("compare.html")).unwrap();
    assert!(page.contains("p/<wbr>k on h at big") && page.contains("\u{2715}</b> slower"), "{page}");
    assert!(because(&row).starts_with("in pairs on Virtual H (sm_90, driver 580)"), "{row}");
    compare(&lab, &["HEAD", "--margin", "5%"]).expect(0).says(" at a margin of 5 %: 1 same");
    compare(&lab, &["HEAD", "--margin", "0"]).expect(2);
    let markdown = compare(&lab, &["HEAD", "--message-format", "markdown"]).expect(102);
    assert!(markdown.out().starts_with("### kforge compare: 1 slower\n"), "{}", markdown.out());
    assert!(markdown.out().contains("| **slower** | p/k | h | big | V=1 | +"), "{}", markdown.out());
    // Without the device, records decide.
    lab.on(&without(1030.0));
    compare(&lab, &["HEAD", "--require-evidence"]).expect(102);
    lab.on(&machine(1030.0));
    compare(&lab, &["HEAD", "--remeasure"]).expect(102);
    assert!(lab.records() > records);
}

#[test]
fn what_pairs_do_not_decide_is_no_slowdown_and_no_evidence() {
    let lab = lab(2000.0);
    lab.on(&machine(2000.0).first("block 64,", "ns = 2000.0\nthrottled = 1.0"));
    compare(&lab, &["HEAD"]).expect(0).says("1 undecided").says("too few of the pairs");
    compare(&lab, &["HEAD", "--require-evidence"]).expect(103);
}

#[test]
fn two_revisions_are_compared_wherever_the_working_tree_stands() {
    let lab = lab(970.0);
    commit(&lab, "second");
    fs::write(lab.project.root().join("kernel.toml"), "not a manifest").unwrap();
    compare(&lab, &["HEAD~1", "HEAD"]).expect(101);
    git(&lab, &["checkout", "--quiet", "kernel.toml"]);
    let lab = lab.manifest("[1]", "[4]");
    let faster = row(&lab, &["HEAD~1", "HEAD"]);
    assert_eq!(change(&faster), "faster", "{faster}");
    compare(&lab, &["HEAD", "HEAD~1"]).expect(102);
    let same = row(&lab, &["HEAD", "HEAD"]);
    assert_eq!((change(&same), because(&same)), ("same", "the same machine code under the same launches"));
    compare(&lab, &["nowhere"]).expect(101).says("`nowhere` is neither a commit of the repository");
    compare(&lab, &["--", "--help"]).expect(101).says("not a revision");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_bundle_is_a_base_in_pairs_where_its_binary_is_and_by_its_times_where_not() {
    for (ns, apart) in [(1100.0, "slower"), (1030.0, "undecided")] {
        let lab = lab(ns);
        git(&lab, &["stash", "--quiet"]);
        lab.built(&[]);
        let base = export(&lab, "base.kfe");
        git(&lab, &["stash", "pop", "--quiet"]);
        lab.built(&[]);
        let head = export(&lab, "head.kfe");
        let base = base.to_str().unwrap();
        let laptop = laptop(&lab, "laptop", ns);
        let unknown = row(&laptop, &[base]);
        assert_eq!(change(&unknown), "unknown");
        assert!(because(&unknown).contains("no pairs: no device"), "{unknown}");
        compare(&laptop, &[base]).expect(0);
        compare(&laptop, &[base, "--require-evidence"]).expect(103);
        fs::create_dir(laptop.project.root().join("evidence")).unwrap();
        fs::copy(&head, laptop.project.root().join("evidence/head.kfe")).unwrap();
        let told = row(&laptop, &[base]);
        assert_eq!(change(&told), apart, "{told}");
        // Both bundles are claims.
        compare(&laptop, &[base, "--require-evidence"]).expect(103);
        let code = if apart == "slower" { 102 } else { 103 };
        compare(&laptop, &[base, "--require-evidence=claimed"]).expect(code);
        assert!(because(&told).starts_with("timed separately on Virtual H"), "{told}");
        // With the device, both variants are measured side by side.
        lab.on(&machine(ns));
        let told = row(&lab, &[base]);
        assert_eq!(change(&told), "slower", "{told}");
        assert!(because(&told).starts_with("in pairs on"), "{told}");
    }
}

#[test]
fn pairs_that_a_bundle_brings_decide_either_way_round() {
    // Both variants are nearly the best, so they were paired when one was selected.
    let times = Machine { noise: 0.002, ..Machine::with(&[(1, 1003.0), (2, 1000.0)]) };
    let lab = Lab::new(&times).manifest("[1, 2, 4]", "[1, 2]");
    lab.built(&[]);
    let base = export(&lab, "base.kfe");
    for (name, only) in [("one", "[1]"), ("two", "[2]")] {
        let laptop = lab.anew(name).manifest("[1, 2]", only);
        laptop.on(&Machine { device: None, ..times.clone() });
        let told = row(&laptop, &[base.to_str().unwrap()]);
        assert_eq!(change(&told), "same", "{told}");
    }
}

#[test]
fn a_stored_binary_is_a_base() {
    let lab = lab(1030.0);
    lab.built(&[]);
    let fields = lab.project.explain("p/k/V=1/h/big/bench")["fields"].clone();
    let fields = fields.as_array().unwrap();
    let digest = fields.iter().map(|f| f.to_string()).find(|f| f.contains("\"inputs.binary\"")).unwrap();
    let at = digest.find("blake3:").unwrap();
    let digest: String = digest[at..].chars().take_while(|c| *c != '"').collect();
    compare(&lab, &[&digest]).expect(0).says("the same machine code under the same launches");
    lab.project.edit("k.cu", "{}", "{ return; }");
    compare(&lab, &[&digest]).expect(0).says("V=1, was binary ").says("1 same");
    let nobody = kforge::base::Digest::of(b"nobody").to_string();
    compare(&lab, &[&nobody]).expect(101).says("is not in the store");
    compare(&lab, &["blake3:1"]).expect(101).says("is not a digest");
}

#[test]
fn what_is_in_one_only_is_listed_and_nothing_in_both_is_an_error() {
    let lab = lab(1000.0);
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &manifest.replace("[kernel.k]", "[kernel.other]"));
    let compared = compare(&lab, &["HEAD"]).expect(4).says("nothing was compared");
    assert!(compared.out().contains("added      p/other on h at big"), "{}", compared.out());
    assert!(compared.out().contains("removed    p/k on h at big"), "{}", compared.out());
    compare(&lab, &["HEAD", "--kernel", "other"]).expect(4);
    compare(&lab, &["HEAD", "--kernel", "k"]).expect(4).says("no kernel matches `k`");
    lab.project.write("kernel.toml", &manifest.replace("2 * x + 1", "3 * x"));
    let told = row(&lab, &["HEAD"]);
    assert_eq!(change(&told), "unknown");
    assert!(because(&told).starts_with("the operator or the shape changed"), "{told}");
    compare(&lab, &["HEAD", "--require-evidence"]).expect(103);
}

#[test]
fn a_wrong_kernel_is_worse_than_a_slow_one() {
    let lab = lab(1100.0);
    lab.on(&machine(1100.0).first("block 64,", "ns = 1100.0\nerror = 1.0"));
    let compared = compare(&lab, &["HEAD"]).expect(100).says("a kernel is wrong");
    assert!(compared.out().contains("no variant is its champion any more"), "{}", compared.out());
}

#[test]
#[ignore = "second tier: many builds"]
fn a_kernel_that_is_wrong_on_cpu_fails_the_comparison_of_its_times() {
    // The virtual device finds the kernel correct; when it really runs, it writes nothing.
    let lab = lab(1000.0).manifest("[targets.h]", "[targets.cpu]\n[targets.h]");
    let lab = lab.manifest("targets = [\"h\"]", "targets = [\"cpu\", \"h\"]");
    commit(&lab, "on cpu, too");
    compare(&lab, &["HEAD"])
        .expect(100)
        .says("was not written")
        .says("a kernel is wrong")
        .says("same       p/k on h at big");
    let elsewhere = compare(&lab, &["HEAD", "--target", "h"]).expect(0).says("1 same");
    assert!(!elsewhere.said().contains("not written"), "{}", elsewhere.said());
    assert_eq!(document(&lab, &["HEAD", "--target", "h"])["wrong"], serde_json::json!([]));
    // The document names the wrong kernel. A selection without timed targets reports it too.
    for words in [&["HEAD"][..], &["HEAD", "--target", "cpu"]] {
        let document = document(&lab, words);
        let [wrong] = &document["wrong"].as_array().unwrap()[..] else { panic!("{document}") };
        let about = ["package", "kernel", "operator", "target"].map(|name| wrong[name].clone());
        assert_eq!(Value::from(about.to_vec()), serde_json::json!(["p", "k", "twice", "cpu"]));
        let because = wrong["because"].as_str().unwrap();
        assert!(because.starts_with("`p/k/V=1/cpu/") && because.contains("not written"), "{because}");
    }
    let markdown = compare(&lab, &["HEAD", "--message-format", "markdown"]).expect(100).out();
    assert!(markdown.starts_with("### kforge compare: 1 same, 1 wrong\n"), "{markdown}");
    assert!(markdown.contains("\n`p/k` is wrong on `cpu`: `p/k/V=1/cpu/"), "{markdown}");
    compare(&lab, &["HEAD", "--target", "cpu"]).expect(100).says("was not written").says("a kernel is wrong");
    compare(&lab, &["HEAD", "HEAD", "--target", "cpu"]).expect(100).says("a kernel is wrong");
    lab.project.write("k.cu", &SOURCE.replace("{}", "{ __trap(); }"));
    let markdown = compare(&lab, &["HEAD", "--target", "cpu", "--message-format", "markdown"]).expect(100).out();
    assert!(markdown.contains("\n`p/k` has a variant that does not run on `cpu`: `p/k/V=1/cpu/"), "{markdown}");
    // Nothing that is not timed is compared, whether it is correct or not.
    lab.project.write(
        "k.cu",
        &SOURCE.replace("{}", "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }"),
    );
    compare(&lab, &["HEAD", "--target", "cpu"]).expect(4).says("the selection has no target on a device");
    lab.project.write("k.cu", &SOURCE.replace("{}", "{ nonsense; }"));
    compare(&lab, &["HEAD", "--target", "cpu"]).expect(101).says("could not be built for `cpu`");
}

/// The lab with its kernel for `cpu` too. The uncommitted kernel takes `ns`, and the committed one 1000.
pub(crate) fn with_cpu(ns: f64, source: &str) -> Lab {
    let lab = lab(ns).manifest("block = [\"64\"]", "block = [\"32\"]");
    let lab = lab.manifest("[targets.h]", "[targets.cpu]\n[targets.h]");
    let lab = lab.manifest("targets = [\"h\"]", "targets = [\"cpu\", \"h\"]");
    lab.project.write("k.cu", source);
    commit(&lab, "on cpu, too");
    lab.manifest("block = [\"32\"]", "block = [\"64\"]")
}

#[test]
#[ignore = "second tier: many builds"]
fn what_cannot_be_built_for_cpu_is_said_and_what_is_timed_is_compared_all_the_same() {
    // The stub compiler reads no source.
    let lab = with_cpu(1030.0, &SOURCE.replace("{}", "{ nonsense; }"));
    let why = "`p/k` could not be built for `cpu`: `p/k/V=1/cpu/compile` failed";
    let compared = compare(&lab, &["HEAD"]).expect(101).says(why);
    assert!(compared.out().contains("slower     p/k on h at big"), "{}", compared.out());
    assert!(compared.says("error: some kernels could not be built; the working tree").said().contains(": 1 slower"));
    let document = document(&lab, &["HEAD"]);
    assert_eq!(document["rows"][0]["decision"]["change"], "slower");
    let [unbuilt] = &document["unbuilt"].as_array().unwrap()[..] else { panic!("{document}") };
    let because = unbuilt["because"].as_str().unwrap();
    assert!(because.starts_with("`p/k/V=1/cpu/compile` failed: cannot compile `k.cu`"), "{because}");
    let about = ["package", "kernel", "target", "failed"].map(|name| unbuilt[name].clone());
    assert_eq!(Value::from(about.to_vec()), serde_json::json!(["p", "k", "cpu", true]));
    let markdown = compare(&lab, &["HEAD", "--message-format", "markdown"]).expect(101).out();
    assert!(markdown.starts_with("### kforge compare: 1 slower, 1 could not be built\n"), "{markdown}");
    assert!(markdown.ends_with(&format!("\n\n{why}: cannot compile `k.cu`\n")), "{markdown}");
    compare(&lab, &["HEAD", "--margin", "5%"]).expect(101).says("1 same");
    let elsewhere = compare(&lab, &["HEAD", "--target", "h"]).expect(102);
    assert!(!elsewhere.said().contains("built for"), "{}", elsewhere.said());
}

#[test]
fn a_machine_that_cannot_compile_for_cpu_has_found_nothing_against_who_is_compared() {
    let lab = with_cpu(1030.0, SOURCE);
    let project = lab.project.clone().var("KFORGE_TOOLCHAIN_CXX", "/nowhere/c++");
    let lab = Lab { project, ..lab };
    let why = "warning: `p/k` was not built for `cpu`: C++ compiler `/nowhere/c++` is not an executable file";
    compare(&lab, &["HEAD"]).expect(102).says(why).says("1 slower");
    compare(&lab, &["HEAD", "--margin", "5%"]).expect(0).says(why);
    assert_eq!(document(&lab, &["HEAD"])["unbuilt"][0]["failed"], false);
    let markdown = compare(&lab, &["HEAD", "--message-format", "markdown"]).out();
    assert!(markdown.starts_with("### kforge compare: 1 slower\n"), "{markdown}");
    assert!(markdown.contains(why.trim_start_matches("warning: ")), "{markdown}");
}

#[test]
#[ignore = "second tier: many builds"]
fn who_cannot_be_built_for_cpu_counts_before_who_is_wrong() {
    let lab = with_cpu(1030.0, SOURCE);
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let kernel = &manifest[manifest.find("[kernel.k]").unwrap()..];
    let other = kernel.replace("kernel.k", "kernel.other").replace("k.cu", "other.cu");
    lab.project.write("kernel.toml", &format!("{manifest}\n{other}"));
    lab.project.write("other.cu", &SOURCE.replace("{}", "{ nonsense; }"));
    let compared = compare(&lab, &["HEAD"]).expect(101).says("a kernel is wrong, and some kernels could not be built");
    let compared = compared.says("`p/other` could not be built");
    assert!(compared.out().contains("slower     p/k on h at big"), "{}", compared.out());
}

#[test]
fn what_cannot_be_built_for_a_device_leaves_nothing_to_compare() {
    let lab = lab(1000.0);
    // The stub compiler reads no other encoding.
    fs::write(lab.project.root().join("k.cu"), [SOURCE.as_bytes(), b"// caf\xe9\n"].concat()).unwrap();
    let compared = compare(&lab, &["HEAD"]).expect(101).says("it could not be built, so nothing was compared");
    assert_eq!(compared.out(), "");
}
