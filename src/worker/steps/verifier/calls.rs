//! Call times of a kernel in PyTorch. Knows the order of things; the process with the clock is in [`kforge_cuda::device`], that of the kernel in
//! [`kforge_harness::candidate`].
//!
//! The kernel's process could say anything of times, and could work before or after a call. So it is asked for no time, and nothing that it does outside of the
//! judge's interval counts in its favour.
//!
//! | decision | reason |
//! |---|---|
//! | inputs are drawn after the process has sealed itself, and each call has its own | no answer can be known, prepared or kept; no other process can be asked for it |
//! | the clock runs while the inputs are copied to shared memory and the outputs from it | before and after that, the process has neither |
//! | that is not subtracted | a time is never below what was observed, and a ratio of two such times never claims more than there is |
//! | the hand-over without a call is measured before code of the kernel is in the process | later, the process could make it look expensive |
//! | outputs of a part of the calls, drawn in the end, are compared with expected values: all if they are cheap, at least [`LEAST_COMPARED`] | computing them takes longer than the calls; a kernel that is wrong in half of its calls, which is what moves a median, passes with a probability of 3 % at most |
//! | two calls at drawn positions have inputs of a stress class, and are compared; their times are in no series | a kernel may be careful with unusual inputs only until it is timed |
//! | where the kernel has a policy, a second process makes a few further calls, whose kernels are recorded and whose outputs are compared | recording slows calls; a kernel that does other work while it is recorded has to do all of it correctly, and in the time of a timed call |
//! | what does not fit is unknown: memory, drawing inputs, expected values | there is no time without a comparison |

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::own_functions::OwnFunctions;
use super::place::{Place, Turn};
use crate::steps::interpreted::Importable;
use kforge_cuda::device::{CallClock, Timed, TorchDevice};
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::{Severity, count};
use kforge_harness::candidate::{Baselined, Called, Launched, Shared, TorchKernel, TorchProcess, bytes};
use kforge_harness::fresh::{chosen, of_call};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Observer, RunOutputs};
use kforge_harness::oracle::{Source, TrialValues};
use kforge_harness::task::{Task, failed};
use kforge_numerics::reference::float::encode_strided;
use kforge_types::model::torch::TorchLaunch;
use kforge_types::model::{Problem, Role};
#[cfg(any(debug_assertions, feature = "virtual-device"))]
use kforge_types::record::Provenance;
use kforge_types::record::kind::calls::documents::{CallsObserved, LaunchedKernel, LaunchedKernels, qualified_name};
use kforge_types::record::params::{Trial, VerifyParams};
use kforge_types::record::{Finding, FindingKind, Fresh, FreshTrial, Note, Verdict};

/// Hand-overs without a call.
const ECHOES: usize = 20;
/// Calls on throw-away inputs before the process seals itself.
const WARMING: usize = 3;
/// Calls that are timed, unless they or their inputs take long; and the least that give a time.
const CALLS: usize = 40;
const LEAST_CALLS: usize = 12;
/// Calls on inputs of a stress class.
const STRESSED: usize = 2;
/// The least calls whose outputs are compared.
const LEAST_COMPARED: usize = 5;
/// How long the timed calls may take with the drawing of their inputs, and the computation of expected values. Both are exceeded only for the least numbers.
const CALLING: Duration = Duration::from_secs(40);
const COMPARING: Duration = Duration::from_secs(20);
/// Calls whose kernels are recorded and count, and the most that are made: those under limits of the device do not count.
const RECORDED: u32 = 3;
const MOST_RECORDED: usize = 9;
/// How much longer than the longest timed call the device may work for calls that are recorded before that is other work. Below, clocks and records explain it.
const OTHER_WORK: f64 = 1.5;
/// The most bytes of inputs that are drawn before the device is locked, and of outputs that are kept until they are compared, beyond those of the least calls.
const DRAWN: u64 = 256 << 20;
const KEPT: u64 = 256 << 20;
/// The least time for importing PyTorch and the kernel, which may compile something.
pub(super) const PREPARE: Duration = Duration::from_secs(120);

/// Executes a calls step.
pub fn on_device(task: &Task) -> Response {
    let run = || -> Result<Response, Response> {
        let params: VerifyParams = task.params()?;
        let device = TorchDevice::find(task, &params.arch)?;
        timed(task, &params, launch(&params)?, Place::device(device, params.protocol))
    };
    run().unwrap_or_else(|response| response)
}

