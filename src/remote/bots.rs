//! A worker of a server that speaks the Remote Workers API, such as BuildGrid: it registers, gets leases, executes them one by one and gives the results back. Knows
//! the protocol of sessions; [`lease`] executes a lease.
//!
//! | what happens | what follows |
//! |---|---|
//! | nothing is to be done | the server answers when there is, or after a while ([`POLL`]) |
//! | a lease is executed | the server hears of this worker every moment ([`BotOptions::beat`]), and this worker of a lease that nobody wants any more: its processes are killed |
//! | the server does not answer | it is asked again after a pause that grows; the step goes on until the server must count this worker as lost |
//! | the server refuses the credentials | the connection is opened anew with those of now, and the same is said again; a second refusal ends the session |
//! | the server does not know the session, or counts this worker as lost | the step is killed, for another worker has it now; a new session begins, with a new connection, after a pause that grows where sessions are short |
//! | the server refuses before the first session | the worker ends: its settings are wrong |
//! | the worker is to end | the step is killed, and the server hears that another worker may have it |

mod lease;
mod line;
mod messages;
mod outputs;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::protobuf::{Any, Timestamp};
use bazel_remote_apis::google::rpc;
use prost::Message;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::{Code, Status};

use self::lease::{Executor, Stop};
use self::line::Line;
use self::messages::{BotSession, BotStatus, Device, Lease, LeaseState, Property, Worker};
use super::connection::{Access, Connection};
use super::error::RemoteError;
use super::retry::{Limiter, failed, may_go_away};

pub use self::lease::{ExecuteIn, LeaseError};

/// How long the server may wait for work before it answers.
const POLL: Duration = Duration::from_secs(30);
/// How long an idle worker waits before it asks again where the server does not wait.
const IDLE: Duration = Duration::from_millis(250);
/// How long a server counts a worker as living that does not state it.
const LIFE: Duration = Duration::from_secs(60);
/// The pause after an error. It doubles after each further one, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A session that lived as long was a good one. After others the next one begins after a pause: two workers of one name end each other's sessions.
const SETTLED: Duration = Duration::from_secs(60);
/// The longest pause between sessions.
const LONGEST_BETWEEN: Duration = Duration::from_secs(60);
/// How long the server has for the last words of this worker.
const LAST: Duration = Duration::from_secs(2);
/// How often a flag is looked at.
const TICK: Duration = Duration::from_millis(20);

/// A worker.
pub struct BotOptions {
    /// How to reach the server.
    pub access: Access,
    /// The name of this worker at the server. No two workers may have one name.
    pub name: String,
    /// What this worker is, by name. A name may have several values.
    pub properties: Vec<(String, String)>,
    /// The parent of the folders of steps.
    pub scratch: PathBuf,
    /// How often the server hears of this worker while a lease is executed.
    pub beat: Duration,
    /// The longest time of a step, whatever its action says.
    pub longest: Duration,
    /// Set when the worker is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Executes the step in a folder.
    pub execute: ExecuteIn,
    /// Hears what happens.
    pub report: Box<dyn Fn(&BotEvent<'_>)>,
}

/// What happens to a worker.
#[derive(Debug)]
pub enum BotEvent<'e> {
    /// The server knows this worker, and may give it leases.
    Registered,
    /// The server cannot be used; it is asked again and again.
    Gone(&'e RemoteError),
    /// A lease begins.
    Began {
        /// Its name at the server.
        lease: &'e str,
    },
    /// A lease has ended: with the exit code of its step, or without a result.
    Ended {
        /// Its name at the server.
        lease: &'e str,
        /// How.
        how: Result<i32, &'e LeaseError>,
        /// How long it took, with the transfer of its contents.
        took: Duration,
    },
}

/// Serves until the worker is to end.
///
/// # Errors
/// The server, or what the settings say of it, cannot be used.
pub fn serve_bots(options: BotOptions) -> Result<(), RemoteError> {
    lease::tidy(&options.scratch);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| RemoteError::Connect(e.to_string()))?;
    let bot = Bot { options, limiter: Rc::new(Limiter::new()) };
    tokio::task::LocalSet::new().block_on(&runtime, bot.serve())
}

