//! Confines a process that loads a driver like [`super::confine_driver`], in whole or in part, and records which files and calls the driver asks for and which of
//! them are refused. For people who find out why a driver does not start; candidates never run in such a process. Knows the mechanisms; does not know drivers.
//!
//! The kernel passes each recorded call to a thread of this process that is not confined (seccomp's user notification), which answers for it: the call is refused
//! as in a confined process, or goes on. Landlock decides afterwards about files, so whether it refuses one is found by opening it again, both here and in the
//! unconfined thread.
#![expect(unsafe_code, reason = "the interface of seccomp's user notification is not in a library")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, ptr, thread};

use libc as c;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::{Deserialize, Serialize};

use super::{Confinement, Report, calls, descriptors, files, missing_here, table};

/// Which parts of a confinement are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Whether Landlock limits the files.
    pub files: bool,
    /// Which calls are refused.
    pub calls: RefusedCalls,
}

/// Which of the calls that are refused to a process with a driver are refused in an examination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedCalls {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Only those with these numbers.
    Only(Vec<i64>),
    /// All but those with these numbers.
    AllBut(Vec<i64>),
}

impl RefusedCalls {
    fn includes(&self, call: i64) -> bool {
        match self {
            RefusedCalls::None => false,
            RefusedCalls::All => true,
            RefusedCalls::Only(numbers) => numbers.contains(&call),
            RefusedCalls::AllBut(numbers) => !numbers.contains(&call),
        }
    }
}

/// A call of the list of refused calls that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCall {
    /// Its number.
    pub call: i64,
    /// What it attempts, in words.
    pub attempt: String,
    /// How often it was made.
    pub count: u64,
    /// Whether it was refused.
    pub refused: bool,
    /// The arguments of the first time.
    pub arguments: [u64; 6],
}

/// A file that was opened, or was to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// Its path as it was stated.
    pub path: String,
    /// Whether it was opened for writing.
    pub writes: bool,
    /// Whether it was to be created if it did not exist.
    pub creates: bool,
    /// How often it was opened.
    pub count: u64,
    /// Whether Landlock refuses it.
    pub refused: bool,
}

#[derive(Default)]
struct Seen {
    calls: BTreeMap<i64, SeenCall>,
    files: BTreeMap<(String, bool, bool), (c::c_int, u64)>,
}

/// A request to the unconfined thread: whether it can open this path with these flags.
type Question = (CString, c::c_int, Sender<bool>);

/// The record of an examination that goes on.
pub struct Examination {
    seen: Arc<Mutex<Seen>>,
    ask: Sender<Question>,
    files: bool,
}

/// Confines the calling thread, and the threads that it starts later, as `policy` says. Must be called before this process starts other threads or opens files.
///
/// # Errors
/// The system cannot do it. A system without Landlock or seccomp is not an error: the report names it.
pub fn examine(keep: &Confinement, policy: &Policy) -> io::Result<(Report, Examination)> {
    let report = missing_here();
    descriptors::close_all_but(&keep.keep)?;
    keep.limits.apply()?;
    let seen = Arc::<Mutex<Seen>>::default();
    let (pass, passed) = channel();
    let (ask, asked) = channel::<Question>();
    let refused = policy.calls.clone();
    // Both threads start before anything is refused to this one.
    let record = Arc::clone(&seen);
    thread::Builder::new().name("examiner".into()).spawn(move || answer(&passed, &record, &refused))?;
    thread::Builder::new().name("opener".into()).spawn(move || {
        for (path, flags, to) in asked {
            let _ = to.send(opens(&path, flags));
        }
    })?;
    rustix::thread::set_no_new_privs(true)?;
    if policy.files {
        files::restrict(keep)?;
    }
    if calls::missing_here().is_empty() {
        pass.send(listen(keep)?).map_err(io::Error::other)?;
    }
    let examination = Examination { seen, ask, files: policy.files };
    examination.warm_up();
    Ok((report, examination))
}

