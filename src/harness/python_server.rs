//! Runs programs in Python in copies of a process that has imported their libraries. Knows requests and answers; `python_server.py` is the process.
//!
//! A worker keeps the process between steps. Importing PyTorch takes seconds, Triton a quarter of one and numpy a tenth, and a copy is made in milliseconds.
//!
//! | what a program of its own would guarantee | what guarantees it here |
//! |---|---|
//! | no call changes what another computes | every call has a copy of its own, made before the request is read; the process itself runs no code of a package |
//! | addresses are those of every other run | the process turns address randomisation off; what it imported moves them, so they are not those of a program |
//! | it is confined before it reads anything of the package | the copy confines itself, by the same rules ([`PortableConfinement`]) |
//! | nothing that it started outlives it | a copy leads a group that it cannot leave; the process kills the group and waits for all of it before it answers |
//! | what it uses together with what it starts is limited | the same [`Room`], over the descendants of the process |
//! | it ends with the worker, and at its time limit | the process ends when its input ends, and copies end with the process; a time limit kills all of them |
//! | what is imported is what the driver admits | the imports run by the same finder, and a copy has that of its own call |
//! | a module of the package may have the name of one of Python's | modules that only the process itself uses are taken out of `sys.modules` |
//!
//! A Python without `ctypes`, by which a copy confines itself, cannot serve; each call then has a program of its own.
//!
//! If the libraries cannot be imported, or leave a thread running, the process imports nothing. Each copy then imports them itself, as a program of its own
//! would.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::confine::{Confinement, PortableConfinement};
use kforge_foundation::base::Digest;
use kforge_foundation::process::{Captured, Command, End, Finished, Room, Talker};

/// The exit status by which the process reports that this Python cannot serve.
const CANNOT_SERVE: i32 = 71;

/// The program of the process.
const SERVER: &str = concat!(include_str!("oracle/known.py"), "\n\n", include_str!("python_server.py"));

/// A process that runs programs in Python. Equal ones share a process.
#[derive(Debug, Clone, PartialEq)]
pub struct PythonServer {
    python: PathBuf,
    options: Vec<String>,
    environment: BTreeMap<String, String>,
    imports: Imports,
    /// The digests of what it imports.
    digests: Vec<Option<Digest>>,
}

/// What the process imports, as it reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
struct Imports {
    /// A program in Python, which finds `Known`, `OnlyKnown`, `call`, `os` and `sys`; nothing is imported if it is empty.
    imports: String,
    /// Its `call`.
    call: Value,
}

/// A call, as the process reads it.
#[derive(Serialize)]
struct PythonCall<'a> {
    /// The working folder.
    folder: &'a Path,
    /// The program's file.
    program: &'a str,
    arguments: &'a [&'a str],
    keep: PortableConfinement,
}

/// How a copy ended.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Exited(i32),
    Signalled(i32),
}

/// A process of this worker.
struct Kept {
    server: PythonServer,
    talker: Talker,
}

/// The processes of this worker, the one that was used last at the end.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The most processes that are kept: one that has imported numpy, for checks and generators of inputs, and one that has imported PyTorch. Workers that compile
/// have one that has imported Triton.
const MOST: usize = 2;
/// How many bytes of a call's output are kept, as of a program of its own.
const OUTPUT: usize = 1 << 20;

fn kept() -> MutexGuard<'static, Vec<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that are kept between steps. They must not be killed with the processes that a step left behind.
pub fn kept_processes() -> Vec<u32> {
    kept().iter().map(|kept| kept.talker.pid()).collect()
}

impl PythonServer {
    /// A process of the interpreter at `python` with these options and exactly these variables. It imports nothing.
    pub fn new(python: &Path, options: &[&str], environment: &[(&str, &str)]) -> Self {
        PythonServer {
            python: python.to_path_buf(),
            options: options.iter().map(|option| option.to_string()).collect(),
            environment: environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            imports: Imports::default(),
            digests: vec![],
        }
    }

