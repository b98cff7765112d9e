//! Executes steps on the workers of a server where that is possible, else in worker processes of this machine. Knows what may leave this machine and what an
//! answer means; the package `kforge-remote` knows the server.
//!
//! | decision | because |
//! |---|---|
//! | the lock of the step's key is held meanwhile | the engine holds it around every execution, so a step that falls back runs once here as well |
//! | a step whose answer is no result runs here | its error is this machine's own, and nothing remote fails a build |
//! | a step that observes a device of this machine runs here | its record then stands `here` |
//! | a step for a device that only a worker has runs there or not at all ([`super::remote_observations`]) | this machine cannot take its place |
//! | where claims do not count, only such steps go to workers | a result of another kind has no signature |
//! | a step of a toolchain that only this machine finds runs here | its worker could not compare it |
//! | spec and places with a private text stay here | paths name people and projects |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::remote::ExecutionSettings;
use super::remote_devices::HoldoutShapes;
use super::workers::Workers;
use crate::bots::slug;
use crate::elsewhere::{Described, Origin, described};
use kforge_engine::evidence::Index;
use kforge_engine::home::Home;
use kforge_engine::{Blobs, Execution, Job, RunError};
use kforge_foundation::base::Digest;
use kforge_harness::elsewhere::OnceAnswer;
use kforge_harness::message::Response;
use kforge_harness::task::file_name;
use kforge_pipeline::step::RemoteExecutor;
use kforge_remote::{Meaning, Program, Remote, RemoteStep, StepInput, lacking};
use kforge_types::record::device::is_remote;
use kforge_types::record::spec::Tree;
use kforge_types::record::{DeviceClass, Form, Spec, StepKind, StepResult};

/// The workers of a server, and those of this machine.
pub(crate) struct RemoteWorkers<'a> {
    pub(super) local: Workers<'a>,
    pub(super) remote: &'a Remote,
    pub(super) execution: &'a ExecutionSettings,
    /// The places of steps that run here: more are in flight than this machine has processors for.
    pub(super) here: Slots,
    /// The turns at devices of workers.
    pub(super) turns: Arc<Turns>,
    /// Whether results of workers count that no signature vouches for.
    pub(super) takes_claims: bool,
    /// The home, which keeps what workers sign.
    pub(super) home: Home,
    /// Where records of devices go.
    pub(super) index: Index,
    /// Whether there are new records.
    pub(super) brought: Arc<AtomicBool>,
    /// The shapes about which nothing is sent.
    pub(super) holdouts: &'a HoldoutShapes,
}

/// Places that threads wait for.
pub(crate) struct Slots {
    free: Mutex<usize>,
    left: Condvar,
}

/// The turns at devices of workers, which all builds of a process take.
#[derive(Default)]
pub(crate) struct Turns(Mutex<BTreeMap<String, Arc<Slots>>>);

impl Turns {
    /// The one place at a device.
    pub(super) fn at(&self, device: &str) -> Arc<Slots> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(device.to_string()).or_insert_with(|| Arc::new(Slots::new(1))).clone()
    }
}

/// How often a step that waits for a place looks whether the build was interrupted.
const TICK: Duration = Duration::from_millis(50);

/// A place.
pub(super) struct Slot<'s>(&'s Slots);

impl Slots {
    pub(super) fn new(count: usize) -> Slots {
        Slots { free: Mutex::new(count.max(1)), left: Condvar::new() }
    }

    /// Waits for a place; none if the build is interrupted first.
    pub(super) fn take(&self, interrupted: &AtomicBool) -> Option<Slot<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            if interrupted.load(Ordering::Relaxed) {
                return None;
            }
            free = self.left.wait_timeout(free, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Slot(self))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}

impl RemoteExecutor for RemoteWorkers<'_> {
    fn execute(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        if job.device.is_some_and(is_remote) {
            return self.observed(job);
        }
        // What is compiled elsewhere is measured here.
        self.local.warm_up(job);
        let failure = Arc::<Mutex<Option<String>>>::default();
        if let Some(execution) = self.elsewhere(job, &failure) {
            return Ok(execution);
        }
        // Steps at a device take turns there anyway.
        let slot = job.device.is_none().then(|| self.here.take(job.interrupted).ok_or(RunError::Interrupted));
        let _slot = slot.transpose()?;
        let began = Instant::now();
        // The wait for the server and for the place is no time of the step.
        let ended = self.local.execute(job).map(|ran| Execution { took: Some(began.elapsed()), ..ran });
        let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Ok(Execution { forget: false, .. }), Some(why)) = (&ended, failure) {
            self.remote.doubts(format!("this machine executes it, and there: {why}"));
        }
        ended
    }
}

