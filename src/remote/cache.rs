//! The remote cache as the engine sees it: what is asked about, what is stored, and when the thread that talks to the server ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::bounded;
use kforge_engine::action::asks_device;
use kforge_engine::{Blobs, Hit, RemoteAnswer, RemoteCache, RemoteQuestion};
use kforge_foundation::base::Digest;
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::{Spec, StepKind, StepResult};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::breaker::Breaker;
use super::client::{Answer, Request, Shared, TICK, serve};
use super::connection::{Access, Connection};
use super::recheck::differing;
use super::step::{ReadAnswer, RemoteStep};
use super::{Capabilities, RemoteError};

/// How long the end of a build waits until its results are stored.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a remote cache is used.
pub struct RemoteOptions {
    /// How to reach it.
    pub access: Access,
    /// Whether results are stored. Otherwise they are only read.
    pub writes: bool,
    /// Whether results for holdout shapes are read and stored.
    pub holdout: bool,
    /// Texts that no result may contain if it is to be stored, such as the folders of this machine.
    pub private: Vec<String>,
    /// Set when the build is interrupted.
    pub interrupted: Arc<AtomicBool>,
    /// Hears of the first error.
    pub report: Box<dyn Fn(&RemoteError) + Send + Sync>,
    /// Which results are computed again here and compared, by their keys; none if none are.
    pub recheck: Option<Sampled>,
}

/// Whether the result of a key belongs to a sample.
pub type Sampled = Box<dyn Fn(&Digest) -> bool + Send + Sync>;

/// A remote cache. Nothing is sent before the first question.
pub struct Remote {
    shared: Arc<Shared>,
    requests: Mutex<Option<UnboundedSender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    writes: bool,
    holdout: bool,
    private: Vec<String>,
    recheck: Option<Sampled>,
    /// Results of the sample: the steps run again here. They count for nothing before they have.
    suspended: Arc<Mutex<HashMap<Digest, Hit>>>,
    report: Arc<dyn Fn(&RemoteError) + Send + Sync>,
    /// Whether a contradiction was reported. One is enough, and no other error takes its place.
    is_contradicted: AtomicBool,
}

impl Remote {
    /// The remote cache of these options. What it gives is brought to `store`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(options: RemoteOptions, store: Arc<dyn Blobs>) -> std::io::Result<Remote> {
        let RemoteOptions { access, writes, holdout, private, interrupted, report, recheck } = options;
        // A server that is gone fails in every way at once, so one message is enough. Other errors are said once for reading, storing, executing and observing each.
        let report: Arc<dyn Fn(&RemoteError) + Send + Sync> = report.into();
        let is_said = Arc::new(AtomicBool::new(false));
        let breaker = || {
            let (report, is_said) = (report.clone(), is_said.clone());
            Breaker::new(Box::new(move |error: &RemoteError| {
                let is_new = !error.is_outage() || !is_said.swap(true, Ordering::Relaxed);
                if is_new {
                    report(error);
                }
                is_new
            }))
        };
        let shared = Arc::new(Shared::new(access, store, interrupted, [breaker(), breaker(), breaker(), breaker()]));
        let (send, requests) = unbounded_channel();
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("remote cache".into()).spawn(move || {
            if let Err(error) = serve(of_thread.clone(), requests) {
                of_thread.reading.failure(&RemoteError::Connect(error.to_string()));
            }
        })?;
        let (requests, thread) = (Mutex::new(Some(send)), Mutex::new(Some(thread)));
        // In JSON, quotes and backslashes have another form.
        let escaped = |text: &String| serde_json::to_string(text).ok().map(|text| text[1..text.len() - 1].to_string());
        let forms: BTreeSet<String> = private.iter().filter_map(escaped).chain(private.iter().cloned()).collect();
        let private = forms.into_iter().collect();
        let (suspended, is_contradicted) = (Arc::default(), AtomicBool::new(false));
        Ok(Remote { shared, requests, thread, writes, holdout, private, recheck, suspended, report, is_contradicted })
    }

    /// Connects, and asks what the server can do. An interruption ends the wait for it.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn capabilities(access: &Access, interrupted: &AtomicBool) -> Result<Capabilities, RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| RemoteError::Connect(e.to_string()))?;
        let interruption = async {
            while !interrupted.load(Ordering::Relaxed) {
                tokio::time::sleep(TICK).await;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                connection = Connection::open(access, interrupted) => connection.map(|connection| connection.capabilities),
                () = interruption => Err(RemoteError::Connect("interrupted".into())),
            }
        })
    }

    /// Whether a hit has named this content.
    pub(crate) fn names(&self, digest: &Digest) -> bool {
        self.shared.named(digest).is_some()
    }

    /// Brings those contents to the store that hits have named. Returns whether there were any.
    pub(crate) fn fetch(&self, digests: &[Digest]) -> bool {
        let named = digests.iter().filter(|digest| self.names(digest) && !self.shared.store.has(digest));
        let named: Vec<Digest> = named.copied().collect();
        if named.is_empty() {
            return false;
        }
        let (done, wait) = bounded(1);
        self.send(Request::Fetch(named.clone(), done));
        // If the thread has ended, nothing was fetched.
        let _ = wait.recv();
        named.iter().filter(|digest| !self.shared.store.has(digest)).for_each(|digest| self.shared.forget(digest));
        true
    }

    /// Executes a step on a worker of the server, and brings its outputs to the store. Returns the answer of the worker; none if there is none, for any
    /// reason. A step that this machine can execute runs here then.
    pub fn execute(&self, step: RemoteStep, read: ReadAnswer) -> Option<Vec<u8>> {
        let (done, wait) = bounded(1);
        self.send(Request::Execute(Box::new(step), read, done));
        // If the thread has ended, nothing was executed. If the build is interrupted, the thread answers: it looks every moment.
        wait.recv().ok().flatten()
    }

    /// Whether a step that this machine can execute may be executed elsewhere: one of a worker that observes no device, and none for holdout shapes unless these may be sent.
    pub fn may_execute(&self, spec: &Spec) -> bool {
        self.is_served(spec) && !self.shared.executing.is_open()
    }

    /// Whether workers are still asked for what only they can execute.
    pub fn may_observe(&self) -> bool {
        !self.shared.observing.is_open() && !self.shared.reading.is_open()
    }

    /// Asks no worker any more for what only workers can execute, and reports why.
    pub fn stop_observing(&self, why: String) {
        if !self.shared.observing.is_open() {
            self.shared.observing.failure(&RemoteError::Worker(why));
            self.shared.observing.open();
        }
    }

    /// Whether any of these texts contains one that must stay on this machine.
    pub fn is_private(&self, texts: &[&[u8]]) -> bool {
        let holds = |text: &[u8]| match std::str::from_utf8(text) {
            Ok(text) => self.private.iter().any(|private| text.contains(private.as_str())),
            Err(_) => true,
        };
        texts.iter().any(|text| holds(text))
    }

    /// Whether the result of a step is computed again here, to compare it.
    pub fn rechecks(&self, key: &Digest) -> bool {
        self.suspended().contains_key(key)
    }

    /// Whether the result of a step belongs to the sample that is computed again here. A compiler does not always give the same bytes.
    pub fn samples(&self, key: &Digest, kind: StepKind) -> bool {
        kind != StepKind::Compile && self.recheck.as_ref().is_some_and(|is_sampled| is_sampled(key))
    }

    /// Keeps a result of a worker back until the step has run here.
    pub fn keep_back(&self, key: &Digest, result: StepResult) {
        self.suspended().insert(*key, Hit { result, origin: CacheOrigin::Remote, evidence: None, tag: None });
    }

    /// A worker gave no result for a step that this machine has then executed.
    pub fn doubts(&self, why: String) {
        self.shared.executing.failure(&RemoteError::Worker(why));
    }

    fn suspended(&self) -> MutexGuard<'_, HashMap<Digest, Hit>> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An output, from the server if it is not here.
    fn output(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.fetch(&[*digest]);
        self.shared.store.get(digest).ok().flatten()
    }

    fn is_served(&self, spec: &Spec) -> bool {
        let is_holdout = spec.params.get("holdout").and_then(serde_json::Value::as_bool) == Some(true);
        spec.kind.lane().is_some() && !asks_device(spec) && (self.holdout || !is_holdout)
    }

    /// Waits a while until the results of the build are stored. Returns how many are not.
    pub fn finish(&self) -> usize {
        let (done, wait) = bounded(1);
        if self.shared.unstored.load(Ordering::Relaxed) > 0 {
            self.send(Request::Finish(done));
            let _ = wait.recv_timeout(PATIENCE);
        }
        self.shared.unstored.load(Ordering::Relaxed)
    }

    /// Sends a request to the thread. Drops it if the thread has ended.
    fn send(&self, request: Request) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(send) = &*requests {
            let _ = send.send(request);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic of the thread was printed; the build has ended.
            let _ = thread.join();
        }
    }
}

