//! Runs a kernel in PyTorch in a confined process of its own, on memory that belongs to the caller. Knows processes, files and answers; knows neither trials nor
//! which values are correct.
//!
//! The kernel is a program: whatever its process says may be forged. So the process is asked for nothing that could improve a result.
//!
//! | question | who answers |
//! |---|---|
//! | which values it computes | the caller's memory, which is read when the process says that a call has ended, and again when the process has ended |
//! | whether inputs changed, or bytes around tensors | the same memory |
//! | whether threads or processes work on | the system's lists of the process's threads and descendants |
//! | the type, shape and layout of results; what its code does besides computing | the process ([`driver.py`], [`watch.py`]): such findings only fail it |
//! | what this machine lacks | the process: the result is then unknown |
//!
//! For timing, the tensors lie in memory of a third process, which holds the clock and runs no code of the kernel ([`Shared`]). That process hands over and
//! takes back by three words in a page of memory; the words that the kernel's process writes only end waits.
//!
//! On a device, the process copies the caller's memory to the device before a call and back after it, when all streams of the device have ended
//! ([`devices.py`]). What it does not copy back is poison there.
//!
//! [`devices.py`]: devices.py
//! [`driver.py`]: driver.py
//! [`watch.py`]: watch.py

mod memory;
mod shared;
mod start;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

pub use memory::{Area, areas, bytes};
pub use shared::{DONE, GIVEN_UP, GO, READY, Shared, SharedTensor, WORDS};

use crate::confine;
use crate::machine::Machine;
use crate::message::Response;
use crate::python_server;
use crate::task::{Task, failed};
use kforge_foundation::process::{Died, End, Rule, Talker, family, signal_name};
use kforge_types::model::Problem;
use kforge_types::model::baseline::How;
use kforge_types::model::torch::TorchLaunch;
use kforge_types::record::{Finding, FindingKind};

/// The most characters of a text that the process gives.
const LONGEST: usize = 2000;

/// A kernel in PyTorch: the files that its process gets, and what is called.
#[derive(Debug, Clone, Copy)]
pub struct TorchKernel<'a> {
    /// The texts of its files, by name.
    pub files: &'a BTreeMap<String, String>,
    /// The file with what is called.
    pub main: &'a str,
    /// What is called.
    pub launch: &'a TorchLaunch,
    /// The device in whose memory its tensors lie; none if they lie in the caller's memory, on the processor.
    pub on: Option<&'a Machine>,
    /// The memory of the process that times its calls, if they are timed.
    pub shared: Option<&'a Shared>,
    /// How it runs, if it is a baseline.
    pub how: Option<Baselined<'a>>,
}

/// How a baseline runs whose calls are timed as those of kernels are.
#[derive(Debug, Clone, Copy)]
pub struct Baselined<'a> {
    /// How.
    pub how: How,
    /// The mode of `torch.compile`.
    pub mode: Option<&'a str>,
}

/// What is asked of the process: one line each.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    Import {},
    Device {},
    Begin {},
    Call { train: bool },
    Echo { number: u64 },
    Seal {},
    Record {},
    Timed { number: u64, train: bool, recorded: bool },
    Measure { train: bool, count: usize },
}

/// What the process answers: one line each.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Done {},
    Called(Said),
    Measured(Measured),
    Missing {
        why: String,
    },
    Failed {
        message: String,
        #[serde(default)]
        log: String,
    },
}

/// What the process says of a call.
#[derive(Debug, PartialEq, Deserialize)]
struct Said {
    whole: bool,
    findings: Vec<Finding>,
    lacks: Vec<String>,
    printed: String,
    #[serde(default)]
    launched: Vec<Launched>,
    #[serde(default)]
    busy_ns: f64,
}

/// Samples of device time of a baseline, and the versions of what ran, as its process says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Measured {
    /// The versions, by name.
    pub versions: BTreeMap<String, String>,
    /// Nanoseconds of each call.
    pub ns: Vec<f64>,
    /// Whether the device waited for the host during each.
    pub waited: Vec<bool>,
}

/// What the samples of a baseline gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// All that were asked for.
    Taken(Measured),
    /// None, and why, in words.
    Absent(String),
}

/// A kernel of the device that a call launched, as the process says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Launched {
    /// Its name.
    pub name: String,
    /// How often it ran, and how long in nanoseconds.
    pub launches: u64,
    /// See `launches`.
    pub ns: f64,
    /// Whether it is a copy or a fill of memory.
    pub copies: bool,
}

