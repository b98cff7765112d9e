//! Runners of a device are confined, and a driver that does not start in one is named with what it lacks.

use std::fs;
use std::process::{Command as System, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge::harness::message::Response;
use kforge::process::{Command, run};
use serde_json::Value;

use crate::lab::{Lab, differing};

fn why(response: &Response) -> String {
    match response {
        Response::Unavailable { why } => why.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn imprisoned() {
    let seen = Lab::new().verify("imprisoned").observed();
    assert_eq!((seen.findings.len(), differing(&seen), seen.trials.len()), (0, 0, seen.asked as usize), "{seen:?}");
    assert!(seen.unconfined.is_empty());
}

pub(super) fn lacking() {
    for (needs, named) in [("socket", "refused: open a socket (socket)"), ("/etc/passwd", "refused: read /etc/passwd")]
    {
        let lab = Lab::new();
        fs::write(lab.dir.path().join("needs"), needs).unwrap();
        let why = why(&lab.verify("honest").response);
        assert!(why.contains("the driver starts, but not in a confined process"), "{why}");
        assert!(why.contains("CUDA_ERROR_OPERATING_SYSTEM (304)"), "{why}");
        assert!(why.contains(named) && why.contains("--allow-unconfined"), "{why}");
        assert_eq!(why.matches("refused: ").count(), 1, "{why}");
    }
}

pub(super) fn listening() {
    let lab = Lab::new();
    fs::write(lab.dir.path().join("needs"), "listener").unwrap();
    assert!(lab.verify("honest").observed().unconfined.is_empty());
}

pub(super) fn permitted() {
    let lab = Lab { allow_unconfined: true, ..Lab::new() };
    // Permission alone leaves a runner confined.
    assert!(lab.verify("honest").observed().unconfined.is_empty());
    let lab = Lab { allow_unconfined: true, ..Lab::new() };
    fs::write(lab.dir.path().join("needs"), "socket").unwrap();
    let seen = lab.verify("honest").observed();
    assert_eq!((seen.findings.len(), differing(&seen)), (0, 0), "{seen:?}");
    assert!(seen.unconfined[0].contains("not in a confined process"), "{seen:?}");
    // What was refused before is not refused here: the same kernel leaves.
    assert!(differing(&lab.verify("imprisoned").observed()) > 0);
    let _ = fs::remove_file("/tmp/kforge-was-here");
}

pub(super) fn broken() {
    let lab = Lab::new();
    fs::write(lab.dir.path().join("needs"), "/no/such/file").unwrap();
    let why = why(&lab.verify("honest").response);
    assert!(why.contains("CUDA_ERROR_OPERATING_SYSTEM") && !why.contains("confined"), "{why}");
}

pub(super) fn examined() {
    let lab = Lab::new();
    let mut victim = System::new("/bin/sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (secret, made) = (outside.path().join("secret"), outside.path().join("made"));
    fs::write(&secret, "secret").unwrap();
    let pid = victim.id();
    let read = [secret.clone(), "/etc/passwd".into(), outside.path().into(), format!("/proc/{pid}/mem").into()];
    let targets = serde_json::json!({ "write": secret, "create": made, "read": read, "victim": pid });
    let command = Command::own().args(["worker", "--examine-driver", &targets.to_string()]).dir(lab.dir.path());
    let finished = run(&command, Some(Duration::from_secs(60)), &AtomicBool::new(false)).unwrap();
    let alive = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(finished.end.success(), "{}: {}", finished.end, finished.stderr.text());
    let text = finished.stdout.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let policy = |name: &str| {
        let found = lines.iter().find(|line| line["policy"]["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {text}"))["policy"]["findings"].clone()
    };
    for name in ["unconfined", "files", "calls", "both", "runner"] {
        assert!(policy(name)["error"].is_null(), "{name}: {}", policy(name));
    }
    // The driver itself writes its logs, and loads nothing that is refused.
    let logs = policy("both")["files"].to_string();
    assert!(logs.contains("starts"), "{logs}");
    let attempts = policy("runner")["attempts"].as_array().unwrap().clone();
    assert!(attempts.len() > 70, "{}", attempts.len());
    for attempt in &attempts {
        // What the driver needs.
        let what = attempt["what"].as_str().unwrap();
        let must_work = what.starts_with("start a thread") || what.starts_with("open a Unix socket");
        assert_eq!(attempt["refused"].is_null(), must_work, "{attempt}");
    }
    assert!(alive && fs::read_to_string(&secret).unwrap() == "secret" && !made.exists());
    assert!(lines.iter().any(|line| line["grant"]["what"] == "write /proc/self"), "{text}");
}
