//! The end of the service: what runs may end, within a time or until it is to end at once. What is not finished stays for the next start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Service;
use super::state::StopReason;
use kforge_foundation::base::Digest;

/// The time between two looks at what still runs.
const TICK: Duration = Duration::from_millis(20);

/// How often it is said again what still runs.
const SAID: Duration = Duration::from_secs(10);

/// Whether the service is to end. Asked once, it drains; asked again, it ends at once.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    asked: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Ending {
    /// Asks for the end. The second time, it is to come at once. Returns false if that was asked for before.
    pub fn ask(&self) -> bool {
        !self.asked.swap(true, Ordering::SeqCst) || !self.at_once.swap(true, Ordering::SeqCst)
    }

    /// Whether the service is to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether it is to end at once.
    pub fn is_at_once(&self) -> bool {
        self.at_once.load(Ordering::SeqCst)
    }
}

impl Service {
    /// Accepts no more tasks, waits until those that run have ended, at most so long, and ends the threads. What is not finished stays for the next start. `says`
    /// hears at the beginning and every ten seconds how many evaluations still run, if there are any.
    ///
    /// If `ending` is at once, evaluations that run are left without an end, and none of them counts this as an attempt.
    pub fn drain(&self, longest: Duration, ending: &Ending, says: &dyn Fn(usize)) {
        self.stop_accepting();
        let until = Instant::now() + longest;
        let mut said: Option<Instant> = None;
        let mut say = |running: usize| {
            if running > 0 && said.is_none_or(|said| said.elapsed() >= SAID) {
                said = Some(Instant::now());
                says(running);
            }
        };
        let mut inner = self.lock();
        while inner.state.running() > 0 && Instant::now() < until && !ending.is_at_once() {
            let running = inner.state.running();
            drop(inner);
            say(running);
            let waited = self.work.wait_timeout(self.lock(), TICK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for stop in inner.state.entries.values().filter_map(|entry| entry.running.as_ref()) {
            stop.set(StopReason::Drained);
        }
        drop(inner);
        self.ended.store(true, Ordering::SeqCst);
        self.closing.send_replace(true);
        self.work.notify_all();
        let mut threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // A download of a toolchain, for example, is not stopped.
        while !threads.is_empty() {
            if ending.is_at_once() {
                return self.leave();
            }
            let (over, rest): (Vec<_>, Vec<_>) = threads.into_iter().partition(|thread| thread.is_finished());
            threads = rest;
            for thread in over {
                // A panic there is a bug that has been printed.
                drop(thread.join());
            }
            say(self.lock().state.running());
            std::thread::sleep(TICK);
        }
    }

    /// Leaves what runs to the next start.
    fn leave(&self) {
        let running: Vec<Digest> = {
            let inner = self.lock();
            let running = inner.state.entries.iter().filter(|(_, entry)| entry.running.is_some());
            running.map(|(content, _)| *content).collect()
        };
        running.into_iter().for_each(|content| self.put_back(content));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_asked_for_twice() {
        let ending = Ending::default();
        assert!(!ending.is_asked() && ending.ask());
        assert!(ending.is_asked() && !ending.is_at_once() && ending.ask());
        assert!(ending.is_at_once() && !ending.ask());
    }
}