/// Times a kernel in PyTorch on the processor, in the place of a device.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) fn stand_in(task: &Task, params: &VerifyParams, provenance: Provenance) -> Result<Response, Response> {
    timed(task, params, launch(params)?, Place::stand_in(provenance))
}

fn launch(params: &VerifyParams) -> Result<&TorchLaunch, Response> {
    params.torch.as_deref().ok_or_else(|| failed("BUG: calls of a kernel that is not in PyTorch are timed"))
}

fn timed(task: &Task, params: &VerifyParams, launch: &TorchLaunch, place: Place) -> Result<Response, Response> {
    let binary: Importable = task.document("binary")?;
    Calls::new(task, params, launch, place, &binary)?.all()
}

/// The contents of the tensors that are read, in the problem's order; none for the others.
pub(super) type Contents = Vec<Option<Vec<u8>>>;

/// A call that is to be timed.
pub(super) struct Planned {
    pub(super) trial: Trial,
    /// The number from which its inputs follow.
    pub(super) number: u64,
    pub(super) stressed: bool,
    /// Whether its outputs are compared.
    pub(super) compared: bool,
}

/// A call whose outputs are to be compared: which, and the bytes of each written tensor.
pub(super) struct Ended {
    at: usize,
    poison: u8,
    outputs: Vec<Vec<u8>>,
}

/// The calls of one kernel.
pub(super) struct Calls<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    launch: &'a TorchLaunch,
    pub(super) place: Place,
    binary: &'a Importable,
    pub(super) observer: Observer<'a>,
    pub(super) seen: CallsObserved,
    notes: Vec<Note>,
    /// A failure that may not recur.
    passing: Option<String>,
    /// How the kernel runs, if it is a baseline.
    pub(super) how: Option<Baselined<'a>>,
    /// How long a call before the timed ones may take.
    pub(super) patience: Duration,
}

/// The two processes of a kernel whose calls are timed: that with the clock, and its own.
pub(super) struct Open {
    pub(super) clock: CallClock,
    pub(super) process: TorchProcess,
    shared: Shared,
    prepare: Duration,
}

impl<'a> Calls<'a> {
    /// Nothing was called yet.
    ///
    /// # Errors
    /// Its tensors do not fit into the memory that the step may take.
    pub(super) fn new(
        task: &'a Task,
        params: &'a VerifyParams,
        launch: &'a TorchLaunch,
        place: Place,
        binary: &'a Importable,
    ) -> Result<Self, Response> {
        let most = bytes(&params.problem).saturating_mul(8);
        if most > task.memory_limit {
            let why = format!(
                "its tensors need {most} bytes of memory, but the limit is {} (setting `build.memory-limit`)",
                task.memory_limit
            );
            return Err(Response::Unavailable { why });
        }
        let mut observer =
            Observer::new(task, params, place.is_processor(), place.ran_as(), "something other than its inputs");
        let seen = CallsObserved::begun(observer.seen.clone());
        observer.seen.asked = 0;
        let (notes, patience) = (vec![], task.run_limit);
        Ok(Calls { task, params, launch, place, binary, observer, seen, notes, passing: None, how: None, patience })
    }