impl RemoteWorkers<'_> {
    /// What a worker of the server gives for a step; none if it is to run here. `failure` gets why the worker has no result although it executed the step.
    fn elsewhere(&self, job: &Job<'_>, failure: &Arc<Mutex<Option<String>>>) -> Option<Execution> {
        let may = self.takes_claims && job.device.is_none() && self.remote.may_execute(job.spec);
        if !may || self.remote.rechecks(job.key) {
            return None;
        }
        let step = self.step(job)?;
        let (heard, kind) = (failure.clone(), job.spec.kind);
        let read = move |answer: &[u8]| {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = failure_in(answer);
            meaning_of(kind, answer, false)
        };
        let answer = self.remote.execute(step, Box::new(read))?;
        let OnceAnswer::Answered {
            response: Response::Done { verdict, notes, summary, forget: false },
            outputs,
            duration_ms,
            ..
        } = serde_json::from_slice(&answer).ok()?
        else {
            return None;
        };
        if self.remote.samples(job.key, job.spec.kind) {
            // It runs here as well, and the engine compares what that gives.
            self.remote.keep_back(job.key, StepResult { outputs, verdict, notes, summary, duration_ms });
            return None;
        }
        let took = Some(Duration::from_millis(duration_ms));
        Some(Execution { outputs, verdict, notes, summary, forget: false, elsewhere: true, took })
    }

    /// A step for the server; none if it must not leave this machine, or no other one could execute it.
    pub(super) fn step(&self, job: &Job<'_>) -> Option<RemoteStep> {
        let file = self.local.tools.step_file(job.spec, self.local.step_limits(job.time_limit_s))?;
        // Only a program that is installed there can know a home there.
        let is_sent = matches!(self.execution.program, Program::Sent(_));
        if is_sent && file.toolchains.values().any(Origin::needs_home) {
            return None;
        }
        let (spec, places) = (serde_json::to_vec(job.spec).ok()?, serde_json::to_vec(&file).ok()?);
        if self.remote.is_private(&[&spec, &places]) {
            return None;
        }
        let inputs = job.spec.inputs.iter().filter_map(|(name, input)| {
            Some(StepInput { name: file_name(name), digest: input.digest?, form: input.form })
        });
        let inputs: Vec<StepInput> = inputs.collect();
        inputs.iter().try_for_each(|input| stored(job.blobs, input))?;
        Some(RemoteStep {
            program: self.execution.program.clone(),
            spec,
            places,
            inputs,
            properties: self.properties(job),
            compared: self.compared(job),
            is_observed: job.device.is_some(),
            time_limit_s: job.time_limit_s,
            queue_limit: self.execution.queue_limit,
        })
    }
}

impl RemoteWorkers<'_> {
    /// What the worker of a step must be.
    fn properties(&self, job: &Job<'_>) -> Vec<(String, String)> {
        let class = job.device.and_then(|uuid| self.execution.device(uuid)).map(|device| &device.class);
        properties(&self.execution.properties, job.spec, class)
    }

    /// What the worker of a step compares with itself, and the device that it needs.
    fn compared(&self, job: &Job<'_>) -> Digest {
        let compared = compared(job.spec);
        match job.device.and_then(|uuid| self.execution.device(uuid)) {
            Some(device) => Digest::of(format!("{} {}", compared.hex(), device.class).as_bytes()),
            None => compared,
        }
    }
}

/// Brings an input to the store: files of packages and documents of the plan are elsewhere until a step needs them. None if it is lost.
fn stored(blobs: &dyn Blobs, input: &StepInput) -> Option<()> {
    let keep = |digest: &Digest| blobs.path(digest).ok().flatten().map(drop);
    keep(&input.digest)?;
    if input.form == Form::Tree {
        let tree: Tree = serde_json::from_slice(&blobs.get(&input.digest).ok()??).ok()?;
        tree.files.values().try_for_each(keep)?;
    }
    Some(())
}

