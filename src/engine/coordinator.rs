//! The coordinator: one thread owns the state of every node; worker threads execute steps and report over a channel. Knows when a step may start; does not know
//! what a step does.
//!
//! The coordinator first settles every step that needs no execution, and only then starts anything. So a fresh build starts no thread, and speed does not
//! decide which of several steps with the same key runs. Pure steps run on the worker threads too, but take no processor slot. They read and write the store,
//! which is worth doing in parallel, and a slow one must not prevent the coordinator from supplying a device.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::explain::result_digest;
use super::gauge::Left;
use super::graph::STORED;
use super::resources::{Allocation, Pool};
use super::schedule::{Ready, Started, Urgencies, Waited};
use super::services::{BuildOptions, Services};
use super::state::{AskedStep, Done, NodeCheck, PendingStep, State, Walk};
use super::work::{Report, Task, Tools, WorkResult, work};
use super::{Graph, Index, NodeId};
use kforge_foundation::base::Severity;
use kforge_types::record::Outcome;
use kforge_types::record::event::{CacheOrigin, Event, StepCounts, StepFinished, VerdictCounts, Wait, WaitReason};

/// How often the time that is left is computed, which takes a moment if thousands of steps are ready.
const MEASURE: Duration = Duration::from_millis(300);

/// The outcome of a build.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The graph, with the nodes that expansion added.
    pub graph: Graph,
    /// The end of each node, by index.
    pub steps: Vec<Done>,
    /// Number of steps by outcome.
    pub counts: StepCounts,
    /// Number of verdicts by kind.
    pub verdicts: VerdictCounts,
    /// Whether the build was interrupted.
    pub interrupted: bool,
    /// The step whose failure or failing verdict ended the build early.
    pub stopped_by: Option<NodeId>,
}

impl BuildOutcome {
    /// The end of a step.
    pub fn step(&self, id: &str) -> Option<&Done> {
        self.steps.get(self.graph.find(id)? as usize)
    }
}

/// Builds all of a graph. Calls `on_event` on this thread with [`Event::StepStarted`] and [`Event::StepFinished`], and with [`Event::Diagnostic`] when a store
/// causes trouble that affects no result.
pub fn build(
    graph: Graph,
    options: &BuildOptions,
    services: &Services<'_>,
    on_event: &mut dyn FnMut(Event),
) -> BuildOutcome {
    options.gauge.begin();
    let tools = Tools::of(services, &options.interrupted);
    let (send_task, tasks) = unbounded::<Task>();
    let (send_report, reports) = unbounded();
    std::thread::scope(|scope| {
        let workers = Workers { scope, tools, tasks, send_task, send_report, reports, alive: 0, busy: 0 };
        let coordinator = Coordinator {
            walk: Walk::new(graph, options, services, true),
            pool: Pool::new(&options.capacity),
            ready: Ready::default(),
            freed: vec![],
            urgencies: Urgencies::default(),
            left: Left::default(),
            measured: None,
            open: HashMap::new(),
            asked: HashMap::new(),
            made_again: HashMap::new(),
            twins: HashMap::new(),
            workers,
            counts: StepCounts::default(),
            verdicts: VerdictCounts::default(),
            stopped_by: None,
            was_interrupted: false,
            started: Instant::now(),
            on_event,
        };
        coordinator.run()
    })
}

/// The worker threads. A thread is started when all others are busy.
struct Workers<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    tools: Tools<'env>,
    tasks: Receiver<Task>,
    send_task: Sender<Task>,
    send_report: Sender<Report>,
    reports: Receiver<Report>,
    alive: usize,
    busy: usize,
}

impl Workers<'_, '_> {
    fn give(&mut self, task: Task) {
        self.busy += 1;
        if self.busy > self.alive {
            let (tools, tasks, reports) = (self.tools, self.tasks.clone(), self.send_report.clone());
            let serve = move || {
                while let Ok(task) = tasks.recv() {
                    // A closed channel means that nobody waits for the report.
                    if reports.send(work(&task, &tools)).is_err() {
                        break;
                    }
                }
            };
            // If the system refuses another thread, an existing one executes the task; if there is none, this thread does.
            match std::thread::Builder::new().spawn_scoped(self.scope, serve) {
                Ok(_) => self.alive += 1,
                Err(_) if self.alive == 0 => {
                    let _ = self.send_report.send(work(&task, &self.tools));
                    return;
                }
                Err(_) => {}
            }
        }
        // The receivers live as long as `self`, so neither send can fail.
        let _ = self.send_task.send(task);
    }