    /// The kernel, on memory that another process shares.
    fn kernel<'k>(&self, shared: &'k Shared) -> TorchKernel<'k>
    where
        'a: 'k,
    {
        let (files, main) = (&self.binary.files, &self.binary.main);
        TorchKernel { files, main, launch: self.launch, on: None, shared: Some(shared), how: self.how }
    }

    /// Starts the process with the clock, and that of the kernel, and takes the times of hand-overs.
    pub(super) fn open(&mut self) -> Result<Open, Response> {
        let (task, problem) = (self.task, &self.params.problem);
        let turn = self.place.turn(task, Turn::Shared)?;
        let mut clock = CallClock::start(problem, self.place.torch_device())?;
        drop(turn);
        let shared = clock.shared().clone();
        let kernel = self.kernel(&shared);
        let prepare = task.left().min(PREPARE.max(task.run_limit));
        let (mut process, turn) = self.place.start(task, problem, &kernel, &[], (prepare, Turn::Alone))?;
        self.echoes(&mut clock, &mut process)?;
        drop(turn);
        Ok(Open { clock, process, shared, prepare })
    }

    fn all(mut self) -> Result<Response, Response> {
        let io = |e: std::io::Error| failed(format!("cannot end the kernel's process: {e}"));
        let Open { mut clock, mut process, shared, prepare } = self.open()?;
        let source = self.place.source(self.task, &self.params.problem);
        let (plan, ended) = match self.prepared(&mut clock, &mut process, &source, prepare)? {
            Some(took) => self.sampled(&mut clock, &mut process, &source, took)?,
            None => (vec![], vec![]),
        };
        process.end().map_err(io)?;
        self.compare(&source, &plan, &ended)?;
        if self.launch.recorded && !self.seen.call_ns.is_empty() && !self.has_failed() {
            let kernel = self.kernel(&shared);
            self.recorded(&mut clock, &kernel, &source, (prepare, plan.len()))?;
        }
        self.finish(&clock)
    }

    /// The problem.
    pub(super) fn problem(&self) -> &'a Problem {
        &self.params.problem
    }

    /// The parameters.
    pub(super) fn params(&self) -> &'a VerifyParams {
        self.params
    }

    /// Whether something is known that fails the kernel.
    pub(super) fn has_failed(&self) -> bool {
        self.observer.seen.findings.iter().any(|finding| !finding.kind.is_allowed())
    }

    /// Calls the kernel in another process in which the kernels of the device are recorded, and compares the outputs. `first` calls were drawn before.
    fn recorded(
        &mut self,
        clock: &mut CallClock,
        kernel: &TorchKernel<'_>,
        source: &Source<'_>,
        (prepare, first): (Duration, usize),
    ) -> Result<(), Response> {
        let (task, problem) = (self.task, &self.params.problem);
        let io = |e: std::io::Error| failed(format!("cannot end the kernel's process: {e}"));
        let (mut process, _turn) = self.place.start(task, problem, kernel, &[], (prepare, Turn::Alone))?;
        let mut launched = LaunchedKernels::default();
        match process.record(prepare) {
            Err(Response::Unavailable { why }) => launched.absent = Some(why),
            Err(response) => return Err(response),
            Ok(()) => {
                let begun = process.begin(prepare)?;
                if self.hear(&begun, None) {
                    self.record(clock, &mut process, source, (first, &mut launched))?;
                }
            }
        }
        process.end().map_err(io)?;
        launched.kernels.sort_by(|a, b| a.name.cmp(&b.name));
        self.seen.launched = Some(launched);
        Ok(())
    }

    fn record(
        &mut self,
        clock: &mut CallClock,
        process: &mut TorchProcess,
        source: &Source<'_>,
        (first, launched): (usize, &mut LaunchedKernels),
    ) -> Result<(), Response> {
        let train = self.launch.call.train;
        let own = OwnFunctions::of(self.binary.files.values());
        let mut busy = 0.0;
        for at in 0..WARMING + MOST_RECORDED {
            let counts = at >= WARMING;
            if launched.calls == RECORDED {
                break;
            }
            let drawn = (self.params.trials.len() + first + at) as u32;
            let (trial, _) = of_call(self.params, drawn, false)?;
            let contents = self.contents(source, &trial)?;
            let poison = POISONS[at % 2];
            stage(clock, &contents)?;
            let (number, limit) = (clock.number(), self.task.run_limit);
            let ask = || match counts {
                true => process.recorded(number, train, limit),
                false => process.timed(number, train, limit),
            };
            let (called, timed) = together(clock, number, poison, limit, ask)?;
            let called = called?;
            if !self.hear(&called, None) || !self.ended(timed) {
                return Ok(());
            }
            if !counts {
                continue;
            }
            if timed != Timed::Limited {
                launched.calls += 1;
                busy += called.busy_ns;
                add(launched, called.launched, &own);
            }
            let (inputs, expected) = self.held(source, &trial)?;
            let mut outputs = vec![];
            for (position, tensor) in self.params.problem.tensors.iter().enumerate() {
                if tensor.role != Role::Input {
                    outputs.push((tensor, clock.taken(position)?));
                }
            }
            let outputs = outputs.iter().map(|(tensor, bytes)| (*tensor, bytes.as_slice().into())).collect();
            let run = RunOutputs { said: ", while its kernels were recorded", poison, outputs };
            self.observer.compare(&trial, &Against::Values(&inputs, &expected), &[run])?;
        }
        if launched.calls == 0 {
            launched.absent = Some("the device was under limits while kernels were recorded".into());
            return Ok(());
        }
        let longest = self.seen.call_ns.iter().copied().fold(0.0, f64::max);
        match beyond(busy / f64::from(launched.calls), longest) {
            None => {}
            Some((why, true)) => {
                self.observer.find(Finding::new(FindingKind::Policy, format!("{why}: they do other work")));
            }
            Some((why, false)) => launched.absent = Some(why),
        }
        Ok(())
    }

    /// Takes the times of hand-overs without a call.
    fn echoes(&mut self, clock: &mut CallClock, process: &mut TorchProcess) -> Result<(), Response> {
        for _ in 0..ECHOES {
            let number = clock.number();
            let limit = self.task.run_limit;
            let (answered, timed) = together(clock, number, POISONS[0], limit, || process.echo(number, limit))?;
            answered?;
            if let Timed::Took(ns) = timed {
                self.seen.hand_over_ns.push(ns);
            }
        }
        Ok(())
    }

    /// Constructs the module, calls it on throw-away inputs, and seals the process. Returns how long a call takes with the drawing of its inputs; none if there
    /// is nothing to time.
    pub(super) fn prepared(
        &mut self,
        clock: &mut CallClock,
        process: &mut TorchProcess,
        source: &Source<'_>,
        prepare: Duration,
    ) -> Result<Option<Duration>, Response> {
        let turn = self.place.turn(self.task, Turn::Shared)?;
        let begun = process.begin(prepare)?;
        if !self.hear(&begun, None) {
            return Ok(None);
        }
        let mut took = Duration::ZERO;
        for at in 0..WARMING {
            let began = Instant::now();
            let (trial, _) = of_call(self.params, at as u32, false)?;
            let contents = self.contents(source, &trial)?;
            let (called, timed) = self.call(clock, process, &contents, (POISONS[at % 2], self.patience))?;
            if !self.hear(&called, None) || !self.ended(timed) {
                return Ok(None);
            }
            took = began.elapsed();
        }
        drop(turn);
        let sealed = process.seal(prepare)?;
        Ok(self.hear(&sealed, None).then_some(took))
    }

    /// Draws inputs, and times calls on them. `took` is the time of a call with the drawing of its inputs.
    fn sampled(
        &mut self,
        clock: &mut CallClock,
        process: &mut TorchProcess,
        source: &Source<'_>,
        took: Duration,
    ) -> Result<(Vec<Planned>, Vec<Ended>), Response> {
        let none = || (vec![], vec![]);
        let calls = fitting(CALLING, took, CALLS);
        if calls < LEAST_CALLS && took * LEAST_CALLS as u32 > self.task.left() / 2 {
            return Ok(self.untimed(none(), format!("a call with the drawing of its inputs takes {took:.1?}")));
        }
        let mut plan = self.plan(calls.max(LEAST_CALLS))?;
        // How many outputs can be compared is known once one of the trials was computed. Its values are not used: those of one call are as good as another's.
        let began = Instant::now();
        if let Err(why) = self.held(source, &plan[0].trial) {
            return match why {
                Response::Unavailable { why } | Response::NeedsTool { why, .. } => Ok(self.untimed(none(), why)),
                why => Err(why),
            };
        }
        let each = began.elapsed();
        let of_outputs: u64 = self.params.problem.written().map(|tensor| tensor.bytes()).sum();
        let holds = |bytes: u64| usize::try_from(bytes / of_outputs.max(1)).unwrap_or(usize::MAX);
        let room = holds(self.task.memory_limit / 4).min(holds(KEPT).max(LEAST_COMPARED + STRESSED));
        if room < LEAST_COMPARED + STRESSED || each * (LEAST_COMPARED + STRESSED) as u32 > self.task.left() / 2 {
            let why = format!(
                "the outputs of {LEAST_COMPARED} calls cannot be compared: expected values take {each:.1?}, and memory suffices for {room} calls"
            );
            return Ok(self.untimed(none(), why));
        }
        let ordinary: Vec<usize> = (0..plan.len()).filter(|at| !plan[*at].stressed).collect();
        let most = fitting(COMPARING, each, ordinary.len()).max(LEAST_COMPARED).min(room - STRESSED);
        let compared: BTreeSet<usize> = chosen(ordinary.len(), most)?.into_iter().map(|at| ordinary[at]).collect();
        plan.iter_mut().enumerate().for_each(|(at, call)| call.compared = call.stressed || compared.contains(&at));
        let of_inputs: u64 = self.params.problem.read().map(|tensor| tensor.bytes()).sum();
        let ahead = usize::try_from(DRAWN / of_inputs.max(1)).unwrap_or(usize::MAX);
        let drawn = plan.iter().take(ahead).map(|call| self.contents(source, &call.trial));
        let mut drawn: VecDeque<Contents> = drawn.collect::<Result<_, _>>()?;
        let _turn = self.place.turn(self.task, Turn::Alone)?;
        let mut ended = vec![];
        for (at, planned) in plan.iter().enumerate() {
            let contents = match drawn.pop_front() {
                Some(contents) => contents,
                None => self.contents(source, &planned.trial)?,
            };
            if self.sample(clock, process, (at, planned), &contents, &mut ended)?.is_none() {
                break;
            }
        }
        Ok((plan, ended))
    }

    /// Times one call, and keeps its outputs if they are to be compared. Returns whether it is worth going on.
    pub(super) fn sample(
        &mut self,
        clock: &mut CallClock,
        process: &mut TorchProcess,
        (at, planned): (usize, &Planned),
        contents: &Contents,
        ended: &mut Vec<Ended>,
    ) -> Result<Option<Timed>, Response> {
        let poison = POISONS[at % 2];
        let (called, timed) = self.call(clock, process, contents, (poison, self.task.run_limit))?;
        if !self.hear(&called, Some(planned)) || !self.ended(timed) {
            return Ok(None);
        }
        match timed {
            Timed::Took(ns) if planned.stressed => self.seen.stress_ns.push(ns),
            Timed::Took(ns) => self.seen.call_ns.push(ns),
            Timed::Limited | Timed::GivenUp => self.seen.dropped += 1,
        }
        if !planned.compared {
            return Ok(Some(timed));
        }
        let mut outputs = vec![];
        for (position, (of, contents)) in self.params.problem.tensors.iter().zip(contents).enumerate() {
            if of.role != Role::Input {
                outputs.push(clock.taken(position)?);
            } else if contents.as_ref().is_some_and(|laid| !laid.is_empty()) && Some(clock.left(position)?) != *contents
            {
                let message = format!("the input `{}` was changed", of.name);
                let finding = Finding::new(FindingKind::InputModified, message);
                self.observer.find(Finding { buffer: Some(of.name.clone()), ..finding });
            }
        }
        ended.push(Ended { at, poison, outputs });
        Ok(Some(timed))
    }

    /// Calls the kernel once, while the other process holds the clock.
    fn call(
        &self,
        clock: &mut CallClock,
        process: &mut TorchProcess,
        contents: &Contents,
        (poison, limit): (u8, Duration),
    ) -> Result<(Called, Timed), Response> {
        stage(clock, contents)?;
        let (number, train) = (clock.number(), self.launch.call.train);
        let (called, timed) = together(clock, number, poison, limit, || process.timed(number, train, limit))?;
        Ok((called?, timed))
    }

    /// Whether a call without findings has ended.
    fn ended(&mut self, timed: Timed) -> bool {
        let ended = timed != Timed::GivenUp;
        if !ended {
            let message = "the kernel's process says that a call has ended, and did not hand it over".to_string();
            self.observer.find(Finding::new(FindingKind::Protocol, message));
        }
        ended
    }

    /// Draws the calls.
    fn plan(&self, calls: usize) -> Result<Vec<Planned>, Response> {
        let is_stressed = !kforge_numerics::reference::fresh::classes(&self.params.problem).is_empty();
        let stressed = if is_stressed { STRESSED } else { 0 };
        let at_stress = chosen(calls + stressed, stressed)?;
        let first = self.params.trials.len();
        (0..calls + stressed)
            .map(|at| {
                let stressed = at_stress.contains(&at);
                let (trial, number) = of_call(self.params, (first + at) as u32, stressed)?;
                Ok(Planned { trial, number, stressed, compared: false })
            })
            .collect()
    }

    pub(super) fn contents(&self, source: &Source<'_>, trial: &Trial) -> Result<Contents, Response> {
        let inputs = source.inputs(trial)?;
        let of = self.params.problem.tensors.iter().map(|tensor| {
            let values = inputs.get(&tensor.name).filter(|_| tensor.role != Role::Output);
            values.map(|values| encode_strided(tensor, values))
        });
        Ok(of.collect())
    }

    pub(super) fn held(&self, source: &Source<'_>, trial: &Trial) -> Result<TrialValues, Response> {
        let inputs = source.inputs(trial)?;
        let expected = source.expected(&inputs, !self.params.scaled.is_empty())?;
        Ok((inputs, expected))
    }

    pub(super) fn untimed<T>(&mut self, nothing: T, why: String) -> T {
        self.seen.untimed.get_or_insert(why);
        nothing
    }

    /// Records what a call said. Returns whether it is worth going on.
    fn hear(&mut self, called: &Called, planned: Option<&Planned>) -> bool {
        let seed = planned.map(|planned| planned.number);
        for finding in &called.findings {
            let message = match seed {
                Some(seed) => format!("{} (in a timed call, on inputs of the seed {seed})", finding.message),
                None => finding.message.clone(),
            };
            self.observer.find(Finding { message, ..finding.clone() });
        }
        if let Some(what) = called.lacks.first() {
            self.observer.seen.not_launched.get_or_insert_with(|| what.clone());
        }
        // What it prints about drawn inputs is shown to nobody.
        if planned.is_none() && self.notes.is_empty() && !called.printed.trim().is_empty() && !self.params.holdout {
            self.notes.push(Note::new(Severity::Note, "calls.printed", called.printed.trim().to_string()));
        }
        if called.timed_out {
            self.task.timed_out();
            self.passing = called.findings.first().map(|finding| finding.message.clone());
        }
        called.findings.is_empty() && called.lacks.is_empty() && !called.ended
    }

    /// Compares the outputs of chosen calls with the expected values.
    pub(super) fn compare(&mut self, source: &Source<'_>, plan: &[Planned], ended: &[Ended]) -> Result<(), Response> {
        let of = |call: &Planned| FreshTrial {
            trial: call.trial.trial,
            seed: call.number,
            distribution: call.trial.distribution.clone(),
        };
        self.observer.seen.asked = plan.iter().filter(|call| call.compared).count() as u32;
        self.observer.seen.fresh = Some(Fresh::Drawn(ended.iter().map(|one| of(&plan[one.at])).collect()));
        self.seen.checked = ended.len() as u32;
        let written: Vec<_> = self.params.problem.written().collect();
        for Ended { at, poison, outputs } in ended {
            let (inputs, expected) = self.held(source, &plan[*at].trial)?;
            let outputs = written.iter().zip(outputs);
            let outputs = outputs.map(|(tensor, bytes)| (*tensor, bytes.as_slice().into())).collect();
            let run = RunOutputs { said: "", poison: *poison, outputs };
            self.observer.compare(&plan[*at].trial, &Against::Values(&inputs, &expected), &[run])?;
        }
        Ok(())
    }

    /// Writes what was seen as an output of that name.
    pub(super) fn write(&mut self, name: &str) -> Result<(), Response> {
        self.observer.seen.unconfined.clone_from(&self.place.unconfined);
        self.seen.compared = self.observer.seen.clone();
        self.task.write_document(name, &self.seen)
    }

    /// The failure that may not recur, if there was one.
    pub(super) fn passing(&self) -> Option<&String> {
        self.passing.as_ref()
    }

    fn finish(mut self, clock: &CallClock) -> Result<Response, Response> {
        self.write("observation")?;
        if let Some(mut provenance) = self.place.provenance.clone() {
            clock.tell(&mut provenance);
            self.task.write_document(PROVENANCE, &provenance)?;
        }
        let summary = match (&self.seen.untimed, self.seen.compared.findings.len()) {
            (_, found @ 1..) => count(found, "finding"),
            (Some(why), 0) => format!("not timed: {why}"),
            (None, 0) => {
                format!("{} timed, {} compared", count(self.seen.call_ns.len(), "call"), self.seen.checked)
            }
        };
        let (verdict, forget) = (self.passing.clone().map(Verdict::Fail), self.passing.is_some());
        Ok(Response::Done { verdict, notes: self.notes, summary, forget })
    }
}

