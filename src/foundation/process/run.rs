//! Runs a child until it ends, its time limit passes, or the build is interrupted. Does not know what the child does.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::channels::{Channels, Stream, TICK};
use super::resource_limits::LOOK;
use super::{Captured, Command, End, Rule};

/// A child that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// How long it ran.
    pub took: Duration,
}

/// Runs `command` to its end. Kills the child and everything it started after `limit`, or when `interrupted` is set. Also kills what the child left running in
/// its group. An error means that the child could not be started, or that the system did not report how it ended.
pub fn run(command: &Command, limit: Option<Duration>, interrupted: &AtomicBool) -> io::Result<Finished> {
    run_heard(command, limit, interrupted, &mut |_| {})
}

/// Like [`run`], and passes what the child writes to standard output to `heard` as it comes, in pieces of any length.
pub fn run_heard(
    command: &Command,
    limit: Option<Duration>,
    interrupted: &AtomicBool,
    heard: &mut dyn FnMut(&[u8]),
) -> io::Result<Finished> {
    let start = Instant::now();
    let (mut child, mut channels) = Channels::start(command, true)?;
    let (mut stdout, mut stderr) = (Captured::new(command.capture), Captured::new(command.capture));
    let mut sink = |stream, bytes: &[u8]| match stream {
        Stream::Out => {
            heard(bytes);
            stdout.push(bytes);
        }
        Stream::Err => stderr.push(bytes),
    };
    let (mut ours, mut looked) = (None, start);
    loop {
        let left = limit.map_or(TICK, |limit| limit.saturating_sub(start.elapsed()));
        // Wait one millisecond more than is left, because poll counts whole milliseconds and would spin through the last one.
        let ended = channels.step(&child, left.min(TICK) + Duration::from_millis(1), &mut sink)?;
        if ended {
            break;
        }
        if interrupted.load(Ordering::Relaxed) {
            ours = Some(End::Interrupted);
        } else if let Some(limit) = limit.filter(|limit| start.elapsed() >= *limit) {
            ours = Some(End::TimedOut(limit));
        } else if command.threads.is_some_and(|most| threads(child.pid()) > most) {
            ours = Some(End::Misbehaved(Rule::Threads));
        } else if let Some(room) = command.room.as_ref().filter(|_| looked.elapsed() >= LOOK) {
            ours = room.exceeded(std::process::id()).map(End::Misbehaved);
            looked = Instant::now();
        }
        if ours.is_some() {
            child.kill();
            break;
        }
    }
    let end = child.finish()?;
    Ok(Finished { end: ours.unwrap_or(end), stdout, stderr, took: start.elapsed() })
}

/// How many threads a process has; 0 if the system does not report it.
fn threads(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