/// Why a worker that executed a step has no result of it; none if it has one, or did not execute it.
pub(crate) fn failure_in(answer: &[u8]) -> Option<String> {
    let Ok(OnceAnswer::Answered { response, .. }) = serde_json::from_slice(answer) else { return None };
    match response {
        Response::Failed { message, .. } => Some(message),
        Response::Done { forget: true, summary, .. } => Some(format!("a time-out {summary}").trim_end().to_string()),
        _ => None,
    }
}

/// What an answer of a worker means to a step that this machine can execute as well.
pub(crate) fn meaning(kind: StepKind, answer: &[u8]) -> Meaning {
    meaning_of(kind, answer, false)
}

/// What an answer of a worker means. If only a worker can execute the step (`is_only`), whatever it gives is its answer, also a time-out or an error.
pub(super) fn meaning_of(kind: StepKind, answer: &[u8], is_only: bool) -> Meaning {
    match serde_json::from_slice(answer) {
        Ok(OnceAnswer::Answered { response: Response::Done { forget: true, .. }, outputs, .. }) if is_only => {
            Meaning::Result(outputs)
        }
        Ok(OnceAnswer::Answered { response, .. }) if is_only && !matches!(response, Response::Done { .. }) => {
            Meaning::Answer
        }
        Ok(OnceAnswer::Answered { response: Response::Done { verdict, forget: false, .. }, outputs, .. }) => {
            // Without an output, the steps that read it would be skipped.
            match lacking(kind, verdict.as_ref(), &outputs) {
                Some(name) => Meaning::Refused(format!("its result lacks the output `{name}`")),
                None => Meaning::Result(outputs),
            }
        }
        Ok(OnceAnswer::Answered { response: Response::Done { .. } | Response::Failed { .. }, .. }) => Meaning::Failed,
        Ok(OnceAnswer::Answered {
            response: Response::Unavailable { why } | Response::NeedsTool { why, .. }, ..
        }) => Meaning::Differs(why),
        Ok(OnceAnswer::Differs { differences }) => {
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            Meaning::Differs(differences.join("; "))
        }
        Err(_) => Meaning::Refused(format!("it gave no answer of kforge {}", env!("CARGO_PKG_VERSION"))),
    }
}

/// What a worker compares with itself before it executes a step: its code for this kind, and what the inputs describe.
pub(crate) fn compared(spec: &Spec) -> Digest {
    let described = spec.inputs.iter().filter(|(name, _)| described(name).is_some());
    let digests = described.filter_map(|(name, input)| Some(format!("{name} {}\n", input.digest?.hex())));
    let code = spec.implementation.map(|digest| digest.hex()).unwrap_or_default();
    Digest::of(format!("{} {code}\n{}", spec.kind.name(), digests.collect::<String>()).as_bytes())
}

/// The words in the value of a property that stand for something of a step.
const WORDS: [&str; 5] = ["{toolchain}", "{runtime}", "{processor}", "{gpu}", "{gpu-arch}"];