/// Adds the kernels of a call to those of others.
fn add(launched: &mut LaunchedKernels, of_call: Vec<Launched>, own: &OwnFunctions) {
    for one in of_call {
        if let Some(known) = launched.kernels.iter_mut().find(|known| known.name == one.name) {
            known.launches += one.launches;
            known.ns += one.ns;
            continue;
        }
        let declared = !one.copies && own.define(&qualified_name(&one.name), one.name.contains('('));
        let Launched { name, launches, ns, copies } = one;
        launched.kernels.push(LaunchedKernel { name, launches, ns, copies, declared });
    }
}

/// What is said where the device works longer for a call that is recorded than the longest timed call took, and whether that is other work.
fn beyond(busy: f64, longest: f64) -> Option<(String, bool)> {
    (busy > longest).then(|| {
        let why = format!(
            "the device works {:.1} us for a call whose kernels are recorded, and no timed call took longer than {:.1} us",
            busy / 1e3,
            longest / 1e3
        );
        (why, busy > OTHER_WORK * longest)
    })
}

/// Keeps the contents of the tensors that are read for the next call.
fn stage(clock: &mut CallClock, contents: &Contents) -> Result<(), Response> {
    for (at, contents) in contents.iter().enumerate() {
        if let Some(contents) = contents {
            clock.stage(at, contents)?;
        }
    }
    Ok(())
}

