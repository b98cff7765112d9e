//! Builds of two machines that share a remote cache: two homes and two checkouts, with the real program.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kforge::record::StepResult;
use tonic::Code;

use crate::casd::Casd;
use crate::client::Fault;
use crate::project::{Built, Project};
use crate::sample::unbuilt;
use crate::server::{Method, Options, Refusal, Server, Stored};

/// The kinds whose results a remote cache may have.
const SERVED: [&str; 4] = ["compile", "inspect", "oracle", "verify"];

/// The same project with this remote cache.
fn using(project: Project, url: &str, mode: &str) -> Project {
    project.var("KFORGE_REMOTE_URL", url).var("KFORGE_REMOTE_MODE", mode).var("KFORGE_REMOTE_TIMEOUT", "1s")
}

/// Builds with the network that a remote cache is. The target is `cpu` alone, so nothing is downloaded.
fn online(project: &Project, words: &[&str]) -> Built {
    let words = [&["build", "--message-format", "json"], words].concat();
    Built::of(&project.command(&words).output().unwrap())
}

/// The first machine, which has built the sample and stored its results.
fn first(url: &str) -> Project {
    let first = using(unbuilt(), url, "read-write");
    assert_eq!(warnings(&online(&first, &[]).expect(0)), 0);
    first
}

/// Another machine with another checkout.
fn another(first: &Project, name: &str, mode: &str) -> Project {
    first.cloned(name).fresh_home(format!("home of {name}")).var("KFORGE_REMOTE_MODE", mode)
}

fn warnings(built: &Built) -> usize {
    built.stderr().matches("remote cache").count()
}

/// How many steps of the kinds that a remote cache may have ran.
fn ran(built: &Built) -> usize {
    let kinds = built.executed_kinds();
    SERVED.iter().map(|kind| kinds.get(*kind).copied().unwrap_or_default()).sum()
}

#[test]
fn a_second_machine_runs_nothing_that_the_first_one_has_stored() {
    let server = Server::start(Options::default());
    let first = first(&server.url());
    let updates = server.state().counts.of(Method::UpdateActionResult);
    assert!(updates >= 10, "{updates}");
    let second = another(&first, "second", "read");
    let built = online(&second, &[]).expect(0);
    assert_eq!((ran(&built), warnings(&built)), (0, 0), "{}", built.stderr());
    let remote = built.finished().filter(|step| step["cache"] == "remote").count();
    assert!(remote >= 10, "{remote}");
    assert_eq!(second.report(), first.report());
    // What reports and pure steps read came in batches.
    let counts = server.state().counts.clone();
    assert!(counts.blobs_read >= 10 && counts.of(Method::BatchReadBlobs) * 2 <= counts.blobs_read, "{counts:?}");
    assert_eq!(server.state().counts.of(Method::UpdateActionResult), updates, "only read");
    // Binaries were not fetched: an edit of a tolerance judges again, and of a shape runs what reads them.
    second.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 11 }");
    let edited = online(&second, &[]).expect(0);
    let kinds: BTreeSet<String> = edited.executed_kinds().into_keys().collect();
    assert!(kinds.contains("verify") && !kinds.contains("compile"), "{kinds:?}");
    // What another machine computed does not count where only own results do.
    let third = another(&first, "third", "read");
    let strict = online(&third, &["--require-evidence"]);
    assert!(ran(&strict) > 0 && strict.finished().all(|step| step["cache"] != "remote"));
    // Nor without the network.
    let offline = another(&first, "fourth", "read").build(&[]).expect(0);
    assert!(offline.finished().all(|step| step["cache"] != "remote"));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_plain_build_takes_wrong_results_and_one_that_requires_evidence_refuses_them() {
    let server = Server::start(Options::default());
    let first = first(&server.url());
    let honest = server.state().results.clone();
    let of = |stored: &Stored| serde_json::from_slice::<StepResult>(&stored.result.stdout_raw).unwrap();
    let is_verification = |stored: &Stored| of(stored).outputs.keys().eq(["observation"]);
    // What was observed of a wrong kernel is stored for correct ones.
    let wrong = another(&first, "wrong", "read-write");
    wrong.edit("twice.cu", "2 * x[", "3 * x[");
    assert_ne!(online(&wrong, &["--keep-going"]).code(), 0);
    let lie = {
        let state = server.state();
        let mut new =
            state.results.iter().filter(|(hash, stored)| !honest.contains_key(*hash) && is_verification(stored));
        new.next().expect("a verification of the wrong kernel").1.clone()
    };
    let mut forged = honest.clone();
    forged.values_mut().filter(|stored| is_verification(stored)).for_each(|stored| *stored = lie.clone());
    assert_ne!(forged, honest);
    server.state().results = forged;
    let plain = online(&another(&first, "plain", "read"), &["--keep-going"]);
    assert_ne!(plain.code(), 0, "{}", plain.stderr());
    let strict = another(&first, "strict", "read");
    online(&strict, &["--require-evidence"]).expect(0);
    assert_eq!(strict.report(), first.report());
    // Compilations are stored for each other.
    let mut forged = honest.clone();
    let is_compilation = |stored: &&mut Stored| of(stored).outputs.contains_key("binary");
    let mut last = honest.values().rfind(|stored| of(stored).outputs.contains_key("binary")).unwrap().clone();
    forged.values_mut().filter(is_compilation).for_each(|stored| last = std::mem::replace(stored, last.clone()));
    assert_ne!(forged, honest);
    server.state().results = forged;
    let plain = online(&another(&first, "another plain", "read"), &["--keep-going"]);
    assert!(plain.finished().any(|step| step["cache"] == "remote" && step["kind"] == "compile"));
    let strict = another(&first, "another strict", "read");
    online(&strict, &["--require-evidence"]).expect(0);
    assert_eq!(strict.report(), first.report());
}

