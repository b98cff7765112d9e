//! Confines compilers and other tools that read untrusted sources. Knows what a step may access and use; does not know what is compiled, or how.
//!
//! A source can ask a compiler for any file by name, flags of a manifest can make it run and write other things, and endless templates take memory and time. So
//! one rule holds for all sources, no matter who wrote them:
//!
//! | process or thread | may only |
//! |---|---|
//! | the thread that executes the step: lays out sources, reads outputs | reading the step's inputs and the toolchain, writing the step's outputs, so that no link that a compiler left leads it elsewhere |
//! | NVRTC, in a thread of its own | the same, writing its working folder only; no sockets, no processes, no signals |
//! | the worker, whose other threads NVRTC could reach if a source made it run code of its own | reading toolchains, writing the folders of steps |
//! | g++, nvcc, nvdisasm and what they start | the same, in processes of their own under limits on memory and file sizes, with a [`Room`] for all of them together |
//!
//! A time limit ends a step's programs as a group, which they cannot leave.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::confine::{self, Confinement};
use super::message::{Places, Response};
use super::task::Task;
use kforge_foundation::process::{Command, End, Finished, Limits, Room, Rule, run};

/// Bytes of one file that a compiler may write; the largest objects and listings are far below.
const FILE: u64 = 1 << 30;
/// Bytes of all files that a step's compilers may have at one time.
const FILES: u64 = 4 << 30;
/// How many files and folders that may be.
const COUNT: usize = 100_000;
/// Processes that a compiler may have at one time: a driver has a handful.
const PROCESSES: usize = 256;
/// Descriptors that one may have open.
const OPEN: u64 = 1024;
/// By how much compilers are nicer than all else: they load every processor, and a step that holds a device would wait for one at each of its turns.
const NICE: i32 = 10;
/// Address space of a worker itself: its program, NVRTC's libraries, stacks.
const OWN: u64 = 1 << 30;

/// The setting that says how much memory compilers may take.
const RAISE: &str = "setting `build.compiler-memory-limit` limits the memory of compilers";

/// What the compilers of a step may read and take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Files and folders that they may read, besides the system's libraries, headers and programs.
    pub read: Vec<PathBuf>,
    /// Bytes of memory that they may take.
    pub memory: u64,
}

/// Where the tools of a step work, and how they are confined.
#[derive(Debug, Clone, Copy)]
pub struct ToolSandbox<'a> {
    /// A folder that is removed afterwards.
    pub scratch: &'a Path,
    /// What they may read and take; none: whatever this process may, for sources of the caller's own.
    pub bounds: Option<&'a Bounds>,
    /// When time is up.
    pub deadline: Instant,
}

impl Bounds {
    /// Those of a step.
    pub fn of(task: &Task) -> Self {
        Bounds {
            read: [task.input.clone()].into_iter().chain(folders(&task.places)).collect(),
            memory: task.compiler_memory,
        }
    }

    fn confinement(&self, folder: &Path, limits: Limits) -> Confinement {
        Confinement {
            scratch: Some(folder.to_path_buf()),
            read: self.read.clone(),
            devices: vec![],
            programs: true,
            keep: vec![],
            limits,
        }
    }

    /// Confines this thread, in which a compiler is a library, and those that it starts: it writes in `folder` only.
    ///
    /// # Errors
    /// The system has the means and refuses them.
    pub fn confine_thread(&self, folder: &Path) -> io::Result<()> {
        let keep = Confinement { programs: false, ..self.confinement(folder, Limits::default()) };
        confine::confine_thread(&keep)
    }
}

/// Where the tools of a machine, and what they read, lie.
fn folders(places: &Places) -> Vec<PathBuf> {
    let above = |path: &Path| path.parent().map(Path::to_path_buf);
    let of = |(name, path): (&String, &PathBuf)| match name.as_str() {
        // In `bin`, beside the folders of its parts.
        "nvcc" => above(path).as_deref().and_then(above).into_iter().collect(),
        // Beside the libraries that they load.
        "nvrtc" | "nvrtc-builtins" => {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            above(path).into_iter().chain(above(&real)).collect()
        }
        _ => vec![path.clone()],
    };
    places.tools.iter().flat_map(of).chain(places.read.iter().cloned()).collect()
}

