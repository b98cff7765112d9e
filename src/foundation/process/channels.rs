//! The pipes to a child, served by one thread: the thread writes the input, reads the output and notices when the child ends. Does not know what the bytes
//! mean.
#![expect(unsafe_code, reason = "poll is a system call on an array of descriptors")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::Command;
use super::child::{Child, Ends};

/// The longest sleep before the caller checks its interruption flag and its clock again.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Which pipe bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The ends that this process holds of the pipes to a child.
pub(super) struct Channels {
    stdin: Option<File>,
    unsent: Vec<u8>,
    sent: usize,
    close_when_sent: bool,
    stdout: Option<File>,
    stderr: Option<File>,
}

impl Channels {
    /// Starts a child with three pipes. `close` says whether the child's input is closed after the input of `command` is written.
    pub(super) fn start(command: &Command, close: bool) -> io::Result<(Child, Channels)> {
        let (in_read, in_write) = io::pipe()?;
        let (out_read, out_write) = io::pipe()?;
        let (err_read, err_write) = io::pipe()?;
        let (stdin, stdout, stderr): (OwnedFd, OwnedFd, OwnedFd) = (in_write.into(), out_read.into(), err_read.into());
        for fd in [&stdin, &stdout, &stderr] {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let ends = Ends { stdin: in_read.into(), stdout: out_write.into(), stderr: err_write.into() };
        let child = Child::start(command, ends)?;
        let channels = Channels {
            stdin: Some(stdin.into()),
            unsent: command.stdin.clone(),
            sent: 0,
            close_when_sent: close,
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
        };
        Ok((child, channels))
    }

    /// Queues bytes for the child's input. [`Channels::step`] writes them as the child reads.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.unsent.drain(..self.sent);
        self.sent = 0;
        self.unsent.extend_from_slice(bytes);
    }

    /// Closes the child's input.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Writes what can be written, reads what is available into `sink`, and returns whether the child has ended. Sleeps at most `wait` if there is nothing to
    /// do.
    pub(super) fn step(
        &mut self,
        child: &Child,
        wait: Duration,
        sink: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<bool> {
        if self.sent == self.unsent.len() && self.close_when_sent {
            self.stdin = None;
        }
        let unsent = self.sent < self.unsent.len();
        let mut polled = [
            entry(Some(child.ended()), libc::POLLIN),
            entry(self.stdin.as_ref().filter(|_| unsent).map(AsFd::as_fd), libc::POLLOUT),
            entry(self.stdout.as_ref().map(AsFd::as_fd), libc::POLLIN),
            entry(self.stderr.as_ref().map(AsFd::as_fd), libc::POLLIN),
        ];
        poll(&mut polled, Some(wait))?;
        if polled[1].revents != 0 {
            self.write()?;
        }
        if polled[2].revents != 0 {
            drain(&mut self.stdout, &mut |bytes| sink(Stream::Out, bytes))?;
        }
        if polled[3].revents != 0 {
            drain(&mut self.stderr, &mut |bytes| sink(Stream::Err, bytes))?;
        }
        let ended = polled[0].revents != 0;
        if ended {
            // The child may have written after the read above and before its end. Do not read to the end of the pipe, because a descendant may hold the pipe
            // open.
            drain(&mut self.stdout, &mut |bytes| sink(Stream::Out, bytes))?;
            drain(&mut self.stderr, &mut |bytes| sink(Stream::Err, bytes))?;
        }
        Ok(ended)
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write(&self.unsent[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The child closed its input, so it does not need the rest.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// Maximum number of bytes read from one pipe at a time, so that a child that writes endlessly cannot prevent the check of its time limit.
const GULP: usize = 1 << 20;

fn drain(pipe: &mut Option<File>, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = [0u8; 1 << 16];
    let mut taken = 0;
    while let Some(file) = pipe
        && taken < GULP
    {
        match file.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(n) => {
                taken += n;
                sink(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn entry(fd: Option<BorrowedFd<'_>>, events: i16) -> libc::pollfd {
    // poll ignores a negative descriptor.
    libc::pollfd { fd: fd.map_or(-1, |fd| fd.as_raw_fd()), events, revents: 0 }
}

fn poll(entries: &mut [libc::pollfd], wait: Option<Duration>) -> io::Result<()> {
    let ms = wait.map_or(-1, |w| i32::try_from(w.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the pointer and the length are those of a slice we hold exclusively, and the descriptors in it are open or negative.
    let n = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, ms) };
    match n {
        0.. => Ok(()),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            e => Err(e),
        },
    }
}

/// Polls for input for at most this long without sleeping. Waking a thread takes longer than many messages do, especially on a virtual machine.
pub fn look_for(fd: BorrowedFd<'_>, awake: Duration) {
    let began = Instant::now();
    while began.elapsed() < awake && matches!(wait_readable(fd, Some(Duration::ZERO)), Ok(false)) {
        std::hint::spin_loop();
    }
}

/// Waits until a descriptor is readable. Returns false after `wait`.
pub(super) fn wait_readable(fd: BorrowedFd<'_>, wait: Option<Duration>) -> io::Result<bool> {
    loop {
        let mut entries = [entry(Some(fd), libc::POLLIN)];
        poll(&mut entries, wait)?;
        if entries[0].revents != 0 {
            return Ok(true);
        }
        if wait.is_some() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_for_something_stops_once_it_is_there_and_once_nothing_will_come() {
        let hour = Duration::from_secs(3600);
        let (reader, mut writer) = io::pipe().unwrap();
        look_for(reader.as_fd(), Duration::ZERO);
        writer.write_all(b"x").unwrap();
        look_for(reader.as_fd(), hour);
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        look_for(reader.as_fd(), hour);
    }
}
