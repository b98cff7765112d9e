//! The verifier's side of a kernel's own launcher: makes inputs, starts a process for each run, waits for its end, and compares the outputs. Knows trials and
//! runs; never loads the library.
//!
//! | run of a trial | what it detects |
//! |---|---|
//! | the only run of its process | wrong answers |
//! | after a run on other inputs in the same memory, with the other poison | state kept between calls, dependence on addresses or time, unwritten elements |
//!
//! A fresh trial, whose inputs are drawn for this verification, has only the first of these runs.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::message::{BufferFiles, LauncherProblem, Request, Start};
use crate::device::buffers::{self, Image, InitialContents};
use crate::device::client::{self, Client};
use crate::device::facts::{DeviceFacts, Probed};
use crate::device::{confined, inputs, rig};
use kforge_engine::evidence::PROVENANCE;
use kforge_engine::lock::Mode;
use kforge_foundation::base::count;
use kforge_foundation::process::{Command, Limits, run};
use kforge_harness::compilers;
use kforge_harness::confine::{self, Confinement};
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::layout::POISONS;
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Observer, RunOutputs};
use kforge_harness::oracle::Source;
use kforge_harness::reports::{RunSummary, hear};
use kforge_harness::task::{Task, failed};
use kforge_types::model::Tensor;
use kforge_types::record::observation::HOST_LAUNCHED;
use kforge_types::record::params::{Expected, HostLaunch, Trial, VerifyParams};
use kforge_types::record::{Determinism, Verdict};

/// Bytes of the process's reports that are kept.
const REPORTS: usize = 4 << 20;
/// The most threads of the process: those of the driver, the launcher and its libraries.
const THREADS: u32 = 512;
/// The time limit for creating a context: a driver that wakes a device takes some seconds.
const STARTING: Duration = Duration::from_secs(60);
/// A suffix for the distribution, for each run of a trial.
const SAID: [&str; 2] = ["", ", after other inputs"];

/// The contents of every written tensor after a run.
type Outputs<'a> = Vec<(&'a Tensor, Vec<u8>)>;

/// Executes a verify step.
pub(in crate::device) fn verify(task: &Task, params: &VerifyParams) -> Result<Response, Response> {
    let host = params.host.as_ref().ok_or_else(|| failed("the kernel has no launcher of its own"))?;
    compilers::permitted(task, "host code of kernels")?;
    // The memory files of two runs, the values that they are made from, and the expected values.
    let most = buffers::bytes(&params.problem, &params.workspaces).saturating_mul(7);
    if most > task.memory_limit {
        let limit = task.memory_limit;
        let why =
            format!("its buffers need {most} bytes of memory, but the limit is {limit} (setting `build.memory-limit`)");
        return Err(Response::Unavailable { why });
    }
    let (probed, facts) = Client::find(task, &params.arch)?;
    let library = task.read("binary")?;
    let library = MemoryFile::program(&library).map_err(|e| failed(format!("cannot hold the library: {e}")))?;
    let held = client::lock_file(task, &facts);
    let held = held.map(|path| rig::turn(task, &path, Mode::Shared)).transpose()?;
    let provenance = rig::provenance(&facts, params.protocol);
    let ran_as = format!("{HOST_LAUNCHED}{}", provenance.device);
    let observer = Observer::new(task, params, false, ran_as, "something other than its inputs");
    let mut verifier = Verifier { task, params, host, probed, facts, library, observer, passing: None, stop: false };
    for at in 0..params.trials.len() {
        if !verifier.stop {
            verifier.trial(at)?;
        }
    }
    if !verifier.stop {
        verifier.fresh()?;
    }
    drop(held);
    let Verifier { mut observer, passing, .. } = verifier;
    // After a failure, equal outputs of repeated runs do not show that the kernel is deterministic.
    let seen = &mut observer.seen;
    if (seen.trials.len() < params.trials.len() || passing.is_some()) && seen.determinism == Determinism::Stable {
        seen.determinism = Determinism::Unknown;
    }
    task.write_document("observation", &*seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    let product = &provenance.device.product;
    let summary = match seen.findings.len() {
        0 => format!("{} on {product}, host-launched", count(params.trials.len(), "trial")),
        found => format!("{} on {product}, host-launched", count(found, "finding")),
    };
    let (verdict, forget) = (passing.clone().map(Verdict::Fail), passing.is_some());
    Ok(Response::Done { verdict, notes: vec![], summary, forget })
}

struct Verifier<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    host: &'a HostLaunch,
    probed: Probed,
    facts: DeviceFacts,
    library: MemoryFile,
    observer: Observer<'a>,
    /// A failure that may not recur, such as a time-out.
    passing: Option<String>,
    /// Set when a crash or a refusal makes further runs pointless.
    stop: bool,
}

