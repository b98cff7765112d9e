//! A baseline's process: Python with PyTorch, confined, which calls a module or function and takes its times. Knows how it is started and what it is asked; the
//! step that asks it also times the champion. The head of `driver.py` documents what a baseline may rely on.
//!
//! | decision | reason |
//! |---|---|
//! | the process takes its own times | nothing outside a process sees when its stream begins and ends; a baseline is chosen by whoever is compared with it, as a reference is |
//! | it may start programs | `torch.compile` calls compilers |
//! | its caches lie in its scratch folder | what an earlier baseline compiled must not make this one faster, and nothing is left behind |
//! | only files of the package are limited in what they import | PyTorch imports many packages for `torch.compile`; its release fixes them |

mod start;
mod tensors;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compilers::permitted;
use crate::machine::Machine;
use crate::message::Response;
use crate::oracle::call::Call;
use crate::task::{Task, failed};
use kforge_foundation::process::{Died, End, Talker};
use kforge_types::model::Problem;
use kforge_types::model::baseline::How;
use kforge_types::record::kind::baseline::documents::Callee;
use kforge_types::record::{Finding, FindingKind};
use start::command;

/// How a baseline is called, whatever its problem.
pub struct BaselineCall<'a> {
    /// How it runs.
    pub how: How,
    /// The mode of `torch.compile`.
    pub mode: Option<&'a str>,
    /// What it calls.
    pub calls: &'a Callee,
    /// Whether caches are flushed before a sample.
    pub cold: bool,
}

/// What the process is asked.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    Import {},
    Begin {},
    Lay { files: BTreeMap<String, String> },
    Prepare {},
    Run {},
    Device { count: usize },
    Call { count: usize },
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Done {},
    Prepared {
        versions: BTreeMap<String, String>,
    },
    Ran {
        converted: BTreeMap<String, String>,
        changed: Vec<String>,
    },
    Times {
        ns: Vec<f64>,
        waited: u32,
    },
    Missing {
        why: String,
    },
    Failed {
        message: String,
        log: String,
        #[serde(default = "exited")]
        kind: FindingKind,
    },
}

/// The kind of a failure that has none of its own: the baseline gave up.
fn exited() -> FindingKind {
    FindingKind::Exited
}

/// Why a baseline gave nothing.
#[derive(Debug)]
pub enum NoBaseline {
    /// This machine lacks something.
    Missing(String),
    /// The baseline itself failed.
    Failed {
        /// What is found of it.
        finding: Box<Finding>,
        /// Its traceback; empty if it raised nothing.
        log: String,
    },
    /// It took too long.
    TimedOut(Duration),
    /// The step ends with this response.
    Response(Response),
}

/// Samples, and how many of them hold time of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Nanoseconds, in order.
    pub ns: Vec<f64>,
    /// The samples during which the device waited for the host.
    pub waited: u32,
}

/// One call's results.
#[derive(Debug)]
pub struct Ran {
    /// The bytes of each written tensor, in the problem's order.
    pub outputs: Vec<(String, Vec<u8>)>,
    /// Outputs that were given in another type, with it.
    pub converted: BTreeMap<String, String>,
    /// Inputs that the call changed.
    pub changed: Vec<String>,
}

/// A running baseline. Dropping it ends its process.
pub struct BaselineProcess<'a> {
    talker: Option<Talker>,
    call: Call,
    problem: &'a Problem,
}

impl<'a> BaselineProcess<'a> {
    /// Starts the process, and imports PyTorch in it. It has not used the device yet.
    ///
    /// # Errors
    /// The process cannot be started, or cannot import PyTorch.
    pub fn start(
        task: &Task,
        problem: &'a Problem,
        baseline: &BaselineCall<'_>,
        machine: &Machine,
    ) -> Result<Self, NoBaseline> {
        permitted(task, "baselines").map_err(NoBaseline::Response)?;
        let call = Call::new(task).map_err(NoBaseline::Response)?;
        let command = command(task, &call, problem, baseline, machine).map_err(NoBaseline::Response)?;
        let talker = Talker::start(&command).map_err(|e| system("cannot be started", &e))?;
        let mut process = BaselineProcess { talker: Some(talker), call, problem };
        process.done(&Ask::Import {}, task.left())?;
        Ok(process)
    }