/// What is known of a call, or of what precedes the first one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Called {
    /// Whether results lie in the caller's memory.
    pub whole: bool,
    /// What fails it.
    pub findings: Vec<Finding>,
    /// What this machine lacks for it: the result is unknown unless there is a finding.
    pub lacks: Vec<String>,
    /// What it printed.
    pub printed: String,
    /// The kernels of the device that it launched, if they were recorded.
    pub launched: Vec<Launched>,
    /// How long the device worked for it, in nanoseconds, if they were recorded. What runs at the same time counts once.
    pub busy_ns: f64,
    /// Whether its time was up. Another run may not have that.
    pub timed_out: bool,
    /// Whether the process has ended.
    pub ended: bool,
}

/// A process with a kernel.
pub struct TorchProcess {
    talker: Option<Talker>,
    /// How many threads it had before code of the kernel ran.
    threads: usize,
    /// The processes that this one had started before.
    others: Vec<u32>,
    /// Those of another kernel that is called in turn. What they start is not this kernel's.
    rivals: Vec<u32>,
    /// Removed with this value.
    _folder: TempDir,
}

impl TorchProcess {
    /// Starts a process, and imports PyTorch there. It has not used a device yet.
    ///
    /// # Errors
    /// PyTorch is missing, or the system fails.
    pub fn start(
        task: &Task,
        problem: &Problem,
        kernel: &TorchKernel<'_>,
        memory: &[Area<'_>],
        limit: Duration,
    ) -> Result<Self, Response> {
        let folder = tempfile::Builder::new().prefix(".candidate-").tempdir_in(&task.output);
        let folder = folder.map_err(|e| failed(format!("cannot make a folder for the kernel: {e}")))?;
        let command = start::command(task, problem, kernel, memory, folder.path())?;
        let others = family::descendants(std::process::id());
        let talker = Talker::start(&command).map_err(|e| failed(format!("cannot run the kernel: {e}")))?;
        let mut process = TorchProcess { talker: Some(talker), threads: 0, others, rivals: vec![], _folder: folder };
        process.done(&Ask::Import {}, limit)?;
        process.threads = process.count_threads();
        Ok(process)
    }

    /// The process, unless it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.talker.as_ref().map(Talker::pid)
    }

    /// Names the processes of another kernel, which is called in turn with this one.
    pub fn beside(&mut self, rivals: impl IntoIterator<Item = u32>) {
        self.rivals.extend(rivals);
    }

    /// Starts the device, and what runs beside it in the process.
    ///
    /// # Errors
    /// PyTorch finds no device, or the system fails.
    pub fn device(&mut self, limit: Duration) -> Result<(), Response> {
        self.done(&Ask::Device {}, limit)?;
        self.threads = self.count_threads();
        Ok(())
    }

    /// Asks for something that code of the kernel takes no part in.
    fn done(&mut self, ask: &Ask, limit: Duration) -> Result<(), Response> {
        match self.ask(ask, limit)? {
            Ok(Answer::Done {}) => Ok(()),
            Ok(Answer::Missing { why }) => Err(Response::Unavailable { why }),
            Ok(Answer::Failed { message, log }) => Err(failed(format!("{message}\n{log}"))),
            Ok(answer) => Err(failed(format!("the kernel's process answered `{answer:?}`"))),
            Err(died) => {
                let said = last_line(&died.stderr.text());
                Err(failed(format!("the process that runs PyTorch {}{said}", died.end)))
            }
        }
    }

    /// Imports the kernel and constructs its module.
    ///
    /// # Errors
    /// The system fails, or this machine lacks a type.
    pub fn begin(&mut self, limit: Duration) -> Result<Called, Response> {
        self.called(&Ask::Begin {}, limit)
    }

    /// Calls the kernel once, in training mode or not.
    ///
    /// # Errors
    /// The system fails.
    pub fn call(&mut self, train: bool, limit: Duration) -> Result<Called, Response> {
        self.called(&Ask::Call { train }, limit)
    }

    /// Answers a hand-over without a call, before code of the kernel is in the process.
    ///
    /// # Errors
    /// The system fails, or the process cannot use the memory that it shares.
    pub fn echo(&mut self, number: u64, limit: Duration) -> Result<(), Response> {
        self.done(&Ask::Echo { number }, limit)
    }