impl Examination {
    /// Lets both threads do once what they do later. The first time, a thread takes the lock of the loader, to register what is to be dropped at its end, and a
    /// driver holds that lock while it loads libraries, whose files only these threads can let it open.
    fn warm_up(&self) {
        let (to, from) = channel();
        let path = c"/dev/null".to_owned();
        opens(&path, c::O_RDONLY);
        if self.ask.send((path, c::O_RDONLY, to)).is_ok() {
            let _ = from.recv();
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    }

    /// What was seen so far. Must be called by the confined thread, which opens the files again.
    pub fn seen(&self) -> (Vec<SeenCall>, Vec<SeenFile>) {
        let lock = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // What this function itself opens is not the driver's.
        let (calls, files) = {
            let seen = lock();
            (seen.calls.values().cloned().collect(), seen.files.clone())
        };
        let files = files.into_iter().map(|((path, writes, creates), (flags, count))| SeenFile {
            refused: self.files && self.is_refused(&path, flags),
            path,
            writes,
            creates,
            count,
        });
        (calls, files.collect())
    }

    fn is_refused(&self, path: &str, flags: c::c_int) -> bool {
        let Ok(path) = CString::new(path) else { return false };
        if opens(&path, flags) {
            return false;
        }
        let (to, from) = channel();
        let new = flags & c::O_CREAT != 0 && !exists(&path);
        new || (self.ask.send((path, flags, to)).is_ok() && from.recv().unwrap_or(false))
    }
}

/// Whether this thread can open a path. Creates nothing and truncates nothing.
fn opens(path: &CString, flags: c::c_int) -> bool {
    let flags = flags & (c::O_ACCMODE | c::O_DIRECTORY | c::O_PATH) | c::O_CLOEXEC | c::O_NONBLOCK | c::O_NOCTTY;
    // SAFETY: the path ends with a zero, and the descriptor is closed here.
    unsafe {
        let fd = c::open(path.as_ptr(), flags);
        fd >= 0 && c::close(fd) == 0
    }
}

fn exists(path: &CString) -> bool {
    // SAFETY: the path ends with a zero.
    unsafe { c::access(path.as_ptr(), c::F_OK) == 0 }
}

/// Installs the filter for this thread. Returns the descriptor at which its calls arrive.
fn listen(keep: &Confinement) -> io::Result<RawFd> {
    let mut rules = calls::refused_beside_driver(keep)?;
    for call in [c::SYS_open, c::SYS_openat] {
        rules.insert(call, vec![]);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trap, arch);
    let mut program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    // The library has no action for this one.
    for line in program.iter_mut().filter(|line| u32::from(line.code) == c::BPF_RET && line.k == c::SECCOMP_RET_TRAP) {
        line.k = c::SECCOMP_RET_USER_NOTIF;
    }
    let length = program.len().try_into().map_err(io::Error::other)?;
    let program = c::sock_fprog { len: length, filter: program.as_mut_ptr().cast() };
    // SAFETY: the program lives across the call, and its instructions have the layout of the kernel's.
    let fd = unsafe {
        c::syscall(c::SYS_seccomp, c::SECCOMP_SET_MODE_FILTER, c::SECCOMP_FILTER_FLAG_NEW_LISTENER, &raw const program)
    };
    if fd < 0 { Err(io::Error::last_os_error()) } else { RawFd::try_from(fd).map_err(io::Error::other) }
}

/// Answers calls until the process ends.
fn answer(passed: &Receiver<RawFd>, seen: &Mutex<Seen>, refused: &RefusedCalls) {
    let Ok(listener) = passed.recv() else { return };
    loop {
        // SAFETY: the kernel requires that the structure is zero and fills it; it is as large as this kernel's headers say.
        let mut call: c::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: as above.
        if unsafe { c::ioctl(listener, c::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } != 0 {
            match io::Error::last_os_error().kind() {
                // The thread that made the call has ended.
                io::ErrorKind::Interrupted | io::ErrorKind::NotFound => continue,
                _ => return,
            }
        }
        let is_refused = record(&call.data, seen, refused);
        let reply = c::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: if is_refused { -c::EPERM } else { 0 },
            flags: if is_refused { 0 } else { c::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 },
        };
        // SAFETY: the reply is complete. It fails if the thread has ended in the meantime.
        unsafe { c::ioctl(listener, c::SECCOMP_IOCTL_NOTIF_SEND, &raw const reply) };
    }
}

/// Records a call. Returns whether it is refused.
fn record(data: &c::seccomp_data, seen: &Mutex<Seen>, refused: &RefusedCalls) -> bool {
    let call = i64::from(data.nr);
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = match call {
        c::SYS_open => Some((data.args[0], data.args[1])),
        c::SYS_openat => Some((data.args[1], data.args[2])),
        _ => None,
    };
    if let Some((path, flags)) = opened {
        let flags = flags as c::c_int;
        let (writes, creates) = (flags & c::O_ACCMODE != c::O_RDONLY, flags & c::O_CREAT != 0);
        seen.files.entry((text_at(path), writes, creates)).or_insert((flags, 0)).1 += 1;
        return false;
    }
    let refused = refused.includes(call & !calls::X32);
    let new = || SeenCall { call, attempt: table::attempt(call), count: 0, refused, arguments: data.args };
    seen.calls.entry(call).or_insert_with(new).count += 1;
    refused
}

/// The text at an address of this process, which need not be valid.
fn text_at(address: u64) -> String {
    let mut text = vec![];
    for at in (address..address.saturating_add(c::PATH_MAX as u64)).step_by(64) {
        let mut piece = [0u8; 64];
        let own = c::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
        let other = c::iovec { iov_base: ptr::with_exposed_provenance_mut(at as usize), iov_len: piece.len() };
        // SAFETY: the kernel checks the other address; ours has the stated length.
        let read = unsafe { c::process_vm_readv(c::getpid(), &raw const own, 1, &raw const other, 1, 0) };
        let Ok(read) = usize::try_from(read) else { break };
        let end = piece[..read].iter().position(|byte| *byte == 0);
        text.extend_from_slice(&piece[..end.unwrap_or(read)]);
        if end.is_some() || read < piece.len() {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