    /// The reports that have arrived; waits if there are none.
    fn take(&mut self) -> Vec<Report> {
        let first = self.reports.recv().ok();
        let all: Vec<Report> = first.into_iter().chain(self.reports.try_iter()).collect();
        self.busy -= all.iter().filter(|report| report.is_of_worker()).count();
        all
    }
}

/// A step that is ready or running.
struct OpenStep {
    todo: PendingStep,
    taken: Option<Allocation>,
    /// When it was started, if it runs.
    since: Option<Instant>,
    /// What steps of its need had waited before it was ready.
    before: Waited,
    /// What it waited for.
    waits: Vec<Wait>,
}

struct Coordinator<'scope, 'env, 'e> {
    walk: Walk<'env>,
    pool: Pool,
    ready: Ready,
    /// The steps that have ended since steps were last started, with what they held.
    freed: Vec<(Index, Allocation)>,
    urgencies: Urgencies,
    left: Left,
    /// When the time that is left was last computed.
    measured: Option<Instant>,
    open: HashMap<Index, OpenStep>,
    /// Steps about which the remote cache was asked.
    asked: HashMap<Index, AskedStep>,
    /// Steps that have ended and run again because an output was lost, with the steps that wait for it.
    made_again: HashMap<Index, Vec<(Index, OpenStep)>>,
    /// Steps that wait for a step with the same key, by that step's index.
    twins: HashMap<Index, Vec<(Index, Box<PendingStep>)>>,
    workers: Workers<'scope, 'env>,
    counts: StepCounts,
    verdicts: VerdictCounts,
    stopped_by: Option<NodeId>,
    was_interrupted: bool,
    started: Instant,
    on_event: &'e mut dyn FnMut(Event),
}

