//! Decides which steps are at work for a device: a limited number at once, while the others wait with their inputs staged. Knows devices by UUID; does not know
//! what the steps do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The interval at which a waiting step checks whether it was interrupted.
const TICK: Duration = Duration::from_millis(50);

/// The turns on all devices.
#[derive(Debug, Default)]
pub(super) struct Turns {
    taken: Mutex<BTreeMap<String, Line>>,
    moved: Condvar,
}

/// The steps at one device. A step draws a number, and works when fewer steps than the limit are here with lower numbers.
#[derive(Debug, Default)]
struct Line {
    drawn: u64,
    /// The numbers of the steps at work and of those that wait, in ascending order.
    here: Vec<u64>,
}

/// A place at a device, held until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    at: String,
    number: u64,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Line>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than `most` of the earlier steps are here; returns none once `interrupted` is set. `most` is asked again and again, with the number of
    /// steps that are here.
    pub(super) fn take(&self, device: &str, most: &dyn Fn(usize) -> u32, interrupted: &AtomicBool) -> Option<Turn<'_>> {
        let at = device.to_string();
        let mut taken = self.lock();
        let line = taken.entry(at.clone()).or_default();
        line.drawn += 1;
        let number = line.drawn;
        line.here.push(number);
        // Leaves the line on every return.
        let turn = Turn { turns: self, at, number };
        loop {
            let here = taken.get(&turn.at).map(|line| line.here.as_slice()).unwrap_or_default();
            let before = here.iter().filter(|other| **other < number).count();
            if before < most(here.len()) as usize {
                drop(taken);
                return Some(turn);
            }
            if interrupted.load(Ordering::Relaxed) {
                drop(taken);
                return None;
            }
            taken = self.moved.wait_timeout(taken, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.lock();
        if let Some(line) = taken.get_mut(&self.at) {
            line.here.retain(|number| *number != self.number);
        }
        drop(taken);
        self.turns.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    static GOING_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn so_many_are_at_work_for_a_device_and_who_came_first_is_next() {
        let turns = Turns::default();
        let take = |device: &str| turns.take(device, &|_| 2, &GOING_ON).unwrap();
        let (first, second) = (take("gpu-0"), take("gpu-0"));
        // Other devices have lines of their own.
        let _others = (take("gpu-1"), take("gpu-2"));
        let waiting = || turns.lock()["gpu-0"].here.len() - 2;
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for name in ["third", "fourth"] {
                let (tell, take) = (tell.clone(), &take);
                let there = waiting();
                scope.spawn(move || {
                    let turn = take("gpu-0");
                    tell.send((name, turn)).unwrap();
                });
                while waiting() == there {
                    std::thread::yield_now();
                }
            }
            assert!(told.try_recv().is_err(), "two are at work");
            drop(second);
            let (name, third) = told.recv().unwrap();
            assert_eq!(name, "third");
            assert!(told.recv_timeout(2 * TICK).is_err(), "two are at work again");
            drop((first, third));
            assert_eq!(told.recv().unwrap().0, "fourth");
        });
    }

    #[test]
    fn one_that_is_interrupted_leaves_the_line() {
        let turns = Turns::default();
        let first = turns.take("gpu-0", &|_| 1, &GOING_ON).unwrap();
        assert!(turns.take("gpu-0", &|_| 1, &AtomicBool::new(true)).is_none());
        drop(first);
        assert!(turns.take("gpu-0", &|_| 1, &GOING_ON).is_some());
    }

    #[test]
    fn the_limit_is_asked_again_while_a_step_waits() {
        let (turns, limit) = (Turns::default(), std::sync::atomic::AtomicU32::new(1));
        let most = |_: usize| limit.load(Ordering::Relaxed);
        let first = turns.take("gpu-0", &most, &GOING_ON).unwrap();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (tell, turns, most) = (tell.clone(), &turns, &most);
                scope.spawn(move || tell.send(turns.take("gpu-0", most, &GOING_ON).unwrap()).unwrap());
            }
            assert!(told.recv_timeout(2 * TICK).is_err(), "one is at work");
            limit.store(3, Ordering::Relaxed);
            let both = [told.recv().unwrap(), told.recv().unwrap()];
            drop((first, both));
        });
    }
}
