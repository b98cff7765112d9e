//! How often a request is sent, and how many at once.
//!
//! An error that may go away is retried after a moment, which grows. A server that refuses for want of resources gets fewer requests at once: BuildGrid refuses
//! beyond a fixed number, and an error is no miss.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::error::RemoteError;

/// How many requests are in flight at first, and at most: fewer than the hundred streams of a connection that HTTP/2 recommends servers to allow.
const FIRST: usize = 16;
const MOST: usize = 96;
/// After this many successes one more request may be in flight.
const STEP: usize = 4;
/// How often a request is sent, and how often while the server lacks resources.
const ATTEMPTS: u32 = 3;
const ATTEMPTS_WHILE_BUSY: u32 = 8;
/// The most characters of a server's text that are shown.
const LONGEST_TEXT: usize = 300;
/// The wait before the second attempt. It doubles before each further one, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Bounds how many requests are in flight.
pub(crate) struct Limiter {
    limit: Cell<usize>,
    in_flight: Cell<usize>,
    /// The successes since the limit last changed.
    successes: Cell<usize>,
    /// When the limit was last halved. Requests that were sent before are refused for the same reason.
    halved: Cell<Option<Instant>>,
    left: Notify,
}

/// A request in flight.
struct Flight<'l>(&'l Limiter);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.left.notify_one();
    }
}

impl Limiter {
    pub(crate) fn new() -> Limiter {
        let (limit, none) = (Cell::new(FIRST), || Cell::new(0));
        Limiter { limit, in_flight: none(), successes: none(), halved: Cell::new(None), left: Notify::new() }
    }

    async fn enter(&self) -> Flight<'_> {
        while self.in_flight.get() >= self.limit.get() {
            self.left.notified().await;
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Flight(self)
    }

    fn succeeded(&self) {
        self.successes.set(self.successes.get() + 1);
        if self.successes.get() >= STEP && self.limit.get() < MOST {
            self.limit.set(self.limit.get() + 1);
            self.successes.set(0);
            self.left.notify_one();
        }
    }

    fn refused(&self, sent: Instant) {
        if self.halved.get().is_none_or(|halved| sent > halved) {
            self.limit.set((self.limit.get() / 2).max(1));
            self.successes.set(0);
            self.halved.set(Some(Instant::now()));
        }
    }
}

/// Sends a request until it succeeds, or fails for good. `send` sends it once. None if the server does not have what is asked for.
pub(crate) async fn sent<T, F>(
    limiter: &Limiter,
    timeout: Duration,
    method: &'static str,
    mut send: impl FnMut() -> F,
) -> Result<Option<T>, RemoteError>
where
    F: Future<Output = Result<T, Status>>,
{
    let mut pause = PAUSE;
    for attempt in 1.. {
        let flight = limiter.enter().await;
        let began = Instant::now();
        let answer = within(timeout, method, send()).await?;
        drop(flight);
        match answer {
            Ok(answer) => {
                limiter.succeeded();
                return Ok(Some(answer));
            }
            Err(status) if status.code() == Code::NotFound => {
                limiter.succeeded();
                return Ok(None);
            }
            Err(status) => {
                let is_busy = status.code() == Code::ResourceExhausted;
                if is_busy {
                    limiter.refused(began);
                }
                let most = if is_busy { ATTEMPTS_WHILE_BUSY } else { ATTEMPTS };
                if attempt >= most || !may_go_away(status.code()) {
                    return Err(failed(method)(status));
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(None)
}

/// Whether an error may go away if the same request is sent again.
pub(crate) fn may_go_away(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::ResourceExhausted | Code::Aborted | Code::Internal | Code::Unknown)
}

/// What a future gives, unless it takes longer than `timeout`.
pub(crate) async fn within<T>(
    timeout: Duration,
    method: &'static str,
    future: impl Future<Output = T>,
) -> Result<T, RemoteError> {
    let late = |_| RemoteError::Late { method, seconds: timeout.as_secs().max(1) };
    tokio::time::timeout(timeout, future).await.map_err(late)
}

/// The error for a status.
pub(crate) fn failed(method: &'static str) -> impl Fn(Status) -> RemoteError {
    move |status| RemoteError::Status { method, code: format!("{:?}", status.code()), message: plain(status.message()) }
}

/// The server's text as one line for a terminal.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_TEXT).collect();
    text.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(answers: &[Result<u8, Code>]) -> (Result<Option<u8>, RemoteError>, usize, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (limiter, at) = (Limiter::new(), Cell::new(0));
        let send = || {
            at.set(at.get() + 1);
            std::future::ready(answers[at.get() - 1].map_err(|code| Status::new(code, " why\u{1b} ")))
        };
        let result = runtime.block_on(sent(&limiter, Duration::from_secs(1), "M", send));
        (result, at.get(), limiter.limit.get())
    }

    #[test]
    fn errors_that_may_go_away_are_retried_and_others_are_not() {
        assert_eq!(run(&[Ok(1)]), (Ok(Some(1)), 1, FIRST));
        assert_eq!(run(&[Err(Code::NotFound)]), (Ok(None), 1, FIRST));
        assert_eq!(run(&[Err(Code::Unavailable), Err(Code::Internal), Ok(2)]), (Ok(Some(2)), 3, FIRST));
        let refused =
            |method, code: Code| RemoteError::Status { method, code: format!("{code:?}"), message: "why".into() };
        assert_eq!(run(&[Err(Code::PermissionDenied)]), (Err(refused("M", Code::PermissionDenied)), 1, FIRST));
        assert_eq!(run(&[Err(Code::Aborted); 3]), (Err(refused("M", Code::Aborted)), 3, FIRST));
        assert_eq!(run(&[Err(Code::ResourceExhausted), Ok(3)]), (Ok(Some(3)), 2, FIRST / 2));
    }

    #[test]
    fn a_server_that_answers_gets_more_requests_and_one_that_does_not_is_late() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let limiter = Limiter::new();
        runtime.block_on(async {
            for _ in 0..1000 {
                sent(&limiter, Duration::from_secs(1), "M", || std::future::ready(Ok(()))).await.unwrap();
            }
            assert_eq!((limiter.limit.get(), limiter.in_flight.get()), (MOST, 0));
            let never = || std::future::pending::<Result<(), Status>>();
            let late = sent(&limiter, Duration::from_secs(7), "M", never).await;
            assert_eq!(late, Err(RemoteError::Late { method: "M", seconds: 7 }));
        });
    }
}
