//! A started child: its group, its pidfd and its end. Does not read or write its pipes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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
        let started = when_not_busy(|| {
            // They are inheritable only while one start takes, because what another thread starts meanwhile inherits them as well.
            for fd in &command.inherited {
                fcntl_setfd(fd, FdFlags::empty())?;
            }
            let started = expression.start();
            for fd in &command.inherited {
                fcntl_setfd(fd, FdFlags::CLOEXEC)?;
            }
            started
        });
        let handle = started.map_err(|e| io::Error::new(e.kind(), format!("cannot start {}: {e}", command.line())))?;
        let pid = handle.pids().first().copied().ok_or_else(|| io::Error::other("a started child has no id"))?;
        let raw =
            i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("not a process id"))?;
        // Nobody has waited for the child yet, so the id still belongs to it.
        let pidfd = match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(e) => {
                family::kill_family(pid);
                let _ = handle.wait();
                return Err(e.into());
            }
        };
        Ok(Child { handle, pid, pidfd, reaped: false })
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

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            let _ = self.finish();
        }
    }
}