struct Bot {
    options: BotOptions,
    limiter: Rc<Limiter>,
}

/// A lease that is executed.
struct Running {
    id: String,
    began: Instant,
    stop: Stop,
    task: JoinHandle<Result<reapi::ActionResult, LeaseError>>,
}

/// How a session ended.
enum SessionEnd {
    /// The worker is to end.
    Interrupted,
    /// The server does not have it any more.
    Lost(RemoteError),
}

/// What a worker that waits hears first.
enum Heard {
    Answer(Result<BotSession, Status>),
    /// The lease has ended.
    Lease(Box<Result<reapi::ActionResult, LeaseError>>),
    /// The server is to hear of this worker.
    Beat,
    Interrupted,
}

impl Bot {
    async fn serve(&self) -> Result<(), RemoteError> {
        let (mut was_registered, mut pause) = (false, PAUSE);
        loop {
            let Some((line, session)) = self.registered(was_registered).await? else { return Ok(()) };
            was_registered = true;
            (self.options.report)(&BotEvent::Registered);
            let began = Instant::now();
            match self.session(&Rc::new(line), session).await {
                SessionEnd::Interrupted => return Ok(()),
                SessionEnd::Lost(error) => (self.options.report)(&BotEvent::Gone(&error)),
            }
            if began.elapsed() >= SETTLED {
                pause = PAUSE;
            }
            if self.unless_interrupted(tokio::time::sleep(pause)).await.is_none() {
                return Ok(());
            }
            pause = (pause * 2).min(LONGEST_BETWEEN);
        }
    }

    /// Waits until the worker is to end.
    async fn interrupted(&self) {
        while !self.options.interrupted.load(Ordering::Relaxed) {
            tokio::time::sleep(TICK).await;
        }
    }

