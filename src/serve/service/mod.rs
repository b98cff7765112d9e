//! The service: a queue in front of kforge's builds, with results by content and a journal. Knows no HTTP.
//!
//! | decision | because |
//! |---|---|
//! | an evaluation is a workspace of its own and a build in this process | it has the plan, the cache, the checks and the confinement of every build |
//! | all builds share one pool of workers, the devices and the processors | a warm worker holds compilers and a context, and a device measures for one at a time |
//! | one lock over the state and the journal | the order of rows is the order of changes, and what is done under it takes microseconds |
//! | a result is shown once its row is on disk | a task has one answer, even if the machine loses power |
//! | a result that another run could change (a time-out, a missing device) answers its tasks and no later ones | a fault of a moment must not stay |

mod clock;
mod evaluate;
mod files;
mod folder;
mod invalid;
mod journal;
mod kernelbench;
mod metrics;
mod progress;
mod queue;
mod refusal;
mod running;
mod state;
mod summary;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use kforge_engine::lock::Lock;
use kforge_foundation::base::Digest;
use kforge_ops::Session;
use kforge_ops::implementation::implementations;
use kforge_ops::session::Shared;
use kforge_types::record::FORMAT_VERSION;

use self::clock::Moment;
use self::evaluate::Evaluator;
use self::files::Files;
use self::invalid::LONGEST_ID;
use self::journal::{Journal, Kept, Synced};
use self::state::{Accepted, FORMAT, Row, Snapshot, State, TaskKey, TaskPhase, TaskState};
use crate::api::{EvaluationRequest, EvaluationResult, Health, Task, TaskList, TaskStatus, TaskSummary};

pub use self::invalid::{FileFault, Invalid};
pub use self::kernelbench::{NoReference, ReferencePackage};
pub use self::metrics::{Counter, Metrics, Seconds};
pub(crate) use self::metrics::{counter, gauge};
pub use self::progress::ProgressLog;
pub use self::refusal::{Refusal, StartError};

/// The settings of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of the journal and of workspaces.
    pub folder: PathBuf,
    /// How many evaluations run at once; if none, it follows from processors and devices.
    pub evaluations: Option<u32>,
    /// How many steps without a device run at once; if none, the setting `build.jobs`.
    pub jobs: Option<u32>,
    /// How many tasks may wait.
    pub queue: usize,
    /// How many tasks of one client may wait.
    pub client_limit: usize,
    /// The most time of an evaluation.
    pub timeout: Duration,
    /// How long tasks are kept after they ended.
    pub retain: Duration,
    /// How many tasks that ended are kept.
    pub keep: usize,
}

/// Who sends requests. Clients do not see each other's tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client(Arc<str>);