impl RemoteCache for Remote {
    fn serves(&self, spec: &Spec) -> bool {
        self.is_served(spec) && !self.shared.reading.is_open()
    }

    fn ask(&self, question: RemoteQuestion, answer: RemoteAnswer) {
        let answer: RemoteAnswer = match question.can_run && self.samples(&question.key, question.spec.kind) {
            true => {
                let (key, suspended) = (question.key, self.suspended.clone());
                Box::new(move |hit: Option<Hit>| {
                    let mut suspended = suspended.lock().unwrap_or_else(PoisonError::into_inner);
                    suspended.extend(hit.map(|hit| (key, hit)));
                    drop(suspended);
                    answer(None);
                })
            }
            false => answer,
        };
        // Dropped, it answers that there is no result.
        self.send(Request::Ask(question, Answer::new(answer)));
    }

    fn compare(&self, key: &Digest, spec: &Spec, ours: Option<&StepResult>) -> bool {
        // The lock is free again before an output is waited for: the thread that brings it takes it as well.
        let theirs = self.suspended().remove(key);
        let Some(theirs) = theirs else { return false };
        let what = match ours {
            Some(ours) => differing(spec.kind, &theirs.result, ours, &|digest| self.output(digest)),
            None => Some("the step fails here, and that".into()),
        };
        let Some(what) = what else { return false };
        if !self.is_contradicted.swap(true, Ordering::Relaxed) {
            (self.report)(&RemoteError::Contradiction { key: *key, what });
        }
        // Whoever stored it may have stored others.
        self.shared.reading.open();
        true
    }

    fn kept_back(&self, key: &Digest) -> Option<Hit> {
        self.suspended().remove(key)
    }

    fn put(&self, key: &Digest, _: &Spec, result: &StepResult) {
        if !self.writes {
            return;
        }
        let text = serde_json::to_string(result).unwrap_or_default();
        if self.private.iter().any(|private| text.contains(private.as_str())) {
            return;
        }
        self.shared.unstored.fetch_add(1, Ordering::Relaxed);
        if self.shared.writing.is_open() {
            return;
        }
        self.send(Request::Store(*key, result.clone()));
    }
}
