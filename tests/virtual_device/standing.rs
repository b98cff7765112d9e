//! Evidence that nobody can plant: a bundle that makes a wrong source pass, forged records, records from the future, a home that another machine wrote, and
//! records that contradict each other. Each is refused by name. The bundles here are unsigned.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use kforge::base::Digest;
use kforge::engine::evidence::PROVENANCE;
use kforge::release::{Bundle, archive};
use serde_json::Value;

use crate::lab::{Lab, Machine, SOURCE, champion, steps};
use crate::project::{Built, ids};

pub(crate) const EVIL: &str = "template <int V> __global__ void k(const float *x, float *y, int n) { y[0] = 0; }\n";

pub(crate) fn machine() -> Machine {
    Machine::with(&[(1, 1004.0), (2, 1000.0), (4, 1500.0)])
}

/// The same machine, on which every kernel is wrong.
fn wrong() -> Machine {
    machine().first("^k<", "ns = 1000.0\nerror = 1.0")
}

fn without() -> Machine {
    Machine { device: None, ..machine() }
}

/// What `kforge build` in a lab would export, without a file in its workspace.
pub(crate) fn exported(lab: &Lab) -> Bundle {
    let path = lab.project.place().join("exported.kfe");
    let words = ["evidence", "export", "--offline", "--output", path.to_str().unwrap()];
    let output = lab.project.command(&words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    archive::read(&path).unwrap()
}

/// Puts a bundle into the repository of a lab.
pub(crate) fn bring(lab: &Lab, name: &str, bundle: &Bundle) {
    let folder = lab.project.root().join("evidence");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), archive::encode(bundle).unwrap()).unwrap();
}

/// A copy of the workspace with another home, on a machine without a device.
pub(crate) fn laptop(lab: &Lab, name: &str) -> Lab {
    let other = lab.anew(name);
    other.on(&without());
    other
}

/// Puts `bytes` in the place of an output of a record. A content that no record names any more is removed.
pub(crate) fn replace(bundle: &mut Bundle, question: usize, output: &str, bytes: Vec<u8>) {
    let digest = Digest::of(&bytes);
    bundle.contents.insert(digest, bytes);
    bundle.questions[question].records[0].result.outputs.insert(output.into(), digest);
    prune(bundle);
}

pub(crate) fn prune(bundle: &mut Bundle) {
    let named: Vec<Digest> = bundle.records().flat_map(|r| r.result.outputs.values().copied()).collect();
    bundle.contents.retain(|digest, _| named.contains(digest));
}

/// The place of the question of a step.
pub(crate) fn asks(bundle: &Bundle, step: &str) -> usize {
    bundle.questions.iter().position(|q| q.steps.iter().any(|s| s.id == step)).unwrap()
}

/// Says of every record that it was measured at another time.
pub(crate) fn dated(mut bundle: Bundle, time: &str) -> Bundle {
    for at in 0..bundle.questions.len() {
        bundle.questions[at].records.truncate(1);
        let record = &mut bundle.questions[at].records[0];
        record.provenance.measured_at = time.into();
        if record.result.outputs.contains_key(PROVENANCE) {
            let bytes = serde_json::to_vec(&record.provenance).unwrap();
            replace(&mut bundle, at, PROVENANCE, bytes);
        }
    }
    prune(&mut bundle);
    bundle
}

/// The verdicts of judgements, by kind.
pub(crate) fn verdicts(built: &Built) -> [usize; 3] {
    let judged: Vec<&Value> = built.finished().filter(|s| s["kind"] == "judge").map(|s| &s["verdict"]).collect();
    let unknown = |v: &&&Value| v["unknown"].is_object();
    let fail = |v: &&&Value| v["fail"].is_string();
    [
        judged.iter().filter(|v| **v == "pass").count(),
        judged.iter().filter(fail).count(),
        judged.iter().filter(unknown).count(),
    ]
}

/// The file with the machine's key.
pub(crate) fn key(lab: &Lab) -> PathBuf {
    lab.project.place().join("user/.local/state/kforge/machine-key")
}