/// The buffers of one run, in files.
struct RunBuffers<'a> {
    images: Vec<Image<'a>>,
    canary: u8,
    /// The files with the contents of each buffer before and after the run.
    files: Vec<(MemoryFile, MemoryFile)>,
}

impl<'a> RunBuffers<'a> {
    fn handed(&self) -> Vec<BufferFiles> {
        let one = |(image, (before, after)): (&Image<'_>, &(MemoryFile, MemoryFile))| BufferFiles {
            name: image.name.to_string(),
            before: before.number(),
            after: after.number(),
            bytes: image.whole(),
            offset: image.offset(),
        };
        self.images.iter().zip(&self.files).map(one).collect()
    }
}

/// A whole buffer before a run: canaries around the initial contents of the kernel's part.
fn whole(image: &Image<'_>, canary: u8) -> Vec<u8> {
    let mut bytes = vec![canary; image.whole() as usize];
    let (from, own) = (image.offset() as usize, image.own as usize);
    match &image.holds {
        InitialContents::Contents(made) => bytes[from..from + own].copy_from_slice(&made.bytes),
        InitialContents::Byte(byte) => bytes[from..from + own].fill(*byte),
    }
    bytes
}

impl<'a> Verifier<'a> {
    /// Runs a trial and compares the outputs of its runs.
    fn trial(&mut self, at: usize) -> Result<(), Response> {
        let trials: &'a [Trial] = &self.params.trials;
        let trial = &trials[at];
        let before = (trials.len() > 1).then(|| &trials[(at + trials.len() - 1) % trials.len()]);
        let mut ended: Vec<(usize, Outputs<'a>)> = vec![];
        for (turn, _) in SAID.iter().enumerate() {
            let poison = POISONS[turn];
            // The first run is the only one in its process.
            let first = before.filter(|_| turn > 0).map(|other| self.place(other, poison, turn)).transpose()?;
            let own = self.place(trial, poison, turn)?;
            let heard = self.run(&first.iter().chain([&own]).collect::<Vec<_>>())?;
            self.hear(&heard);
            let outputs = self.left(&own)?;
            if !heard.is_whole() {
                self.stop = true;
                break;
            }
            ended.push((turn, outputs));
        }
        if ended.is_empty() {
            return Ok(());
        }
        let expected: Expected = self.task.document(&format!("expected:{}", trial.trial))?;
        let source = Source::new(self.task, &self.params.problem);
        let make = || source.held(trial, &expected, &self.params.compare);
        let left = |(turn, outputs): &'_ (usize, Outputs<'a>)| (SAID[*turn], POISONS[*turn], outputs.clone());
        let all: Vec<(&'static str, u8, Outputs<'a>)> = ended.iter().map(left).collect();
        let lefts: Vec<RunOutputs<'_>> = all
            .iter()
            .map(|(said, poison, outputs)| RunOutputs {
                said,
                poison: *poison,
                outputs: outputs.iter().map(|(tensor, bytes)| (*tensor, bytes.as_slice().into())).collect(),
            })
            .collect();
        self.observer.compare(trial, &Against::later(&expected, &make), &lefts)
    }

    /// Runs the fresh trials, each once in a process of its own.
    fn fresh(&mut self) -> Result<(), Response> {
        let drawn = FreshTrials::draw(self.task, self.params)?;
        let source = Source::new(self.task, &self.params.problem);
        let expected: Result<Vec<Expected>, NotComputed> =
            (0..drawn.trials().len()).map(|at| Ok(drawn.expected(at, &source)?.0)).collect();
        let expected = match expected {
            Ok(expected) => expected,
            Err(why) => {
                return self.observer.left_out(&why);
            }
        };
        self.observer.drawn(&drawn);
        for (turn, (trial, expected)) in drawn.trials().iter().zip(&expected).enumerate() {
            self.observer.within(Some(trial.trial));
            let poison = POISONS[turn % POISONS.len()];
            let own = self.place(trial, poison, turn)?;
            let heard = self.run(&[&own])?;
            self.hear(&heard);
            let outputs = self.left(&own)?;
            if !heard.is_whole() {
                self.stop = true;
                break;
            }
            let make = || source.held(trial, expected, &self.params.compare);
            let outputs = outputs.iter().map(|(tensor, bytes)| (*tensor, bytes.as_slice().into())).collect();
            let left = [RunOutputs { said: "", poison, outputs }];
            self.observer.compare(trial, &Against::later(expected, &make), &left)?;
        }
        Ok(())
    }

