//! Host functions that launch kernels, run on the mock driver by the process in which a build would run them.

use std::fs;
use std::path::Path;

use kforge::harness::message::Response;
use kforge::record::params::{HostLaunch, VerifyParams};
use kforge::record::{Determinism, FindingKind, Verdict, VerifyObservation};

use crate::lab::{Lab, Seen, built, counted, differing};

/// The parameters of a kernel that the function launches.
fn params(lab: &Lab, function: &str) -> VerifyParams {
    let host = Some(HostLaunch { function: function.into(), protocol: 1 });
    VerifyParams { entries: vec![], launches: vec![], host, ..lab.params("none") }
}

fn verify(lab: &Lab, function: &str) -> Seen {
    let library = fs::read(built().join("launchers.so")).unwrap();
    lab.verify_on(&params(lab, function), vec![("binary".into(), library)])
}

fn observed(function: &str) -> VerifyObservation {
    verify(&Lab::new(), function).observed()
}

pub(super) fn right() {
    for function in ["honest", "threaded"] {
        let seen = verify(&Lab::new(), function);
        let observed = seen.observed();
        assert_eq!((&observed.findings[..], counted(&observed)), (&[][..], (2, 3)), "{function}: {observed:?}");
        assert_eq!((differing(&observed), &observed.determinism), (0, &Determinism::Stable), "{function}");
        assert!(observed.is_host_launched() && observed.unconfined.is_empty(), "{observed:?}");
        assert_eq!(observed.ran_as, "host-launched, NVIDIA Test (sm_90, driver 1)");
        let Response::Done { summary, .. } = &seen.response else { panic!("{:?}", seen.response) };
        assert!(summary.ends_with("host-launched"), "{summary}");
    }
}

pub(super) fn wrong() {
    for (function, kind, says) in [
        ("does_nothing", FindingKind::Unwritten, "`y` was not written"),
        ("past_the_end", FindingKind::Canary, "after `y` were written"),
        ("changes_inputs", FindingKind::InputModified, "`x` was changed"),
        ("gives_up", FindingKind::LaunchRefused, "`gives_up` returned 7, where 0 is success"),
        ("leaves", FindingKind::Exited, "before it finished"),
        ("crashes", FindingKind::Crash, "signal 11"),
        ("forges", FindingKind::Exited, "before it finished"),
        ("excuses", FindingKind::Protocol, "claims that `it` is not emulated, but it runs on a device"),
        ("opens_sockets", FindingKind::Forbidden, "open a socket (socket)"),
        ("starts_processes", FindingKind::Forbidden, "start a process (clone)"),
        ("daemonises", FindingKind::Forbidden, "start a process (clone)"),
        ("leaves_its_group", FindingKind::Forbidden, "leave its process group (setsid)"),
        ("outlives_its_parent", FindingKind::Forbidden, "leave its confinement (prctl)"),
        ("signals_others", FindingKind::Forbidden, "send a signal to another process (kill)"),
        ("removes_files", FindingKind::Forbidden, "make, rename or remove files (unlink)"),
        ("no_such_function", FindingKind::Crash, "no function `no_such_function`"),
    ] {
        let observed = observed(function);
        let found = observed.findings.iter().find(|finding| finding.kind == kind);
        assert!(found.is_some_and(|f| f.message.contains(says)), "{function}: {:?}", observed.findings);
    }
    assert!(differing(&observed("wrong")) > 0);
    // The kernel is correct alone, and returns its previous answer when it is called again.
    let kept = observed("first_answer");
    let after = |t: &&kforge::record::TrialObserved| t.distribution.ends_with(", after other inputs");
    assert!(kept.trials.iter().filter(after).any(|t| !t.outputs[0].front.is_empty()), "{kept:?}");
    assert!(!kept.trials.iter().filter(|t| !after(t)).any(|t| !t.outputs[0].front.is_empty()), "{kept:?}");
}

pub(super) fn endless() {
    let lab = Lab { seconds: 1, ..Lab::new() };
    let mut params = params(&lab, "endless");
    params.trials.truncate(1);
    let library = fs::read(built().join("launchers.so")).unwrap();
    let seen = lab.verify_on(&params, vec![("binary".into(), library)]);
    assert!(seen.forgotten());
    assert_eq!(seen.observed().findings[0].kind, FindingKind::NoProgress);
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if why.contains("timed out")));
}

pub(super) fn files() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/launchers.cpp");
    let before = fs::read(&source).unwrap();
    for function in ["reads_files", "reads_the_verifier", "writes_files", "makes_files"] {
        let found = observed(function).findings;
        // EACCES.
        assert!(found.iter().any(|f| f.message.contains("returned 13,")), "{function}: {found:?}");
    }
    assert_eq!(fs::read(&source).unwrap(), before);
    assert!(!source.with_extension("cpp.made").exists());
}
