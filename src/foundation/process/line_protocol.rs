//! A child that answers each line with a line. Knows lines; does not know what the lines mean.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::channels::{Channels, Stream, TICK, wait_readable};
use super::child::Child;
use super::resource_limits::LOOK;
use super::{Captured, Command, End, Room, Rule};

/// Maximum length of an answer, in bytes. Answers hold messages and digests; bulk data goes through files.
const LONGEST: usize = 64 << 20;
/// How many bytes of the child's standard error are kept between two answers by default.
const STDERR: usize = 64 << 10;

/// A running child that answers each line on its standard input with one line on its standard output. Dropping it kills the child and all its descendants.
pub struct Talker {
    child: Child,
    channels: Channels,
    out: Vec<u8>,
    err: Captured,
    /// How many bytes of its standard error are kept between two answers.
    most_err: usize,
    /// How long to poll for an answer without sleeping.
    awake: Duration,
}

/// Why a child gave no answer. The child has ended.
#[derive(Debug, Clone)]
pub struct Died {
    /// How the child ended.
    pub end: End,
    /// What the child wrote to standard error since its last answer.
    pub stderr: Captured,
}

impl Talker {
    /// Starts the child.
    pub fn start(command: &Command) -> io::Result<Self> {
        let (child, channels) = Channels::start(command, false)?;
        let err = Captured::new(STDERR);
        Ok(Talker { child, channels, out: Vec::new(), err, most_err: STDERR, awake: Duration::ZERO })
    }

    /// Keeps at most this many bytes of standard error between two answers.
    #[must_use]
    pub fn keeping(self, bytes: usize) -> Self {
        Talker { most_err: bytes, ..self }
    }

    /// Polls for answers without sleeping for this long. For a child that answers often and within this time.
    pub fn awake(self, awake: Duration) -> Self {
        Talker { awake, ..self }
    }

    /// The process id of the child, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Whether the child is still running.
    pub fn is_alive(&self) -> bool {
        !matches!(wait_readable(self.child.ended(), Some(Duration::ZERO)), Ok(true))
    }

    /// Sends a line and waits at most `limit` for the answer. After any error, the child and its descendants have been killed. The inner error is how the child
    /// ended; the outer error is an error of the system.
    pub fn exchange(
        self,
        line: &str,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> io::Result<Result<(Self, String), Died>> {
        self.exchange_in(None, line, limit, interrupted)
    }

    /// The same, and kills the child if its descendants exceed the limits of `room`. The child must adopt orphans ([`super::family::adopt_orphans`]).
    pub fn exchange_in(
        mut self,
        room: Option<&Room>,
        line: &str,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> io::Result<Result<(Self, String), Died>> {
        let start = Instant::now();
        let mut looked = start;
        self.channels.send(line.as_bytes());
        self.channels.send(b"\n");
        self.err = Captured::new(self.most_err);
        // A line that came before the question is not an answer to it.
        let mut ours = (!self.out.is_empty()).then_some(End::Misbehaved(Rule::Unasked));
        while ours.is_none() {
            let wait = if start.elapsed() < self.awake { Duration::ZERO } else { TICK };
            let (out, err) = (&mut self.out, &mut self.err);
            let fresh = out.len();
            let ended = self.channels.step(&self.child, wait, &mut |stream, bytes| match stream {
                Stream::Out => out.extend_from_slice(bytes),
                Stream::Err => err.push(bytes),
            })?;
            if let Some(at) = self.out[fresh..].iter().position(|b| *b == b'\n') {
                let rest = self.out.split_off(fresh + at + 1);
                let answer = std::mem::replace(&mut self.out, rest);
                return Ok(Ok((self, String::from_utf8_lossy(&answer[..answer.len() - 1]).into_owned())));
            }
            if ended {
                break;
            }
            if interrupted.load(Ordering::Relaxed) {
                ours = Some(End::Interrupted);
            } else if start.elapsed() >= limit {
                ours = Some(End::TimedOut(limit));
            } else if self.out.len() > LONGEST {
                ours = Some(End::Misbehaved(Rule::Answer));
            } else if let Some(room) = room.filter(|_| looked.elapsed() >= LOOK) {
                ours = room.exceeded(self.child.pid()).map(End::Misbehaved);
                looked = Instant::now();
            }
        }
        self.child.kill();
        let end = self.child.finish()?;
        Ok(Err(Died { end: ours.unwrap_or(end), stderr: self.err.clone() }))
    }

    /// What the child wrote to standard error since the last question.
    pub fn stderr(&self) -> &Captured {
        &self.err
    }

    /// Closes the child's input, which makes a worker exit. Kills the child if it has not ended within `grace`.
    pub fn dismiss(mut self, grace: Duration) -> io::Result<End> {
        let start = Instant::now();
        self.channels.close();
        while start.elapsed() < grace {
            if self.channels.step(&self.child, TICK, &mut |_, _| {})? {
                break;
            }
        }
        self.child.kill();
        self.child.finish()
    }
}