impl Client {
    /// The client of that name.
    pub fn new(name: &str) -> Client {
        Client(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// What is behind the lock.
struct Inner {
    state: State,
    journal: Journal,
}

/// The service.
pub struct Service {
    config: Config,
    /// What decides results besides requests, so that a restart with another device or another kforge does not answer with old results.
    environment: Digest,
    devices: Vec<String>,
    evaluator: Evaluator,
    inner: Mutex<Inner>,
    /// Wakes threads that evaluate.
    work: Condvar,
    draining: AtomicBool,
    ended: AtomicBool,
    /// Set when the service ends: nobody waits any longer.
    closing: watch::Sender<bool>,
    synced: Synced,
    /// Its figures.
    pub metrics: Metrics,
    /// The session, for the collection of the shared cache.
    session: Session,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    _lock: Lock,
}

/// A request that can be evaluated, with the digest of what it asks for.
struct Checked {
    request: EvaluationRequest,
    content: Digest,
}

/// What a submission gave.
struct Submitted {
    key: TaskKey,
    /// The number of rows that must be on disk before the answer; none if the result was known.
    rows: Option<u64>,
}

impl Service {
    /// Opens the folder, reads the journal, and starts evaluating what was not finished. The second value is how many rows of the journal were damaged.
    ///
    /// # Errors
    /// The folder cannot be used, another server uses it, or workers and devices cannot be prepared.
    pub fn start(session: Session, config: Config) -> Result<(Arc<Service>, u64), StartError> {
        let folder = &config.folder;
        let lock = folder::take(folder)?;
        let (work, lockfiles) = (folder.join("work"), folder.join("locks"));
        // Workspaces of a server that was killed.
        match std::fs::remove_dir_all(&work) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(StartError::storage(work)(error)),
            _ => {}
        }
        for path in [&work, &lockfiles] {
            folder::create(path).map_err(StartError::storage(path))?;
        }
        let shared = Arc::new(Shared::open(&session, config.jobs)?);
        let path = folder.join("journal");
        let (mut state, mut is_newer) = (State::default(), false);
        let (journal, damaged) = Journal::open(&path, |row, place| is_newer |= !state.replay(row, place))
            .map_err(StartError::storage(&path))?;
        if is_newer {
            return Err(StartError::Newer(path));
        }
        let is_new = journal.bytes() == 0;
        let environment = environment(&session, &shared);
        let described =
            |device: &kforge_types::record::Device| format!("{} ({})", device.class.product, device.class.arch);
        let devices: Vec<String> = shared.devices().0.iter().map(described).collect();
        let evaluations = config.evaluations.unwrap_or_else(|| shared.jobs() + 2 * devices.len() as u32 + 1).max(1);
        let synced = journal.synced();
        let service = Arc::new(Service {
            evaluator: Evaluator::new(session.again(), shared, lockfiles),
            environment,
            devices,
            inner: Mutex::new(Inner { state, journal }),
            work: Condvar::new(),
            draining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            synced,
            metrics: Metrics::default(),
            session,
            threads: Mutex::default(),
            config,
            _lock: lock,
        });
        match service.tidy() {
            Err(error) if is_new => return Err(StartError::storage(path)(error)),
            // A journal that cannot be written again, as on a full disk, can be read: its results are answered.
            _ => {}
        }
        service.start_threads(evaluations, &work).map_err(StartError::storage(work.clone()))?;
        Ok((service, damaged))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits an evaluation. Its task is on disk when this returns, unless its result was known.
    ///
    /// # Errors
    /// The request is refused.
    pub async fn submit(&self, client: &Client, request: EvaluationRequest) -> Result<Task, Refusal> {
        let checked = self.check(request)?;
        let submitted = self.accept(client, checked)?;
        self.stored(submitted).await
    }

    /// Submits several evaluations. Each is accepted or refused by itself.
    pub async fn submit_all(&self, client: &Client, requests: Vec<EvaluationRequest>) -> Vec<Result<Task, Refusal>> {
        let accepted: Vec<_> = requests
            .into_iter()
            .map(|request| self.check(request).and_then(|checked| self.accept(client, checked)))
            .collect();
        let mut answers = vec![];
        for submitted in accepted {
            answers.push(match submitted {
                Ok(submitted) => self.stored(submitted).await,
                Err(refusal) => Err(refusal),
            });
        }
        answers
    }

    /// Checks a request, before anything is locked.
    fn check(&self, request: EvaluationRequest) -> Result<Checked, Refusal> {
        if let Some(id) = &request.id {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
            if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(plain) {
                let shown = id.chars().take(LONGEST_ID).collect::<String>();
                return Err(Invalid::Id(shown.escape_debug().to_string()).into());
            }
        }
        if request.timeout_s == Some(0) {
            return Err(Invalid::NoTime.into());
        }
        Files::of(&request)?;
        let content = self.content(&request).map_err(Invalid::Json)?;
        Ok(Checked { request, content })
    }

    /// The digest of what a request asks for: not of who asks, when, and how urgently.
    fn content(&self, request: &EvaluationRequest) -> Result<Digest, serde_json::Error> {
        let EvaluationRequest { candidate, target, device, measure, .. } = request;
        // As a value, because its keys are sorted.
        let value = serde_json::to_value((self.environment.hex(), candidate, target, device, measure))?;
        Ok(Digest::of(serde_json::to_string(&value)?.as_bytes()))
    }

    fn accept(&self, client: &Client, checked: Checked) -> Result<Submitted, Refusal> {
        let Checked { request, content } = checked;
        if self.draining.load(Ordering::SeqCst) {
            return Err(Refusal::Draining);
        }
        let id: Arc<str> = match &request.id {
            Some(id) => id.as_str().into(),
            None => random_id()?.into(),
        };
        let key = TaskKey { client: client.0.clone(), id };
        let most = u32::try_from(self.config.timeout.as_secs()).unwrap_or(u32::MAX).max(1);
        let mut inner = self.lock();
        let Inner { state, journal } = &mut *inner;
        if let Some(task) = state.task(&key) {
            // The same request again, for example after an answer that was lost.
            return match task.accepted.content == content {
                true => Ok(Submitted { rows: (task.phase == TaskPhase::Waiting).then_some(task.rows), key }),
                false => Err(Refusal::Conflict(key.id.to_string())),
            };
        }
        let (known, at) = (state.known(&content), Moment::now());
        let accepted = Accepted {
            client: key.client.clone(),
            id: key.id.clone(),
            content,
            measure: request.measure,
            priority: request.priority,
            timeout_s: request.timeout_s.unwrap_or(most).min(most),
            at: at.wall,
            known,
            shared: false,
        };
        let failed = |error: std::io::Error| Refusal::Storage(error.to_string());
        if known.is_some() {
            let (_, rows) = journal.append(&Row::Accepted(accepted.clone())).map_err(failed)?;
            state.accept(accepted, at, rows);
            drop(inner);
            self.metrics.accepted.add();
            self.metrics.known.add();
            return Ok(Submitted { key, rows: None });
        }
        if let Err(refusal) = self.within_limits(state, client) {
            self.metrics.refused.add();
            return Err(refusal);
        }
        let is_new = state.needs_request(&content);
        if is_new {
            let row = Row::Request { content, request: Box::new(EvaluationRequest { id: None, ..request }) };
            let (place, _) = journal.append(&row).map_err(failed)?;
            state.add_request(content, place);
        }
        let (_, rows) = journal.append(&Row::Accepted(accepted.clone())).map_err(failed)?;
        state.accept(accepted, at, rows);
        journal.sync();
        drop(inner);
        self.metrics.accepted.add();
        match is_new {
            true => self.work.notify_one(),
            false => self.metrics.joined.add(),
        }
        Ok(Submitted { key, rows: Some(rows) })
    }

    fn within_limits(&self, state: &State, client: &Client) -> Result<(), Refusal> {
        let (waiting, own) = (state.unfinished(), state.unfinished_of(&client.0));
        if waiting >= self.config.queue {
            return Err(Refusal::QueueFull { waiting, retry_after_s: self.retry_after(waiting) });
        }
        if own >= self.config.client_limit {
            let (limit, retry_after_s) = (self.config.client_limit, self.retry_after(own));
            return Err(Refusal::ClientLimit { limit, retry_after_s });
        }
        Ok(())
    }

    /// The seconds in which about a tenth of so many tasks may end: 1 to 30.
    fn retry_after(&self, tasks: usize) -> u64 {
        let per_task = self.metrics.seconds.mean().unwrap_or(1.0);
        ((tasks as f64 / 10.0 * per_task).ceil() as u64).clamp(1, 30)
    }

    async fn stored(&self, submitted: Submitted) -> Result<Task, Refusal> {
        if let Some(rows) = submitted.rows
            && !self.synced.clone().reaches(rows).await
        {
            return Err(Refusal::Storage("its journal cannot be written to disk".into()));
        }
        self.seen(&submitted.key).await
    }

    /// A task as its client sees it.
    ///
    /// # Errors
    /// There is no such task, or its result cannot be read.
    pub async fn task(&self, client: &Client, id: &str) -> Result<Task, Refusal> {
        self.seen(&TaskKey { client: client.0.clone(), id: id.into() }).await
    }

    async fn seen(&self, key: &TaskKey) -> Result<Task, Refusal> {
        let (mut task, place, rows) = {
            let inner = self.lock();
            let found = inner.state.task(key).ok_or_else(|| Refusal::NoTask(key.id.to_string()))?;
            let (place, rows) = match found.phase {
                TaskPhase::Waiting => (None, 0),
                TaskPhase::Cancelled { rows, .. } => (None, rows),
                TaskPhase::Done { result, rows, .. } => (inner.state.result(result).map(|of| of.place.clone()), rows),
            };
            (view(&inner.state, found), place, rows)
        };
        // What is shown is on disk.
        if !self.synced.clone().reaches(rows).await {
            return Err(Refusal::Storage("its journal cannot be written to disk".into()));
        }
        if let Some(place) = place {
            let row = place.read::<Row>().map_err(|error| Refusal::Storage(error.to_string()))?;
            task.result = match row {
                Row::Finished { value, .. } => Some(*value),
                _ => return Err(Refusal::Storage("a row of its journal is not a result".into())),
            };
        }
        Ok(task)
    }

    /// A task when it has ended, or after so long.
    ///
    /// # Errors
    /// Same as [`Service::task`].
    pub async fn wait(&self, client: &Client, id: &str, longest: Duration) -> Result<Task, Refusal> {
        let until = tokio::time::Instant::now() + longest;
        loop {
            let log = self.log(client, id);
            let mut changed = log.as_ref().map(|log| log.subscribe());
            let task = self.task(client, id).await?;
            let mut closing = self.closing.subscribe();
            let Some(changed) = changed.as_mut().filter(|_| !is_over(task.status) && !*closing.borrow()) else {
                return Ok(task);
            };
            tokio::select! {
                _ = changed.changed() => {}
                _ = closing.changed() => {}
                () = tokio::time::sleep_until(until) => return Ok(task),
            }
        }
    }

    /// The progress of a task's evaluation; none if it has ended or there is no such task.
    pub fn log(&self, client: &Client, id: &str) -> Option<Arc<ProgressLog>> {
        let inner = self.lock();
        let task = inner.state.task(&TaskKey { client: client.0.clone(), id: id.into() })?;
        let is_waiting = task.phase == TaskPhase::Waiting;
        is_waiting.then(|| inner.state.entries.get(&task.accepted.content).map(|entry| entry.log.clone()))?
    }

    /// Whether the service ends, for whoever follows a task.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Cancels a task, unless it has ended.
    ///
    /// # Errors
    /// There is no such task, or the journal cannot be written.
    pub async fn cancel(&self, client: &Client, id: &str) -> Result<Task, Refusal> {
        let key = TaskKey { client: client.0.clone(), id: id.into() };
        {
            let mut inner = self.lock();
            let Inner { state, journal } = &mut *inner;
            if state.is_waiting(&key) {
                let at = Moment::now();
                let row = Row::Cancelled { client: key.client.clone(), id: key.id.clone(), at: at.wall };
                let (_, rows) = journal.append(&row).map_err(|error| Refusal::Storage(error.to_string()))?;
                state.cancel(&key, at, rows);
                journal.sync();
                self.metrics.cancelled.add();
            }
        }
        self.seen(&key).await
    }

    /// Tasks of a client, the newest first: at most `limit` with this status, of those below `before`.
    pub fn list(&self, client: &Client, status: Option<TaskStatus>, limit: usize, before: Option<u64>) -> TaskList {
        let inner = self.lock();
        let state = &inner.state;
        let mut found = state.tasks_of(&client.0, before.unwrap_or(u64::MAX));
        let mut tasks = vec![];
        let mut last = None;
        for task in found.by_ref() {
            let is_wanted = status.is_none_or(|wanted| state.status(task) == wanted);
            if is_wanted {
                tasks.push(summary_of(state, task));
                last = Some(task.number);
            }
            if tasks.len() >= limit {
                break;
            }
        }
        let next = last.filter(|_| found.next().is_some());
        TaskList { tasks, next }
    }

    /// Whether it accepts tasks, and what it does.
    pub fn health(&self) -> Health {
        let inner = self.lock();
        let running = inner.state.running();
        let status = match () {
            () if self.draining.load(Ordering::SeqCst) => "draining",
            () if !inner.journal.works() => "storage",
            () => "ok",
        };
        Health {
            status: status.into(),
            kforge: env!("CARGO_PKG_VERSION").into(),
            devices: self.devices.clone(),
            queued: (inner.state.entries.len() - running) as u64,
            running: running as u64,
        }
    }

    /// Whether it accepts tasks.
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::SeqCst) && self.lock().journal.works()
    }

    /// Its figures in the format of Prometheus.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        self.metrics.write(&mut out);
        let (tasks, unfinished, running, entries, bytes) = {
            let inner = self.lock();
            let state = &inner.state;
            (state.tasks(), state.unfinished(), state.running(), state.entries.len(), inner.journal.bytes())
        };
        gauge(&mut out, "kforge_tasks", "Tasks that are kept.", tasks as u64);
        gauge(&mut out, "kforge_tasks_unfinished", "Tasks without a result.", unfinished as u64);
        gauge(&mut out, "kforge_evaluations_running", "Evaluations that run.", running as u64);
        gauge(&mut out, "kforge_evaluations_queued", "Evaluations that wait.", (entries - running) as u64);
        gauge(&mut out, "kforge_journal_bytes", "The size of the journal.", bytes);
        gauge(&mut out, "kforge_ready", "1 if tasks are accepted.", u64::from(self.is_ready()));
        out
    }

