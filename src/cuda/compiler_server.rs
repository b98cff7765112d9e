//! `kforge worker --nvrtc START`: a process that loads NVRTC and makes a copy of itself for each compilation. Knows NVRTC and this process's memory;
//! [`super::compiler_process`] starts it and says why memory is laid out as it is.
//!
//! This process has one thread when it makes a copy, and runs no compilation itself. A copy confines itself before it reads the source. It has the standard
//! streams closed, so it cannot answer for another compilation: its answer is a file in its working folder, and this process only says how it ended.
#![expect(unsafe_code, reason = "a process forks, moves descriptors to fixed numbers and takes address space")]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use super::compiler_process::{ANSWER, Answer, CODE, Ended, PTX, Request, Start};
use super::load::{LoadError, Nvrtc, load};
use kforge_foundation::process::family;
use kforge_harness::{compilers, confine};

/// The numbers of the libraries' descriptors, which are in their paths.
const NVRTC: RawFd = 100;
const BUILTINS: RawFd = 101;
/// Address space for the stack of NVRTC's thread; pages are allocated as they are used. NVRTC's front end recurses with the nesting of the source.
pub(super) const STACK: usize = 256 << 20;
/// The soft limit of the main thread's stack, from which the system derives where it maps libraries.
const MAIN_STACK: u64 = 8 << 20;
/// What is loaded before NVRTC lies above this address, 128 MiB below where the system begins without address randomisation.
const FLOOR: usize = 0x7fff_f000_0000;
/// The exit status of a copy that could not write its answer.
const NO_ANSWER: i32 = 1;

/// Serves compilations until its input ends. `args` are the words after `--nvrtc`.
pub fn compiler_server_main(args: &[OsString]) -> ExitCode {
    let served = match args {
        [start] => serve(start),
        _ => Err(io::Error::other("expected what to load")),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "{e}");
            ExitCode::FAILURE
        }
    }
}

fn serve(words: &OsString) -> io::Result<()> {
    let start: Start = serde_json::from_str(&words.to_string_lossy()).map_err(io::Error::other)?;
    lay_out_alike(words)?;
    family::die_with_parent(start.parent)?;
    compilers::lower_priority();
    at_number(&start.builtins, BUILTINS)?;
    at_number(&start.nvrtc, NVRTC)?;
    take_above(FLOOR);
    // In a thread, whose heap is the one that the compilations' thread continues with.
    let loaded = std::thread::spawn(|| load(by_number(NVRTC).as_ref(), by_number(BUILTINS).as_ref()));
    let library = match loaded.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(library) => library,
        Err(LoadError::Another(place)) => {
            return Err(io::Error::other(format!("BUG: `{}` is loaded", place.display())));
        }
        Err(LoadError::Broken(why)) => {
            let named = why.replace(&by_number(NVRTC), &start.nvrtc.to_string_lossy());
            return Err(io::Error::other(named.replace(&by_number(BUILTINS), &start.builtins.to_string_lossy())));
        }
    };
    let mut line = String::new();
    let mut input = io::stdin().lock();
    while input.read_line(&mut line)? > 0 {
        let ended = one(library, &line);
        let mut text = serde_json::to_string(&ended).map_err(io::Error::other)?;
        text.push('\n');
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}

/// Starts this program again without address randomisation, unless it was started that way or the system does not permit it.
fn lay_out_alike(words: &OsString) -> io::Result<()> {
    if !confine::fix_addresses() {
        return Ok(());
    }
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack);
    let current = Some(stack.maximum.map_or(MAIN_STACK, |most| most.min(MAIN_STACK)));
    let limit = rustix::process::Rlimit { current, maximum: stack.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Stack, limit)?;
    // The environment is the one that this process got.
    Err(std::process::Command::new("/proc/self/exe").args(["worker", "--nvrtc"]).arg(words).exec())
}

