//! The trials of a kernel in PyTorch: many calls in one process, on memory of the verifier's own. Knows the order of calls; the process is in
//! [`kforge_harness::candidate`].
//!
//! | what | how |
//! |---|---|
//! | each trial | called twice with the same inputs, once in either order of the trials, so that other inputs precede each call; the fresh trials once |
//! | results that are kept for the same addresses | inputs change in place: every call has the same addresses |
//! | results that are kept for a part of the inputs | a call on inputs that differ in one element precedes the first call of each trial |
//! | results that are kept and returned again | each result is overwritten after it was copied |
//! | outputs | filled with poison before each call, copied when a call ends, and read again when all have ended |
//! | training mode | the second call is in the other mode, if the reference cannot depend on it |
//! | a device | the process has it, and the verifier's memory stays on the host: what it computes there counts once it has been copied back |

use std::sync::Arc;
use std::time::Duration;

use super::near_inputs;
use super::place::{Place, Turn};
use crate::steps::interpreted::Importable;
use kforge_cuda::device::{self, TorchDevice};
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::{Severity, count};
use kforge_harness::candidate::{Area, Called, TorchKernel, TorchProcess, areas, bytes};
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Observer, RunOutputs};
use kforge_harness::oracle::{Named, TrialValues};
use kforge_harness::task::{Task, failed};
use kforge_numerics::reference::float::{encode_strided, gather_strided};
use kforge_types::model::torch::TorchLaunch;
use kforge_types::model::{Reference, Role};
#[cfg(any(debug_assertions, feature = "virtual-device"))]
use kforge_types::record::Provenance;
use kforge_types::record::params::{Expected, Trial, VerifyParams};
use kforge_types::record::{Determinism, Finding, FindingKind, Note, Verdict};

/// The most bytes of inputs and outputs of the trials of one process, unless a single trial has more.
const MOST: u64 = 256 << 20;
/// The least time for importing PyTorch and the kernel, which may compile something.
const PREPARE: Duration = Duration::from_secs(120);
/// Words of a reference whose results may depend on whether its module is in training mode.
const MODES: [&str; 9] =
    ["training", "dropout", "batchnorm", "batch_norm", "instancenorm", "instance_norm", "rrelu", "eval(", "train("];

/// What a reference may import without getting modules of its package, which may have modes.
const WITHOUT_MODES: [&str; 10] = [
    "torch",
    "math",
    "typing",
    "functools",
    "itertools",
    "dataclasses",
    "collections",
    "numpy",
    "operator",
    "__future__",
];

/// Executes a verify step on a device: of kernels in PyTorch here, of others in the code for devices.
pub fn on_device(task: &Task) -> Response {
    let run = || -> Result<Response, Response> {
        let params: VerifyParams = task.params()?;
        let Some(launch) = &params.torch else { return Ok(device::verify(task)) };
        let device = TorchDevice::find(task, &params.arch)?;
        verified(task, &params, launch, Place::device(device, params.protocol))
    };
    run().unwrap_or_else(|response| response)
}

/// Verifies a kernel in PyTorch on the processor, in the place of a device.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) fn stand_in(
    task: &Task,
    params: &VerifyParams,
    launch: &TorchLaunch,
    provenance: Provenance,
) -> Result<Response, Response> {
    verified(task, params, launch, Place::stand_in(provenance))
}

/// Verifies a kernel in PyTorch on `cpu`.
pub(super) fn verify(task: &Task, params: &VerifyParams, launch: &TorchLaunch) -> Result<Response, Response> {
    verified(task, params, launch, Place::processor())
}

fn verified(task: &Task, params: &VerifyParams, launch: &TorchLaunch, place: Place) -> Result<Response, Response> {
    let binary: Importable = task.document("binary")?;
    let most = bytes(&params.problem).saturating_mul(8);
    if most > task.memory_limit {
        let why = format!(
            "its tensors need {most} bytes of memory, but the limit is {} (setting `build.memory-limit`)",
            task.memory_limit
        );
        return Err(Response::Unavailable { why });
    }
    let observer = Observer::new(task, params, place.is_processor(), place.ran_as(), "earlier calls");
    let modes = if has_modes(task, &params.problem.reference)? {
        [launch.call.train; 2]
    } else {
        [launch.call.train, !launch.call.train]
    };
    let (notes, passing, stop) = (vec![], None, false);
    let mut verifier = InTorch { task, params, launch, place, binary: &binary, modes, observer, notes, passing, stop };
    verifier.trials()?;
    verifier.finish()
}