    /// What the future gives; none if the worker is to end first.
    async fn unless_interrupted<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.interrupted() => None,
            given = future => Some(given),
        }
    }

    /// A new session; none if the worker is to end. `was_registered` says that the settings were of use before, so that no error is one of theirs.
    async fn registered(&self, was_registered: bool) -> Result<Option<(Line, BotSession)>, RemoteError> {
        let (mut pause, mut is_said) = (PAUSE, was_registered);
        loop {
            let error = match self.unless_interrupted(self.register()).await {
                None => return Ok(None),
                Some(Ok(registered)) => return Ok(Some(registered)),
                Some(Err(error)) => error,
            };
            if !was_registered && !may_come_back(&error) {
                return Err(error);
            }
            if !std::mem::replace(&mut is_said, true) {
                (self.options.report)(&BotEvent::Gone(&error));
            }
            if self.unless_interrupted(tokio::time::sleep(pause)).await.is_none() {
                return Ok(None);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn register(&self) -> Result<(Line, BotSession), RemoteError> {
        let line = Line::open(&self.options.access, &self.options.interrupted).await?;
        let connection = line.current();
        let property = |(key, value): &(String, String)| Property { key: key.clone(), value: value.clone() };
        let properties: Vec<Property> = self.options.properties.iter().map(property).collect();
        let device = Device { handle: self.options.name.clone(), properties };
        let session = BotSession {
            bot_id: self.options.name.clone(),
            status: BotStatus::Ok as i32,
            worker: Some(Worker { devices: vec![device], properties: vec![] }),
            ..BotSession::default()
        };
        let created = messages::create(connection.service.clone(), &connection.instance, session, POLL).await;
        match created {
            Ok(session) => Ok((line, session)),
            Err(status) if status.code() == Code::Unimplemented => {
                Err(RemoteError::Lacks("no Remote Workers API, with which workers register"))
            }
            Err(status) => Err(failed("CreateBotSession")(status)),
        }
    }

    /// Keeps a session until it ends.
    async fn session(&self, line: &Rc<Line>, mut session: BotSession) -> SessionEnd {
        let mut lease: Option<Running> = None;
        let mut lost_at = Instant::now() + life(&session);
        let mut pause = PAUSE;
        // Whether the server does not know yet how the leases are.
        let mut is_news = self.followed(line, &mut session, &mut lease).await;
        // Whether the server refused the credentials since it last answered.
        let mut is_refused = false;
        loop {
            let (sent, connection) = (Instant::now(), line.current());
            let answer = match self.heard(&connection, &session, &mut lease, is_news).await {
                Heard::Answer(answer) => answer,
                Heard::Beat => {
                    let said = messages::update(connection.service.clone(), session.clone(), connection.timeout);
                    match self.unless_interrupted(said).await {
                        Some(answer) => answer,
                        None => continue,
                    }
                }
                Heard::Lease(result) => {
                    if let Some(running) = lease.take() {
                        self.complete(&mut session, &running, *result);
                    }
                    is_news = true;
                    continue;
                }
                Heard::Interrupted => {
                    if let Some(running) = lease.take() {
                        let result = stopped(running, LeaseError::Leaves).await;
                        self.complete(&mut session, &result.0, Err(result.1));
                    }
                    give_back(&mut session);
                    session.status = BotStatus::Terminating as i32;
                    // The server notices by itself if it does not hear this.
                    let _ = messages::update(connection.service.clone(), session, LAST).await;
                    return SessionEnd::Interrupted;
                }
            };
            match answer {
                Ok(answer) => {
                    lost_at = Instant::now() + life(&answer);
                    (pause, is_refused) = (PAUSE, false);
                    session = answer;
                    // Some servers repeat what they heard.
                    session.leases.retain(|lease| lease.state != LeaseState::Completed as i32);
                    is_news = self.followed(line, &mut session, &mut lease).await;
                    let is_idle = lease.is_none() && !is_news;
                    if is_idle && sent.elapsed() < IDLE {
                        // A server that does not wait for work is not asked without a pause.
                        let _ = self.unless_interrupted(tokio::time::sleep(IDLE)).await;
                    }
                }
                // A server that waited for work for too long.
                Err(status) if !is_news && lease.is_none() && sent.elapsed() >= POLL && is_late(&status) => {}
                Err(status) if may_pass(status.code()) && Instant::now() < lost_at => {
                    let _ = self.unless_interrupted(tokio::time::sleep(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(status) if status.code() == Code::Unauthenticated && !is_refused => {
                    match self.unless_interrupted(line.renew(&connection)).await {
                        // The next turn of the loop notices.
                        None => {}
                        Some(Ok(())) => is_refused = true,
                        Some(Err(error)) if may_come_back(&error) && Instant::now() < lost_at => {
                            let _ = self.unless_interrupted(tokio::time::sleep(pause)).await;
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                        Some(Err(error)) => return self.lost(lease, error).await,
                    }
                }
                Err(status) => return self.lost(lease, failed("UpdateBotSession")(status)).await,
            }
        }
    }

    /// Ends a session that the server does not have any more, and its lease.
    async fn lost(&self, lease: Option<Running>, error: RemoteError) -> SessionEnd {
        if let Some(running) = lease {
            let (running, error) = stopped(running, LeaseError::Cancelled).await;
            self.ended(&running, Err(&error));
        }
        SessionEnd::Lost(error)
    }

    /// Waits for what comes first. If the server is to hear news, it is asked at once.
    async fn heard(
        &self,
        connection: &Connection,
        session: &BotSession,
        lease: &mut Option<Running>,
        is_news: bool,
    ) -> Heard {
        let ask = |limit| messages::update(connection.service.clone(), session.clone(), limit);
        match lease {
            _ if is_news => match self.unless_interrupted(ask(connection.timeout)).await {
                Some(answer) => Heard::Answer(answer),
                None => Heard::Interrupted,
            },
            Some(running) => tokio::select! {
                biased;
                () = self.interrupted() => Heard::Interrupted,
                result = &mut running.task => Heard::Lease(Box::new(joined(result))),
                () = tokio::time::sleep(self.options.beat) => Heard::Beat,
            },
            None => match self.unless_interrupted(ask(POLL)).await {
                Some(answer) => Heard::Answer(answer),
                None => Heard::Interrupted,
            },
        }
    }

    /// Does what the server says of leases: ends the one that is executed if it is not wanted, and begins one. Accepts one only if none is executed. Returns
    /// whether the server is to hear of it.
    async fn followed(&self, line: &Rc<Line>, session: &mut BotSession, lease: &mut Option<Running>) -> bool {
        let is_wanted = |running: &Running| {
            session.leases.iter().any(|lease| lease.id == running.id && lease.state == LeaseState::Active as i32)
        };
        if let Some(running) = lease.take_if(|running| !is_wanted(running)) {
            let (running, error) = stopped(running, LeaseError::Cancelled).await;
            self.ended(&running, Err(&error));
        }
        let mut is_news = false;
        let mut is_taken = session.leases.iter().any(|lease| lease.state == LeaseState::Active as i32);
        for given in &mut session.leases {
            match LeaseState::try_from(given.state) {
                Ok(LeaseState::Pending) if !is_taken => {
                    given.state = LeaseState::Active as i32;
                    (is_news, is_taken) = (true, true);
                }
                Ok(LeaseState::Active) if lease.is_none() => {
                    *lease = Some(self.begun(line, given));
                }
                Ok(LeaseState::Cancelled) => {
                    given.state = LeaseState::Completed as i32;
                    given.status = Some(LeaseError::Cancelled.status());
                    is_news = true;
                }
                _ => {}
            }
        }
        is_news
    }

    fn begun(&self, line: &Rc<Line>, lease: &Lease) -> Running {
        (self.options.report)(&BotEvent::Began { lease: &lease.id });
        let executor = Executor {
            line: line.clone(),
            limiter: self.limiter.clone(),
            scratch: self.options.scratch.clone(),
            longest: self.options.longest,
            execute: self.options.execute.clone(),
        };
        let (payload, stop) = (lease.payload.clone(), Stop::default());
        let of_task = stop.clone();
        let task = tokio::task::spawn_local(async move { executor.executed(payload, of_task).await });
        Running { id: lease.id.clone(), began: Instant::now(), stop, task }
    }

    /// Notes in the session how a lease ended.
    fn complete(&self, session: &mut BotSession, running: &Running, result: Result<reapi::ActionResult, LeaseError>) {
        self.ended(running, result.as_ref().map(|result| result.exit_code));
        let Some(lease) = session.leases.iter_mut().find(|lease| lease.id == running.id) else { return };
        lease.state = LeaseState::Completed as i32;
        match result {
            Ok(result) => {
                let metadata = reapi::ExecutedActionMetadata {
                    worker: self.options.name.clone(),
                    worker_start_timestamp: Some(at(SystemTime::now() - running.began.elapsed())),
                    worker_completed_timestamp: Some(at(SystemTime::now())),
                    ..Default::default()
                };
                let result = reapi::ActionResult { execution_metadata: Some(metadata), ..result };
                let type_url = "type.googleapis.com/build.bazel.remote.execution.v2.ActionResult".into();
                lease.result = Some(Any { type_url, value: result.encode_to_vec() });
                lease.status = Some(rpc::Status::default());
            }
            Err(error) => lease.status = Some(error.status()),
        }
    }

    fn ended(&self, running: &Running, how: Result<i32, &LeaseError>) {
        (self.options.report)(&BotEvent::Ended { lease: &running.id, how, took: running.began.elapsed() });
    }
}

/// Gives back every lease of a session that has no result: the worker leaves.
fn give_back(session: &mut BotSession) {
    for lease in session.leases.iter_mut().filter(|lease| lease.state != LeaseState::Completed as i32) {
        lease.state = LeaseState::Completed as i32;
        lease.status = Some(LeaseError::Leaves.status());
    }
}

/// Stops a lease, and waits until its processes have ended.
async fn stopped(mut running: Running, why: LeaseError) -> (Running, LeaseError) {
    running.stop.stop();
    let _ = (&mut running.task).await;
    (running, why)
}

fn joined(
    ended: Result<Result<reapi::ActionResult, LeaseError>, tokio::task::JoinError>,
) -> Result<reapi::ActionResult, LeaseError> {
    ended.unwrap_or_else(|e| Err(LeaseError::NotExecuted(e.to_string())))
}

/// How long the server counts this worker as living from now on. A clock that is far from the server's must not end sessions.
fn life(session: &BotSession) -> Duration {
    let Some(ends) = &session.expire_time else { return LIFE };
    let ends = UNIX_EPOCH + Duration::from_secs(u64::try_from(ends.seconds).unwrap_or_default());
    ends.duration_since(SystemTime::now()).unwrap_or_default().clamp(Duration::from_secs(5), 10 * LIFE)
}

fn at(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or_default(),
        nanos: i32::try_from(since.subsec_nanos()).unwrap_or_default(),
    }
}

/// Whether a request that a server did not answer in time was only one for work.
fn is_late(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled)
}

/// Whether the next update may have an answer: after an error that may go away, and where the server or what is before it did not wait.
fn may_pass(code: Code) -> bool {
    may_go_away(code) || matches!(code, Code::DeadlineExceeded | Code::Cancelled)
}

/// Whether a server that cannot be used now may be used later.
fn may_come_back(error: &RemoteError) -> bool {
    matches!(error, RemoteError::Connect(_)) || error.is_outage() && !is_refusal(error)
}

/// Whether a server refused this worker.
fn is_refusal(error: &RemoteError) -> bool {
    match error {
        RemoteError::Status { code, .. } => {
            matches!(code.as_str(), "InvalidArgument" | "NotFound" | "FailedPrecondition" | "OutOfRange")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_as_long_as_the_server_says_within_reason() {
        let of = |expire_time| life(&BotSession { expire_time, ..BotSession::default() });
        let from_now = |seconds: i64| {
            let now = at(SystemTime::now());
            Some(Timestamp { seconds: now.seconds + seconds, nanos: 0 })
        };
        assert_eq!(of(None), LIFE);
        let near = of(from_now(30));
        assert!(near > Duration::from_secs(28) && near <= Duration::from_secs(30), "{near:?}");
        assert_eq!(of(from_now(-3600)), Duration::from_secs(5), "another clock");
        assert_eq!(of(from_now(1 << 30)), 10 * LIFE);
    }

    #[test]
    fn a_worker_that_leaves_gives_back_what_has_no_result() {
        let lease = |id: &str, state: LeaseState| Lease { id: id.into(), state: state as i32, ..Lease::default() };
        let all = [LeaseState::Pending, LeaseState::Active, LeaseState::Completed].map(|state| lease("a", state));
        let mut session = BotSession { leases: all.to_vec(), ..BotSession::default() };
        give_back(&mut session);
        let codes = session.leases.iter().map(|lease| lease.status.as_ref().map(|status| status.code));
        let leaves = Some(Code::Unavailable as i32);
        assert_eq!(codes.collect::<Vec<_>>(), [leaves, leaves, None]);
        assert!(session.leases.iter().all(|lease| lease.state == LeaseState::Completed as i32));
    }

    #[test]
    fn only_what_may_change_is_waited_for() {
        let status = |code: Code| failed("CreateBotSession")(Status::new(code, "why"));
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Internal] {
            assert!(may_come_back(&status(code)), "{code:?}");
        }
        for code in [Code::PermissionDenied, Code::Unauthenticated, Code::InvalidArgument, Code::NotFound] {
            assert!(!may_come_back(&status(code)), "{code:?}");
        }
        assert!(may_come_back(&RemoteError::Connect("refused".into())) && !may_come_back(&RemoteError::Exposed));
    }
}
