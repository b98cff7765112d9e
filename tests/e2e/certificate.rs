//! A certificate holds only if a planned build would have nothing to do and the same output: random edits of a workspace, each followed by both builds.

use std::path::{Path, PathBuf};

use kforge::base::Digest;
use kforge::engine::{self, Blobs, BuildOutcome};
use kforge::ops::build::{BuildRequest, UnknownCounts};
use kforge::ops::event::RecordedMessage;
use kforge::ops::session::certificate::Answer;
use kforge::ops::session::request::LastRequest;
use kforge::ops::{Error, Session, Worker};
use kforge::plan::Goal;
use kforge::release::evidence_list::reused;
use kforge::release::{Bundle, archive, bundle};
use kforge::report::{self, StepView};
use proptest::prelude::*;

#[path = "../../benches/stub/mod.rs"]
mod stub;

/// The number of packages, and of kernels in each.
const SIZE: stub::Size = stub::Size { packages: 2, kernels: 2 };

struct World {
    dir: tempfile::TempDir,
}

/// The result of a planned build.
struct Planned {
    executed: u64,
    answer: Option<Answer>,
    /// The keys of binaries compiled for a device.
    compiled: Vec<Digest>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let world = World { dir };
        stub::write(&world.root(), SIZE).unwrap();
        world.age();
        world
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Waits out the granularity of the file system's clock, so that no file is younger than a command that begins now.
    fn age(&self) {
        let probe = self.dir.path().join("probe");
        let began = std::time::SystemTime::now();
        loop {
            std::fs::write(&probe, "x").unwrap();
            let now = std::fs::metadata(&probe).unwrap().modified().unwrap();
            if now.duration_since(began).is_ok_and(|d| d.as_millis() > 40) {
                return;
            }
        }
    }

    /// A session and a request: `kernel NAME`, `jobs N`, or `every step`.
    fn asked(&self, words: &[&str]) -> (Session, BuildRequest) {
        let mut session = stub::session(&self.root(), &self.home());
        let mut request = BuildRequest::new(Goal::Build);
        match words {
            [] => {}
            ["kernel", name] => request.words.kernels.push((*name).to_string()),
            ["jobs", n] => request.jobs = n.parse().ok(),
            ["every", "step"] => session.options.every_step = true,
            other => panic!("{other:?}"),
        }
        (session, request)
    }

    /// The answer of a certificate.
    fn certified(&self, words: &[&str]) -> Option<Answer> {
        let (session, request) = self.asked(words);
        let question = session.question(&request)?;
        session.certified(&question).map(|held| held.answer)
    }

    /// Like `certified`, but there must be an answer. A child process of another test may hold this test's lock for a moment, between its fork and its exec.
    fn surely_certified(&self, words: &[&str]) -> Option<Answer> {
        (0..1000).find_map(|_| self.certified(words))
    }

