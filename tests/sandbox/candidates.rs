//! Candidates that misbehave, and print what they achieved. The deed is the first word of the request's only entry.
#![expect(unsafe_code, reason = "descriptors are guessed by number, as hostile code would")]
#![expect(clippy::disallowed_methods, reason = "a candidate ends the process as it likes")]

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{BorrowedFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use kforge::emulator::RunError;
use kforge::emulator::run::run_trials;
use kforge::harness::confine::candidate_thread;
use kforge::harness::message::{RunnerReport, RunnerRequest};
use rustix::process::{Pid, Resource, Rlimit, Signal};

/// Runs a compiled kernel if there is one; else does the deed and prints the result: `ok`, or the system's refusal.
pub(crate) fn run(request: &RunnerRequest, report: &mut dyn FnMut(RunnerReport)) -> Result<(), RunError> {
    if request.binary_fd >= 0 {
        return run_trials(request, report);
    }
    // As compiled kernels run: in a thread of their own, which this one speaks for.
    std::thread::scope(|scope| {
        let (say, said) = std::sync::mpsc::channel();
        scope.spawn(move || {
            candidate_thread().unwrap();
            for entry in &request.entries {
                let (deed, object) = entry.split_once(' ').unwrap_or((entry, ""));
                let text = match deed_of(deed, object) {
                    Ok(()) => "ok".to_string(),
                    Err(e) => format!("refused: {e}"),
                };
                say.send(text).unwrap();
            }
        });
        said.into_iter().for_each(|text| report(RunnerReport::Printed { text }));
    });
    Ok(())
}

fn borrowed(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: used for one call, which returns an error if the descriptor is not open.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn deed_of(deed: &str, object: &str) -> Result<(), String> {
    let pid = |text: &str| Pid::from_raw(text.parse().unwrap()).unwrap();
    fn say<T>(result: Result<T, impl std::fmt::Display>) -> Result<(), String> {
        result.map(|_| ()).map_err(|e| e.to_string())
    }
    match deed {
        "write" => say(fs::write(object, "spoilt")),
        "read" => say(fs::read(object)),
        "list" => say(fs::read_dir(object)),
        "remove" => say(fs::remove_file(object)),
        "chmod" => say(fs::set_permissions(object, fs::Permissions::from_mode(0o000))),
        "tcp" => say(TcpListener::bind("127.0.0.1:0")),
        "udp" => say(UdpSocket::bind("127.0.0.1:0")),
        "unix" => say(UnixDatagram::unbound()),
        "program" => say(std::process::Command::new("/bin/true").status()),
        "thread" => say(std::thread::Builder::new().spawn(|| {}).map(|t| t.join().unwrap())),
        "kill" => say(rustix::process::kill_process(pid(object), Signal::KILL)),
        "starve" => say(rustix::process::prlimit(
            Some(pid(object)),
            Resource::Cpu,
            Rlimit { current: Some(0), maximum: Some(0) },
        )),
        "feast" => say(rustix::process::setrlimit(Resource::As, Rlimit { current: None, maximum: None })),
        "crowd" => say(rustix::thread::sched_setaffinity(Some(pid(object)), &rustix::thread::CpuSet::new())),
        "own" => {
            // SAFETY: passes only numbers; the call ends the process.
            unsafe { libc::fcntl(0, libc::F_SETOWN, object.parse::<i32>().unwrap()) };
            Ok(())
        }
        "mem" => say(fs::read(format!("/proc/{object}/mem"))),
        "memfd" => say(rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::empty())),
        "leave" => say(rustix::process::setsid()),
        "survive" => say(rustix::process::set_parent_process_death_signal(None)),
        "allocate" => {
            let mut bytes: Vec<u8> = Vec::new();
            say(bytes.try_reserve_exact(object.parse().unwrap()))
        }
        "open" => say(rustix::io::fcntl_getfd(borrowed(object.parse().unwrap()))),
        "duplicate" => {
            // SAFETY: passes only numbers; the call ends the process.
            unsafe { libc::dup2(0, 1) };
            Ok(())
        }
        "ignore" | "block" => {
            // SAFETY: an ignored or blocked signal runs no code.
            unsafe {
                let mut all = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                if deed == "ignore" {
                    libc::signal(libc::SIGSYS, libc::SIG_IGN);
                } else {
                    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
                }
            }
            say(UnixDatagram::unbound())
        }
        "fork" => {
            // SAFETY: the call ends the process.
            unsafe { libc::fork() };
            Ok(())
        }
        "filter" => {
            let action = libc::SECCOMP_RET_LOG;
            // SAFETY: queries the available filters; changes nothing.
            unsafe { libc::syscall(libc::SYS_seccomp, 2, 0, &raw const action) };
            Ok(())
        }
        "scribble" => {
            // Writes to every descriptor that can be guessed, or to one. The files belong to others, so they are never closed.
            let all = if object.is_empty() { 3..200 } else { object.parse().unwrap()..200 };
            for fd in all {
                // SAFETY: a number without an open descriptor gives an error. The value is forgotten before it could close an open one.
                let mut file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
                let _ = file.write_all(b"{\"trial-done\":{\"trial\":0}}\n");
            }
            Ok(())
        }
        "hang" => loop {
            std::thread::park();
        },
        "abort" => std::process::abort(),
        "end" => std::process::exit(object.parse().unwrap()),
        "forge" => {
            // The report is the only pipe above the standard streams.
            let pipe = |fd: &i32| {
                fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|to| to.to_string_lossy().starts_with("pipe:"))
            };
            let fd = (3..64).find(pipe).ok_or("there is no report")?;
            say(rustix::io::write(borrowed(fd), b"{\"trial-done\":{\"trial\":0}}\n"))
        }
        other => Err(format!("no deed `{other}`")),
    }
}