/// Whether what a reference computes may depend on the mode of its module. That of a reference that is no module does not.
fn has_modes(task: &Task, reference: &Reference) -> Result<bool, Response> {
    let Reference::Torch { file, .. } = reference else { return Ok(false) };
    let bytes = std::fs::read(task.required("tree:reference")?.join(file));
    let bytes = bytes.map_err(|e| failed(format!("cannot read the reference: {e}")))?;
    Ok(may_have_modes(&String::from_utf8_lossy(&bytes)))
}

/// Whether a file names what depends on the mode of a module, or imports something that may.
fn may_have_modes(text: &str) -> bool {
    let text = text.to_lowercase();
    let imported = |line: &str| {
        let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
        rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().map(str::to_string)
    };
    let mut imports = text.lines().map(str::trim_start).filter_map(imported);
    MODES.iter().any(|word| text.contains(word)) || imports.any(|name| !WITHOUT_MODES.contains(&name.as_str()))
}

/// A trial that is to be run.
struct Planned {
    trial: Trial,
    held: Arc<TrialValues>,
    /// Inputs that differ from it in one element.
    near: Option<Named>,
    /// Whether nobody may learn its inputs.
    fresh: bool,
}

/// A call whose results are known.
struct Ended {
    /// The trial by position; none for inputs that differ in one element.
    of: Option<usize>,
    said: &'static str,
    poison: u8,
    /// The bytes of each written tensor, in the problem's order.
    outputs: Vec<Vec<u8>>,
}

struct InTorch<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    launch: &'a TorchLaunch,
    place: Place,
    binary: &'a Importable,
    /// Whether the module is in training mode, in the first calls of trials and in the second ones.
    modes: [bool; 2],
    observer: Observer<'a>,
    notes: Vec<Note>,
    /// A failure that may not recur.
    passing: Option<String>,
    stop: bool,
}