/// A bundle that says that the honest binaries of a lab, and what was observed of them, came of a wrong source.
pub(crate) fn rekeyed(lab: &Lab) -> Bundle {
    let honest = exported(lab);
    // Whoever attacks compiles the wrong source, and says that the honest binaries came of it.
    let attacker = lab.anew("attacker");
    attacker.project.write("k.cu", EVIL);
    attacker.built(&[]);
    let mut bundle = exported(&attacker);
    bundle.questions.retain(|q| q.steps[0].id.ends_with("/compile"));
    bundle.contents.extend(honest.contents.clone());
    bundle.champions = honest.champions.clone();
    for at in 0..bundle.questions.len() {
        let step = bundle.questions[at].steps[0].id.clone();
        let record = &honest.questions[asks(&honest, &step)].records[0];
        bundle.questions[at].records[0].result = record.result.clone();
    }
    bundle.questions.extend(honest.questions.iter().filter(|q| !q.steps[0].id.ends_with("/compile")).cloned());
    prune(&mut bundle);
    bundle
}

#[test]
#[ignore = "second tier: many builds"]
fn a_bundle_does_not_decide_which_machine_code_a_source_is() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let bundle = rekeyed(&lab);
    let victim = laptop(&lab, "victim");
    victim.project.write("k.cu", EVIL);
    bring(&victim, "virtual-h.kfe", &bundle);
    let said = "evidence is of another binary than this compiler makes (claimed by `evidence/virtual-h.kfe`)";
    for words in [&["--require-evidence"][..], &["--require-evidence=signed"], &["--require-evidence=claimed"]] {
        let built = victim.project.build(words).expect(103).says(said);
        assert_eq!(verdicts(&built), [0, 0, 6], "{words:?}");
        assert_eq!(steps(&built, "verify", "unavailable").len(), 6);
        assert!(built.finished().filter(|s| s["kind"] == "compile").all(|s| s["cache"] != "evidence"));
    }
    let built = victim.built(&[]);
    assert_eq!((verdicts(&built), champion(&built)), ([0, 0, 6], ("V=1".into(), true)));
    // Imported, it is no better; and the honest source still has its evidence.
    let importer = laptop(&lab, "importer");
    importer.project.write("k.cu", EVIL);
    let path = victim.project.root().join("evidence/virtual-h.kfe");
    let words = ["evidence", "import", "--offline", path.to_str().unwrap()];
    assert!(importer.project.command(&words).output().unwrap().status.success());
    importer.project.build(&["--require-evidence=claimed"]).expect(103).says("(claimed by `virtual-h.kfe`)");
    importer.project.write("k.cu", SOURCE);
    assert_eq!(verdicts(&importer.built(&["--require-evidence=claimed"])), [8, 0, 0]);
}

