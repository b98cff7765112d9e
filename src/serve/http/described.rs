//! References that other interfaces send: each is described once, and no more than a few at a time, because it takes seconds and a process. Also what those
//! interfaces remember besides the service.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OnceCell, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::App;
use super::failure::Failure;
use super::places::Places;
use crate::api::{Cause, ErrorCode, EvaluationRequest, Task, TaskStatus, VerdictWord};
use crate::service::{Client, NoReference, ReferencePackage, Refusal, Service};
use kforge_foundation::base::Digest;

/// The most entries that are remembered: of references, and of each client.
const MOST_KEPT: usize = 4096;

/// The most bytes that they take.
const MOST_BYTES: usize = 32 << 20;

/// How many processes are started at once for each purpose.
const AT_ONCE: usize = 2;

/// How many requests of a client may wait for such processes.
const MOST_WAITING: usize = 256;

/// The seconds after which a client with that many may try again.
const RETRY_AFTER_S: u64 = 5;

/// How often an evaluation with one id runs, where its result is one that another run could change.
const MOST_RUNS: usize = 9;

/// A package, or the word and the text of why there is none.
pub(super) type Described = Result<ReferencePackage, (String, String)>;

/// A map of the last entries, bounded by their number and their bytes.
pub(super) struct Kept<K, V> {
    map: HashMap<K, (V, usize)>,
    order: VecDeque<K>,
    bytes: usize,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept { map: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Kept<K, V> {
    /// Adds an entry of so many bytes. The oldest ones go, except those that are needed.
    pub(super) fn put(&mut self, key: K, value: V, bytes: usize, is_needed: impl Fn(&V) -> bool) {
        match self.map.insert(key.clone(), (value, bytes)) {
            Some((_, before)) => self.bytes -= before,
            None => self.order.push_back(key),
        }
        self.bytes += bytes;
        let mut left = self.order.len();
        while (self.map.len() > MOST_KEPT || self.bytes > MOST_BYTES) && left > 0 {
            left -= 1;
            let Some(oldest) = self.order.pop_front() else { return };
            if self.map.get(&oldest).is_some_and(|(value, _)| is_needed(value)) {
                self.order.push_back(oldest);
            } else if let Some((_, bytes)) = self.map.remove(&oldest) {
                self.bytes -= bytes;
            }
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.map.get(key).map(|(value, _)| value.clone())
    }
}

/// The last entries of each client, by id. One client's entries push out none of another's.
pub(super) struct ByClient<V>(Mutex<HashMap<Client, Kept<String, V>>>);

impl<V> Default for ByClient<V> {
    fn default() -> Self {
        ByClient(Mutex::default())
    }
}

impl<V: Clone> ByClient<V> {
    pub(super) fn put(&self, client: &Client, id: &str, value: V, bytes: usize, is_needed: impl Fn(&V) -> bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(client.clone()).or_default();
        own.put(id.into(), value, bytes, is_needed);
    }

    pub(super) fn get(&self, client: &Client, id: &str) -> Option<V> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(client)?.get(&id.to_string())
    }
}

/// What takes a process: a few at once, and clients in turn.
pub(super) struct Processes {
    all: Semaphore,
    own: Places,
    waiting: Places,
}

impl Default for Processes {
    fn default() -> Self {
        Processes { all: Semaphore::new(AT_ONCE), own: Places::new(AT_ONCE), waiting: Places::new(MOST_WAITING) }
    }
}

/// The place of a request that may wait for a process.
pub(super) struct Admitted(#[expect(dead_code, reason = "it is kept for its end")] OwnedSemaphorePermit);

impl Processes {
    /// Admits a request whose evaluation needs a process first, unless its client has as many tasks, or as many such requests, as it may have.
    pub(super) fn admit(&self, app: &App, client: &Client) -> Result<Admitted, Failure> {
        app.service.admits(client)?;
        self.waiting.of(client).try_acquire_owned().map(Admitted).map_err(|_| {
            let why = format!("this client has {MOST_WAITING} requests whose sources are read, and may not have more");
            let mut failure = Failure::new(ErrorCode::ClientLimit, why);
            failure.0.retry_after_s = Some(RETRY_AFTER_S);
            failure
        })
    }

    /// A place to start a process. A client waits with as many of its requests as could run, so others wait for no more than those.
    async fn place(&self, client: &Client) -> Result<(OwnedSemaphorePermit, SemaphorePermit<'_>), AcquireError> {
        Ok((self.own.of(client).acquire_owned().await?, self.all.acquire().await?))
    }

    /// Does what takes a process.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        app: &App,
        client: &Client,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Result<T, String> {
        let _place = self.place(client).await.map_err(|e| e.to_string())?;
        let service = app.service.clone();
        tokio::task::spawn_blocking(move || work(&service)).await.map_err(|e| e.to_string())
    }
}

/// The references.
#[derive(Default)]
pub(super) struct References {
    cells: Mutex<Kept<Digest, Arc<OnceCell<Described>>>>,
    processes: Processes,
}

impl References {
    /// The package of a reference with this digest, if it was described before.
    fn known(&self, digest: Digest) -> Option<Described> {
        let cell = self.cells.lock().unwrap_or_else(PoisonError::into_inner).get(&digest)?;
        cell.get().cloned()
    }

    /// The package of a reference with this digest: described now, unless it was before. The error of the package is why the server cannot describe any.
    ///
    /// # Errors
    /// The client has too many unfinished tasks or requests.
    pub(super) async fn package(
        &self,
        app: &App,
        client: &Client,
        digest: Digest,
        describe: impl FnOnce(&Service) -> Result<ReferencePackage, NoReference> + Send + 'static,
    ) -> Result<Result<Described, String>, Failure> {
        if let Some(known) = self.known(digest) {
            return Ok(Ok(known));
        }
        let _admitted = self.processes.admit(app, client)?;
        let cell = {
            let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
            cells.get(&digest).unwrap_or_else(|| {
                let cell = Arc::new(OnceCell::new());
                cells.put(digest, cell.clone(), 0, |_| false);
                cell
            })
        };
        let described = cell.get_or_try_init(|| async {
            let described = match self.processes.run(app, client, describe).await? {
                Ok(package) => Ok(package),
                Err(NoReference::Refused { kind, message }) => Err((kind, message)),
                Err(NoReference::Unavailable(why)) => return Err(why),
            };
            let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
            cells.put(digest, cell.clone(), size(&described), |_| false);
            Ok(described)
        });
        Ok(described.await.cloned())
    }
}

/// About how many bytes a description takes.
fn size(of: &Described) -> usize {
    match of {
        Err((kind, message)) => kind.len() + message.len(),
        Ok(ReferencePackage { manifest, operator, files, left_out }) => {
            let files: usize = files.iter().map(|(name, text)| name.len() + text.len()).sum();
            manifest.len() + operator.len() + files + left_out.iter().map(String::len).sum::<usize>()
        }
    }
}

/// The newest run of a task of an interface.
pub(super) struct Run {
    nth: usize,
    /// The id under which the service keeps it.
    pub(super) id: String,
    pub(super) task: Task,
}

impl Run {
    /// Whether it has ended, and another run could end otherwise.
    pub(super) fn can_change(&self) -> bool {
        let of_moment = [Cause::NoProgress, Cause::TimedOut, Cause::Unavailable, Cause::Undecided, Cause::Internal];
        match (&self.task.result, self.task.status) {
            (Some(result), _) => {
                result.verdict != VerdictWord::Pass && result.cause.is_some_and(|cause| of_moment.contains(&cause))
            }
            (None, status) => status == TaskStatus::Cancelled,
        }
    }
}

/// The newest run of a task; none if there is no such task.
pub(super) async fn newest(app: &App, client: &Client, interface: &str, id: &str) -> Result<Option<Run>, Refusal> {
    // The first runs may be forgotten already.
    for nth in (1..=MOST_RUNS).rev() {
        let id = run_id(interface, nth, id);
        match app.service.task(client, &id).await {
            Ok(task) => return Ok(Some(Run { nth, id, task })),
            Err(Refusal::NoTask(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// Submits an evaluation as a task of an interface: a new one, or that of this id and content. If it has ended and another run could end otherwise, it runs
/// again. Returns the id under which the service keeps it.
pub(super) async fn submit(
    app: &App,
    client: &Client,
    (interface, id): (&str, &str),
    evaluation: EvaluationRequest,
) -> Result<String, Refusal> {
    let newest = newest(app, client, interface, id).await?;
    let nth = newest.as_ref().map_or(1, |run| run.nth);
    let is_again = nth < MOST_RUNS && newest.is_some_and(|run| run.can_change());
    let request = |nth| EvaluationRequest { id: Some(run_id(interface, nth, id)), ..evaluation.clone() };
    // Another content is refused here.
    let mut task = app.service.submit(client, request(nth)).await?;
    if is_again {
        task = app.service.submit(client, request(nth + 1)).await?;
    }
    Ok(task.id)
}

/// The id under which the service keeps a run of a task.
fn run_id(interface: &str, nth: usize, id: &str) -> String {
    match nth {
        1 => kept_id(interface, id),
        _ => kept_id(&format!("{interface}{nth}"), id),
    }
}

/// The id under which the service keeps a task of an interface. Clients choose any text, and every interface has ids of its own.
fn kept_id(interface: &str, id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    match id.len() <= 90 && !id.is_empty() && id.chars().all(plain) {
        true => format!("{interface}:{id}"),
        false => format!("{interface}.{}", Digest::of(id.as_bytes()).hex()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_last_entries_are_kept_and_those_that_are_needed() {
        let mut kept = Kept::default();
        for n in 0..MOST_KEPT + 3 {
            kept.put(n, n, 1, |_| false);
            kept.put(n, n + 1, 2, |_| false);
        }
        assert_eq!((kept.get(&2), kept.get(&3), kept.order.len()), (None, Some(4), MOST_KEPT));
        assert_eq!(kept.bytes, 2 * MOST_KEPT);
        kept.put(MOST_KEPT + 3, 0, 0, |value| *value == 4);
        assert_eq!((kept.get(&3), kept.get(&4)), (Some(4), None), "it is needed");
        kept.put(MOST_KEPT + 4, 0, 0, |_| true);
        assert_eq!(kept.map.len(), MOST_KEPT + 1, "all are");
        kept.put(0, 0, MOST_BYTES, |_| false);
        assert_eq!((kept.map.len(), kept.get(&0)), (2, Some(0)), "bytes count");
    }

    #[test]
    fn a_client_pushes_out_its_own_entries_only() {
        let kept = ByClient::default();
        let clients = ["a", "b"].map(Client::new);
        kept.put(&clients[0], "x", 1, 0, |_| false);
        for n in 0..=MOST_KEPT {
            kept.put(&clients[1], &n.to_string(), n, 0, |_| false);
        }
        assert_eq!((kept.get(&clients[0], "x"), kept.get(&clients[1], "0")), (Some(1), None));
    }

    #[test]
    fn a_client_with_many_requests_does_not_keep_others_from_their_processes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (processes, clients) = (Processes::default(), ["a", "b"].map(Client::new));
            let first = processes.place(&clients[0]).await.unwrap();
            let _second = processes.place(&clients[0]).await.unwrap();
            let mut more: Vec<_> = (0..9).map(|_| Box::pin(processes.place(&clients[0]))).collect();
            for waiting in &mut more {
                assert!(waiting.as_mut().now_or_never().is_none());
            }
            let mut other = Box::pin(processes.place(&clients[1]));
            assert!(other.as_mut().now_or_never().is_none(), "all are taken");
            drop(first);
            assert!(more[0].as_mut().now_or_never().is_none(), "it came first, and its client had its turn");
            assert!(other.as_mut().now_or_never().is_some());
        });
    }

    #[test]
    fn runs_have_ids_that_no_task_of_a_client_has() {
        assert_eq!((run_id("gym", 1, "a"), run_id("gym", 2, "a")), ("gym:a".into(), "gym2:a".into()));
    }

    #[test]
    fn any_text_has_an_id_of_its_own() {
        assert_eq!(kept_id("gym", "a.b-1"), "gym:a.b-1");
        let long = "x".repeat(100);
        for odd in ["", "a b", "ü", "a/b", long.as_str()] {
            let id = kept_id("gym", odd);
            assert!(
                id.len() <= 100 && id.starts_with("gym.") && id[4..].chars().all(|c| c.is_ascii_hexdigit()),
                "{id}"
            );
        }
        assert_ne!(kept_id("gym", "a b"), kept_id("gym", "a c"));
    }
}
