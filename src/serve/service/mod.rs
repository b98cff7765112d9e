//! The service: a queue in front of kforge's builds, with results by content and a journal. Knows no HTTP.
//!
//! | decision | because |
//! |---|---|
//! | an evaluation is a workspace of its own and a build in this process | it has the plan, the cache, the checks and the confinement of every build |
//! | all builds share one pool of workers, the devices and the processors | a warm worker holds compilers and a context, and a device measures for one at a time |
//! | one lock over the state and the journal | the order of rows is the order of changes. Rows are made before it is taken, large requests are handled on threads of their own, and health is read without it |
//! | a result is shown once its row is on disk | a task has one answer, even if the machine loses power |
//! | a result that another run could change (a time-out, a missing device) answers its tasks and no later ones | what went wrong once must not be answered for ever |
//! | a result answers later tasks of the same process only | another kforge or another device may decide otherwise; the home's cache knows when it would |
//! | an evaluation during which the server was killed twice is not begun a third time | otherwise one request would end the server at each start |
//! | an evaluation that lacks something because a worker was killed is repeated, and each time counts as much | the system can kill a worker because of what others need. A candidate's own process that it kills is a crash: the candidate could have ended it so itself |

mod accept;
mod clock;
mod drain;
mod evaluate;
mod fields;
mod files;
mod folder;
mod health;
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
mod tidy;
mod views;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use kforge_engine::lock::Lock;
use kforge_ops::Session;
use kforge_ops::session::Shared;

use self::evaluate::Evaluator;
use self::health::Figures;
use self::journal::{Journal, OpenError, Synced};
use self::state::State;

pub use self::drain::Ending;
pub use self::invalid::{FileFault, Invalid};
pub use self::kernelbench::{NoReference, ReferencePackage};
pub use self::metrics::{Counter, Metrics, Seconds};
pub(crate) use self::metrics::{counter, gauge};
pub use self::progress::{ProgressLog, Seen};
pub use self::refusal::{Refusal, StartError};
pub(crate) use self::views::is_over;

/// Requests and results of more bytes are read and written on threads of their own.
const LARGE: u64 = 64 << 10;

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
    /// The most bytes of requests that wait or run. One client may have half of them.
    pub queue_bytes: u64,
    /// The most variants times shapes of a request.
    pub most_steps: usize,
    /// An evaluation of which so many runs ended because the server or a worker was killed is given up.
    pub attempts: u32,
    /// The most time of an evaluation.
    pub timeout: Duration,
    /// How long tasks are kept after they ended.
    pub retain: Duration,
    /// How many tasks of one client that ended are kept.
    pub keep: usize,
    /// A journal of fewer bytes is not written again to remove what is not needed.
    pub journal_bytes: u64,
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

/// What a start found in the journal.
#[derive(Debug, Clone, Copy)]
pub struct Replayed {
    /// The rows that were damaged.
    pub damaged: u64,
    /// The evaluations that have not ended.
    pub continuing: u64,
}

/// The service.
pub struct Service {
    config: Config,
    devices: Vec<String>,
    evaluator: Evaluator,
    inner: Mutex<Inner>,
    /// What health is, so that nobody who asks for it waits for the lock.
    figures: Figures,
    /// Wakes threads that evaluate.
    work: Condvar,
    draining: AtomicBool,
    /// Set while no evaluation begins, because the home's cache is to be collected.
    paused: AtomicBool,
    ended: AtomicBool,
    /// Set when the service ends: nobody waits any longer.
    closing: watch::Sender<bool>,
    synced: Synced,
    /// Its figures.
    pub metrics: Metrics,
    /// The session, for the collection of the shared cache.
    session: Session,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// When the journal was written again.
    rewritten: Mutex<Instant>,
    _lock: Lock,
}

impl Service {
    /// Opens the folder, reads the journal, and starts evaluating what was not finished. The second value is what the journal held.
    ///
    /// # Errors
    /// The folder cannot be used, another server uses it, or workers and devices cannot be prepared.
    pub fn start(session: Session, config: Config) -> Result<(Arc<Service>, Replayed), StartError> {
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
        let mut state = State::default();
        let opened = Journal::open(&path, |row, place| state.replay(row, place));
        let (journal, damaged) = opened.map_err(|error| match error {
            OpenError::Io(error) => StartError::storage(&path)(error),
            OpenError::Unknown => StartError::Newer(path.clone()),
        })?;
        state.started();
        // Counted before a thread takes one.
        let replayed = Replayed { damaged, continuing: state.entries.len() as u64 };
        let is_new = journal.bytes() == 0;
        let described =
            |device: &kforge_types::record::Device| format!("{} ({})", device.class.product, device.class.arch);
        let devices: Vec<String> = shared.devices().0.iter().map(described).collect();
        let evaluations = config.evaluations.unwrap_or_else(|| shared.jobs() + 2 * devices.len() as u32 + 1).max(1);
        let synced = journal.synced();
        let service = Arc::new(Service {
            evaluator: Evaluator::new(session.again(), shared, lockfiles, config.most_steps),
            devices,
            inner: Mutex::new(Inner { state, journal }),
            figures: Figures::default(),
            work: Condvar::new(),
            draining: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            synced,
            metrics: Metrics::default(),
            session,
            threads: Mutex::default(),
            rewritten: Mutex::new(Instant::now()),
            config,
            _lock: lock,
        });
        match service.tidy() {
            Err(error) if is_new => return Err(StartError::storage(path)(error)),
            // A journal that cannot be written again, as on a full disk, can be read: its results are answered.
            _ => {}
        }
        service.start_threads(evaluations, &work).map_err(StartError::storage(work.clone()))?;
        Ok((service, replayed))
    }

    /// What is behind the lock, to be read.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is behind the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = change(&mut inner);
        self.figures.set(&inner);
        result
    }

    /// Whether the service ends, for whoever follows a task.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Accepts no more tasks, and begins no evaluations.
    pub fn stop_accepting(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.work.notify_all();
    }
}