    /// Takes away what starts programs, processes and threads and what creates files, for all threads of the process.
    ///
    /// # Errors
    /// The system fails, or has no filters.
    pub fn seal(&mut self, limit: Duration) -> Result<Called, Response> {
        let filters = |process: &Self| process.talker.as_ref().and_then(|talker| confine::filters(talker.pid()));
        let before = filters(self);
        let mut called = self.called(&Ask::Seal {}, limit)?;
        // Code of the kernel may have changed the code that seals, so the system is asked.
        if let (false, Some(before), Some(after)) = (called.ended, before, filters(self))
            && after.iter().min() <= before.iter().max()
        {
            let message = "the kernel's process did not give up what starts processes and creates files".to_string();
            called.findings.push(Finding::new(FindingKind::Protocol, message));
        }
        Ok(called)
    }

    /// Starts what records the kernels of the device, before code of the kernel is in the process.
    ///
    /// # Errors
    /// This machine does not record them, or the system fails.
    pub fn record(&mut self, limit: Duration) -> Result<(), Response> {
        self.done(&Ask::Record {}, limit)?;
        self.threads = self.count_threads();
        Ok(())
    }

    /// Calls the kernel once, when the process that times it hands over.
    ///
    /// # Errors
    /// The system fails.
    pub fn timed(&mut self, number: u64, train: bool, limit: Duration) -> Result<Called, Response> {
        self.called(&Ask::Timed { number, train, recorded: false }, limit)
    }

    /// The same, and records the kernels of the device that it launches.
    ///
    /// # Errors
    /// The system fails.
    pub fn recorded(&mut self, number: u64, train: bool, limit: Duration) -> Result<Called, Response> {
        self.called(&Ask::Timed { number, train, recorded: true }, limit)
    }

    /// Takes samples of device time of a baseline. Whoever writes a baseline is believed.
    ///
    /// # Errors
    /// The system fails.
    pub fn measure(&mut self, train: bool, count: usize, limit: Duration) -> Result<Measurement, Response> {
        Ok(match self.ask(&Ask::Measure { train, count }, limit)? {
            Ok(Answer::Measured(measured)) if measured.ns.len() == count && measured.waited.len() == count => {
                Measurement::Taken(measured)
            }
            Ok(Answer::Missing { why }) => Measurement::Absent(plain(&why)),
            Ok(Answer::Failed { message, .. }) => Measurement::Absent(plain(&message)),
            Ok(_) => Measurement::Absent("the baseline's process answered another question".into()),
            Err(died) => {
                let said = last_line(&died.stderr.text());
                Measurement::Absent(format!("the baseline's process {}{said}", died.end))
            }
        })
    }

    /// Ends the process and everything that it started.
    ///
    /// # Errors
    /// The system fails.
    pub fn end(mut self) -> io::Result<()> {
        match self.talker.take() {
            // Nothing that it still does counts.
            Some(talker) => talker.dismiss(Duration::ZERO).map(drop),
            None => Ok(()),
        }
    }

    fn called(&mut self, ask: &Ask, limit: Duration) -> Result<Called, Response> {
        match self.ask(ask, limit)? {
            Ok(Answer::Called(said)) => {
                let mut findings: Vec<Finding> = said.findings.into_iter().map(cleaned).collect();
                findings.extend(self.work_on());
                let whole = said.whole && findings.is_empty();
                let lacks = said.lacks.iter().map(|what| plain(what)).collect();
                let printed = said.printed.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
                let launched = said.launched.into_iter().filter(|one| one.ns.is_finite() && one.ns >= 0.0);
                let launched = launched.map(|one| Launched { name: plain(&one.name), ..one }).collect();
                let busy_ns = if said.busy_ns.is_finite() { said.busy_ns } else { f64::MAX };
                Ok(Called { whole, findings, lacks, printed, launched, busy_ns, ..Called::default() })
            }
            Ok(Answer::Missing { why }) => Err(Response::Unavailable { why }),
            Ok(Answer::Failed { message, log }) => {
                // The program that asks is in the kernel's process, which can break it.
                let message = format!("the kernel's process broke: {}{}", plain(&message), last_line(&log));
                Ok(Called { findings: vec![Finding::new(FindingKind::Protocol, message)], ..Called::default() })
            }
            Ok(Answer::Done {} | Answer::Measured(_)) => {
                let message = "the kernel's process answered another question".to_string();
                Ok(Called { findings: vec![Finding::new(FindingKind::Protocol, message)], ..Called::default() })
            }
            Err(died) => Ok(ended(&died)),
        }
    }