impl Coordinator<'_, '_, '_> {
    fn run(mut self) -> BuildOutcome {
        loop {
            while let Some(index) = self.walk.queue.pop_front() {
                self.check(index);
            }
            if self.walk.interrupted() && !self.ready.is_empty() {
                let ready = self.ready.drain(|_| true);
                self.stop(ready, None);
                continue;
            }
            self.measure();
            self.start();
            self.tell_troubles();
            if self.workers.busy == 0 && self.asked.is_empty() {
                break;
            }
            for report in self.workers.take() {
                self.finish(report);
            }
        }
        self.end()
    }

    fn end(mut self) -> BuildOutcome {
        let done = |state: State| match state {
            State::Done(done) => done,
            // The graph is acyclic and the loop ends only when nothing waits, is ready or runs.
            State::Open | State::Unknown => Done::stopped(Some("internal error: never decided"), None),
        };
        let steps: Vec<Done> = std::mem::take(&mut self.walk.states).into_iter().map(done).collect();
        let interrupted = self.was_interrupted;
        self.counts.total = steps.len() as u64;
        BuildOutcome {
            graph: self.walk.graph,
            steps,
            counts: self.counts,
            verdicts: self.verdicts,
            interrupted,
            stopped_by: self.stopped_by,
        }
    }

    fn check(&mut self, index: Index) {
        let checked = self.walk.check(index);
        self.take_up(index, checked);
    }

    /// Goes on with a node after its check.
    fn take_up(&mut self, index: Index, checked: NodeCheck) {
        match checked {
            NodeCheck::Done(done) => self.conclude(index, done),
            NodeCheck::Ask(asked) => {
                let Some(remote) = self.walk.services.remote else {
                    let checked = self.walk.check_answer(index, asked, None);
                    return self.take_up(index, checked);
                };
                let (question, reports) = (self.walk.question(index, &asked), self.workers.send_report.clone());
                self.asked.insert(index, asked);
                // A closed channel means that nobody waits for the answer.
                let answer = move |hit| drop(reports.send(Report::answer(index, hit)));
                remote.ask(question, Box::new(answer));
            }
            NodeCheck::Twin(owner, todo) => {
                self.left.ends(index);
                self.twins.entry(owner).or_default().push((index, todo));
            }
            NodeCheck::Run(todo) => {
                // Computed only when something has to run, so that a fresh build does not pay for it.
                self.urgencies.update(&self.walk.graph, self.walk.services.memory);
                let states = &self.walk.states;
                let is_open = |i: Index| !matches!(states.get(i as usize), Some(State::Done(_)));
                self.left.update(&self.walk.graph, self.walk.services.memory, is_open);
                let before = self.queue(index);
                let now = Instant::now();
                let waits = wait(WaitReason::Dependency, now.saturating_duration_since(self.started), || {
                    Some(self.walk.graph.node(self.walk.released(index)?).id.to_string())
                });
                let waits = waits.into_iter().collect();
                self.open.insert(index, OpenStep { todo: *todo, taken: None, since: None, before, waits });
            }
            // Every dependency of a node that is checked in a build has ended.
            NodeCheck::Unknown => self.conclude(index, Done::stopped(Some("internal error: checked too early"), None)),
        }
    }

    /// Adds a step to the ready ones. Returns what steps of its need have waited so far.
    fn queue(&mut self, index: Index) -> Waited {
        let need = self.pool.need(self.walk.graph.node(index));
        self.ready.push(need, self.urgencies.of(index), index, Instant::now())
    }

    /// An input of a step is no longer in the store. Runs the step that made the input again, and this one afterwards. None if that step cannot run again.
    fn make_again(&mut self, index: Index, lost: &str, open: OpenStep) -> Result<(), OpenStep> {
        let inputs = self.walk.graph.node(index).inputs.keys();
        let source = inputs.zip(self.walk.graph.sources(index)).find(|(name, _)| *name == lost);
        let Some(source) = source.map(|(_, source)| *source).filter(|source| *source != STORED) else {
            return Err(open);
        };
        if let Some(waiting) = self.made_again.get_mut(&source) {
            waiting.push((index, open));
            return Ok(());
        }
        let Some(todo) = self.walk.once_more(source) else { return Err(open) };
        self.made_again.insert(source, vec![(index, open)]);
        let before = self.queue(source);
        self.open.insert(source, OpenStep { todo, taken: None, since: None, before, waits: vec![] });
        Ok(())
    }

    /// Ends a step that ran or was ready to, for the first time or again.
    fn close(&mut self, index: Index, done: Done) {
        match self.made_again.remove(&index) {
            Some(waiting) => self.made_again(index, waiting, &done),
            None => self.conclude(index, done),
        }
    }

    /// A step that had ended has run again. The steps that wait for it go on if its outputs are the same as before. The step itself has ended once, so its end
    /// and the counts stay what they are. `done` is how it ended this time.
    fn made_again(&mut self, index: Index, waiting: Vec<(Index, OpenStep)>, done: &Done) {
        let outputs = |done: &Done| done.result.as_ref().map(|result| result.outputs.clone());
        let is_same = matches!(&self.walk.states[index as usize], State::Done(was) if outputs(was) == outputs(done));
        for (waiter, open) in waiting {
            if is_same {
                let before = self.queue(waiter);
                self.open.insert(waiter, OpenStep { taken: None, since: None, before, ..open });
                continue;
            }
            let key = Some(open.todo.key);
            let ended = match done.stopped {
                true => Done { key, ..done.clone() },
                false => {
                    let of = &self.walk.graph.node(index).id;
                    let message = format!("an output of `{of}` is lost, and that step did not give it again");
                    Done::nothing(Outcome::Failed(message), key)
                }
            };
            self.conclude(waiter, Done { because: open.todo.because, ..ended });
        }
    }

    /// Says how long the open steps will take.
    fn measure(&mut self) {
        if self.measured.is_some_and(|at| at.elapsed() < MEASURE) {
            return;
        }
        self.measured = Some(Instant::now());
        let running = self.open.iter().filter_map(|(index, open)| Some((*index, open.since?.elapsed())));
        let path_ms = |(index, open): (&Index, &OpenStep)| {
            let since = open.since.map_or(0, |since| since.elapsed().as_millis() as u64);
            self.urgencies.of(*index).path_ms.saturating_sub(since)
        };
        let path_ms = self.open.iter().map(path_ms).max().unwrap_or_default();
        let time = self.left.time(self.walk.options.capacity.cpus, running, path_ms);
        self.walk.options.gauge.set_left(time);
    }

    /// Starts every ready step that fits, the most urgent first.
    fn start(&mut self) {
        let now = Instant::now();
        while let Some(Started { index, taken, waited, lacked }) = self.ready.next(&mut self.pool, now) {
            let Some(open) = self.open.get_mut(&index) else {
                self.pool.release(&taken);
                continue;
            };
            let device = taken.device.clone();
            for (reason, spent) in waited.since(&open.before) {
                // Of those that ended together, the last one is named.
                let mut freed = self.freed.iter().rev();
                open.waits.extend(wait(reason, spent, || {
                    let (by, _) =
                        freed.find(|(_, held)| lacked == Some(reason) && held.held(reason, device.as_deref()))?;
                    Some(self.walk.graph.node(*by).id.to_string())
                }));
            }
            open.taken = Some(taken);
            open.since = Some(Instant::now());
            let node = self.walk.graph.node(index);
            // A step that runs again has been reported.
            if !self.made_again.contains_key(&index) {
                (self.on_event)(Event::StepStarted { id: node.id.clone(), kind: node.kind });
            }
            let task = Task {
                index,
                id: node.id.clone(),
                labels: node.labels.clone(),
                spec: Arc::clone(&open.todo.spec),
                key: open.todo.key,
                product: node.product.clone(),
                device,
                time_limit_s: node.time_limit_s,
                planned: self.walk.planned(index),
                again: open.todo.again,
            };
            self.workers.give(task);
        }
        self.freed.clear();
    }

    fn finish(&mut self, report: Report) {
        if let WorkResult::Answered(hit) = report.worked {
            if let Some(asked) = self.asked.remove(&report.index) {
                let checked = self.walk.check_answer(report.index, asked, hit);
                self.take_up(report.index, checked);
            }
            return;
        }
        let Some(mut open) = self.open.remove(&report.index) else { return };
        if let Some(taken) = open.taken.take() {
            self.pool.release(&taken);
            self.freed.push((report.index, taken));
        }
        report.troubles.into_iter().for_each(|t| self.walk.trouble(t));
        if let WorkResult::Lost(input) = &report.worked {
            match self.make_again(report.index, input, open) {
                Ok(()) => return,
                Err(given_back) => open = given_back,
            }
        }
        let OpenStep { todo, waits, .. } = open;
        let key = todo.key;
        let started_ms = Some(report.started.saturating_duration_since(self.started).as_millis() as u64);
        let duration_ms = report.took.as_millis() as u64;
        let mut done = match report.worked {
            WorkResult::Ran { result, evidence, forget, tag, elsewhere } => {
                let cache = if elsewhere { CacheOrigin::Remote } else { CacheOrigin::None };
                let ran =
                    Done { cache, result: Some(result), evidence, tag, ..Done::nothing(Outcome::Executed, Some(key)) };
                Done { started_ms, duration_ms, forgotten: forget, ..ran }
            }
            WorkResult::Known(hit) => Done::fresh(key, hit),
            WorkResult::Answered(_) => Done::stopped(Some("internal error: an answer to a step that runs"), Some(key)),
            WorkResult::Lost(input) => {
                let message = format!("input `{input}` is no longer in the store; build again to recreate it");
                Done::nothing(Outcome::Failed(message), Some(key))
            }
            WorkResult::Unavailable(missing, why) => Done::unavailable(missing, why, key),
            WorkResult::Failed { message, notes, trouble } => {
                Done { notes, trouble, started_ms, duration_ms, ..Done::nothing(Outcome::Failed(message), Some(key)) }
            }
            WorkResult::Interrupted if self.walk.interrupted() => {
                Done { started_ms, duration_ms, ..Done::stopped(None, Some(key)) }
            }
            WorkResult::Interrupted => Done::nothing(Outcome::Failed("was ended from outside".into()), Some(key)),
        };
        if done.started_ms.is_some() {
            done.waits = waits;
        }
        self.walk.remember(report.index, &done, &todo.explanation, &todo.because);
        done.because = todo.because;
        self.close(report.index, done);
    }

    /// Ends a node, and the nodes with the same key that wait for it.
    fn conclude(&mut self, index: Index, mut done: Done) {
        if self.walk.graph.node(index).expands
            && let Some(result) = &done.result
            && let Err(error) = self.walk.expand(index, &done, result)
        {
            done = done.not_expanded(&error);
        }
        self.count(&done);
        self.left.ends(index);
        self.walk.options.gauge.end_one();
        self.tell(index, &done);
        let fails = done.fails(self.walk.graph.node(index));
        self.walk.settle(index, State::Done(done));
        if fails && !self.walk.options.keep_going && self.stopped_by.is_none() {
            let id = self.walk.graph.node(index).id.clone();
            let why = format!("the build ended at `{id}`");
            self.stopped_by = Some(id);
            self.walk.stopping = Some(why.clone());
            let graph = &self.walk.graph;
            let held = self.ready.drain(|i| !graph.node(i).kind.is_pure());
            self.stop(held, Some(&why));
        }
        for (twin, todo) in self.twins.remove(&index).unwrap_or_default() {
            if let Some(done) = self.walk.twin_of(index) {
                self.walk.ends_with(twin, index);
                self.walk.remember(twin, &done, &todo.explanation, &todo.because);
                self.conclude(twin, Done { because: todo.because, ..done });
            }
        }
    }

    /// Ends ready steps without starting them.
    fn stop(&mut self, ready: Vec<Index>, why: Option<&str>) {
        for index in ready {
            let key = self.open.remove(&index).map(|o| o.todo.key);
            self.close(index, Done::stopped(why, key));
        }
    }

    fn count(&mut self, done: &Done) {
        let StepCounts { executed, fresh, unavailable, skipped, failed, .. } = &mut self.counts;
        *match done.outcome {
            Outcome::Executed => executed,
            Outcome::Fresh => fresh,
            Outcome::Unavailable(_) => unavailable,
            Outcome::Skipped(_) => skipped,
            Outcome::Failed(_) => failed,
        } += 1;
        if let Some(verdict) = done.result.as_ref().and_then(|r| r.verdict.as_ref()) {
            self.verdicts.add(verdict);
        }
        self.was_interrupted |= done.interrupted;
    }

    fn tell(&mut self, index: Index, done: &Done) {
        let result = done.result.as_ref();
        let node = self.walk.graph.node(index);
        let silent = result.is_some_and(|r| r.notes.is_empty()) && !done.fails(node);
        if self.walk.options.quiet_fresh && done.outcome == Outcome::Fresh && silent {
            return;
        }
        let ran = done.started_ms.is_some();
        (self.on_event)(Event::StepFinished(Box::new(StepFinished {
            id: node.id.clone(),
            kind: node.kind,
            labels: node.labels.clone(),
            outcome: done.outcome.clone(),
            verdict: result.and_then(|r| r.verdict.clone()),
            cache: done.cache,
            key: done.key,
            result: result.map(result_digest),
            why: done.because.first().filter(|_| ran).map(|b| b.why.clone()),
            product: node.product.clone(),
            evidence: done.evidence.clone(),
            summary: result.map(|r| r.summary.clone()).unwrap_or_default(),
            notes: result.map_or(&done.notes, |r| &r.notes).clone(),
            trouble: done.trouble,
            interrupted: done.interrupted,
            duration_ms: done.duration_ms,
            started_ms: done.started_ms,
            waits: done.waits.clone(),
        })));
    }

    fn tell_troubles(&mut self) {
        for message in std::mem::take(&mut self.walk.troubles) {
            (self.on_event)(Event::Diagnostic {
                severity: Severity::Warning,
                code: "engine.store".into(),
                rendered: format!("warning: {message}"),
                message,
                place: None,
            });
        }
    }
}

/// A wait; none if it took less than a millisecond and nobody ended it.
fn wait(reason: WaitReason, spent: Duration, by: impl FnOnce() -> Option<String>) -> Option<Wait> {
    let (ms, released_by) = (spent.as_millis() as u64, by());
    (ms > 0 || released_by.is_some()).then_some(Wait { reason, ms, released_by })
}