    /// A planned build, which writes a certificate if it can. None if the build did not finish.
    fn planned(&self, words: &[&str]) -> Option<Planned> {
        let (session, request) = self.asked(words);
        let question = session.question(&request);
        let mut opened = session.open().ok()?;
        let selected = session.select(&opened.workspace, &request.words).ok()?;
        let asked = stub::asked(selected, request.jobs);
        let packages = session.packages(&opened, &asked).ok()?;
        let ready = session.ready(&mut opened, &packages, &asked).ok()?;
        let said = session.reporter.said();
        let stub = stub::Stub::default();
        let outcome = ready.with_remote(&session, &opened, &stub, |services| {
            engine::build(ready.graph.clone(), &ready.options, services, &mut |_| {})
        });
        ready.journal.flush().unwrap();
        let report = report_of(&ready, &outcome);
        kforge::base::files::write_if_changed(&opened.target.join("report.json"), report.as_bytes()).unwrap();
        ready.keep_committed(&outcome).unwrap();
        let for_device = |node: &engine::Node| {
            node.kind == kforge::record::StepKind::Compile && node.params["arch"].as_str() != Some("cpu")
        };
        let compiled = outcome.graph.nodes().zip(&outcome.steps).filter(|(node, _)| for_device(node));
        let compiled = compiled.filter_map(|(_, done)| done.key).collect();
        let c = outcome.counts;
        let executed = c.executed;
        if c.failed > 0 {
            return Some(Planned { executed, answer: None, compiled });
        }
        let steps = kforge::record::event::StepCounts { executed: 0, fresh: c.fresh + c.executed, ..c };
        let reused = reused(outcome.steps.iter().filter_map(|done| done.evidence.as_ref()));
        let (said_so, found) = (said.clone(), report.clone());
        let (outdated, seen) = ready.outdated(&opened, &outcome);
        let held = outdated.clone();
        let request = LastRequest::default();
        let verdicts = outcome.verdicts;
        let unknown = UnknownCounts::of(&outcome);
        let answer =
            Answer { said: said_so, until: None, report: found, steps, verdicts, unknown, reused, outdated, request };
        if let (Some(question), true) = (question, ready.decided) {
            let mut witness = ready.witness.clone();
            witness.add(seen);
            let messages = (report, said, held, LastRequest::default());
            session.certify(question, &opened, witness, &outcome, messages, &ready);
        }
        Some(Planned { executed, answer: Some(answer), compiled })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// A bundle in which a device answered all the plan's questions at that time.
    fn bundle(&self, measured_at: &str) -> Vec<u8> {
        let (session, request) = self.asked(&[]);
        let asked = session.look(&request.words, Goal::Build).unwrap().plan(&session, |opened, ready| {
            let stub = stub::Stub::default();
            Ok::<_, Error>(ready.with_remote(&session, opened, &stub, |services| {
                engine::questions(ready.graph.clone(), &ready.options, services)
            }))
        });
        let asked = asked.ok().unwrap();
        assert!(!asked.asked.is_empty() && asked.open.is_empty(), "{:?}", asked.open);
        let device = kforge::record::DeviceClass {
            product: "NVIDIA H200".into(),
            arch: "sm_90".into(),
            driver_major: 580,
            mig: None,
        };
        let provenance = kforge::record::Provenance {
            device,
            driver: "580.1".into(),
            kforge: "0.1.0".into(),
            protocol: 1,
            measured_at: measured_at.into(),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
            spent_us: Default::default(),
        };
        let seen = kforge::record::VerifyObservation {
            determinism: kforge::record::Determinism::Stable,
            ..kforge::record::VerifyObservation::begun(false, 0, "NVIDIA H200".into())
        };
        let mut made = Bundle::default();
        let mut keep = |bytes: Vec<u8>| {
            let digest = Digest::of(&bytes);
            made.contents.insert(digest, bytes);
            digest
        };
        let outputs = std::collections::BTreeMap::from([
            ("observation".to_string(), keep(serde_json::to_vec(&seen).unwrap())),
            ("provenance".to_string(), keep(serde_json::to_vec(&provenance).unwrap())),
        ]);
        for question in asked.asked {
            let spec = question.spec.unwrap();
            let record = engine::evidence::Record {
                question: spec.key(),
                provenance: provenance.clone(),
                result: kforge::record::StepResult {
                    outputs: outputs.clone(),
                    verdict: None,
                    notes: vec![],
                    summary: "seen".into(),
                    duration_ms: 1,
                },
            };
            let steps = vec![bundle::Step { id: question.node.id, labels: question.node.labels }];
            made.questions.push(bundle::Question { key: spec.key(), spec, steps, records: vec![record] });
        }
        archive::encode(&made).unwrap()
    }
}

fn report_of(ready: &kforge::ops::session::build::Ready<'_>, outcome: &BuildOutcome) -> String {
    let nodes: Vec<&engine::Node> = outcome.graph.nodes().collect();
    let views: Vec<StepView<'_>> = nodes
        .iter()
        .zip(&outcome.steps)
        .map(|(node, done)| StepView {
            id: &node.id,
            kind: node.kind,
            labels: &node.labels,
            outcome: &done.outcome,
            result: done.result.as_ref(),
            notes: done.result.as_ref().map_or(&done.notes, |result| &result.notes),
            evidence: done.evidence.as_ref(),
        })
        .collect();
    let read = |digest: &Digest| ready.leaves.get(digest).ok().flatten();
    let reader = report::assemble::Reader {
        read: &read,
        places: &|_, text| text.to_string(),
        place: &|_, _| None,
        first_place: &|_, _| None,
    };
    report::text::text(&report::assemble(&views, &|id| ready.names(id), &reader), report::text::Failures::Told, None)
}

/// Every file below a folder that satisfies a condition, in order.
fn files(folder: &Path, which: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|e| e.file_type().is_file() && which(e.path()))
        .map(walkdir::DirEntry::into_path)
        .collect();
    all.sort();
    all
}