    /// Threads and processes that outlive a call.
    fn work_on(&self) -> Option<Finding> {
        let talker = self.talker.as_ref()?;
        let more = self.count_threads().saturating_sub(self.threads);
        // Orphans are adopted by this process.
        let is_new = |pid: &u32| *pid != talker.pid() && !self.others.contains(pid) && family::is_alive(*pid);
        // The processes that wait for other steps make children at any time.
        let mut waiting = python_server::kept_processes();
        waiting.extend(&self.rivals);
        let processes = family::descendants_but(std::process::id(), &waiting).iter().filter(|pid| is_new(pid)).count();
        let what = match (more, processes) {
            (0, 0) => return None,
            (0, 1) => "1 process of the kernel outlives".to_string(),
            (0, processes) => format!("{processes} processes of the kernel outlive"),
            (1, _) => "1 thread of the kernel outlives".to_string(),
            (threads, _) => format!("{threads} threads of the kernel outlive"),
        };
        Some(Finding::new(FindingKind::Forbidden, format!("{what} its call")))
    }

    fn count_threads(&self) -> usize {
        let Some(talker) = &self.talker else { return 0 };
        fs::read_dir(format!("/proc/{}/task", talker.pid())).map_or(0, |tasks| tasks.flatten().count())
    }

    /// The answer, or how the process ended.
    fn ask(&mut self, ask: &Ask, limit: Duration) -> Result<Result<Answer, Died>, Response> {
        let Some(talker) = self.talker.take() else {
            return Err(failed("BUG: a process that has ended is asked"));
        };
        let line = serde_json::to_string(ask).map_err(|e| failed(format!("cannot ask the kernel's process: {e}")))?;
        // The coordinator ends a worker that is interrupted, and this process with it.
        let exchanged = talker.exchange(&line, limit.max(Duration::from_millis(1)), &AtomicBool::new(false));
        match exchanged.map_err(|e| failed(format!("cannot ask the kernel's process: {e}")))? {
            Err(died) => Ok(Err(died)),
            Ok((talker, line)) => {
                self.talker = Some(talker);
                let broken = |_| Answer::Failed { message: "it gave no answer".into(), log: String::new() };
                Ok(Ok(serde_json::from_str(&line).unwrap_or_else(broken)))
            }
        }
    }
}

/// What the end of a process means.
fn ended(died: &Died) -> Called {
    let said = last_line(&died.stderr.text());
    let (kind, message) = match died.end {
        End::TimedOut(limit) => (FindingKind::NoProgress, format!("the kernel took longer than {} s", limit.as_secs())),
        End::Signalled(libc::SIGSYS) => {
            (FindingKind::Forbidden, "the kernel made a system call that is refused".to_string())
        }
        End::Signalled(signal) => {
            let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_string);
            (FindingKind::Crash, format!("the kernel's process was ended by {name}{said}"))
        }
        End::Misbehaved(rule @ (Rule::Unasked | Rule::Answer)) => {
            (FindingKind::Protocol, format!("the kernel's process {}", End::Misbehaved(rule)))
        }
        End::Misbehaved(rule) => {
            (FindingKind::LimitExceeded, format!("the kernel's process {}", End::Misbehaved(rule)))
        }
        end => (FindingKind::Exited, format!("the kernel ended its process ({end}){said}")),
    };
    let timed_out = matches!(died.end, End::TimedOut(_));
    Called { findings: vec![Finding::new(kind, message)], timed_out, ended: true, ..Called::default() }
}