/// How many things fit into a time, if each takes that long; at most `most`.
pub(super) fn fitting(time: Duration, each: Duration, most: usize) -> usize {
    let fit = time.as_secs_f64() / each.as_secs_f64().max(1e-9);
    if fit >= most as f64 { most } else { fit as usize }
}

/// What the kernel's process answers to a request, and what the clock shows meanwhile. The wait of the clock ends with the answer.
fn together<T: Send>(
    clock: &mut CallClock,
    number: u64,
    poison: u8,
    limit: Duration,
    ask: impl FnOnce() -> T + Send,
) -> Result<(T, Timed), Response> {
    let giver = clock.giver_up().map_err(|e| failed(format!("cannot use the page of calls: {e}")))?;
    std::thread::scope(|scope| {
        let answer = scope.spawn(move || {
            let answer = ask();
            // A call that was handed over has ended before this, and the word means nothing then.
            giver.give_up(number);
            answer
        });
        let timed = clock.time(number, poison, limit);
        let answer = answer.join().map_err(|_| failed("BUG: asking the kernel's process panicked"))?;
        Ok((answer, timed?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_fit_as_there_is_time_for_and_no_more_than_are_wanted() {
        let ms = Duration::from_millis;
        assert_eq!(fitting(ms(1000), ms(100), 40), 10);
        assert_eq!((fitting(ms(1000), ms(1), 40), fitting(ms(1000), ms(0), 40)), (40, 40));
        assert_eq!(fitting(ms(1000), ms(1500), 40), 0);
    }

    #[test]
    fn a_device_that_works_a_little_longer_for_a_recorded_call_proves_nothing() {
        let of = |busy| beyond(busy, 1000.0).map(|(_, is_other)| is_other);
        assert_eq!([1000.0, 1000.1, 1500.0, 1500.1].map(of), [None, Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn kernels_of_calls_are_added_by_name_and_those_of_the_files_are_declared() {
        let own = OwnFunctions::of(["@triton.jit\ndef f():\n    pass\n".to_string()].iter());
        let one = |name: &str| Launched { name: name.into(), launches: 1, ns: 2.0, copies: false };
        let mut launched = LaunchedKernels::default();
        add(&mut launched, vec![one("f"), one("f(int)"), one("g")], &own);
        add(&mut launched, vec![one("g")], &own);
        let seen = launched.kernels.iter().map(|one| (one.name.as_str(), one.launches, one.ns, one.declared));
        let expected = [("f", 1, 2.0, true), ("f(int)", 1, 2.0, false), ("g", 2, 4.0, false)];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }
}
