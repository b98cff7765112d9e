//! A started child: its group, its pidfd and its end. Does not read or write its pipes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Command, End, family, when_not_busy};

/// A running child. Dropping it kills the child and all its descendants.
pub(super) struct Child {
    handle: duct::Handle,
    pid: u32,
    pidfd: OwnedFd,
    reaped: bool,
}

/// The three pipe ends that a child gets.
pub(super) struct Ends {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Child {
    pub(super) fn start(command: &Command, ends: Ends) -> io::Result<Child> {
        if !command.program.is_absolute() {
            let program = command.program.display();
            return Err(io::Error::other(format!("`{program}` is not an absolute path to a program")));
        }
        let (program, args) = match &command.limits {
            None => (command.program.clone(), command.args.clone()),
            Some(limits) => {
                let limits = serde_json::to_string(limits).map_err(io::Error::other)?;
                let mut args: Vec<OsString> = vec!["worker".into(), "--exec".into(), limits.into()];
                args.push(command.program.clone().into());
                args.extend(command.args.iter().cloned());
                ("/proc/self/exe".into(), args)
            }
        };
        let mut expression = duct::cmd(program, args)
            .full_env(&command.env)
            .stdin_file(ends.stdin)
            .stdout_file(ends.stdout)
            .stderr_file(ends.stderr)
            .unchecked()
            .before_spawn(|command| {
                std::os::unix::process::CommandExt::process_group(command, 0);
                Ok(())
            });
        if let Some(dir) = &command.dir {
            expression = expression.dir(dir);
        }
        let started = when_not_busy(|| start_with(&command.inherited, || expression.start()));
        let handle = started.map_err(|e| io::Error::new(e.kind(), format!("cannot start {}: {e}", command.line())))?;
        match identified(&handle) {
            Ok((pid, pidfd)) => Ok(Child { handle, pid, pidfd, reaped: false }),
            Err(e) => {
                end(&handle);
                Err(e)
            }
        }
    }

    /// A descriptor that becomes readable once the child has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills the child and everything it started.
    pub(super) fn kill(&self) {
        if !self.reaped {
            family::kill_family(self.pid);
        }
    }

    /// Waits for the child to end, then kills the rest of its group, so that no process outlives the child.
    pub(super) fn finish(&mut self) -> io::Result<End> {
        if !self.reaped {
            if super::channels::wait_readable(self.pidfd.as_fd(), None)? {
                // Kill the group before waiting for the child: until then the group id cannot belong to another process.
                family::kill_group(self.pid);
            }
            self.reaped = true;
        }
        Ok(End::of(self.handle.wait()?.status))
    }
}

/// Starts a child that inherits these descriptors. They are inheritable only while one start takes, because what another thread starts meanwhile inherits them
/// as well. If one of them stays inheritable, the child is killed, and the start is an error.
fn start_with(
    inherited: &[Arc<OwnedFd>],
    start: impl FnOnce() -> io::Result<duct::Handle>,
) -> io::Result<duct::Handle> {
    let opened = inherited.iter().try_for_each(|fd| fcntl_setfd(fd, FdFlags::empty()));
    let started = opened.map_err(io::Error::from).and_then(|()| start());
    // Every descriptor is closed to other children again, also after an error.
    let mut closed = Ok(());
    for fd in inherited {
        closed = closed.and(fcntl_setfd(fd, FdFlags::CLOEXEC));
    }
    match (started, closed) {
        (Ok(handle), Err(e)) => {
            end(&handle);
            Err(e.into())
        }
        (started, _) => started,
    }
}

/// The id of a child for which nobody has waited yet, so that the id still belongs to it, and its pidfd.
fn identified(handle: &duct::Handle) -> io::Result<(u32, OwnedFd)> {
    let pid = handle.pids().first().copied().ok_or_else(|| io::Error::other("a started child has no id"))?;
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("not a process id"))?;
    Ok((pid, pidfd_open(raw, PidfdFlags::empty())?))
}

/// Kills a child that nobody will get to know, with everything that it started, and reaps it.
fn end(handle: &duct::Handle) {
    handle.pids().into_iter().for_each(family::kill_family);
    // Without an id, only the library knows the child.
    let _ = handle.kill();
    let _ = handle.wait();
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            let _ = self.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        unsafe_code,
        reason = "a descriptor is closed behind its owner's back, which makes the next call on it fail"
    )]

    use std::mem::ManuallyDrop;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_child_whose_start_fails_half_way_is_killed_and_reaped() {
        let (reader, _writer) = io::pipe().unwrap();
        // No other test opens a descriptor with so high a number.
        let fd = rustix::io::fcntl_dupfd_cloexec(&reader, 900).unwrap();
        let raw = fd.as_raw_fd();
        let fd = ManuallyDrop::new(Arc::new(fd));
        let mut pid = 0;
        let started = start_with(&[Arc::clone(&fd)], || {
            let sleeps = duct::cmd!("/bin/sleep", "60").before_spawn(|command| {
                command.process_group(0);
                Ok(())
            });
            let handle = sleeps.start()?;
            pid = handle.pids()[0];
            // SAFETY: the owner never drops it.
            unsafe { rustix::io::close(raw) };
            Ok(handle)
        });
        assert_eq!(started.err().and_then(|e| e.raw_os_error()), Some(libc::EBADF));
        assert!(pid > 0 && !std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
    }

    #[test]
    fn a_descriptor_is_inheritable_only_while_a_child_starts() {
        let (reader, _writer) = io::pipe().unwrap();
        let fd = Arc::new(OwnedFd::from(reader));
        let flags = || rustix::io::fcntl_getfd(&fd).unwrap();
        let mut meanwhile = FdFlags::CLOEXEC;
        let refused = start_with(&[Arc::clone(&fd)], || {
            meanwhile = flags();
            Err(io::Error::from(io::ErrorKind::NotFound))
        });
        assert_eq!(refused.err().map(|e| e.kind()), Some(io::ErrorKind::NotFound));
        assert_eq!((meanwhile, flags()), (FdFlags::empty(), FdFlags::CLOEXEC));
    }
}