/// Opens a file under this number.
fn at_number(path: &Path, number: RawFd) -> io::Result<()> {
    let file = File::open(path).map_err(|e| io::Error::other(format!("could not load `{}`: {e}", path.display())))?;
    // SAFETY: nothing in this process uses the number, because it has opened only a few files.
    match unsafe { libc::dup2(file.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn by_number(number: RawFd) -> String {
    format!("/proc/self/fd/{number}")
}

/// Takes the free address space above `floor`, so that what is mapped next lies below it, whatever the sizes of this program and its libraries. Without effect
/// where the system maps elsewhere, as with address randomisation.
fn take_above(floor: usize) {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    let ranges = maps.lines().filter_map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?, line.ends_with("[stack]")))
    });
    let mut free = floor;
    for (from, to, is_stack) in ranges.filter(|(from, ..)| *from >= floor) {
        if is_stack {
            // The stack grows down into the space below it, where nothing is mapped.
            return;
        }
        if from > free {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: the range is free, and the flags make the call fail otherwise. Nothing is ever read or written there.
            unsafe { libc::mmap(free as *mut libc::c_void, from - free, libc::PROT_NONE, flags, -1, 0) };
        }
        free = to;
    }
}

/// Makes a copy that compiles, and waits for its end.
fn one(library: &'static Nvrtc, line: &str) -> Ended {
    let server = std::process::id();
    // SAFETY: this process has one thread, so the copy can use everything that this process can.
    match unsafe { libc::fork() } {
        -1 => Ended::NotStarted(io::Error::last_os_error().to_string()),
        0 => {
            // A copy does not inherit that it ends with its parent.
            let ran = family::die_with_parent(server).and_then(|()| in_copy(library, line));
            let status = if ran.is_ok() { 0 } else { NO_ANSWER };
            // SAFETY: ends the copy without running what this process registered for its own end.
            unsafe { libc::_exit(status) }
        }
        copy => wait(copy),
    }
}

fn wait(copy: libc::pid_t) -> Ended {
    let mut status = 0;
    loop {
        // SAFETY: `status` lives across the call.
        match unsafe { libc::waitpid(copy, &mut status, 0) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Ended::NotStarted(io::Error::last_os_error().to_string()),
            _ if libc::WIFSIGNALED(status) => return Ended::Signalled(libc::WTERMSIG(status)),
            _ => return Ended::Exited(libc::WEXITSTATUS(status)),
        }
    }
}

/// Compiles, and writes the answer.
fn in_copy(library: &'static Nvrtc, line: &str) -> io::Result<()> {
    let request: Request = serde_json::from_str(line).map_err(io::Error::other)?;
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?.into_raw_fd();
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: the standard streams of this copy are not used again.
        if unsafe { libc::dup2(nothing, stream) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    let answer = match compiled(library, &request) {
        Ok((symbols, log)) => Answer::Compiled { symbols, log },
        Err(why) => Answer::Unavailable { why },
    };
    let text = serde_json::to_vec(&answer).map_err(io::Error::other)?;
    new_file(&request.folder.join(ANSWER), &text)
}

/// The symbols, if there is machine code, and the log.
fn compiled(library: &'static Nvrtc, request: &Request) -> Result<(Option<Vec<String>>, String), String> {
    rustix::process::chdir(&request.folder).map_err(|e| format!("could not enter NVRTC's folder: {e}"))?;
    confine::confine_thread(&request.keep).map_err(|e| format!("could not confine NVRTC: {e}"))?;
    let text = fs::read(&request.file).map_err(|e| format!("could not read `{}`: {e}", request.name))?;
    let entries: Vec<&str> = request.entries.iter().map(String::as_str).collect();
    let run = || library.compile(&text, &request.name, &request.options, &entries, request.ptx);
    let made = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.map_err(|e| e.to_string())?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let symbols = match made.result {
        Some((code, symbols)) => {
            new_file(&request.folder.join(CODE), &code).map_err(|e| format!("could not write machine code: {e}"))?;
            if let Some(ptx) = made.ptx {
                new_file(&request.folder.join(PTX), &ptx).map_err(|e| format!("could not write PTX: {e}"))?;
            }
            Some(symbols)
        }
        None => None,
    };
    Ok((symbols, made.log))
}

fn new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}