/// The properties of a step, with what words in braces stand for. A property whose word stands for nothing in this step is left out.
fn properties(settings: &[(String, String)], spec: &Spec, device: Option<&DeviceClass>) -> Vec<(String, String)> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    if let Some(class) = device {
        known.extend([("{gpu}", slug(&class.product)), ("{gpu-arch}", class.arch.clone())]);
    }
    for (name, input) in &spec.inputs {
        let word = match described(name) {
            Some(Described::Toolchain) => "{toolchain}",
            Some(Described::Runtime) => "{runtime}",
            Some(Described::Processor) => "{processor}",
            None => continue,
        };
        if let Some(digest) = &input.digest {
            known.entry(word).or_insert_with(|| digest.hex());
        }
    }
    let filled = |(name, value): &(String, String)| {
        let mut value = value.clone();
        for word in WORDS {
            if value.contains(word) {
                value = value.replace(word, known.get(word)?);
            }
        }
        Some((name.clone(), value))
    };
    settings.iter().filter_map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::Input;

    #[test]
    fn words_in_braces_stand_for_digests_and_a_property_without_one_is_left_out() {
        let toolchain = Digest::of(b"toolchain");
        let inputs = [("toolchain".to_string(), Input { digest: Some(toolchain), form: Form::Blob })].into();
        let spec =
            Spec { kind: StepKind::Compile, version: 1, implementation: None, params: Default::default(), inputs };
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let settings = [pair("OSFamily", "linux"), pair("a", "x-{toolchain}"), pair("b", "{runtime}")];
        let expected = [pair("OSFamily", "linux"), pair("a", &format!("x-{}", toolchain.hex()))];
        assert_eq!(properties(&settings, &spec, None), expected);
        let class = DeviceClass { product: "NVIDIA H200".into(), arch: "sm_90".into(), driver_major: 0, mig: None };
        let settings = [pair("gpu", "{gpu}"), pair("kind", "{gpu-arch}-{toolchain}")];
        assert_eq!(properties(&settings, &spec, None), []);
        let expected = [pair("gpu", "nvidia-h200"), pair("kind", &format!("sm_90-{}", toolchain.hex()))];
        assert_eq!(properties(&settings, &spec, Some(&class)), expected);
    }

    #[test]
    fn an_answer_is_a_result_only_if_the_step_was_done() {
        let read = |answer: &OnceAnswer| meaning(StepKind::Fatbin, &serde_json::to_vec(answer).unwrap());
        let done = |forget| OnceAnswer::Answered {
            response: Response::Done { verdict: None, notes: vec![], summary: String::new(), forget },
            outputs: BTreeMap::new(),
            duration_ms: 1,
            timed_out: false,
            signed: None,
        };
        let lacks = meaning(StepKind::Oracle, &serde_json::to_vec(&done(false)).unwrap());
        assert_eq!(lacks, Meaning::Refused("its result lacks the output `expected`".into()));
        assert_eq!((read(&done(false)), read(&done(true))), (Meaning::Result([].into()), Meaning::Failed));
        let failed = Response::Failed { message: "x".into(), notes: vec![] };
        let failed = OnceAnswer::Answered {
            response: failed,
            outputs: BTreeMap::new(),
            duration_ms: 1,
            timed_out: false,
            signed: None,
        };
        assert_eq!(read(&failed), Meaning::Failed);
        let only = |answer: &OnceAnswer| meaning_of(StepKind::Verify, &serde_json::to_vec(answer).unwrap(), true);
        assert_eq!((only(&failed), only(&done(true))), (Meaning::Answer, Meaning::Result([].into())));
        assert!(matches!(only(&done(false)), Meaning::Refused(_)), "it lacks its observation");
        let names = vec!["cc1plus".to_string()];
        let differences = vec![kforge_harness::elsewhere::Difference::Parts { input: "toolchain".into(), names }];
        let differs = read(&OnceAnswer::Differs { differences });
        assert!(matches!(&differs, Meaning::Differs(why) if why.contains("`cc1plus`")), "{differs:?}");
        assert!(matches!(meaning(StepKind::Fatbin, b"bwrap: execvp /bin/sh"), Meaning::Refused(_)));
    }

    #[test]
    fn steps_that_need_the_same_machine_compare_the_same() {
        let input = |bytes: &[u8]| Input { digest: Some(Digest::of(bytes)), form: Form::Blob };
        let of = |kind, source: &[u8], toolchain: &[u8]| {
            let inputs =
                [("source", source), ("toolchain", toolchain)].map(|(name, bytes)| (name.into(), input(bytes)));
            let (implementation, params) = (Some(Digest::of(b"code")), Default::default());
            compared(&Spec { kind, version: 1, implementation, params, inputs: inputs.into() })
        };
        let one = of(StepKind::Compile, b"a", b"g++");
        assert_eq!(one, of(StepKind::Compile, b"b", b"g++"));
        assert!(one != of(StepKind::Compile, b"a", b"clang++") && one != of(StepKind::Inspect, b"a", b"g++"));
    }

    #[test]
    fn no_more_steps_run_here_than_there_are_places() {
        let slots = Slots::new(1);
        let (goes_on, interrupted) = (AtomicBool::new(false), AtomicBool::new(true));
        let first = slots.take(&goes_on);
        assert!(first.is_some() && slots.take(&interrupted).is_none());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let (slots, goes_on) = (&slots, &goes_on);
            scope.spawn(move || {
                let _second = slots.take(goes_on);
                tell.send(()).unwrap();
            });
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
            drop(first);
            assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
        });
    }
}
