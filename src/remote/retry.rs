//! How often a request is sent, and how many at once.
//!
//! An error that may go away is retried after a moment, which grows. A server that refuses for want of resources gets fewer requests at once: BuildGrid refuses
//! beyond a fixed number, and an error is no miss.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Code, Status};

use super::error::RemoteError;

/// How many requests are in flight at first, and at most.
const FIRST: usize = 16;
const MOST: usize = 64;
/// After this many successes one more request may be in flight.
const STEP: usize = 4;
/// How often a request is sent.
const ATTEMPTS: u32 = 3;
/// The wait before the second attempt. It is four times as long before each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Bounds how many requests are in flight.
pub(crate) struct Limiter {
    permits: Semaphore,
    state: std::cell::Cell<(usize, usize)>,
}

impl Limiter {
    pub(crate) fn new() -> Limiter {
        Limiter { permits: Semaphore::new(FIRST), state: std::cell::Cell::new((FIRST, 0)) }
    }

    async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.permits.acquire().await.ok()
    }

    fn succeeded(&self) {
        let (limit, successes) = self.state.get();
        match limit < MOST && successes + 1 >= STEP {
            true => {
                self.permits.add_permits(1);
                self.state.set((limit + 1, 0));
            }
            false => self.state.set((limit, successes + 1)),
        }
    }

    fn refused(&self) {
        let (limit, _) = self.state.get();
        let removed = self.permits.forget_permits(limit / 2);
        self.state.set((limit - removed, 0));
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
        let permit = limiter.enter().await;
        let answer = within(timeout, method, send()).await?;
        drop(permit);
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
                if status.code() == Code::ResourceExhausted {
                    limiter.refused();
                }
                if attempt >= ATTEMPTS || !may_go_away(status.code()) {
                    return Err(failed(method)(status));
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause *= 4;
    }
    Ok(None)
}

fn may_go_away(code: Code) -> bool {
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
    move |status| RemoteError::Status {
        method,
        code: format!("{:?}", status.code()),
        message: status.message().trim().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn run(answers: &[Result<u8, Code>]) -> (Result<Option<u8>, RemoteError>, usize, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (limiter, at) = (Limiter::new(), Cell::new(0));
        let send = || {
            at.set(at.get() + 1);
            std::future::ready(answers[at.get() - 1].map_err(|code| Status::new(code, " why ")))
        };
        let result = runtime.block_on(sent(&limiter, Duration::from_secs(1), "M", send));
        (result, at.get(), limiter.state.get().0)
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
            assert_eq!((limiter.state.get().0, limiter.permits.available_permits()), (MOST, MOST));
            let never = || std::future::pending::<Result<(), Status>>();
            let late = sent(&limiter, Duration::from_secs(7), "M", never).await;
            assert_eq!(late, Err(RemoteError::Late { method: "M", seconds: 7 }));
        });
    }
}
