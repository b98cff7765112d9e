//! Inputs and expected values that a process keeps for the next variant of the same operator: making them takes longer than running many a kernel. Knows what
//! identifies them and how much is kept; makes and computes nothing.
//!
//! The values of one problem are used in the same order by each variant, so dropping those that were used longest ago would drop each just before it is needed.
//! Values of other problems are dropped instead, and what then finds no room is not kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::source::Named;
use kforge_foundation::base::Digest;
use kforge_numerics::reference::Values;
use kforge_numerics::reference::oracle::OracleOutput;

/// The inputs and the expected values of a trial.
pub type TrialValues = (Named, OracleOutput);

/// The most bytes of values that a process keeps.
const MOST: usize = 128 << 20;

struct Entry {
    problem: Digest,
    trial: Digest,
    bytes: usize,
    values: Arc<TrialValues>,
}

static KEPT: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<Entry>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values of a trial, if they are kept. `trial` identifies the inputs and the expected values.
pub(super) fn kept(trial: &Digest) -> Option<Arc<TrialValues>> {
    lock().iter().find(|entry| entry.trial == *trial).map(|entry| Arc::clone(&entry.values))
}

/// Keeps the values of a trial of a problem, if there is room beside those of the same problem.
pub(super) fn keep(problem: Digest, trial: Digest, values: &Arc<TrialValues>) {
    let mut all = lock();
    if all.iter().any(|entry| entry.trial == trial) {
        return;
    }
    let bytes = size(values);
    let own =
        |all: &[Entry]| all.iter().filter(|entry| entry.problem == problem).map(|entry| entry.bytes).sum::<usize>();
    if own(&all) + bytes > MOST {
        return;
    }
    while all.iter().map(|entry| entry.bytes).sum::<usize>() + bytes > MOST {
        let Some(oldest) = all.iter().position(|entry| entry.problem != problem) else { return };
        all.remove(oldest);
    }
    all.push(Entry { problem, trial, bytes, values: Arc::clone(values) });
}

/// The bytes that values take in memory.
fn size((inputs, expected): &TrialValues) -> usize {
    let values = inputs.values().chain(expected.outputs.values()).map(Values::len).sum::<usize>();
    8 * (values + expected.scales.values().map(Vec::len).sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_problem_stay_and_those_of_others_make_room() {
        let of = |text: &str| Digest::of(text.as_bytes());
        let values = |megabytes: usize| {
            let values = Values::Float(vec![0.0; megabytes << 17]);
            Arc::new((Named::from([("x".to_string(), values)]), OracleOutput::default()))
        };
        let is_kept = |names: &[&str]| names.iter().map(|name| kept(&of(name)).is_some()).collect::<Vec<_>>();
        let keep = |problem: &str, trial: &str, megabytes| keep(of(problem), of(trial), &values(megabytes));
        keep("shared: p", "shared: p0", 60);
        keep("shared: p", "shared: p1", 60);
        keep("shared: p", "shared: p2", 60);
        let p = ["shared: p0", "shared: p1", "shared: p2"];
        assert_eq!(is_kept(&p), [true, true, false], "what does not fit is left out, and nothing is dropped for it");
        keep("shared: q", "shared: q0", 60);
        assert_eq!(is_kept(&p), [false, true, false], "the oldest of another problem makes room");
        assert_eq!(is_kept(&["shared: q0"]), [true]);
        keep("shared: r", "shared: r0", 129);
        assert_eq!(is_kept(&["shared: p1", "shared: q0", "shared: r0"]), [true, true, false]);
    }
}
