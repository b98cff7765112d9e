//! Confines compilers and other tools that read untrusted sources. Knows what a step may access and use; does not know what is compiled, or how.
//!
//! A source can ask a compiler for any file by name, flags in a manifest can make it run programs and write other files, and endless templates take memory and
//! time. So one rule holds for all sources, no matter who wrote them:
//!
//! | process or thread | allowed |
//! |---|---|
//! | the thread that executes the step: stages sources, reads outputs | to read the step's inputs and the toolchain and to write the step's outputs |
//! | NVRTC, in a process of its own for each compilation | the same, but writes only in its working folder; no sockets, no processes, no signals |
//! | Triton, in a copy of a process that only imported it | as for the programs below |
//! | the worker, and the processes that are copied for NVRTC and Triton | to read toolchains and to write the folders of steps |
//! | g++, nvcc, nvdisasm and the processes that they start | to read the same and to write in their folder, within limits and one [`Room`] for all of them |
//!
//! A thread of a step cannot end a process that is kept between steps, and a process that it started would have its confinement. So the thread that waits for it
//! talks to such processes ([`Outside`]).
//!
//! So a link that a compiler left behind cannot lead the step's thread to other files. A time limit ends a step's programs as a group, which they cannot leave.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::confine::{self, Confinement};
use super::message::{Places, Response};
use super::task::Task;
use kforge_foundation::process::{Command, End, Finished, Limits, Room, Rule, run};

/// The maximum size in bytes of a file that a compiler writes. The largest objects and listings are far smaller.
const FILE: u64 = 1 << 30;
/// The maximum total size in bytes of the files of a step's compilers at any time.
const FILES: u64 = 4 << 30;
/// The maximum number of those files and folders.
const COUNT: usize = 100_000;
/// The maximum number of processes of a compiler at any time; a driver starts a handful.
const PROCESSES: usize = 256;
/// The maximum number of open descriptors of a process.
const OPEN: u64 = 1024;
/// The increase of compilers' nice value. They load every processor, and at each turn a step that holds a device would wait for one.
pub const NICE: i32 = 10;
/// Address space of the worker itself: its program, NVRTC's libraries, stacks.
const OWN: u64 = 1 << 30;

/// The hint about the memory limit of compilers.
const RAISE: &str = "setting `build.compiler-memory-limit` limits the memory of compilers";

/// What the compilers of a step may read, and how much memory they may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Files and folders that they may read, in addition to the system's libraries, headers and programs.
    pub read: Vec<PathBuf>,
    /// The maximum memory in bytes.
    pub memory: u64,
    /// Who does what the confinement of the step's thread refuses.
    outside: Outside,
}

/// The thread that waits for the confined thread of a step.
#[derive(Debug, Clone)]
pub struct Outside(mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl Outside {
    /// Does `work` in the thread that waits, which is not confined as the step's is, and waits for its result. `work` must not act on what a source made.
    ///
    /// # Errors
    /// The thread does not wait for the step's.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (send, receive) = mpsc::channel();
        let work = move || drop(send.send(work()));
        self.0.send(Box::new(work)).map_err(|_| io::Error::other("BUG: nobody waits for this step"))?;
        receive.recv().map_err(io::Error::other)
    }
}

/// The working folder of a step's tools, and their confinement.
#[derive(Debug, Clone, Copy)]
pub struct ToolSandbox<'a> {
    /// The folder that they write in; it is removed afterwards.
    pub scratch: &'a Path,
    /// What they may read and take. If none, they are not confined, for sources of the caller itself.
    pub bounds: Option<&'a Bounds>,
    /// When the step's time is up.
    pub deadline: Instant,
}

impl Bounds {
    /// The bounds of a step's compilers, and what the thread that waits for the step does.
    fn of(task: &Task) -> (Self, mpsc::Receiver<Box<dyn FnOnce() + Send>>) {
        let (send, asked) = mpsc::channel();
        let bounds = Bounds {
            read: [task.input.clone()].into_iter().chain(folders(&task.places)).collect(),
            memory: task.compiler_memory,
            outside: Outside(send),
        };
        (bounds, asked)
    }