    /// Forgets what is older than the retention, and writes the journal again if most of it is not needed.
    fn tidy(&self) -> std::io::Result<()> {
        let retain = i64::try_from(self.config.retain.as_millis()).unwrap_or(i64::MAX);
        let mut inner = self.lock();
        let Inner { state, journal } = &mut *inner;
        state.forget(Moment::now().steady.saturating_sub(retain), self.config.keep);
        state.forget_unused();
        let is_new = journal.bytes() == 0;
        if !is_new && !journal.works() {
            // A row without a meaning, to see whether rows can be written again.
            journal.append(&Row::Format(FORMAT))?;
        }
        if !is_new && journal.bytes() < (2 * state.live()).max(running::LEAST_TO_REWRITE) {
            return Ok(());
        }
        if is_new {
            journal.append(&Row::Format(FORMAT))?;
            journal.sync();
            return Ok(());
        }
        let rows = state.rows();
        let places = journal.replace(rows.iter().map(|row| match row {
            Snapshot::Row(row) => Kept::New(row),
            Snapshot::Result(_, place) | Snapshot::Request(_, place) => Kept::Copy(place),
        }))?;
        state.moved(rows, places);
        Ok(())
    }

    /// Accepts no more tasks, waits until those that run have ended, at most so long, and ends the threads. What is not finished stays for the next start.
    pub fn drain(&self, longest: Duration) {
        self.stop_accepting();
        let until = Instant::now() + longest;
        let mut inner = self.lock();
        while inner.state.running() > 0 && Instant::now() < until {
            inner = self.work.wait_timeout(inner, Duration::from_millis(20)).unwrap_or_else(PoisonError::into_inner).0;
        }
        for stop in inner.state.entries.values().filter_map(|entry| entry.running.as_ref()) {
            stop.set(state::StopReason::Drained);
        }
        drop(inner);
        self.ended.store(true, Ordering::SeqCst);
        self.closing.send_replace(true);
        self.work.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic there is a bug that has been printed.
            drop(thread.join());
        }
    }

    /// Accepts no more tasks, and begins no evaluations.
    pub fn stop_accepting(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.work.notify_all();
    }
}

