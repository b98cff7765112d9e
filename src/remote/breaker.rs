//! Counts errors of the server, reports the first one, and stops using the server after several in a row.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::RemoteError;

/// The number of errors in a row after which the server is not used again.
pub(crate) const MOST: u32 = 3;

/// Hears of the first error. Returns false for one that was reported elsewhere: then it hears of the next one as well.
pub(crate) type Report = Box<dyn Fn(&RemoteError) -> bool + Send + Sync>;

pub(crate) struct Breaker {
    report: Report,
    /// The number of errors since the last success, and whether an error was reported.
    errors: Mutex<(u32, bool)>,
    is_open: AtomicBool,
}

impl Breaker {
    pub(crate) fn new(report: Report) -> Breaker {
        Breaker { report, errors: Mutex::default(), is_open: AtomicBool::new(false) }
    }

    /// Whether the server is not used again.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// The server is not used again, for a reason that was reported.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    pub(crate) fn success(&self) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).0 = 0;
    }

    /// Counts an error. Reports it if none was reported.
    pub(crate) fn failure(&self, error: &RemoteError) {
        let count = {
            let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            errors.0 += 1;
            errors.0
        };
        if count >= MOST || error.is_final() {
            self.is_open.store(true, Ordering::Relaxed);
        }
        self.say(error);
    }

    /// Reports an error that is none of the server, if none was reported.
    pub(crate) fn say(&self, error: &RemoteError) {
        let said = |is: bool| {
            let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut errors.1, is)
        };
        if !said(true) && !(self.report)(error) {
            said(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn it_opens_after_errors_in_a_row_or_a_final_one_and_reports_once() {
        let heard = Arc::new(Mutex::new(vec![]));
        let breaker = || {
            let heard = heard.clone();
            Breaker::new(Box::new(move |error: &RemoteError| {
                // Another breaker has reported that nobody answers.
                let is_new = *error != RemoteError::Gone;
                heard.lock().unwrap().extend(is_new.then(|| error.clone()));
                is_new
            }))
        };
        let late = RemoteError::Late { method: "m", seconds: 1 };
        let one = breaker();
        one.failure(&RemoteError::Gone);
        one.success();
        (0..MOST - 1).for_each(|_| one.failure(&late));
        one.success();
        (0..MOST - 1).for_each(|_| one.failure(&late));
        assert!(!one.is_open());
        one.failure(&late);
        assert!(one.is_open());
        assert_eq!(*heard.lock().unwrap(), std::slice::from_ref(&late));
        let third = breaker();
        (0..MOST).for_each(|_| third.say(&late));
        assert!(!third.is_open());
        assert_eq!(*heard.lock().unwrap(), [late.clone(), late]);
        let other = breaker();
        other.failure(&RemoteError::Exposed);
        assert!(other.is_open());
    }
}