/// A finding of the process without what would act on a terminal, and of no kind that fails nothing.
fn cleaned(finding: Finding) -> Finding {
    let kind = if finding.kind.is_allowed() { FindingKind::Protocol } else { finding.kind };
    let line = finding.line.filter(|(file, _)| file == "@pc");
    Finding { line, ..Finding::new(kind, plain(&finding.message)) }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

/// The last line of a text, after a colon.
fn last_line(text: &str) -> String {
    match text.trim().lines().last() {
        None | Some("") => String::new(),
        Some(line) => format!(": {}", plain(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::process::Captured;

    #[test]
    fn requests_and_answers_are_those_of_the_driver() {
        let said = |ask: &Ask| serde_json::to_string(ask).unwrap();
        assert_eq!(said(&Ask::Call { train: true }), r#"{"call":{"train":true}}"#);
        let heard = |text: &str| serde_json::from_str::<Answer>(text).unwrap();
        assert_eq!(heard(r#"{"done": {}}"#), Answer::Done {});
        let text = r#"{"called": {"whole": false, "findings": [{"kind": "wrong-form", "message": "m", "count": 1}], "lacks": [], "printed": ""}}"#;
        let Answer::Called(called) = heard(text) else { panic!("{text}") };
        assert_eq!(called.findings, [Finding::new(FindingKind::WrongForm, "m")]);
        let text = r#"{"measured": {"versions": {"torch": "2.11.0"}, "ns": [1.5, 2.5], "waited": [false, true]}}"#;
        let Answer::Measured(measured) = heard(text) else { panic!("{text}") };
        assert_eq!((measured.ns, measured.waited), (vec![1.5, 2.5], vec![false, true]));
        for ask in ["import", "device", "begin", "call", "echo", "seal", "record", "timed", "measure"] {
            assert!(start::DRIVER.contains(&format!("what == \"{ask}\"")), "{ask}");
        }
    }

    /// What a program prints after `devices.py`. None, with a message, if there is no Python.
    fn of_devices(program: &str) -> Option<String> {
        let pythons = ["/usr/bin/python3", "/usr/local/bin/python3"];
        let Some(python) = pythons.iter().map(std::path::Path::new).find(|path| path.exists()) else {
            kforge_foundation::base::testing::skipped("there is no Python");
            return None;
        };
        let script = format!("{}\n{program}", include_str!("devices.py"));
        let command = kforge_foundation::process::Command::new(python).args(["-I", "-S", "-B", "-c", &script]);
        let finished = kforge_foundation::process::run(&command, None, &AtomicBool::new(false)).unwrap();
        Some(format!("{}{}", finished.stdout.text(), finished.stderr.text()))
    }

    #[test]
    fn a_device_that_runs_two_kernels_at_once_works_once() {
        let program = "print(covered([(0, 10), (2, 5), (8, 20), (30, 31)]), covered([]), covered([(5, 6), (0, 1)]))";
        let Some(said) = of_devices(program) else { return };
        assert_eq!(said.trim(), "21 0 2");
    }

    #[test]
    fn kernels_beyond_two_hundred_names_are_one_of_no_name() {
        let program = "import json\n\
            of = lambda n: {str(at): {'name': str(at), 'launches': 1, 'ns': 300.0 - at, 'copies': False} for at in range(n)}\n\
            many, few = named(of(250)), named(of(200))\n\
            print(len(few), few[-1]['name'], len(many), many[-1]['name'], many[-1]['launches'], sum(one['ns'] for one in many) == sum(300.0 - at for at in range(250)))";
        let Some(said) = of_devices(program) else { return };
        assert_eq!(said.trim(), "200 199 200 (further kernels) 51 True");
    }

    #[test]
    fn a_finding_of_the_process_fails_and_cannot_write_on_a_terminal() {
        let forged =
            Finding { line: Some(("/etc/passwd".into(), 3)), ..Finding::new(FindingKind::AbsentLane, "a\u{1b}b\n") };
        assert_eq!(cleaned(forged), Finding::new(FindingKind::Protocol, "a b "));
        let placed = Finding { line: Some(("@pc".into(), 3)), ..Finding::new(FindingKind::Trap, "t") };
        assert_eq!(cleaned(placed.clone()), placed);
    }

    #[test]
    fn how_a_process_ends_says_why_the_kernel_fails() {
        let of = |end| ended(&Died { end, stderr: Captured::new(10) });
        assert_eq!(of(End::Exited(0)).findings[0].kind, FindingKind::Exited);
        assert_eq!(of(End::Signalled(libc::SIGSEGV)).findings[0].kind, FindingKind::Crash);
        assert!(of(End::Signalled(libc::SIGSEGV)).findings[0].message.contains("SIGSEGV"));
        assert_eq!(of(End::Signalled(libc::SIGSYS)).findings[0].kind, FindingKind::Forbidden);
        assert_eq!(of(End::Misbehaved(Rule::Unasked)).findings[0].kind, FindingKind::Protocol);
        assert_eq!(of(End::Misbehaved(Rule::Memory)).findings[0].kind, FindingKind::LimitExceeded);
        let late = of(End::TimedOut(Duration::from_secs(3)));
        assert!(late.timed_out && late.ended && late.findings[0].message.ends_with("3 s"));
    }
}