/// Whether a task has ended.
pub(crate) fn is_over(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Done | TaskStatus::Cancelled)
}

/// A task without its result.
fn view(state: &State, task: &TaskState) -> Task {
    let Accepted { id, content, measure, priority, at, .. } = &task.accepted;
    let finished = match task.phase {
        TaskPhase::Waiting => None,
        TaskPhase::Done { at, .. } | TaskPhase::Cancelled { at, .. } => Some(clock::text(at)),
    };
    Task {
        id: id.to_string(),
        status: state.status(task),
        content: content.hex(),
        measure: *measure,
        priority: *priority,
        submitted_at: clock::text(*at),
        finished_at: finished,
        shared: task.shared,
        result: None::<EvaluationResult>,
    }
}

fn summary_of(state: &State, task: &TaskState) -> TaskSummary {
    let verdict = match task.phase {
        TaskPhase::Done { result, .. } => state.result(result).map(|of| of.verdict),
        TaskPhase::Waiting | TaskPhase::Cancelled { .. } => None,
    };
    TaskSummary {
        id: task.accepted.id.to_string(),
        status: state.status(task),
        priority: task.accepted.priority,
        submitted_at: clock::text(task.accepted.at),
        verdict,
    }
}

/// An id that nobody can guess.
fn random_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Refusal::Storage(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What decides results besides requests: kforge's code, the devices, and the settings that limit kernels.
fn environment(session: &Session, shared: &Shared) -> Digest {
    let settings = ["emulator.max-work", "oracle.max-work", "build.time-limit", "build.memory-limit"];
    let settings = settings.map(|name| session.settings.number(name));
    let devices: Vec<_> = shared.devices().0.iter().map(|device| &device.class).collect();
    let all = (
        (env!("CARGO_PKG_VERSION"), FORMAT_VERSION, implementations()),
        (devices, settings, session.options.allow_unconfined),
    );
    Digest::of(format!("{all:?}").as_bytes())
}
