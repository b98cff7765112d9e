//! Builds on a machine without a device that ask the devices of a server's workers. The devices are virtual, the workers are real.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use kforge::ops::elsewhere::{StepFile, WorkerTools};
use kforge::record::Spec;
use kforge::worker::virtual_device::TOOL;
use serde_json::Value;

use crate::bots::{Worker, of_tests, with_device};
use crate::executing::{executing, new_key, warnings};
use crate::lab::{Lab, Machine};
use crate::project::{Built, Project};
use crate::server::Server;
use crate::server::execution::{Given, Task, process_with};

const KINDS: [&str; 3] = ["verify", "bench", "pairs"];

/// A machine without a device, and a server whose workers have one.
struct Farm {
    server: Server,
    lab: Lab,
    /// The specs that workers got, and what they answered.
    asked: Arc<Mutex<Vec<(Spec, String)>>>,
    /// The key of the workers.
    key: PathBuf,
}

/// Changes what a worker gets or gives.
type Change = Arc<dyn Fn(&mut Task) + Send + Sync>;

fn machine() -> Machine {
    Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)])
}

impl Farm {
    fn new() -> Farm {
        let server = executing();
        let lab = Lab::new(&Machine { device: None, ..machine() });
        server.state().options.properties.push("gpu".into());
        let url = server.url();
        let vars = [
            ("KFORGE_REMOTE_URL", url.as_str()),
            ("KFORGE_REMOTE_EXECUTE", "true"),
            ("KFORGE_REMOTE_PROGRAM", env!("CARGO_BIN_EXE_kforge")),
            ("KFORGE_REMOTE_DEVICES", "sm_90=Virtual H"),
            ("KFORGE_REMOTE_PROPERTIES", "OSFamily=linux"),
            ("KFORGE_REMOTE_TIMEOUT", "60s"),
        ];
        let project = vars.into_iter().fold(lab.project.clone(), |project, (name, value)| project.var(name, value));
        let key = project.place().join("key of the workers");
        let farm = Farm { server, lab: Lab { project, ..lab }, asked: Arc::default(), key };
        // What needs no device is known before: these tests are about the rest.
        build(&farm.lab.project.clone().var("KFORGE_REMOTE_MODE", "off"), &[]);
        farm.work(&machine(), Arc::new(|_| ()));
        farm
    }

    /// Gives the workers this machine, and changes what they get. Each step runs as `kforge worker --bots` runs it.
    fn work(&self, machine: &Machine, change: Change) {
        let place = self.lab.project.place().join("worker");
        fs::create_dir_all(&place).unwrap();
        let with_device = Lab { scenario: place.join("scenario.toml"), ..self.lab.clone() };
        with_device.on(machine);
        let (asked, key) = (self.asked.clone(), self.key.clone());
        self.server.state().options.worker = Arc::new(move |mut task: Task| {
            let spec: Spec = serde_json::from_slice(&task.files["spec.json"]).unwrap();
            change(&mut task);
            let (scenario, home, own) = (place.join("scenario.toml"), place.join("home"), place.join("own.json"));
            let places: StepFile = serde_json::from_slice(&task.files["places.json"]).unwrap();
            let tools = WorkerTools {
                cxx: None,
                python: None,
                cuda: None,
                device: [(TOOL.to_string(), scenario)].into(),
                key: Some(key.clone()).filter(|key| key.exists()),
                limits: places.limits,
            };
            fs::write(&own, serde_json::to_vec(&tools).unwrap()).unwrap();
            task.words.extend(["--own".into(), own.to_str().unwrap().into()]);
            let given = process_with(task, &[("KFORGE_HOME", home.as_os_str())]);
            asked.lock().unwrap().push((spec, String::from_utf8(given.answer.clone()).unwrap()));
            given
        });
    }

    /// Gives the workers a key. Returns the project, which trusts it; none, after reporting that the test is skipped, if no program makes keys.
    fn signs(&self) -> Option<Project> {
        let public = new_key(&self.key)?;
        let list = self.lab.project.place().join("trusted");
        fs::write(&list, format!("worker@x {public}")).unwrap();
        Some(self.lab.project.clone().var("KFORGE_EVIDENCE_TRUST", list))
    }