/// Rewrites a file with a changed text.
fn edit(path: &Path, with: impl FnOnce(String) -> String) {
    if let Ok(text) = std::fs::read_to_string(path) {
        std::fs::write(path, with(text)).unwrap();
    }
}

/// Makes one change. Most changes affect the build, some do not, and a few break it.
fn change(world: &World, kind: u8, at: usize) {
    let sources = files(&world.root(), &|p| {
        p.extension().is_some_and(|e| e == "cu" || e == "h") && !p.starts_with(world.path("target"))
    });
    let source = &sources[at % sources.len()];
    let package = format!("p{:04}", at % SIZE.packages);
    match kind {
        0 => edit(source, |text| text),
        1 => edit(source, |text| format!("{text}// {at}\n")),
        2 => {
            let file = std::fs::File::options().write(true).open(source).unwrap();
            let then = file.metadata().unwrap().modified().unwrap();
            edit(source, |text| text.replace('2', "3"));
            file.set_modified(then).unwrap();
        }
        // The first file shadows the shared header; the second is where nothing looks for headers.
        3 => std::fs::write(world.path(&format!("{package}/src/shared.h")), format!("// shadow {at}\n")).unwrap(),
        4 => std::fs::write(world.path(&format!("{package}/src/nobody.h")), "").unwrap(),
        5 => drop(std::fs::remove_file(world.path(&format!("{package}/src/shared.h")))),
        6 => edit(&world.path(&format!("{package}/kernel.toml")), |text| {
            text.replacen("BLOCK = [128, 256]", "BLOCK = [64, 128, 256]", 1)
        }),
        7 => {
            edit(&world.path(&format!("{package}/kernel.toml")), |text| text.replacen("atol = 1e-6", "atol = 1e-5", 1))
        }
        8 => edit(&world.path(&format!("{package}/kernel.toml")), |text| format!("{text}# {at}\n")),
        // Members appear and disappear.
        9 => {
            let folder = world.path("p9999");
            if folder.exists() {
                std::fs::remove_dir_all(folder).unwrap();
            } else {
                std::fs::create_dir_all(folder.join("src")).unwrap();
                let text = std::fs::read_to_string(world.path("p0000/kernel.toml")).unwrap();
                std::fs::write(folder.join("kernel.toml"), text.replace("p0000", "p9999")).unwrap();
                for file in ["own.h", "k0.cu", "k1.cu"] {
                    let from = world.path("p0000/src").join(file);
                    if from.exists() {
                        std::fs::copy(from, folder.join("src").join(file)).unwrap();
                    }
                }
            }
        }
        10 => {
            std::fs::create_dir_all(world.path(".kforge")).unwrap();
            std::fs::write(world.path(".kforge/config.toml"), format!("[emulator]\nmax-work = {}\n", 1 + at % 3))
                .unwrap();
        }
        11 => drop(std::fs::remove_dir_all(world.path(".kforge"))),
        12 => drop(std::fs::remove_dir_all(world.home())),
        13 => drop(std::fs::remove_dir_all(world.path("target"))),
        14 => {
            let blobs = files(&world.home().join("cas"), &|_| true);
            if !blobs.is_empty() {
                std::fs::remove_file(&blobs[at % blobs.len()]).unwrap();
            }
        }
        15 => {
            let blobs = files(&world.home().join("cas"), &|_| true);
            if !blobs.is_empty() {
                let blob = &blobs[at % blobs.len()];
                std::fs::remove_file(blob).unwrap();
                std::fs::write(blob, "torn").unwrap();
            }
        }
        16 => drop(std::fs::remove_file(world.path("target/kforge/journal"))),
        17 => drop(std::fs::remove_file(world.path("target/kforge/report.json"))),
        18 => edit(&world.path("target/kforge/certificate"), |text| text),
        19 => std::fs::rename(source, source.with_extension("gone"))
            .and_then(|()| std::fs::rename(source.with_extension("gone"), source))
            .unwrap(),
        20 => std::fs::write(world.path("kforge.lock"), "version = 1\nkforge = \"0.1\"\n").unwrap(),
        21 => drop(std::fs::remove_file(world.path("kforge.lock"))),
        // A root above claims the packages of the workspace.
        22 => std::fs::write(world.dir.path().join("kernel.toml"), "[workspace]\nmembers = [\"work/*\"]\n").unwrap(),
        _ => drop(std::fs::remove_file(world.dir.path().join("kernel.toml"))),
    }
}