    /// The same, but it first runs `imports`, a program in Python that imports libraries. The program finds `call` in a variable of that name. A process does not
    /// serve once the digests of the libraries are others.
    #[must_use]
    pub fn with_imports(self, imports: &str, call: Value, digests: Vec<Option<Digest>>) -> Self {
        PythonServer { imports: Imports { imports: imports.to_string(), call }, digests, ..self }
    }

    /// Runs a program, given as its folder, its file and its arguments, in a confined copy of the process that works in the folder. `keep` must allow programs.
    /// Everything that the program prints is its standard error. None if this Python cannot serve.
    ///
    /// # Errors
    /// The process cannot be started or ends by itself, or the confinement cannot be described. How the program ended is no error.
    pub fn run(
        &self,
        (folder, program, arguments): (&Path, &str, &[&str]),
        keep: &Confinement,
        limit: Duration,
    ) -> io::Result<Option<Finished>> {
        self.run_in(None, (folder, program, arguments), keep, limit)
    }

    /// The same, and ends the copy and everything that it started when together they exceed the limits of `room`.
    ///
    /// # Errors
    /// As for [`PythonServer::run`].
    pub fn run_in(
        &self,
        room: Option<&Room>,
        (folder, program, arguments): (&Path, &str, &[&str]),
        keep: &Confinement,
        limit: Duration,
    ) -> io::Result<Option<Finished>> {
        let began = Instant::now();
        let keep = PortableConfinement::of(keep)?;
        let line = serde_json::to_string(&PythonCall { folder, program, arguments, keep }).map_err(io::Error::other)?;
        let talker = self.talker()?;
        let left = limit.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        // The coordinator ends a worker that is interrupted, and this process with it.
        let (end, stderr) = match talker.exchange_in(room, &line, left, &AtomicBool::new(false))? {
            Ok((talker, answer)) => {
                let ended: Ended = serde_json::from_str(&answer).map_err(io::Error::other)?;
                let stderr = talker.stderr().clone();
                self.keep(talker);
                let end = match ended {
                    Ended::Exited(status) => End::Exited(status),
                    Ended::Signalled(signal) => End::Signalled(signal),
                };
                (end, stderr)
            }
            Err(died) if died.end == End::Exited(CANNOT_SERVE) => return Ok(None),
            Err(died) => match died.end {
                End::TimedOut(_) => (End::TimedOut(limit), died.stderr),
                end @ (End::Interrupted | End::Misbehaved(_)) => (end, died.stderr),
                end @ (End::Exited(_) | End::Signalled(_)) => {
                    let said = died.stderr.text();
                    return Err(io::Error::other(format!("the process that imports for it {end}: {}", said.trim())));
                }
            },
        };
        let stdout = Captured::new(0);
        Ok(Some(Finished { end, stdout, stderr, took: began.elapsed() }))
    }

    /// Keeps the process for the next call, and ends the one that was used least recently if there are more than [`MOST`].
    fn keep(&self, talker: Talker) {
        let mut kept = kept();
        kept.push(Kept { server: self.clone(), talker });
        let over = kept.len().saturating_sub(MOST);
        kept.drain(..over);
    }

    /// The interpreter, its options and its variables, for a program of its own.
    pub fn interpreter(&self) -> (&Path, Vec<&str>, Vec<(&str, &str)>) {
        let options = self.options.iter().map(String::as_str).collect();
        let variables = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        (&self.python, options, variables)
    }

    /// The process, taken from where it is kept, or started.
    fn talker(&self) -> io::Result<Talker> {
        let mut all = kept();
        if let Some(at) = all.iter().position(|kept| kept.server == *self) {
            let talker = all.remove(at).talker;
            if talker.is_alive() {
                return Ok(talker);
            }
        }
        drop(all);
        let start = serde_json::to_string(&self.imports).map_err(io::Error::other)?;
        let mut command = Command::new(&self.python).args(&self.options).args(["-c", SERVER, &start]);
        for (name, value) in &self.environment {
            command = command.env(name, value);
        }
        Ok(Talker::start(&command)?.keeping(OUTPUT))
    }
}