    /// Starts the device, and constructs what is called.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn begin(&mut self, limit: Duration) -> Result<(), NoBaseline> {
        self.done(&Ask::Begin {}, limit)
    }

    /// Copies inputs to the device: the bytes of each tensor that is read.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn lay<'b>(
        &mut self,
        inputs: impl Iterator<Item = (&'b str, &'b [u8])>,
        limit: Duration,
    ) -> Result<(), NoBaseline> {
        let mut files = BTreeMap::new();
        for (at, (name, bytes)) in inputs.enumerate() {
            let file = format!("in{at}");
            self.call.write(&file, bytes).map_err(NoBaseline::Response)?;
            files.insert(name.to_string(), file);
        }
        self.done(&Ask::Lay { files }, limit)
    }

    /// Compiles or captures. Returns the versions of what runs.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn prepare(&mut self, limit: Duration) -> Result<BTreeMap<String, String>, NoBaseline> {
        match self.ask(&Ask::Prepare {}, limit)? {
            Answer::Prepared { versions } => Ok(versions),
            other => Err(unexpected(&other)),
        }
    }

    /// Calls once.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn run(&mut self, limit: Duration) -> Result<Ran, NoBaseline> {
        let (converted, changed) = match self.ask(&Ask::Run {}, limit)? {
            Answer::Ran { converted, changed } => (converted, changed),
            other => return Err(unexpected(&other)),
        };
        let mut outputs = vec![];
        for (at, tensor) in self.problem.written().enumerate() {
            let bytes = std::fs::read(self.call.path(&output_file(at)));
            let bytes = bytes.map_err(|e| system(&format!("wrote no `{}`", tensor.name), &e))?;
            if bytes.len() as u64 != tensor.bytes() {
                let message = format!(
                    "the baseline wrote {} bytes of `{}`, expected {}",
                    bytes.len(),
                    tensor.name,
                    tensor.bytes()
                );
                let finding = Box::new(Finding::new(FindingKind::Exited, message));
                return Err(NoBaseline::Failed { finding, log: String::new() });
            }
            outputs.push((tensor.name.clone(), bytes));
        }
        Ok(Ran { outputs, converted, changed })
    }

    /// Takes samples of device time.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn device_times(&mut self, count: usize, limit: Duration) -> Result<Samples, NoBaseline> {
        self.times(&Ask::Device { count }, count, limit)
    }

    /// Takes samples of host time until the device has done its work.
    ///
    /// # Errors
    /// As for every request: see [`NoBaseline`].
    pub fn call_times(&mut self, count: usize, limit: Duration) -> Result<Samples, NoBaseline> {
        self.times(&Ask::Call { count }, count, limit)
    }

    fn times(&mut self, ask: &Ask, count: usize, limit: Duration) -> Result<Samples, NoBaseline> {
        match self.ask(ask, limit)? {
            Answer::Times { ns, waited } if ns.len() == count => Ok(Samples { ns, waited }),
            other => Err(unexpected(&other)),
        }
    }

    fn done(&mut self, ask: &Ask, limit: Duration) -> Result<(), NoBaseline> {
        match self.ask(ask, limit)? {
            Answer::Done {} => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, ask: &Ask, limit: Duration) -> Result<Answer, NoBaseline> {
        let gone = || NoBaseline::Missing("the baseline's process has ended".into());
        let talker = self.talker.take().ok_or_else(gone)?;
        let line = serde_json::to_string(ask).map_err(|e| system("cannot be asked", &e.into()))?;
        // The coordinator ends a worker that is interrupted, and this process with it.
        let exchanged = talker.exchange(&line, limit.max(Duration::from_millis(1)), &AtomicBool::new(false));
        match exchanged.map_err(|e| system("cannot be asked", &e))? {
            Err(Died { end: End::TimedOut(limit), .. }) => Err(NoBaseline::TimedOut(limit)),
            Err(Died { end, stderr }) => {
                let text = stderr.text();
                let said = text.trim().lines().last().unwrap_or_default().to_string();
                let said = if said.is_empty() { said } else { format!(": {said}") };
                Err(NoBaseline::Missing(format!("the baseline's process {end}{said}")))
            }
            Ok((talker, answer)) => {
                self.talker = Some(talker);
                match serde_json::from_str::<Answer>(&answer) {
                    Ok(Answer::Missing { why }) => Err(NoBaseline::Missing(why)),
                    Ok(Answer::Failed { message, log, kind }) => {
                        Err(NoBaseline::Failed { finding: Box::new(Finding::new(kind, message)), log })
                    }
                    Ok(answer) => Ok(answer),
                    Err(e) => Err(system("gave no answer", &e.into())),
                }
            }
        }
    }
}

fn output_file(at: usize) -> String {
    format!("out{at}")
}

fn unexpected(answer: &Answer) -> NoBaseline {
    NoBaseline::Response(failed(format!("the baseline's process answered `{answer:?}`")))
}

fn system(what: &str, error: &io::Error) -> NoBaseline {
    NoBaseline::Response(failed(format!("the baseline's process {what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_those_of_the_driver() {
        let said = |ask: &Ask| serde_json::to_string(ask).unwrap();
        assert_eq!(said(&Ask::Import {}), r#"{"import":{}}"#);
        assert_eq!(said(&Ask::Device { count: 3 }), r#"{"device":{"count":3}}"#);
        let lay = Ask::Lay { files: [("x".to_string(), "in0".to_string())].into() };
        assert_eq!(said(&lay), r#"{"lay":{"files":{"x":"in0"}}}"#);
        let heard = |text: &str| serde_json::from_str::<Answer>(text).unwrap();
        assert_eq!(heard(r#"{"done": {}}"#), Answer::Done {});
        assert_eq!(heard(r#"{"times": {"ns": [1.5], "waited": 1}}"#), Answer::Times { ns: vec![1.5], waited: 1 });
        let failed = |kind| Answer::Failed { message: "m".into(), log: String::new(), kind };
        assert_eq!(heard(r#"{"failed": {"message": "m", "log": ""}}"#), failed(FindingKind::Exited));
        let shaped = r#"{"failed": {"message": "m", "log": "", "kind": "wrong-shape"}}"#;
        assert_eq!(heard(shaped), failed(FindingKind::WrongShape));
        let driver = start::DRIVER;
        for ask in ["import", "begin", "lay", "prepare", "run", "device", "call"] {
            assert!(driver.contains(&format!("what == \"{ask}\"")), "{ask}");
        }
    }
}