    /// Who does what the confinement of the step's thread refuses.
    pub fn outside(&self) -> &Outside {
        &self.outside
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

    /// The confinement of a compiler that is a program: it writes only in `folder`.
    pub fn of_program(&self, folder: &Path) -> Confinement {
        let limits = Limits {
            address_space: Some(self.memory),
            file_size: Some(FILE),
            open_files: Some(OPEN),
            ..Limits::default()
        };
        self.confinement(folder, limits)
    }

    /// What such a program and everything that it starts may use together.
    pub fn room(&self, folder: &Path) -> Room {
        let folder = folder.to_path_buf();
        Room { processes: PROCESSES, memory: self.memory, folder, bytes: FILES, files: COUNT }
    }

    /// The confinement of a compiler that runs as a library: it writes only in `folder` and starts no programs.
    pub fn of_library(&self, folder: &Path) -> Confinement {
        Confinement { programs: false, ..self.confinement(folder, Limits::default()) }
    }
}

/// The folders and files of a machine's tools and of everything that they read.
fn folders(places: &Places) -> Vec<PathBuf> {
    let above = |path: &Path| path.parent().map(Path::to_path_buf);
    let of = |(name, path): (&String, &PathBuf)| match name.as_str() {
        // It is in `bin`, beside the folders of its parts.
        "nvcc" => above(path).as_deref().and_then(above).into_iter().collect(),
        // They are beside the libraries that they load.
        "nvrtc" | "nvrtc-builtins" => {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            above(path).into_iter().chain(above(&real)).collect()
        }
        _ => vec![path.clone()],
    };
    places.tools.iter().flat_map(of).chain(places.read.iter().cloned()).collect()
}

/// The confinement of a worker that compiles with these tools and whose steps have their folders in `steps`. It includes everything that [`confined`] allows
/// each step.
pub fn of_worker(places: &Places, memory: u64, steps: &Path) -> Confinement {
    let memory = memory.saturating_add(OWN);
    let mut read = folders(places);
    read.extend(["/proc/self/exe".into(), "/proc".into()]);
    read.sort();
    read.dedup();
    let limits = Limits { address_space: Some(memory), file_size: Some(FILE), ..Limits::default() };
    Confinement { scratch: Some(steps.to_path_buf()), read, devices: vec![], programs: true, keep: vec![], limits }
}

/// Runs `work`, which uses a step's compilers, in a thread that can access only the step's folders and the toolchain and that runs at a lower priority.
///
/// # Errors
/// The system cannot confine, and the user has not permitted running unconfined; or confinement failed.
pub fn confined<T: Send>(task: &Task, work: impl FnOnce(&Bounds) -> Result<T, Response> + Send) -> Result<T, Response> {
    permitted(task, "compilers")?;
    let (bounds, asked) = Bounds::of(task);
    let mut keep = bounds.confinement(&task.output, Limits::default());
    // A program is started through this program, which looks up its descendants in `/proc`.
    keep.read.extend(["/proc/self/exe".into(), "/proc".into()]);
    let cannot = |e: io::Error| super::task::failed(format!("cannot confine the compilers of this step: {e}"));
    std::thread::scope(|scope| {
        let inside = move || {
            lower_priority();
            confine::confine_thread(&keep).map_err(cannot)?;
            work(&bounds)
        };
        let thread = std::thread::Builder::new().name("step".into()).spawn_scoped(scope, inside).map_err(cannot)?;
        // Until the thread drops the bounds.
        asked.into_iter().for_each(|work| work());
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives this thread, and the threads and processes that it starts, the priority of compilers. If that is refused, they merely run at normal priority.
pub fn lower_priority() {
    let _ = rustix::process::getpriority_process(None)
        .and_then(|now| rustix::process::setpriority_process(None, now + NICE));
}

/// Refuses if the system cannot confine `what`, unless the user permits that.
///
/// # Errors
/// A response that states what is missing and how to permit it.
pub fn permitted(task: &Task, what: &str) -> Result<(), Response> {
    let missing = confine::missing_here().missing;
    match missing.is_empty() || task.allow_unconfined {
        true => Ok(()),
        false => Err(Response::Unavailable { why: confine::refusal(what, &missing) }),
    }
}

impl<'a> ToolSandbox<'a> {
    /// For the confined tools of a step. They leave nothing in the folder of its outputs.
    pub fn of(task: &'a Task, bounds: &'a Bounds) -> Self {
        ToolSandbox { scratch: &task.output, bounds: Some(bounds), deadline: task.started + task.time_limit }
    }

    /// A program that works in `folder`, a folder in the scratch folder, and may write only there.
    ///
    /// # Errors
    /// The confinement cannot be described.
    pub fn command(&self, program: &Path, folder: &Path) -> io::Result<Command> {
        let Some(bounds) = self.bounds else { return Ok(Command::new(program).dir(folder)) };
        let mut keep = bounds.of_program(folder);
        keep.limits.die_with = Some(std::process::id());
        let keep = serde_json::to_string(&keep).map_err(io::Error::other)?;
        let command = Command::own().args(["worker", "--confined", &keep]).arg(program);
        Ok(command.dir(folder).room(bounds.room(folder)))
    }

    /// How much of the step's time is left.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// Runs a command to its end, or until the step's time is up.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, command: &Command) -> io::Result<Finished> {
        // If the worker is interrupted, the coordinator ends it and with it this program.
        run(command, Some(self.left()), &AtomicBool::new(false))
    }
}

/// Describes the end of a compiler that was ended, with a hint where one helps.
pub fn ended(name: &str, end: End) -> String {
    match end {
        End::TimedOut(_) => format!("{name} did not end within the time limit"),
        End::Misbehaved(Rule::Memory) => format!("{name} {end} ({RAISE})"),
        end => format!("{name} {end}"),
    }
}

/// Advice about a compiler's message that it may not read a file; empty for other messages.
pub fn advice(said: &str) -> &'static str {
    match said.contains("Permission denied") {
        true => {
            "compilers read the package, its dependencies and the headers of the system and the toolchain, and write their working folder: copy any other file into \
             the package, or declare the folder it is in as a dependency: `[dependencies] NAME = { path = \"...\", include = \".\" }`\n"
        }
        false => "",
    }
}

/// Phrases that compilers print only when a limit ended them or a program that they started, and not because of a mistake in the source.
const LIMITED: [&str; 7] = [
    "killed by signal",
    "out of memory",
    "virtual memory exhausted",
    "Cannot allocate memory",
    "bad_alloc",
    "File too large",
    "File size limit exceeded",
];

/// Whether a limit ended a compiler, rather than a mistake in the source: by its end, if it was ended, or by the text that it printed.
fn limited(ended: Option<End>, said: &str) -> bool {
    matches!(ended, Some(End::TimedOut(_) | End::Misbehaved(_) | End::Signalled(_)))
        || LIMITED.iter().any(|words| said.contains(words))
}

/// The response of a step whose compiler ended in this way and printed this text. It is not stored if a limit ended the compiler: with another limit, or on
/// another machine, the source may compile.
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
