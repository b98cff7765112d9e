//! Concurrent builds: in one workspace, one after the other; in several workspaces with one home, no step twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;

use crate::processes::comes_to_pass;
use crate::project::{Built, Project};
use crate::sample::{sample, unbuilt};

/// The sample, with a compiler that waits for [`go`] when it is first called.
fn held() -> Project {
    let project = unbuilt();
    let (held, go) = (project.place().join("held"), project.place().join("go"));
    let wrapper = project.place().join("slow-c++");
    let script = format!(
        "#!/bin/sh\ntouch '{}' 2>/dev/null\nn=0\nwhile [ -d '{}' ] && [ ! -e '{}' ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done\nexec c++ \"$@\"\n",
        held.display(),
        project.place().display(),
        go.display()
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    project.var("KFORGE_TOOLCHAIN_CXX", wrapper)
}

fn go(project: &Project) {
    fs::write(project.place().join("go"), "").unwrap();
}

#[test]
fn the_second_build_of_a_workspace_waits_says_so_and_finds_the_work_done() {
    let project = held();
    let first = project.building(&[]).spawn().unwrap();
    assert!(
        comes_to_pass(|| project.place().join("held").exists()),
        "the first build asks its compiler, holding the workspace"
    );
    let mut second = project.building(&[]).spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("Blocking waiting for"), "{line}");
    // A build with `--no-wait` ends at once.
    project.build(&["--no-wait"]).expect(75).says("--no-wait");
    go(&project);
    let first = Built::of(&first.wait_with_output().unwrap()).expect(0);
    said.read_to_string(&mut line).unwrap();
    let second = Built::of(&second.wait_with_output().unwrap()).expect(0);
    assert!(first.count("executed") > 0);
    assert_eq!((second.count("executed"), second.count("fresh")), (0, first.count("total")), "{line}");
}

#[test]
fn what_was_locked_while_a_build_waited_counts() {
    let project = sample();
    project.built(&[]);
    let lock = fs::File::options().append(true).open(project.target().join(".lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // With `-v`, no certificate answers.
    let mut second = project.building(&["-v"]).spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut text = String::new();
    said.read_line(&mut text).unwrap();
    assert!(text.contains("Blocking waiting for"), "{text}");
    project.write("kforge.lock", "version = 999\nkforge = \"99.0\"\n");
    drop(lock);
    said.read_to_string(&mut text).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(101), "{text}");
    assert!(text.contains("99.0"), "{text}");
}

#[test]
fn a_dry_run_waits_for_nobody() {
    let project = sample();
    project.built(&[]);
    let lock = project.target().join(".lock");
    // Locked as another build would lock it.
    let file = fs::File::options().append(true).open(lock).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(project.dry_run().0.len(), 0);
    project.build(&["--no-wait"]).expect(75);
}

#[test]
#[ignore = "second tier: builds many workspaces at once"]
fn builds_of_several_workspaces_at_once_execute_no_key_twice() {
    let project = unbuilt();
    let all: Vec<Project> = (0..3).map(|n| project.cloned(&format!("clone-{n}"))).collect();
    let children: Vec<_> = all.iter().map(|p| p.building(&["-j2"]).spawn().unwrap()).collect();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut totals = vec![];
    for child in children {
        let built = Built::of(&child.wait_with_output().unwrap()).expect(0);
        // Each verification draws inputs of its own, so equal kernels may be judged under different keys.
        for step in built.finished().filter(|s| s["outcome"] == "executed" && s["kind"] != "judge") {
            *times.entry(step["key"].to_string()).or_default() += 1;
        }
        totals.push(built.keys());
    }
    let twice: Vec<_> = times.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(totals.windows(2).all(|w| w[0] == w[1]));
    assert_eq!(all[0].report(), all[2].report());
    // Together, the builds executed as many steps as a single one would.
    let alone = unbuilt().built(&[]);
    let alone = alone.finished().filter(|s| s["outcome"] == "executed" && s["kind"] != "judge").count();
    assert_eq!(times.len(), alone);
}