    /// Creates the buffers of a run on a trial's inputs.
    fn place(&self, trial: &Trial, poison: u8, turn: usize) -> Result<RunBuffers<'a>, Response> {
        let params: &'a VerifyParams = self.params;
        let inputs = inputs::inputs(self.task, &params.problem, trial)?;
        let images = buffers::images(&params.problem, &params.workspaces, &inputs, poison);
        let canary = buffers::canary(trial.seed, turn as u64);
        let files = images.iter().map(|image| {
            let bytes = whole(image, canary);
            Ok((MemoryFile::sealed(&bytes)?, MemoryFile::writable(&bytes)?))
        });
        let files = files.collect::<std::io::Result<Vec<_>>>();
        let files = files.map_err(|e| failed(format!("cannot make buffers: {e}")))?;
        Ok(RunBuffers { images, canary, files })
    }

    /// Runs the launcher on these sets of buffers in order, in a process that has no other buffers, and waits for the process to end.
    fn run(&self, runs: &[&RunBuffers<'a>]) -> Result<RunSummary, Response> {
        let cannot = |what: &str, e: &dyn std::fmt::Display| failed(format!("cannot {what}: {e}"));
        let library = self.library.again().map_err(|e| cannot("hand over the library", &e))?;
        let request = Request {
            library: library.number(),
            function: self.host.function.clone(),
            asked: LauncherProblem::of(&self.params.problem, &self.params.workspaces),
            runs: runs.iter().map(|placed| placed.handed()).collect(),
        };
        let files = || runs.iter().flat_map(|placed| &placed.files).flat_map(|(a, b)| [a, b]).chain([&library]);
        // A part of the step's time is kept, so that the step can report a time-out before its own time limit.
        let time = STARTING + self.task.run_limit.saturating_mul(runs.len() as u32);
        let time = time.min(self.task.left() / 10 * 9).max(Duration::from_millis(10));
        let keep = self.confinement(files().map(MemoryFile::number).collect(), time);
        let start = Start { libcuda: self.probed.libcuda.clone(), keep };
        let start = serde_json::to_string(&start).map_err(|e| cannot("describe the run", &e))?;
        let line = serde_json::to_string(&request).map_err(|e| cannot("describe the run", &e))? + "\n";
        let mut command = Command::own()
            .args(["worker", "--host-runner", &start])
            .env("CUDA_VISIBLE_DEVICES", &self.facts.uuid)
            .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            // Nothing is written to a cache.
            .env("CUDA_CACHE_DISABLE", "1")
            .env("CUDA_MODULE_LOADING", "EAGER")
            .stdin(line)
            .capture(REPORTS)
            .threads(THREADS);
        if let Some(path) = &self.probed.library_path {
            command = command.env("LD_LIBRARY_PATH", path);
        }
        for file in files() {
            command = command.inherit(file.descriptor());
        }
        // The coordinator ends a worker that is interrupted, and its processes end with it.
        let finished = run(&command, Some(time), &AtomicBool::new(false));
        let finished = finished.map_err(|e| cannot("run the launcher", &e))?;
        let mut heard = hear(&finished.stdout, &finished.stderr, finished.end, runs.len() as u32);
        // Only the launcher itself can have made this claim, which would excuse it from the run.
        if let Some(claim) = heard.not_emulated.first().cloned() {
            heard.forged(&claim.what, &"it runs on a device");
        }
        if let Some(why) = heard.refused {
            return Err(Response::Unavailable { why });
        }
        if !heard.unconfined.is_empty() && !self.task.allow_unconfined {
            return Err(Response::Unavailable { why: confine::refusal("host code of kernels", &heard.unconfined) });
        }
        Ok(heard)
    }

    /// The confinement of the process. Address space has no limit, because the driver reserves as much as all devices have.
    fn confinement(&self, keep: Vec<i32>, time: Duration) -> Confinement {
        let limits = Limits {
            cpu_s: Some(time.as_secs().saturating_add(1).saturating_mul(8)),
            die_with: Some(std::process::id()),
            ..Limits::default()
        };
        confined::confinement(&self.probed, keep, limits)
    }

    /// Records the reports of the process.
    fn hear(&mut self, heard: &RunSummary) {
        heard.findings.iter().for_each(|finding| self.observer.find(finding.clone()));
        if heard.passing.is_some() {
            self.passing.clone_from(&heard.passing);
        }
        if heard.timed_out {
            self.task.timed_out();
        }
        if self.observer.seen.unconfined.is_empty() {
            self.observer.seen.unconfined.clone_from(&heard.unconfined);
        }
    }

    /// The contents of every written tensor after a run. Records the damage that the run did to its buffers and around them.
    fn left(&mut self, placed: &RunBuffers<'a>) -> Result<Outputs<'a>, Response> {
        let mut outputs = vec![];
        for (image, (_, after)) in placed.images.iter().zip(&placed.files) {
            let bytes = after.read().map_err(|e| failed(format!("cannot read buffers back: {e}")))?;
            let after = image.after(placed.canary, bytes);
            after.findings.into_iter().for_each(|finding| self.observer.find(finding));
            outputs.extend(image.written().map(|tensor| (tensor, after.bytes)));
        }
        Ok(outputs)
    }
}