    /// How many steps workers got.
    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Builds with the program of these tests.
fn build(project: &Project, words: &[&str]) -> Built {
    let words = [&["build", "--message-format", "json"], words].concat();
    Built::of(&of_tests(project, &words).output().unwrap())
}

/// The outcome of each step that observes a device, and who answered it.
fn observed(built: &Built) -> BTreeMap<String, (String, String)> {
    let of_device = built.finished().filter(|step| KINDS.contains(&step["kind"].as_str().unwrap()));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    of_device.map(|step| (crate::project::id(step), (text(&step["outcome"]), text(&step["cache"])))).collect()
}

/// How the records that answered stand, and who signed them.
fn standing(built: &Built) -> Vec<(String, Value)> {
    let seen = built.finished().filter(|step| step["evidence"].is_object()).map(|step| &step["evidence"]);
    let mut all: Vec<(String, Value)> =
        seen.map(|seen| (seen["standing"].as_str().unwrap().to_string(), seen["signer"].clone())).collect();
    all.dedup();
    all
}

fn is_executed_elsewhere((outcome, cache): &(String, String)) -> bool {
    (outcome.as_str(), cache.as_str()) == ("executed", "remote")
}

#[test]
fn devices_of_workers_are_asked_and_only_signed_records_count_where_claims_do_not() {
    let farm = Farm::new();
    let project = &farm.lab.project;
    let built = build(project, &[]).expect(0);
    let steps = observed(&built);
    assert!(steps.len() > 10 && steps.values().all(is_executed_elsewhere), "{steps:?} {}", built.stderr());
    assert_eq!((warnings(&built), standing(&built)), (0, vec![("claimed".into(), Value::Null)]), "{}", built.stderr());
    assert!(farm.server.state().results.is_empty(), "a server remembers no observation");
    // The report is that of a machine with the device.
    let there = farm.lab.anew("with the device");
    there.on(&machine());
    build(&there.project.clone().var("KFORGE_REMOTE_MODE", "off"), &[]).expect(0);
    let times = |lab: &Lab| -> Vec<(Value, Value, Value)> {
        let times = lab.target()["times"].as_array().unwrap().clone();
        times.iter().map(|of| (of["variant"].clone(), of["cold_ns"].clone(), of["hot_ns"].clone())).collect()
    };
    let champion = |lab: &Lab| lab.target()["champions"][0]["variant"].clone();
    assert_eq!((times(&farm.lab), champion(&farm.lab)), (times(&there), champion(&there)));
    assert!(champion(&there).is_string() && times(&there).len() == 3, "{:?}", times(&there));
    // Nothing is asked again.
    there.on(&Machine { device: None, ..machine() });
    let asked = farm.count();
    assert!(observed(&build(project, &[]).expect(0)).values().all(|(outcome, _)| outcome == "fresh"));
    assert_eq!(farm.count(), asked);
    // Claims of workers without a key do not count, whoever repeats them.
    let strict =
        build(project, &["--require-evidence"]).expect(103).says("only records that a key signed which it trusts");
    assert!(farm.count() <= asked + 1, "the first record decides");
    assert!(observed(&strict).values().all(|(outcome, _)| outcome != "executed"), "{:?}", observed(&strict));
    // Their key makes the same questions count, and nothing else comes from the server.
    let Some(trusts) = farm.signs() else { return };
    let strict = build(&trusts, &["--require-evidence"]).expect(0);
    assert!(observed(&strict).values().all(is_executed_elsewhere), "{:?} {}", observed(&strict), strict.stderr());
    assert_eq!(standing(&strict), [("signed".to_string(), Value::from("worker@x"))]);
    // The key is part of the origin: two workers that contradict each other are two witnesses.
    let origins = |built: &Built| -> BTreeSet<String> {
        let of_records = built.finished().filter(|step| step["evidence"].is_object());
        of_records.map(|step| step["evidence"]["origin"].as_str().unwrap().to_string()).collect()
    };
    // A record that was claimed before and is signed now is the same one.
    let (claimed, mut signed) = (origins(&built), origins(&strict));
    signed.retain(|origin| !claimed.contains(origin));
    assert!(claimed.len() == 1 && signed.len() == 1, "{claimed:?} {signed:?}");
    let (claimed, signed) = (claimed.first().unwrap(), signed.first().unwrap());
    let print = signed.strip_prefix(claimed).and_then(|rest| rest.strip_prefix('-'));
    assert!(print.is_some_and(|print| print.len() == 8), "{claimed} {signed}");
    let mut others = strict.finished().filter(|step| step["evidence"].is_null());
    assert!(others.all(|step| step["cache"] != "remote"), "what observes no device has no signature");
    // Another clone brings the same by a bundle.
    let exported = of_tests(&trusts, &["evidence", "export", "--output", "records.kfe"]).output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
}

#[test]
fn a_worker_signs_nothing_of_other_inputs_and_a_signature_of_another_record_does_not_count() {
    let farm = Farm::new();
    let Some(trusts) = farm.signs() else { return };
    // The binary of another variant under the same question.
    farm.work(
        &machine(),
        Arc::new(|task| {
            let binaries: Vec<String> =
                task.files.keys().filter(|path| path.starts_with("in/binary")).cloned().collect();
            for path in binaries {
                task.files.get_mut(&path).unwrap().push(b'\n');
            }
        }),
    );
    let built = build(&trusts, &["--require-evidence"]).expect(103);
    let answers = farm.asked.lock().unwrap().clone();
    assert!(answers.iter().any(|(_, text)| text.contains("contents") && text.contains("binary")));
    let of_binaries = answers.iter().filter(|(spec, _)| spec.inputs.keys().any(|name| name.starts_with("binary")));
    assert!(of_binaries.into_iter().all(|(_, text)| !text.contains("SSH SIGNATURE")));
    assert!(!observed(&built).values().any(is_executed_elsewhere), "{:?}", observed(&built));
    // A proxy that changes what a worker saw.
    let changed = farm.lab.anew("changed");
    let trusts = changed.project.clone().var("KFORGE_EVIDENCE_TRUST", farm.lab.project.place().join("trusted"));
    build(&trusts.clone().var("KFORGE_REMOTE_MODE", "off"), &[]);
    farm.work(&machine(), Arc::new(|_| ()));
    let honest = farm.server.state().options.worker.clone();
    farm.server.state().options.worker = Arc::new(move |task: Task| {
        let given = honest(task);
        let text = String::from_utf8(given.answer).unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer["answered"]["response"]["done"]["summary"] = "as fast as light".into();
        Given { answer: answer.to_string().into(), ..given }
    });
    let built = build(&trusts, &["--require-evidence"]).expect(103);
    assert!(!observed(&built).values().any(is_executed_elsewhere), "{:?}", observed(&built));
    let built = build(&trusts, &[]).expect(0);
    assert_eq!(standing(&built), [("claimed".to_string(), Value::Null)]);
}

#[test]
fn without_a_worker_that_has_the_device_its_steps_are_unknown_and_say_why() {
    let farm = Farm::new();
    let project = &farm.lab.project;
    let says = |project: &Project, text: &str| {
        let built = build(project, &["--require-evidence"]).expect(103);
        let steps: Vec<String> =
            built.finished().filter(|step| step["kind"] == "verify").map(|step| step["outcome"].to_string()).collect();
        assert!(!steps.is_empty() && steps.iter().all(|outcome| outcome.contains(text)), "{text}: {steps:?}");
        built
    };
    farm.work(&Machine { device: None, ..machine() }, Arc::new(|_| ()));
    let built = says(project, "a worker of the server for Virtual H says: ");
    assert_eq!(warnings(&built), 0, "what one worker lacks is no error of the server: {}", built.stderr());
    farm.work(&Machine { device: Some(("Virtual X", "580.1")), ..machine() }, Arc::new(|_| ()));
    // The first answer ends the questions.
    let asked = farm.count();
    let built = build(project, &["--require-evidence"]).expect(103);
    let why = "its device is Virtual X (sm_90, driver 580), and `remote.devices` names Virtual H (sm_90)";
    let named = built.finished().filter(|step| step["outcome"].to_string().contains(why)).count();
    assert_eq!((named, farm.count(), warnings(&built)), (1, asked + 1, 1), "{}", built.stderr());
    // A failure of the worker itself is its answer, whatever the exit code of its process.
    farm.server.state().options.worker = Arc::new(|_| {
        let response = serde_json::json!({ "failed": { "message": "the disk is full", "notes": [] } });
        let answer = serde_json::json!({ "answered": { "response": response, "outputs": {} } });
        Given { code: 101, answer: answer.to_string().into(), ..Given::default() }
    });
    let built = says(project, "a worker of the server for Virtual H says: the disk is full");
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
    // A worker with other code, until it is asked no more.
    farm.server.state().options.worker = Arc::new(|_| Given {
        code: 101,
        answer: br#"{"differs":{"differences":["code"]}}"#.to_vec(),
        ..Given::default()
    });
    says(project, "no worker of the server has answered for Virtual H");
    // A server that is gone, a setting that sends nothing, and no such setting.
    let gone = project.clone().var("KFORGE_REMOTE_URL", "grpc://127.0.0.1:1");
    let built = says(&gone, "Virtual H");
    assert_eq!(warnings(&built), 1, "{}", built.stderr());
    for (name, value) in
        [("KFORGE_REMOTE_MODE", "off"), ("KFORGE_REMOTE_DEVICES", ""), ("KFORGE_REMOTE_EXECUTE", "false")]
    {
        let asked = farm.count();
        says(&project.clone().var(name, value), "no device of architecture sm_90a here");
        assert_eq!(farm.count(), asked, "{name}");
    }
    // The device of this machine comes first.
    farm.lab.on(&machine());
    let asked = farm.count();
    let built = build(project, &["--require-evidence"]).expect(0);
    assert!(observed(&built).values().all(|(_, cache)| cache != "remote") && farm.count() == asked);
}

#[test]
fn nothing_about_a_holdout_shape_is_sent_unless_it_may_be() {
    let farm = Farm::new();
    let lab =
        farm.lab.clone().manifest("shapes.big =", "shapes.hidden = { n = 1021, role = \"holdout\" }\nshapes.big =");
    build(&lab.project.clone().var("KFORGE_REMOTE_MODE", "off"), &[]);
    for may in [false, true] {
        let project = lab.project.clone().var("KFORGE_REMOTE_HOLDOUT", may.to_string());
        let built = build(&project, &[]);
        let hidden = observed(&built).into_iter().filter(|(id, _)| id.contains("/hidden/"));
        let hidden: Vec<(String, (String, String))> = hidden.collect();
        assert!(!hidden.is_empty() && hidden.iter().all(|(_, how)| is_executed_elsewhere(how) == may), "{hidden:?}");
        let tells = |blob: &crate::server::Blob| String::from_utf8_lossy(&blob.bytes).contains("1021");
        assert_eq!(farm.server.state().blobs.values().any(tells), may);
    }
}

#[test]
fn a_key_that_cannot_sign_is_named_by_the_worker() {
    let project = Project::new();
    let said = |key: &Path| {
        let words = ["worker", "--bots", "grpc://127.0.0.1:1"];
        let mut command = with_device(&project, &words);
        let output = command.env("KFORGE_REMOTE_WORKER_KEY", key).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let key = project.place().join("key");
    let (code, text) = said(&key);
    assert!(code == Some(101) && text.contains("cannot read the worker's key"), "{code:?} {text}");
    let Some(public) = new_key(&project.place().join("other")) else { return };
    fs::write(&key, public).unwrap();
    let (code, text) = said(&key);
    assert!(code == Some(101) && text.contains("is no private key without a passphrase"), "{code:?} {text}");
    fs::write(&key, "nonsense").unwrap();
    let (code, text) = said(&key);
    assert!(code == Some(101) && text.contains("cannot sign with the worker's key"), "{code:?} {text}");
}

#[test]
fn a_candidate_that_never_ends_costs_one_time_out_and_no_other_variant() {
    let farm = Farm::new();
    farm.work(&machine().first("^k<2>", "fault = \"time-out\""), Arc::new(|_| ()));
    let built = build(&farm.lab.project, &["--keep-going"]).expect(100).says("timed out");
    let launched = |spec: &Spec| spec.kind.name() == "verify";
    let timed_out = farm.asked.lock().unwrap().iter().filter(|(_, text)| text.contains("\"forget\": true")).count();
    assert_eq!(timed_out, 1, "{:?}", observed(&built));
    assert!(farm.asked.lock().unwrap().iter().filter(|(spec, _)| launched(spec)).count() > 4);
    let judged: Vec<String> =
        ["tiny", "big"].map(|shape| built.step(&format!("p/k/V=2/h/{shape}/judge"))["verdict"].to_string()).into();
    assert!(judged.iter().any(|verdict| verdict.contains("fail")), "{judged:?}");
    assert_eq!(built.step("p/k/V=1/h/big/judge")["verdict"], "pass");
    // It is stored nowhere, and nobody signs it.
    let again = build(&farm.lab.project, &["--keep-going"]).expect(100).says("timed out");
    assert!(observed(&again).values().filter(|how| is_executed_elsewhere(how)).count() >= 1);
    let Some(trusts) = farm.signs() else { return };
    let strict = build(&trusts, &["--keep-going", "--require-evidence"]);
    let outcomes: Vec<String> =
        observed(&strict).into_iter().filter(|(id, _)| id.contains("V=2")).map(|(_, how)| how.0).collect();
    assert!(outcomes.iter().any(|outcome| outcome.contains("nobody signs that")), "{outcomes:?}");
}

#[test]
fn a_result_that_a_server_remembered_observes_nothing() {
    let farm = Farm::new();
    let project = &farm.lab.project;
    farm.server.state().options.remembers_observations = true;
    build(project, &[]).expect(0);
    let asked = farm.count();
    let again = build(project, &["--remeasure"]).expect(0);
    // Verifications have one time in each scenario, so either record of one may answer.
    let benches = observed(&again).into_iter().filter(|(id, _)| id.ends_with("/bench"));
    let benches: Vec<(String, (String, String))> = benches.collect();
    assert!(benches.len() == 3 && benches.iter().all(|(_, how)| is_executed_elsewhere(how)), "{benches:?}");
    assert!(farm.count() >= 2 * asked, "{} {asked}", farm.count());
    // It answers from its memory all the same.
    farm.server.state().options.ignores_skip = true;
    let again = build(project, &["--remeasure"]).says("remembers");
    assert!(observed(&again).values().all(|(outcome, _)| outcome != "executed"), "{:?}", observed(&again));
}

#[test]
fn a_new_claim_does_not_replace_what_somebody_signed() {
    let farm = Farm::new();
    let Some(trusts) = farm.signs() else { return };
    build(&trusts, &[]).expect(0);
    fs::remove_file(&farm.key).unwrap();
    let slower = Machine { day: 2, ..Machine::with(&[(1, 9000.0), (2, 9500.0), (4, 9900.0)]) };
    farm.work(&slower, Arc::new(|_| ()));
    let again = build(&trusts, &["--remeasure"]).expect(0);
    assert_eq!(standing(&again), [("signed".to_string(), Value::from("worker@x"))]);
    assert!(again.stderr().contains("another record counts for more"), "{}", again.stderr());
    let times = farm.lab.target()["times"].as_array().unwrap().clone();
    assert!(times.iter().all(|of| of["cold_ns"].as_f64().unwrap() < 3000.0), "{times:?}");
}

#[test]
fn a_worker_of_kforge_signs_and_steps_wait_for_each_other_here() {
    let farm = Farm::new();
    let Some(trusts) = farm.signs() else { return };
    farm.server.state().options.by_bots = true;
    let (url, key) = (farm.server.url(), farm.key.to_str().unwrap().to_string());
    let words = ["worker", "--bots", url.as_str(), "--name", "gpu"];
    let home = trusts.place().join("home of the worker");
    let vars = [("KFORGE_REMOTE_WORKER_KEY", key.as_str()), ("KFORGE_TOOLCHAIN_CXX", "/nowhere/g++")];
    let mut command = of_tests(&trusts, &words);
    command.env("KFORGE_VIRTUAL_DEVICE", trusts.place().join("worker/scenario.toml"));
    let worker = Worker::of(command, &home, &vars);
    // A step that is queued for longer than this ends: more than one at a time would.
    let trusts = trusts.var("KFORGE_REMOTE_QUEUE_LIMIT", "2s");
    let built = build(&trusts, &["--require-evidence"]).expect(0);
    assert!(observed(&built).values().all(is_executed_elsewhere), "{:?} {}", observed(&built), worker.log());
    assert_eq!(standing(&built), [("signed".to_string(), Value::from("worker@x"))]);
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
    // Nobody repeats for a recheck what workers would answer again.
    let executed = worker.executed();
    build(&trusts, &["--require-evidence", "--recheck", "100%"]).expect(0);
    assert_eq!(worker.executed(), executed);
}
