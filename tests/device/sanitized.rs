//! Verification under Compute Sanitizer, with a script in its place that starts the given program and writes what the tool would write.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kforge::harness::message::Response;
use kforge::model::Sanitizer;
use kforge::record::FindingKind;

use crate::lab::{Lab, Seen, counted, differing};

/// Reads its options as the tool does, records them, and prints to the log what the tool prints there. Then it runs the commands that are appended.
const SANITIZER: &str = r#"#!/bin/bash
here=${0%/*}
printf '%s\n' "$*" >> "$here/asked"
while [ $# -gt 0 ]; do
  case $1 in
    --xml) shift ;;
    --tool) tool=$2; shift 2 ;;
    --save) save=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
echo '========= COMPUTE-SANITIZER' > "${log:-/dev/stdout}"
"#;

/// Finds a race with racecheck, and nothing else.
const NORMAL: &str = r#""$@"
rc=$?
if [ $tool = racecheck ]; then cp "$here/racecheck.xml" "$save"; else echo '<?xml version="1.0"?><ComputeSanitizerOutput/>' > "$save"; fi
exit $rc
"#;

const RACE: &str = include_str!("../../src/cuda/device/sanitize/fixtures/racecheck.xml");

fn lab(does: &str, tools: &[Sanitizer]) -> Lab {
    let lab = Lab { sanitize: tools.to_vec(), ..Lab::new() };
    let tool = lab.dir.path().join("compute-sanitizer");
    fs::write(&tool, format!("{SANITIZER}{does}")).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(lab.dir.path().join("racecheck.xml"), RACE).unwrap();
    lab
}

fn failure(seen: &Seen) -> String {
    match &seen.response {
        Response::Failed { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn found() {
    let lab = lab(NORMAL, &[Sanitizer::Memcheck, Sanitizer::Racecheck]);
    let observed = lab.verify("honest").observed();
    let [race] = &observed.findings[..] else { panic!("{:?}", observed.findings) };
    assert_eq!((race.kind, race.line.clone()), (FindingKind::Race, Some(("k.cu".into(), 12))));
    assert_eq!((race.other_line.clone(), race.count), (Some(("k.cu".into(), 13)), 1024));
    assert_eq!((differing(&observed), counted(&observed)), (0, (2, 3)), "what else was seen stands");
    let asked = fs::read_to_string(lab.dir.path().join("asked")).unwrap();
    let tools: Vec<&str> = asked.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!((tools, lab.starts()), (vec!["memcheck", "racecheck"], 3), "a process each beside the warm one");
    let nothing = Lab { sanitize: vec![Sanitizer::Synccheck], ..lab };
    assert!(nothing.verify("honest").observed().findings.is_empty());
}

pub(crate) fn without() {
    let seen = Lab { sanitize: vec![Sanitizer::Memcheck], ..Lab::new() }.verify("honest");
    let why = matches!(&seen.response, Response::Unavailable { why } if why.contains("no `compute-sanitizer` on this machine"));
    assert!(why, "{:?}", seen.response);
}

pub(crate) fn failing() {
    let why = |does: &str| failure(&lab(does, &[Sanitizer::Memcheck]).verify("honest"));
    let told = why("echo '========= Error: no device' >> \"$log\"\nexit 1\n");
    assert_eq!(told, "memcheck: the device's runner exited with 1 (Error: no device)");
    assert!(why("\"$@\"\necho garbage > \"$save\"\n").contains("cannot be parsed: it ends within an element"));
    assert!(why("\"$@\"\n").contains("cannot be parsed"));
    let told = failure(&Lab { seconds: 2, ..lab("tail -f /dev/null\n", &[Sanitizer::Memcheck]) }.verify("honest"));
    assert!(told.starts_with("memcheck: the device's runner gave no answer within"), "{told}");
    // The findings that lead to a fault are listed once the fault has ended the runner.
    let late = lab("\"$@\"\ncp \"$here/racecheck.xml\" \"$save\"\n", &[Sanitizer::Racecheck]);
    let observed = late.verify("illegal").observed();
    assert!(observed.findings.iter().any(|f| f.kind == FindingKind::Race), "{:?}", observed.findings);
    // The findings of the launches without the tool count too. The driver's error under the tool adds nothing.
    let observed = lab(NORMAL, &[Sanitizer::Memcheck]).verify("illegal").observed();
    assert!(observed.findings.iter().all(|f| f.kind == FindingKind::OutOfBounds), "{:?}", observed.findings);
}