const KINDS: u8 = 24;

/// The arguments of commands that are tried in turn.
const WORDS: [&[&str]; 3] = [&[], &["kernel", "k0"], &["jobs", "1"]];

/// Checks that a planned build has the same output as the certificate and nothing to do, if the certificate has an answer.
fn agree(world: &World, words: &[&str], what: &str) {
    let certified = world.certified(words);
    let planned = world.planned(words);
    if let Some(answer) = certified {
        let planned = planned.unwrap_or_else(|| panic!("certified, and the plan fails: {what}"));
        assert_eq!(planned.executed, 0, "certified, and the plan has work to do: {what}");
        assert_eq!(Some(answer), planned.answer, "certified, and the plan says something else: {what}");
    }
}

/// A dozen cases, or as many as `PROPTEST_CASES` states.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if default.cases == 256 { 12 } else { default.cases };
    ProptestConfig { cases, max_shrink_iters: 20, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    #[ignore = "second tier: random sequences of edits"]
    fn a_certificate_holds_only_where_planning_comes_to_the_same(
        edits in proptest::collection::vec((0..KINDS, 0usize..1000, 0..WORDS.len(), any::<bool>()), 1..10)
    ) {
        let world = World::new();
        world.planned(&[]);
        for (n, (kind, at, words, patient)) in edits.iter().enumerate() {
            change(&world, *kind, *at);
            // With and without waiting for the file system's clock to advance. Without waiting, the times of files may be misleading.
            if *patient {
                world.age();
            }
            agree(&world, WORDS[*words], &format!("after edits {:?}", &edits[..=n]));
        }
    }
}

#[test]
fn the_second_fresh_build_is_certified_and_stays_so() {
    let world = World::new();
    let first = world.planned(&[]).unwrap();
    assert!(first.executed > 0);
    world.age();
    assert_eq!(world.planned(&[]).unwrap().executed, 0);
    for words in [&[] as &[&str], &["jobs", "1"]] {
        let answer = world.surely_certified(words).expect("nothing has changed");
        assert_eq!(Some(answer), first.answer, "as the build that made it all would say");
    }
    assert_eq!(world.certified(&["kernel", "k0"]), None, "another question");
    assert_eq!(world.certified(&["every", "step"]), None, "events are those of a plan");
    // Another kforge of the same version may have other code.
    let (mut session, request) = world.asked(&[]);
    session.worker = Worker::Own("/elsewhere/kforge".into());
    let question = session.question(&request).unwrap();
    assert!(session.certified(&question).is_none(), "another program");
}