/// What a process keeps that compiles with these tools, where its steps' folders lie in `steps`: the frame of what [`confined`] allows each step.
pub fn of_worker(places: &Places, memory: u64, steps: &Path) -> Confinement {
    let memory = memory.saturating_add(OWN);
    let mut read = folders(places);
    read.extend(["/proc/self/exe".into(), "/proc".into()]);
    read.sort();
    read.dedup();
    let limits = Limits { address_space: Some(memory), file_size: Some(FILE), ..Limits::default() };
    Confinement { scratch: Some(steps.to_path_buf()), read, devices: vec![], programs: true, keep: vec![], limits }
}

/// Does what a step's compilers are needed for in a thread that touches nothing but the step's folders and the toolchain, and that lets others go first.
///
/// # Errors
/// The system cannot confine, or refuses to, and the user has not permitted to run unconfined.
pub fn confined<T: Send>(task: &Task, work: impl FnOnce(&Bounds) -> Result<T, Response> + Send) -> Result<T, Response> {
    permitted(task, "compilers")?;
    let bounds = Bounds::of(task);
    let mut keep = bounds.confinement(&task.output, Limits::default());
    // What it starts is this very program first, and who descends from it is seen there.
    keep.read.extend(["/proc/self/exe".into(), "/proc".into()]);
    let cannot = |e: io::Error| super::task::failed(format!("cannot confine the compilers of this step: {e}"));
    std::thread::scope(|scope| {
        let inside = || {
            // Only for this thread, and the threads and processes that it starts. If it is refused, they only run at a higher priority.
            let _ = rustix::process::getpriority_process(None)
                .and_then(|now| rustix::process::setpriority_process(None, now + NICE));
            confine::confine_thread(&keep).map_err(cannot)?;
            work(&bounds)
        };
        let thread = std::thread::Builder::new().name("step".into()).spawn_scoped(scope, inside).map_err(cannot)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Refuses where the system cannot confine `what`, unless that was permitted.
///
/// # Errors
/// The response that says what is missing, and what permits it.
pub fn permitted(task: &Task, what: &str) -> Result<(), Response> {
    let missing = confine::missing_here().missing;
    match missing.is_empty() || task.allow_unconfined {
        true => Ok(()),
        false => Err(Response::Unavailable { why: confine::refusal(what, &missing) }),
    }
}

impl<'a> ToolSandbox<'a> {
    /// For a step's own, confined, which leave nothing in the folder of its outputs.
    pub fn of(task: &'a Task, bounds: &'a Bounds) -> Self {
        ToolSandbox { scratch: &task.output, bounds: Some(bounds), deadline: task.started + task.time_limit }
    }

    /// A program that works in `folder`, which lies in the scratch folder and is all that it may write in.
    ///
    /// # Errors
    /// The confinement cannot be described.
    pub fn command(&self, program: &Path, folder: &Path) -> io::Result<Command> {
        let Some(bounds) = self.bounds else { return Ok(Command::new(program).dir(folder)) };
        let limits = Limits {
            address_space: Some(bounds.memory),
            file_size: Some(FILE),
            open_files: Some(OPEN),
            die_with: Some(std::process::id()),
            ..Limits::default()
        };
        let keep = serde_json::to_string(&bounds.confinement(folder, limits)).map_err(io::Error::other)?;
        let room = Room {
            processes: PROCESSES,
            memory: bounds.memory,
            folder: folder.to_path_buf(),
            bytes: FILES,
            files: COUNT,
        };
        Ok(Command::own().args(["worker", "--confined", &keep]).arg(program).dir(folder).room(room))
    }

    /// Runs it to its end, or to the end of the step's time.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, command: &Command) -> io::Result<Finished> {
        let left = self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // The coordinator ends a worker that is interrupted, and this program with it.
        run(command, Some(left), &AtomicBool::new(false))
    }
}

/// How a compiler ended that did not end by itself, in words that say what to do.
pub fn ended(name: &str, end: End) -> String {
    match end {
        End::TimedOut(_) => format!("{name} did not end within the time limit"),
        End::Misbehaved(Rule::Memory) => format!("{name} {end} ({RAISE})"),
        end => format!("{name} {end}"),
    }
}

/// What to do about what a compiler said, where that is that it may not read a file.
pub fn advice(said: &str) -> &'static str {
    match said.contains("Permission denied") {
        true => {
            "compilers read the package, its dependencies and the headers of the system and the toolchain, and write their working folder: copy any other file into \
             the package, or declare the folder it is in as a dependency: `[dependencies] NAME = { path = \"...\", include = \".\" }`\n"
        }
        false => "",
    }
}

/// What a compiler says where a limit ended it or what it started, and not the source's mistake: compilers say it in no other way.
const LIMITED: [&str; 7] = [
    "killed by signal",
    "out of memory",
    "virtual memory exhausted",
    "Cannot allocate memory",
    "bad_alloc",
    "File too large",
    "File size limit exceeded",
];

/// Whether a limit ended a compiler and not the source's mistake: by how it ended, where it did not end by itself, or by what it `said`.
fn limited(ended: Option<End>, said: &str) -> bool {
    matches!(ended, Some(End::TimedOut(_) | End::Misbehaved(_) | End::Signalled(_)))
        || LIMITED.iter().any(|words| said.contains(words))
}

/// The response of a step whose compiler ended so and said this, forgotten where a limit ended it: with another limit, or on another machine, it may compile.
pub fn remembered(response: Response, ended: Option<End>, said: &str) -> Response {
    match response {
        Response::Done { verdict, notes, summary, forget } => {
            Response::Done { verdict, notes, summary, forget: forget || limited(ended, said) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_read_where_its_parts_lie_and_nowhere_else() {
        let tools = [
            ("c++", "/opt/x/bin/g++"),
            ("cuda-include", "/t/cu13/include"),
            ("nvcc", "/t/cu13/bin/nvcc"),
            ("nvdisasm", "/t/cu13/bin/nvdisasm"),
            ("nvrtc", "/t/cu13/lib/libnvrtc.so.13"),
        ];
        let tools = tools.map(|(name, path)| (name.to_string(), PathBuf::from(path))).into();
        let places = Places { tools, read: vec!["/opt/x/lib".into()], scratch: None };
        let expected = [
            "/opt/x/bin/g++",
            "/t/cu13/include",
            "/t/cu13",
            "/t/cu13/bin/nvdisasm",
            "/t/cu13/lib",
            "/t/cu13/lib",
            "/opt/x/lib",
        ];
        assert_eq!(folders(&places), expected.map(PathBuf::from));
    }

    #[test]
    fn what_a_limit_ended_is_not_remembered() {
        let remembers = |end, said: &str| match remembered(super::super::task::done("refused", vec![]), end, said) {
            Response::Done { forget, .. } => !forget,
            other => panic!("{other:?}"),
        };
        assert!(remembers(None, "k.cu:1: error: expected a `;`"));
        let misbehaved = End::Misbehaved(Rule::Processes);
        for end in [End::TimedOut(Duration::from_secs(1)), misbehaved, End::Signalled(9)] {
            assert!(!remembers(Some(end), ""), "{end}");
        }
        assert!(!remembers(None, "cc1plus: out of memory allocating 65536 bytes after a total of 1048576 bytes"));
    }

    #[test]
    fn ends_say_what_to_do() {
        let memory = End::Misbehaved(Rule::Memory);
        assert!(ended("`g++`", memory).contains("`build.compiler-memory-limit`"));
        assert_eq!(ended("`g++`", End::TimedOut(Duration::from_secs(1))), "`g++` did not end within the time limit");
        assert_eq!(ended("`g++`", End::Signalled(25)), "`g++` killed by signal 25 (SIGXFSZ)");
    }
}
