//! `kforge build --watch`, as a process: it builds after edits, waits on after mistakes, and ends when it is interrupted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::place::{Place, SOURCE};

/// How long the program may take for what it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that watches.
struct Watching {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

/// The lines of a stream, as they come.
fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

impl Watching {
    fn start(place: &Place, words: &str) -> Self {
        // Files that were written just now could have been written during the first build.
        std::thread::sleep(Duration::from_millis(100));
        let mut command: Command = place.command(&words.split_whitespace().collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Watching { child, out, err }
    }

    /// Waits for a line with this text, and returns all lines up to it.
    #[track_caller]
    fn says(&self, text: &str) -> Vec<String> {
        let mut all: Vec<String> = vec![];
        loop {
            match self.err.recv_timeout(PATIENCE) {
                Ok(line) => all.push(line),
                Err(e) => panic!("no `{text}` ({e}) in:\n{}", all.join("\n")),
            }
            if all.last().is_some_and(|line| line.contains(text)) {
                return all;
            }
        }
    }

    /// Interrupts the program, and returns its exit code.
    fn interrupted(self) -> Option<i32> {
        self.interrupted_after().0
    }

    /// Interrupts the program, and returns its exit code and all lines of its standard output that were not read before.
    ///
    /// The two streams are read by two threads, so a line on standard error does not show that what was printed before it on standard output has arrived.
    fn interrupted_after(mut self) -> (Option<i32>, Vec<String>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, self.out.iter().collect())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "second tier: waits for builds"]
fn a_build_follows_each_edit_of_what_was_read() {
    let place = Place::tiny().file("notes.txt", "").alone();
    let watching = Watching::start(&place, "build --watch");
    watching.says("Finished");
    watching.says("Watching");
    // A file that no build reads is no reason to build.
    std::fs::write(place.at("notes.txt"), "more").unwrap();
    std::thread::sleep(Duration::from_millis(700));
    place.edit("twice.cu", "2.0f * x[i]", "x[i] + x[i]");
    let all = watching.says("Watching");
    assert!(all[0].trim_start().starts_with("Changed twice.cu"), "{all:?}");
    assert!(all.iter().any(|line| line.contains("verdicts: ") && !line.contains("0 executed")), "{all:?}");
    // A mistake is told, and the next edit mends it.
    place.edit("twice.cu", "x[i] + x[i]", "3.0f * x[i]");
    let all = watching.says("Watching").join("\n");
    assert!(all.contains("error") && all.contains("Changed twice.cu"), "{all}");
    std::fs::write(place.at("twice.cu"), SOURCE).unwrap();
    watching.says("Finished");
    watching.says("Watching");
    assert_eq!(watching.interrupted(), Some(0));
}

#[test]
#[ignore = "second tier: waits for builds"]
fn a_broken_manifest_and_a_missing_source_are_told_and_waited_for() {
    let place = Place::tiny();
    let watching = Watching::start(&place, "check --watch");
    watching.says("Watching");
    let whole = place.read("kernel.toml");
    // Half of a manifest, as an editor may leave it for a moment or for longer.
    std::fs::write(place.at("kernel.toml"), &whole[..whole.len() / 2]).unwrap();
    let all = watching.says("Watching").join("\n");
    assert!(all.contains("Changed kernel.toml") && all.contains("error"), "{all}");
    std::fs::write(place.at("kernel.toml"), &whole).unwrap();
    watching.says("Finished");
    watching.says("Watching");
    std::fs::rename(place.at("twice.cu"), place.at("elsewhere.cu")).unwrap();
    let all = watching.says("Watching").join("\n");
    assert!(all.contains("Changed twice.cu") && all.contains("error"), "{all}");
    std::fs::rename(place.at("elsewhere.cu"), place.at("twice.cu")).unwrap();
    watching.says("Finished");
    watching.says("Watching");
    // The code is that of the last build.
    place.edit("twice.cu", "int i =", "int i = =");
    watching.says("Watching");
    assert_eq!(watching.interrupted(), Some(101));
}

#[test]
fn without_a_manifest_nothing_is_watched() {
    let place = Place::empty();
    place.run("build --watch").expect(101).says("kernel.toml");
    place.run("build --watch --dry-run").expect(2);
}

#[test]
#[ignore = "second tier: waits for builds"]
fn as_json_the_events_of_one_build_follow_those_of_the_other() {
    let place = Place::tiny();
    let watching = Watching::start(&place, "check --watch --message-format json");
    watching.says("Watching");
    place.edit("twice.cu", "2.0f * x[i]", "x[i] + x[i]");
    watching.says("Watching");
    let (code, lines) = watching.interrupted_after();
    assert_eq!(code, Some(0));
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons: Vec<&str> = events.iter().map(|event| event["reason"].as_str().unwrap()).collect();
    let turns: Vec<&&str> = reasons.iter().filter(|r| !r.starts_with("step") && **r != "champion").collect();
    assert_eq!(turns, [&"build-started", &"build-finished", &"files-changed", &"build-started", &"build-finished"]);
    let changed = events.iter().find(|event| event["reason"] == "files-changed").unwrap();
    assert_eq!(changed["files"], serde_json::json!(["twice.cu"]));
}