#[test]
#[ignore = "second tier: every kind of edit"]
fn every_edit_that_makes_work_voids_the_certificate() {
    for kind in [1u8, 2, 3, 6, 7, 9, 12, 13] {
        let world = World::new();
        world.planned(&[]);
        world.age();
        world.planned(&[]);
        assert!(world.surely_certified(&[]).is_some(), "before edit {kind}");
        change(&world, kind, 0);
        assert_eq!(world.certified(&[]), None, "edit {kind}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_bundle_in_the_repository_is_certified_and_a_changed_one_is_noticed() {
    let world = World::new();
    edit(&world.path("p0000/kernel.toml"), |text| {
        let text = text.replace("[targets.cpu]\n", "[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n");
        text.replace("targets = [\"cpu\"]", "targets = [\"cpu\", \"h200\"]")
    });
    // The wheels are locked and never installed: nothing here is compiled with them.
    std::fs::write(world.path("kforge.lock"), include_str!("../../examples/quickstart/kforge.lock")).unwrap();
    let settled = |what: &str| {
        world.age();
        world.planned(&[]);
        world.age();
        let answer = world.planned(&[]).unwrap().answer;
        assert_eq!(world.surely_certified(&[]), answer, "{what}");
        answer.unwrap()
    };
    world.planned(&[]);
    let without = settled("without a bundle");
    assert!(without.steps.unavailable > 0 && without.reused.is_empty(), "{:?}", without.steps);

    let place = world.path("p0000/evidence/h200.kfe");
    std::fs::create_dir(place.parent().unwrap()).unwrap();
    assert_eq!(world.certified(&[]), None, "a folder in which there may be bundles");
    std::fs::write(&place, world.bundle("2026-11-01T00:00:00Z")).unwrap();
    let with = settled("with a bundle");
    assert_eq!(with.steps.unavailable, 0);
    let [from] = &with.reused[..] else { panic!("{:?}", with.reused) };
    assert_eq!((from.origin.as_str(), from.oldest.as_str()), ("p0000/evidence/h200.kfe", "2026-11-01T00:00:00Z"));
    assert_eq!(std::fs::read_dir(world.home().join("evidence")).unwrap().count(), 0, "nothing is imported");
    // No step lacks an answer, but evidence may bring another binary in place of the one compiled here.
    for key in world.planned(&[]).unwrap().compiled {
        let brought = world.home().join("evidence").join(key.hex());
        std::fs::create_dir(&brought).unwrap();
        assert_eq!(world.certified(&[]), None, "a binary that was brought");
        std::fs::remove_dir(&brought).unwrap();
    }

    std::fs::write(&place, world.bundle("2026-11-02T00:00:00Z")).unwrap();
    assert_eq!(world.certified(&[]), None, "another bundle under the same name");
    assert_eq!(settled("with the other bundle").reused[0].oldest, "2026-11-02T00:00:00Z");
    std::fs::write(place.with_file_name("more.kfe"), "torn").unwrap();
    assert_eq!(world.certified(&[]), None, "a bundle beside it");
    let torn = settled("with a torn bundle beside it");
    assert_eq!(torn.steps.unavailable, 0);
    std::fs::remove_dir_all(place.parent().unwrap()).unwrap();
    assert_eq!(world.certified(&[]), None, "no bundle any more");
    assert_eq!(settled("without the bundles").steps, without.steps);
}

/// Lost observations of an absent device cannot be repeated. A build whose evidence may not survive a power failure warns about it.
#[test]
fn evidence_that_cannot_be_made_to_last_is_said() {
    use kforge::record::{Spec, StepKind, StepResult};
    let world = World::new();
    let (session, request) = world.asked(&[]);
    let mut opened = session.open().ok().unwrap();
    let selected = session.select(&opened.workspace, &request.words).ok().unwrap();
    let asked = stub::asked(selected, None);
    let packages = session.packages(&opened, &asked).ok().unwrap();
    let ready = session.ready(&mut opened, &packages, &asked).ok().unwrap();
    let params = serde_json::json!({ "arch": "sm_90a" });
    let spec = Spec { kind: StepKind::Bench, version: 1, implementation: None, params, inputs: [].into() };
    let provenance = serde_json::json!({
        "device": { "product": "NVIDIA H200", "arch": "sm_90", "driver_major": 580, "mig": null },
        "driver": "580.1", "kforge": "0.1.0", "protocol": 1, "measured_at": "2026-01-01T00:00:00Z",
        "clocks_mhz": null, "temperature_c": null, "throttle": []
    });
    let said = session.reporter.said().len();
    let stub = stub::Stub::default();
    ready.with_remote(&session, &opened, &stub, |services| {
        let kept = services.blobs.put(provenance.to_string().as_bytes()).unwrap();
        let result = StepResult {
            outputs: [("provenance".to_string(), kept)].into(),
            verdict: None,
            notes: vec![],
            summary: String::new(),
            duration_ms: 1,
        };
        services.caches.iter().for_each(|cache| cache.put(&spec.key(), &spec, &result).unwrap());
        std::fs::rename(opened.home.evidence(), world.home().join("away")).unwrap();
    });
    let warned = &session.reporter.said()[said..];
    let is_said = |said: &RecordedMessage| matches!(said, RecordedMessage::Diagnostic(text) if text.contains("a power failure may lose"));
    assert!(warned.len() == 1 && is_said(&warned[0]), "{warned:?}");
}