#[test]
fn doctor_reports_what_the_server_can_do() {
    let server = Server::start(Options::default());
    let said = |mode: &str, url: &str| {
        let project = using(Project::new(), url, mode);
        let output = project.command(&["doctor"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = said("read-write", &server.url());
    assert!(text.contains("remote cache") && text.contains("results are read and stored; digests by sha256"), "{text}");
    let text = said("read", "grpc://127.0.0.1:1");
    assert!(text.contains("cannot connect") && text.contains("computed again here"), "{text}");
    assert!(!said("off", &server.url()).contains("remote cache"));
}

#[test]
#[ignore = "second tier: many builds"]
fn no_fault_of_the_server_changes_a_build_and_each_is_reported_once() {
    let mut server = Server::start(Options::default());
    let first = first(&server.url());
    let report = first.report();
    // The name, the fault, whether results are stored, and how many messages there are.
    let faults: [(&str, Fault, &str, usize); 12] = [
        ("wrong contents", |o| o.wrong_bytes = true, "read", 1),
        ("no contents", |o| o.missing = Some(Arc::new(|_| true)), "read", 1),
        ("half of the contents", |o| o.missing = Some(Arc::new(|hash| hash < "8")), "read", 1),
        ("failures that were stored", |o| o.failed = true, "read", 0),
        ("no outputs", |o| o.no_outputs = true, "read", 1),
        ("half a result", |o| o.truncated_stdout = true, "read", 1),
        ("slow", |o| o.delay = Duration::from_secs(30), "read", 1),
        ("slower than usual", |o| o.delay = Duration::from_millis(30), "read", 0),
        ("busy", |o| o.limit = Some(3), "read", 0),
        ("a token is missing", |o| o.token = Some("secret".into()), "read", 1),
        ("unavailable", |o| o.refusals = vec![Refusal::always(None, Code::Unavailable)], "read", 1),
        ("internal errors", |o| o.refusals = vec![Refusal::always(Method::BatchReadBlobs, Code::Internal)], "read", 1),
    ];
    for (name, fault, mode, messages) in faults {
        let before = server.state().options.clone();
        fault(&mut server.state().options);
        let machine = another(&first, name, mode);
        let built = online(&machine, &[]).expect(0);
        assert_eq!(warnings(&built), messages, "{name}: {}", built.stderr());
        assert_eq!(machine.report(), report, "{name}");
        // And what could not be had is known here now.
        let again = machine.build(&[]).expect(0);
        assert_eq!(machine.report(), report, "{name}");
        drop(again);
        server.state().options = before;
    }
    // Nothing can be stored: two messages at most, the error and how many results are not stored.
    for (name, fault) in [("full", (|o| o.full = true) as Fault), ("read-only", |o| o.read_only = true)] {
        let empty = Server::start(Options::default());
        fault(&mut empty.state().options);
        let machine = another(&first, name, "read-write").var("KFORGE_REMOTE_URL", empty.url());
        let built = online(&machine, &[]).expect(0).says("not stored in the remote cache");
        assert_eq!(warnings(&built), 2, "{name}: {}", built.stderr());
        assert_eq!(machine.report(), report, "{name}");
    }
    server.stop();
    let machine = another(&first, "dead", "read");
    let built = online(&machine, &[]).expect(0).says("cannot connect");
    assert_eq!((warnings(&built), machine.report()), (1, report), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: many builds"]
fn a_server_that_dies_while_a_build_reads_leaves_it_correct() {
    let server = Server::start(Options::default());
    let first = first(&server.url());
    let report = first.report();
    let (results, blobs) = {
        let state = server.state();
        (state.results.clone(), state.blobs.clone())
    };
    for after in [1, 3, 6, 10, 15, 20] {
        let mut server = Server::start(Options::default());
        {
            let mut state = server.state();
            (state.results, state.blobs) = (results.clone(), blobs.clone());
        }
        let machine = another(&first, &format!("after {after}"), "read").var("KFORGE_REMOTE_URL", server.url());
        let mut child = machine.command(&["build", "--message-format", "json"]).spawn().unwrap();
        while server.state().counts.all() < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.stop();
        let built = Built::of(&child.wait_with_output().unwrap()).expect(0);
        assert!(warnings(&built) <= 1, "{after}: {}", built.stderr());
        assert_eq!(machine.report(), report, "{after}");
    }
}

#[test]
#[ignore = "second tier: downloads buildbox-casd from the network"]
fn casd_serves_the_examples_to_a_second_machine() {
    let Some(mut casd) = Casd::start() else { return };
    for example in ["generated", "kernels", "quickstart"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
        if !folder.exists() {
            panic!("no example `{example}`");
        }
        let first = using(Project::new(), casd.url(), "read-write").var("KFORGE_REMOTE_HOLDOUT", "true");
        copy(&folder, first.root());
        let built = online(&first, &["--target", "cpu"]).expect(0);
        assert!(ran(&built) > 0 && warnings(&built) == 0, "{}", built.stderr());
        let other = another(&first, "second", "read");
        let built = online(&other, &["--target", "cpu"]).expect(0);
        assert_eq!((ran(&built), warnings(&built)), (0, 0), "{example}: {:?}", built.executed());
        assert_eq!(other.report(), first.report(), "{example}");
        // Killed before the next machine comes, it is one message.
        if example == "quickstart" {
            casd.kill();
            let third = another(&first, "third", "read");
            let built = online(&third, &["--target", "cpu"]).expect(0);
            assert_eq!((warnings(&built), third.report()), (1, first.report()), "{}", built.stderr());
        }
    }
}

/// Copies the files of a folder, without outputs.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().filter_entry(|entry| entry.file_name() != "target") {
        let entry = entry.unwrap();
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        match entry.file_type().is_dir() {
            true => std::fs::create_dir_all(place).unwrap(),
            false => drop(std::fs::copy(entry.path(), place).unwrap()),
        }
    }
}