impl InTorch<'_> {
    /// Runs every trial, and the fresh ones.
    fn trials(&mut self) -> Result<(), Response> {
        let (task, params) = (self.task, self.params);
        let source = self.place.source(task, &params.problem);
        let fixed = params.trials.iter().map(|trial| {
            let expected: Expected = task.document(&format!("expected:{}", trial.trial))?;
            Ok((trial.clone(), source.whole(trial, &expected)?))
        });
        let fixed = fixed.collect::<Result<Vec<(Trial, Arc<TrialValues>)>, Response>>()?;
        let mut planned: Vec<Planned> = fixed
            .iter()
            .enumerate()
            .map(|(at, (trial, held))| {
                let other = &fixed[(at + 1) % fixed.len()].1;
                let near = near_inputs::near(&params.problem, &held.0, &other.0, trial.seed);
                Planned { trial: trial.clone(), held: Arc::clone(held), near, fresh: false }
            })
            .collect();
        let drawn = FreshTrials::draw(task, params)?;
        let held = drawn.trials().iter().enumerate().map(|(at, trial)| Ok((trial.clone(), drawn.held(at, &source)?)));
        match held.collect::<Result<Vec<_>, NotComputed>>() {
            Ok(held) => {
                self.observer.drawn(&drawn);
                planned.extend(held.into_iter().map(|(trial, held)| Planned { trial, held, near: None, fresh: true }));
            }
            Err(why) => self.observer.left_out(&why)?,
        }
        let of_trial = bytes(&params.problem).max(1).saturating_mul(4);
        let at_once = usize::try_from(MOST / of_trial).unwrap_or(usize::MAX).max(1);
        for some in planned.chunks(at_once) {
            if !self.stop {
                self.process(some)?;
            }
        }
        Ok(())
    }

    /// Runs these trials in one process, and compares.
    fn process(&mut self, planned: &[Planned]) -> Result<(), Response> {
        let (task, problem) = (self.task, &self.params.problem);
        let io = |e: std::io::Error| failed(format!("cannot use the kernel's memory: {e}"));
        let memory = areas(problem).map_err(io)?;
        let kernel = TorchKernel {
            files: &self.binary.files,
            main: &self.binary.main,
            launch: self.launch,
            on: None,
            shared: None,
            how: None,
        };
        let prepare = task.left().min(PREPARE.max(task.run_limit));
        let (mut process, turn) = self.place.start(task, problem, &kernel, &memory, (prepare, Turn::Shared))?;
        let begun = process.begin(prepare)?;
        let mut ended = vec![];
        if self.hear(&begun, None) {
            self.rounds(&mut process, &memory, planned, &mut ended)?;
        }
        process.end().map_err(io)?;
        drop(turn);
        self.afterwards(&memory, ended.last()).map_err(io)?;
        self.repeated(planned, &ended)?;
        for (at, one) in planned.iter().enumerate() {
            self.compare(one, &ended.iter().filter(|call| call.of == Some(at)).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Calls the kernel on each trial. Stops at what fails.
    fn rounds(
        &mut self,
        process: &mut TorchProcess,
        memory: &[Area<'_>],
        planned: &[Planned],
        ended: &mut Vec<Ended>,
    ) -> Result<(), Response> {
        let again = planned.iter().enumerate().rev().filter(|(_, one)| !one.fresh);
        let said = match self.modes {
            [true, false] => ", in eval mode",
            [false, true] => ", in training mode",
            _ => ", again",
        };
        let first = planned.iter().enumerate().filter(|(_, one)| !one.fresh).map(|(at, one)| (at, one, 0, ""));
        let second = again.map(|(at, one)| (at, one, 1, said));
        let fresh = planned.iter().enumerate().filter(|(_, one)| one.fresh).map(|(at, one)| (at, one, at % 2, ""));
        for (at, one, round, said) in first.chain(second).chain(fresh) {
            if round == 0
                && let Some(near) = &one.near
            {
                let call = Ended { of: None, said: "", poison: POISONS[0], outputs: vec![] };
                match self.call(process, memory, (near, self.modes[0], one), call)? {
                    Some(call) => ended.push(call),
                    None => return Ok(()),
                }
            }
            let call = Ended { of: Some(at), said, poison: POISONS[round], outputs: vec![] };
            match self.call(process, memory, (&one.held.0, self.modes[round], one), call)? {
                Some(call) => ended.push(call),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Calls the kernel once. None if it failed, so that another call shows nothing.
    fn call(
        &mut self,
        process: &mut TorchProcess,
        memory: &[Area<'_>],
        (inputs, train, one): (&Named, bool, &Planned),
        call: Ended,
    ) -> Result<Option<Ended>, Response> {
        let io = |e: std::io::Error| failed(format!("cannot use the kernel's memory: {e}"));
        let mut before = vec![];
        for area in memory {
            let contents = match inputs.get(&area.tensor.name).filter(|_| area.tensor.role != Role::Output) {
                Some(values) => encode_strided(area.tensor, values),
                None => vec![call.poison; area.tensor.bytes() as usize],
            };
            area.write(&contents).map_err(io)?;
            before.push(contents);
        }
        let called = process.call(train, self.task.run_limit)?;
        let mut outputs = vec![];
        let mut damaged = false;
        for (area, before) in memory.iter().zip(&before) {
            let after = area.after(before).map_err(io)?;
            self.observer.within(Some(one.trial.trial));
            damaged |= after.findings.iter().any(|finding| !finding.kind.is_allowed());
            after.findings.into_iter().for_each(|finding| self.observer.find(finding));
            self.observer.within(None);
            if area.tensor.role != Role::Input {
                outputs.push(after.bytes);
            }
        }
        let goes_on = self.hear(&called, Some(one)) && called.whole && !damaged;
        self.stop |= !goes_on;
        Ok(goes_on.then_some(Ended { outputs, ..call }))
    }

    /// Records what a call said. Returns whether it is worth going on.
    fn hear(&mut self, called: &Called, one: Option<&Planned>) -> bool {
        self.observer.within(one.map(|one| one.trial.trial));
        called.findings.iter().for_each(|finding| self.observer.find(finding.clone()));
        self.observer.within(None);
        if let Some(what) = called.lacks.first() {
            let seen = &mut self.observer.seen;
            let place = if self.place.is_processor() { &mut seen.not_emulated } else { &mut seen.not_launched };
            place.get_or_insert_with(|| what.clone());
        }
        let shown = !self.params.holdout && one.is_none_or(|one| !one.fresh);
        if shown && self.notes.is_empty() && !called.printed.trim().is_empty() {
            self.notes.push(Note::new(Severity::Note, "verify.printed", called.printed.trim().to_string()));
        }
        if called.timed_out {
            self.task.timed_out();
            self.passing = called.findings.first().map(|finding| finding.message.clone());
        }
        let goes_on = called.findings.is_empty() && called.lacks.is_empty() && !called.ended;
        self.stop |= !goes_on;
        goes_on
    }

    /// Finds outputs that changed after the last call had ended.
    fn afterwards(&mut self, memory: &[Area<'_>], last: Option<&Ended>) -> std::io::Result<()> {
        let Some(last) = last.filter(|_| !self.stop) else { return Ok(()) };
        for (area, bytes) in memory.iter().filter(|area| area.tensor.role != Role::Input).zip(&last.outputs) {
            if area.read()? != *bytes {
                let name = &area.tensor.name;
                let message = format!("`{name}` changed after the call had ended: code of the kernel works on");
                let finding = Finding::new(FindingKind::Forbidden, message);
                self.observer.find(Finding { buffer: Some(name.clone()), ..finding });
            }
        }
        Ok(())
    }

    /// Finds wrong results that are those of an earlier call on other inputs.
    fn repeated(&mut self, planned: &[Planned], ended: &[Ended]) -> Result<(), Response> {
        let written: Vec<_> = self.params.problem.written().collect();
        for (now, call) in ended.iter().enumerate() {
            let Some(one) = call.of.map(|at| &planned[at]) else { continue };
            for (at, tensor) in written.iter().enumerate() {
                let earlier = ended[..now].iter().rev().find(|other| {
                    (other.of != call.of || other.of.is_none()) && other.outputs.get(at) == call.outputs.get(at)
                });
                if earlier.is_none() || tensor.elements() < 2 {
                    continue;
                }
                let got = gather_strided(tensor, &call.outputs[at]).map_err(failed)?;
                let (inputs, expected) = &*one.held;
                if self.observer.observe(tensor, inputs, expected, &got)?.gross.is_none()
                    || is_uniform(&call.outputs[at])
                {
                    continue;
                }
                let message = format!(
                    "`{}` is bit for bit the result of an earlier call on other inputs (trial {}): the kernel keeps results, or ignores its inputs",
                    tensor.name, one.trial.trial
                );
                let finding = Finding::new(FindingKind::KeepsState, message);
                self.observer.within(Some(one.trial.trial));
                self.observer.find(Finding { buffer: Some(tensor.name.clone()), ..finding });
                self.observer.within(None);
            }
        }
        Ok(())
    }

    /// Compares every output of the calls of a trial.
    fn compare(&mut self, one: &Planned, calls: &[&Ended]) -> Result<(), Response> {
        if calls.is_empty() {
            return Ok(());
        }
        let written: Vec<_> = self.params.problem.written().collect();
        let lefts: Vec<RunOutputs<'_>> = calls
            .iter()
            .map(|call| RunOutputs {
                said: call.said,
                poison: call.poison,
                outputs: written
                    .iter()
                    .zip(&call.outputs)
                    .map(|(tensor, bytes)| (*tensor, bytes.as_slice().into()))
                    .collect(),
            })
            .collect();
        self.observer.hangs_on =
            if self.modes[0] == self.modes[1] { "earlier calls" } else { "the module's mode, or on earlier calls," };
        let (inputs, expected) = &*one.held;
        self.observer.compare(&one.trial, &Against::Values(inputs, expected), &lefts)
    }

    fn finish(mut self) -> Result<Response, Response> {
        let findings = &mut self.observer.seen.findings;
        if findings.iter().any(|finding| finding.kind == FindingKind::KeepsState) {
            // A kernel that keeps results depends on earlier calls: what it keeps says more.
            findings.retain(|finding| finding.kind != FindingKind::OrderDependent);
        }
        // After a failure, equal outputs of repeated runs do not show that the kernel is deterministic.
        if self.stop && self.observer.seen.determinism == Determinism::Stable {
            self.observer.seen.determinism = Determinism::Unknown;
        }
        self.observer.seen.unconfined.clone_from(&self.place.unconfined);
        self.task.write_document("observation", &self.observer.seen)?;
        if let Some(provenance) = &self.place.provenance {
            self.task.write_document(PROVENANCE, provenance)?;
        }
        let (trials, found) = (self.params.trials.len(), self.observer.seen.findings.len());
        let (seen, said) = (&self.observer.seen, self.place.said());
        let summary = match (&seen.not_emulated, &seen.not_launched, found) {
            (_, _, 1..) => format!("{}{said}", count(found, "finding")),
            (Some(what), _, 0) => format!("not emulated: {what}"),
            (None, Some(what), 0) => format!("missing: {what}"),
            (None, None, 0) => format!("{} called twice{said}", count(trials, "trial")),
        };
        let (verdict, forget) = (self.passing.clone().map(Verdict::Fail), self.passing.is_some());
        Ok(Response::Done { verdict, notes: self.notes, summary, forget })
    }
}

/// Whether all bytes are equal: a constant result repeats anyway.
fn is_uniform(bytes: &[u8]) -> bool {
    bytes.windows(2).all(|two| two[0] == two[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_without_modes_is_one_that_names_none_and_imports_nothing_of_its_package() {
        let plain = "import torch\nimport torch.nn as nn\nfrom math import sqrt\n\nclass Model(nn.Module):\n    pass\n";
        assert!(!may_have_modes(plain));
        for more in ["x = nn.BatchNorm1d(3)", "F.dropout(x, 0.1)", "if self.training:", "from layers import Norm"] {
            assert!(may_have_modes(&format!("{plain}{more}\n")), "{more}");
        }
    }

    #[test]
    fn a_constant_result_is_not_one_that_is_kept() {
        assert!(is_uniform(&[3; 8]) && is_uniform(&[]) && !is_uniform(&[3, 4]));
    }
}
