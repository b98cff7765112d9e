//! Tries what a process with a driver must not be able to do, from inside such a process, by plain system calls. Knows the attempts and their targets; whether an
//! attempt that succeeds is an error is decided by whoever asked for it.
//!
//! The attempts are those of `tests/sandbox`, plus those that only the superuser could make elsewhere.
#![expect(unsafe_code, reason = "hostile code makes system calls")]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use libc as c;
use serde::{Deserialize, Serialize};

/// What the attempts aim at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Targets {
    /// A file that exists, and that a runner may not change.
    write: PathBuf,
    /// A file that does not exist.
    create: PathBuf,
    /// Files and folders that a runner may not read.
    read: Vec<PathBuf>,
    /// Another process of this user.
    victim: i32,
}

/// An attempt and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::device) struct Attempted {
    /// What was tried.
    what: String,
    /// The system's refusal; none if the attempt succeeded.
    refused: Option<String>,
}

/// Makes every attempt, in this thread and then again in a new one.
pub(super) fn attempt(targets: &Targets) -> Vec<Attempted> {
    let mut all = attempts(targets, "");
    let again = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || attempts(targets, ", in a new thread"));
        thread.map(|thread| thread.join().unwrap_or_default())
    });
    let started = Attempted {
        what: "start a thread (must work)".into(),
        refused: again.as_ref().err().map(io::Error::to_string),
    };
    all.push(started);
    all.extend(again.unwrap_or_default());
    all
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn attempts(targets: &Targets, said: &str) -> Vec<Attempted> {
    let Targets { write, create, read, victim } = targets;
    let victim = *victim;
    let mut all = vec![];
    let mut tried = |what: String, result: i64| {
        let refused = (result < 0).then(|| io::Error::last_os_error().to_string());
        all.push(Attempted { what: format!("{what}{said}"), refused });
    };
    let (written, made) = (path(write), path(create));
    // SAFETY: every pointer is to memory of this function that lives across its call and has the size that the call expects. What the calls would do to this
    // process, if they were not refused, harms only it.
    unsafe {
        let opens = |at: &CString, flags| i64::from(c::open(at.as_ptr(), flags | c::O_CLOEXEC, 0o600));
        tried(format!("write {}", write.display()), opens(&written, c::O_WRONLY));
        tried(format!("append to {}", write.display()), opens(&written, c::O_WRONLY | c::O_APPEND));
        tried(format!("create {}", create.display()), opens(&made, c::O_RDWR | c::O_CREAT));
        tried(format!("make the folder {}", create.display()), i64::from(c::mkdir(made.as_ptr(), 0o700)));
        tried(format!("truncate {}", write.display()), i64::from(c::truncate(written.as_ptr(), 0)));
        tried(format!("change the mode of {}", write.display()), i64::from(c::chmod(written.as_ptr(), 0o600)));
        tried(format!("rename {}", write.display()), i64::from(c::rename(written.as_ptr(), made.as_ptr())));
        tried(format!("link {}", write.display()), i64::from(c::link(written.as_ptr(), made.as_ptr())));
        tried(format!("remove {}", write.display()), i64::from(c::unlink(written.as_ptr())));
        for file in read {
            tried(format!("read {}", file.display()), opens(&path(file), c::O_RDONLY));
        }
        for (what, family, kind) in [
            ("open a TCP socket", c::AF_INET, c::SOCK_STREAM),
            ("open a UDP socket", c::AF_INET, c::SOCK_DGRAM),
            ("open a Unix socket", c::AF_UNIX, c::SOCK_STREAM),
            ("open a netlink socket", c::AF_NETLINK, c::SOCK_RAW),
        ] {
            tried(what.into(), i64::from(c::socket(family, kind, 0)));
        }
        let mut both = [0; 2];
        tried(
            "open a pair of sockets".into(),
            i64::from(c::socketpair(c::AF_UNIX, c::SOCK_STREAM, 0, both.as_mut_ptr())),
        );
        let program = c"/bin/true";
        let words = [program.as_ptr(), ptr::null()];
        tried("become another program".into(), i64::from(c::execv(program.as_ptr(), words.as_ptr())));
        match c::fork() {
            // The child must not go on as if it were this process.
            0 => c::_exit(0),
            child => tried("start a process".into(), i64::from(child)),
        }
        let attach = c::ptrace(c::PTRACE_ATTACH, victim, 0, 0);
        tried(format!("trace process {victim}"), attach);
        tried(format!("kill process {victim}"), i64::from(c::kill(victim, c::SIGKILL)));
        tried(format!("signal process {victim} by a thread"), c::syscall(c::SYS_tkill, victim, c::SIGKILL));
        tried(format!("open a handle of process {victim}"), c::syscall(c::SYS_pidfd_open, victim, 0));
        let mut word = [0u8; 8];
        let own = c::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
        tried(
            format!("read the memory of process {victim}"),
            c::process_vm_readv(victim, &raw const own, 1, &raw const own, 1, 0) as i64,
        );
        let none = c::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        tried(
            format!("limit process {victim}"),
            i64::from(c::prlimit64(victim, c::RLIMIT_CPU, &raw const none, ptr::null_mut())),
        );
        let most = c::rlimit { rlim_cur: c::RLIM_INFINITY, rlim_max: c::RLIM_INFINITY };
        tried("raise its own limits".into(), i64::from(c::setrlimit(c::RLIMIT_CORE, &raw const most)));
        tried("leave its session".into(), i64::from(c::setsid()));
        tried("outlive its parent".into(), i64::from(c::prctl(c::PR_SET_PDEATHSIG, 0)));
        tried("change its namespaces".into(), i64::from(c::unshare(c::CLONE_NEWNS)));
        let (root, tmp) = (c"/", c"/tmp");
        tried("mount".into(), i64::from(c::mount(root.as_ptr(), tmp.as_ptr(), ptr::null(), c::MS_BIND, ptr::null())));
        tried("change its root".into(), i64::from(c::chroot(root.as_ptr())));
        tried("load a program into the kernel".into(), c::syscall(c::SYS_bpf, 5, 0, 0));
        tried("load a kernel module".into(), c::syscall(c::SYS_init_module, 0, 0, c"".as_ptr()));
        tried("watch events of the processor".into(), c::syscall(c::SYS_perf_event_open, 0, 0, -1, -1, 0));
        tried("queue calls".into(), c::syscall(c::SYS_io_uring_setup, 1, 0));
        tried("install a filter".into(), c::syscall(c::SYS_seccomp, c::SECCOMP_SET_MODE_STRICT, 1, 0));
    }
    all
}
