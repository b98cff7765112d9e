//! The cost of a build that has nothing to do: the real `kforge build` at about 10,000 and 100,000 steps, answered from its certificate and planned, beside
//! ninja on a graph of the same shape (as many edges in chains of the same length, as many files). A stub in place of compilers and candidates produces the
//! steps' results; everything else is the real program. Prints medians in milliseconds, and the ratio to ninja.
//!
//! For only one size: `cargo bench --bench noop -- 10000`.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench prints its result, and stops where it cannot be set up"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kforge::engine;
use kforge::workspace::select::SelectionArgs;

mod stub;

/// Kernels per package.
const KERNELS: usize = 10;

/// Steps per kernel: generate, select, calibrate, four oracles, and for each of two variants compile, inspect, verify and judge.
const STEPS_A_KERNEL: usize = 15;

fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![10_000, 100_000] } else { asked };
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    for steps in sizes {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (root, home) = (dir.path().join("work"), dir.path().join("home"));
        let packages = steps.div_ceil(STEPS_A_KERNEL * KERNELS);
        stub::write(&root, stub::Size { packages, kernels: KERNELS }).expect("the workspace can be written");
        let took = Instant::now();
        let (made, leaves) = fill(&root, &home);
        println!("{made:>7} steps over {leaves} files, filled in {:.1} s", took.elapsed().as_secs_f64());
        let kforge = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
            command.args(["build", "--offline"]).args(words).current_dir(&root).env("KFORGE_HOME", &home);
            command
        };
        // The first build reads the files' digests again, and the second may write a certificate.
        for _ in 0..3 {
            let said = kforge(&[]).output().expect("kforge runs");
            let text = String::from_utf8_lossy(&said.stderr);
            assert!(text.contains(" 0 executed"), "nothing is left to do: {text}");
        }
        let certificate = root.join("target/kforge/certificate");
        assert!(certificate.exists(), "the build was certified");
        let ninja = ninja_workspace(&dir.path().join("ninja"), made, leaves);
        let (mut proven, mut planned, mut peer) = (vec![], vec![], vec![]);
        for _ in 0..7 {
            proven.push(time(&mut kforge(&[])));
            // `-v` makes the build plan; here it prints nothing more.
            planned.push(time(&mut kforge(&["-v"])));
            if ninja {
                peer.push(time(Command::new("ninja").current_dir(dir.path().join("ninja"))));
            }
        }
        let (proven, planned) = (median(proven), median(planned));
        println!("{made:>7} steps, certified: {proven:8.1} ms");
        println!("{made:>7} steps, planned:   {planned:8.1} ms");
        if ninja {
            let peer = median(peer);
            println!(
                "{made:>7} edges, ninja:     {peer:8.1} ms, {:.2} times the certified, {:.2} times the planned",
                peer / proven,
                peer / planned
            );
        } else {
            println!("ninja is not installed: nothing to compare with");
        }
    }
}

fn time(command: &mut Command) -> Duration {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("it runs");
    let took = start.elapsed();
    assert!(status.success(), "it succeeds");
    took
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    all[all.len() / 2].as_secs_f64() * 1e3
}

/// Builds the workspace with the stub. Returns the numbers of steps and files.
fn fill(root: &Path, home: &Path) -> (usize, usize) {
    let session = stub::session(root, home);
    let mut opened = session.open().expect("the workspace opens");
    let selected = session.select(&opened.workspace, &SelectionArgs::default()).expect("there are packages");
    let asked = stub::asked(selected, None);
    let packages = session.packages(&opened, &asked).expect("there are packages");
    let ready = session.ready(&mut opened, &packages, &asked).expect("the workspace is planned");
    let stub = stub::Stub::default();
    let outcome = ready.with_remote(&session, &opened, &stub, |services| {
        engine::build(ready.graph.clone(), &ready.options, services, &mut |_| {})
    });
    ready.journal.flush().expect("the journal can be written");
    assert_eq!(outcome.counts.failed, 0, "the stand-ins never fail");
    let leaves = ready.witness.files.iter().filter(|f| f.starts_with(root)).count();
    (outcome.counts.total as usize, leaves)
}

/// As many edges, in chains, over as many files. Returns whether ninja is installed.
fn ninja_workspace(folder: &Path, edges: usize, leaves: usize) -> bool {
    if Command::new("ninja").arg("--version").stdout(Stdio::null()).status().is_err() {
        return false;
    }
    std::fs::create_dir_all(folder).expect("a folder");
    let mut text = String::from("rule make\n  command = true\n");
    for leaf in 0..leaves {
        std::fs::write(folder.join(format!("s{leaf}")), format!("{leaf}")).expect("a file");
        let length = edges / leaves + usize::from(leaf < edges % leaves);
        for at in 0..length {
            let from = if at == 0 { format!("s{leaf}") } else { format!("o{leaf}_{}", at - 1) };
            text.push_str(&format!("build o{leaf}_{at}: make {from}\n"));
            std::fs::write(folder.join(format!("o{leaf}_{at}")), "").expect("a file");
        }
    }
    std::fs::write(folder.join("build.ninja"), text).expect("a file");
    // The outputs already exist, with times in the right order. Even so, ninja must run once, or its log stays empty.
    let built = Command::new("ninja").current_dir(folder).stdout(Stdio::null()).status();
    built.is_ok_and(|s| s.success())
}