#[test]
fn a_forged_verification_passes_only_where_claims_are_taken_and_says_whose_it_is() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    // On the device of this test every kernel is wrong: whoever made the bundle put observations of another machine into it.
    let laptop = laptop(&lab, "laptop");
    bring(&laptop, "virtual-h.kfe", &exported(&lab));
    let built = laptop.project.build(&["--require-evidence"]).expect(103);
    assert_eq!(verdicts(&built), [0, 0, 6]);
    assert!(built.stderr().contains("only claimed by `evidence/virtual-h.kfe`"), "{}", built.stderr());
    let taken = |words: &[&str]| {
        let built = laptop.built(words);
        assert_eq!(verdicts(&built)[0], 8);
        built.stderr().matches("claimed by `evidence/virtual-h.kfe`: nobody whom this build trusts signed them").count()
    };
    assert_eq!(taken(&["--require-evidence=claimed"]), 1);
    // A build without JSON output may be answered by a certificate, which says the same.
    for _ in 0..4 {
        let output = laptop.project.command(&["build", "--offline", "--require-evidence=claimed"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.matches("claimed by `evidence/virtual-h.kfe`: nobody").count(), 1, "{said}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(taken(&[]), 0);
    laptop.project.build(&["--require-evidence=here"]).expect(2);
    // With the device, a build that takes no claims asks it, and every later build believes it.
    laptop.on(&wrong());
    assert_eq!(verdicts(&laptop.built(&[]))[0], 8);
    let built = laptop.project.build(&["--require-evidence", "--keep-going"]);
    assert_eq!(verdicts(&built), [0, 6, 0]);
    assert_eq!(built.code(), 100);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_record_from_the_future_is_refused_by_name_and_outlasts_nothing() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let bundle = dated(exported(&lab), "2099-01-01T00:00:00Z");
    let laptop = laptop(&lab, "laptop");
    bring(&laptop, "far.kfe", &bundle);
    let built = laptop.project.build(&["--require-evidence=claimed"]).expect(103);
    assert!(built.stderr().contains("ignoring the bundle of evidence `evidence/far.kfe`"), "{}", built.stderr());
    assert!(built.stderr().contains("measured at 2099-01-01T00:00:00Z"), "{}", built.stderr());
    let path = laptop.project.root().join("evidence/far.kfe");
    let output = laptop.project.command(&["evidence", "import", path.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("far.kfe` is refused") && said.contains("2099-01-01"), "{said}");
    // This machine's clock was wrong when it measured.
    let other = lab.anew("other");
    other.on(&Machine { year: 2099, ..machine() });
    other.built(&[]);
    other.on(&machine());
    let built = other.built(&["--remeasure"]);
    assert!(built.stderr().contains("ignoring record "), "{}", built.stderr());
    let at = |built: &Built| built.step("p/k/V=2/h/big/bench")["evidence"]["measured_at"].clone();
    assert_eq!(at(&built), "2026-01-01T00:00:00Z");
    other.on(&without());
    let built = other.built(&["--require-evidence"]).says("says that it was measured at 2099-01-01T00:00:00Z");
    assert_eq!((at(&built), built.count("executed")), ("2026-01-01T00:00:00Z".into(), 0));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_home_that_another_machine_wrote_is_claimed() {
    let lab = Lab::new(&machine());
    let first = lab.built(&[]);
    lab.on(&without());
    for _ in 0..2 {
        assert_eq!(lab.built(&["--require-evidence"]).count("executed"), 0, "what was observed here stands here");
    }
    // The same home and outputs on a machine with another key, as a job restores them.
    fs::remove_file(key(&lab)).unwrap();
    let built = lab.built(&[]);
    assert_eq!((built.count("executed"), built.keys()), (0, first.keys()), "a plain build takes them");
    let step = built.step("p/k/V=2/h/big/bench");
    assert_eq!((&step["evidence"]["origin"], &step["evidence"]["standing"]), (&"home".into(), &"claimed".into()));
    let built = lab.project.build(&["--require-evidence"]).expect(103);
    assert!(
        built.stderr().contains("claimed by a record in the home that this machine did not make"),
        "{}",
        built.stderr()
    );
    let again: Vec<&str> =
        built.finished().filter(|s| s["kind"] == "compile").filter_map(|s| s["outcome"].as_str()).collect();
    assert!(again.len() > 2 && again.iter().all(|outcome| *outcome == "executed"), "{again:?}");
    let built = built.says("ignoring ").says(" stored results: this machine's key did not authenticate them");
    assert_eq!(verdicts(&built), [0, 0, 6]);
    lab.built(&["--require-evidence=claimed"]).says("the home, which another machine or an earlier kforge wrote");
    // The device observes again what nobody authenticated.
    lab.on(&machine());
    let built =
        lab.built(&["--require-evidence"]).says(" stored observations: this machine's key did not authenticate them");
    assert_eq!(steps(&built, "verify", "executed").len(), 8);
    lab.on(&without());
    let built = lab.built(&["--require-evidence"]);
    assert_eq!((built.count("executed"), verdicts(&built)), (0, [8, 0, 0]));
    assert!(!built.stderr().contains("again"), "all of it stands here now: {}", built.stderr());
}

#[test]
#[ignore = "second tier: many builds"]
fn without_a_key_nothing_stands_here_and_one_warning_says_so() {
    let lab = Lab::new(&machine());
    let within = lab.project.home().join("machine-key");
    for (name, variable, value) in [
        ("nowhere", "HOME", OsString::new()),
        ("within", "KFORGE_MACHINE_KEY", within.clone().into_os_string()),
        ("readonly", "KFORGE_MACHINE_KEY", "/proc/kforge/machine-key".into()),
    ] {
        let lab = Lab { project: lab.project.cloned(name).var(variable, value), ..lab.clone() };
        fs::remove_dir_all(lab.project.home()).unwrap();
        lab.on(&machine());
        let built = lab.built(&["--require-evidence"]);
        assert_eq!(
            built.stderr().matches("this machine has no key of its own").count(),
            1,
            "{name}: {}",
            built.stderr()
        );
        assert_eq!(verdicts(&built), [8, 0, 0], "what this build observed itself counts");
        let records = fs::read_dir(lab.project.home().join("evidence"))
            .unwrap()
            .flat_map(|f| fs::read_dir(f.unwrap().path()).unwrap());
        assert_eq!(records.filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "tag")).count(), 0);
        lab.on(&without());
        lab.project.build(&["--require-evidence"]).expect(103);
        assert_eq!(verdicts(&lab.built(&["--require-evidence=claimed"])), [8, 0, 0]);
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn records_that_contradict_each_other_are_an_error_that_names_both() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let honest = exported(&lab);
    let liar = lab.anew("liar");
    liar.on(&Machine { day: 2, ..wrong() });
    liar.project.build(&["--keep-going"]).expect(100);
    let other = exported(&liar);
    let laptop = laptop(&lab, "laptop");
    bring(&laptop, "a.kfe", &honest);
    bring(&laptop, "b.kfe", &other);
    let built = laptop.project.build(&["--keep-going"]).expect(101);
    let line = built
        .stderr()
        .lines()
        .find(|l| l.contains("evidence contradicts itself at"))
        .unwrap_or_else(|| panic!("{}", built.stderr()));
    assert!(line.contains("`evidence/a.kfe`, passes") && line.contains("`evidence/b.kfe`, fails"), "{line}");
    assert!(line.contains("2026-01-01T00:00:00Z") && line.contains("2026-01-02T00:00:00Z"), "{line}");
    // Where claims do not count they contradict nothing, and what one machine measured again is no contradiction.
    laptop.project.build(&["--require-evidence"]).expect(103);
    lab.on(&Machine { day: 2, ..wrong() });
    let built = lab.project.build(&["--remeasure", "--keep-going"]).expect(100);
    assert!(!built.stderr().contains("contradicts"), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: many builds"]
fn an_observation_of_this_machine_refuses_the_bundle_that_says_otherwise() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let honest = exported(&lab);
    let user = lab.anew("user");
    bring(&user, "virtual-h.kfe", &honest);
    // With the device, the claims answer, unless they are repeated.
    assert_eq!(steps(&user.built(&[]), "verify", "executed"), ids(&[]));
    let built = user.built(&["--recheck", "100%"]);
    assert_eq!(steps(&built, "verify", "executed").len(), 8);
    assert_eq!(user.built(&["--recheck", "100"]).count("executed"), 0, "what was observed here is not repeated");
    let other = lab.anew("other");
    bring(&other, "virtual-h.kfe", &honest);
    other.on(&wrong());
    other.built(&[]);
    let built = other.project.build(&["--recheck", "100%", "--keep-going"]).expect(101);
    assert!(built.stderr().contains("`evidence/virtual-h.kfe` is refused as a whole"), "{}", built.stderr());
    assert!(built.stderr().contains("observed here, fails"), "{}", built.stderr());
    // A sample of none, or of more than all, is a mistake.
    for part in ["0", "101", "x"] {
        other.project.build(&["--recheck", part]).expect(2);
    }
    // Without the device nothing is repeated.
    let bare = laptop(&lab, "bare");
    bring(&bare, "virtual-h.kfe", &honest);
    assert_eq!(steps(&bare.built(&["--recheck", "100%"]), "verify", "executed"), ids(&[]));
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn a_claimed_pass_of_what_the_emulator_says_is_wrong_is_an_error() {
    let lab = Lab::new(&machine())
        .manifest("[targets.h]", "[targets.cpu]\n\n[targets.h]")
        .manifest("targets = [\"h\"]", "targets = [\"h\", \"cpu\"]");
    // The emulator compiles and runs the source, which writes nothing; the virtual device runs no code and says that it is correct.
    lab.project.build(&["--keep-going"]).expect(100);
    let bundle = exported(&lab);
    let laptop = laptop(&lab, "laptop");
    let plain = laptop.project.build(&["--keep-going"]).expect(100);
    assert!(!plain.stderr().contains("contradicts"), "{}", plain.stderr());
    bring(&laptop, "virtual-h.kfe", &bundle);
    let built = laptop.project.build(&["--keep-going"]).expect(101);
    let said = "evidence contradicts the emulator: `p/k/V=1/h/tiny/judge` passes, as `evidence/virtual-h.kfe` claims";
    assert!(built.stderr().contains(said), "{}", built.stderr());
    assert!(built.stderr().contains("`p/k/V=1/cpu/tiny/judge` fails"), "{}", built.stderr());
    // What this machine observed itself may differ from the emulator.
    let own = lab.project.build(&["--keep-going"]).expect(100);
    assert!(!own.stderr().contains("contradicts"), "{}", own.stderr());
}
