//! The trials of a verification that nobody knew before it. Their seeds come from the system's entropy, drawn after the verification was planned. Knows
//! tasks, seeds and expected values; does not run or compare anything.
//!
//! Expected values may take longer to compute than a kernel to run, so verifications in one process share a draw if they verify on the same problem. The rule
//! that keeps this sound: a draw serves only steps that were planned before it. What such a step executes follows from sources that were known then. Candidate
//! code that was planned later could have been chosen by somebody who saw what an earlier candidate reported of these inputs. A draw never leaves its process,
//! except as the seed in an observation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::message::Response;
use crate::oracle::{Source, TrialValues};
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_numerics::reference::fresh;
use kforge_types::model::Problem;
use kforge_types::record::params::{Expected, Trial, VerifyParams};
use kforge_types::record::{Fresh, FreshTrial};

/// The most draws that a process remembers.
const KEPT: usize = 256;

/// A draw, for every verification of one problem.
#[derive(Debug, Clone)]
struct Draw {
    /// Identifies the problem, its reference and what of its values is needed.
    of: Digest,
    at: SystemTime,
    seeds: Vec<u64>,
    /// The digests of expected values of the first trials.
    expected: Vec<Expected>,
}

static DRAWN: Mutex<Vec<Draw>> = Mutex::new(Vec::new());

/// The fresh trials of one verification.
#[derive(Debug, Clone)]
pub struct FreshTrials {
    of: Digest,
    seeds: Vec<u64>,
    trials: Vec<Trial>,
    scaled: bool,
}

/// Why a fresh trial has no expected values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotComputed {
    /// The reference failed, or the trial does not suit the problem.
    #[error("{message}")]
    Failed {
        /// What the reference reported.
        message: String,
    },
    /// This machine cannot run the reference.
    #[error("{why}")]
    Unavailable {
        /// What is missing.
        why: String,
    },
    /// The values were computed and could not be stored, which says nothing of the reference.
    #[error("{message}")]
    NotKept {
        /// What the system reported.
        message: String,
    },
    /// The reference answered as a whole step does: a bug.
    #[error("BUG: the reference ended a step: {summary}")]
    Ended {
        /// What the step reported.
        summary: String,
    },
}

impl From<Response> for NotComputed {
    fn from(response: Response) -> Self {
        match response {
            Response::Failed { message, .. } => NotComputed::Failed { message },
            Response::Unavailable { why } | Response::NeedsTool { why, .. } => NotComputed::Unavailable { why },
            Response::Done { summary, .. } => NotComputed::Ended { summary },
        }
    }
}

impl NotComputed {
    /// The same fault of the system's store.
    fn not_kept(self) -> Self {
        NotComputed::NotKept { message: self.to_string() }
    }
}

/// The expected values of a trial: their digests, and the inputs and values if they were computed just now.
pub type Computed = (Expected, Option<TrialValues>);

impl FreshTrials {
    /// Draws the trials of a verification, or takes a draw that is younger than the plan of the verification. Errors: the system gives no random numbers.
    pub fn draw(task: &Task, params: &VerifyParams) -> Result<Self, Response> {
        Self::drawn(task, params, "", &fresh::numbers)
    }

    /// A trial of a stress class for launches among timed ones; none if no stress class suits the problem. No verification runs on it, so that a kernel cannot
    /// have met it before. Errors: those of [`FreshTrials::draw`].
    pub fn stress(task: &Task, params: &VerifyParams) -> Result<Option<Self>, Response> {
        match fresh::classes(&params.problem).is_empty() {
            true => Ok(None),
            false => Self::drawn(task, params, "stress", &fresh::stress_number).map(Some),
        }
    }

    /// The trials whose inputs timed launches have, two of them. A kernel that knows the fixed trials cannot be fast on them alone. Errors: those of
    /// [`FreshTrials::draw`].
    pub fn timed(task: &Task, params: &VerifyParams) -> Result<Self, Response> {
        Self::drawn(task, params, "timed", &|_, random| fresh::timed_numbers(&params.trials, random))
    }

    /// Draws numbers for a purpose, or takes a draw for it that is younger than the step's plan.
    fn drawn(
        task: &Task,
        params: &VerifyParams,
        purpose: &str,
        numbers: &dyn Fn(&Problem, [u64; 4]) -> Vec<u64>,
    ) -> Result<Self, Response> {
        let cannot = |e: &dyn std::fmt::Display| failed(format!("cannot draw a fresh trial: {e}"));
        let input = |name: &str| task.spec.inputs.get(name).and_then(|input| input.digest);
        let of = ["tree:reference", "tree:inputs", "toolchain:python", "toolchain:torch", "toolchain:c++"].map(input);
        let scaled = !params.scaled.is_empty();
        let of = serde_json::to_vec(&(&params.problem, scaled, of, purpose)).map_err(|e| cannot(&e))?;
        let of = Digest::of(&of);
        let mut all = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|draw| draw.of == of && task.planned < draw.at).map(|draw| draw.seeds.clone());
        let seeds = match known {
            Some(seeds) => seeds,
            None => {
                let mut random = [0; 4];
                for word in &mut random {
                    *word = getrandom::u64().map_err(|e| cannot(&e))?;
                }
                let seeds = numbers(&params.problem, random);
                all.retain(|draw| draw.of != of);
                if all.len() >= KEPT {
                    all.remove(0);
                }
                all.push(Draw { of, at: SystemTime::now(), seeds: seeds.clone(), expected: vec![] });
                seeds
            }
        };
        let first = params.trials.len() as u32;
        let trials = (first..).zip(&seeds).map(|(at, seed)| fresh::private(&params.problem, at, *seed)).collect();
        Ok(FreshTrials { of, seeds, trials, scaled })
    }

    /// The trials, with the numbers that follow those of the other trials.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The trial at that position, and the seed that was drawn for it.
    pub fn trial(&self, at: usize) -> (Trial, u64) {
        (self.trials[at].clone(), self.seeds[at])
    }

    /// The trials as an observation names them.
    pub fn observed(&self) -> Fresh {
        let of = |(trial, seed): (&Trial, &u64)| FreshTrial {
            trial: trial.trial,
            seed: *seed,
            distribution: trial.distribution.clone(),
        };
        Fresh::Drawn(self.trials.iter().zip(&self.seeds).map(of).collect())
    }

    /// The expected values of the trial at that position; positions must be asked for in order. Errors: why the reference gives none.
    pub fn expected(&self, at: usize, source: &Source<'_>) -> Result<Computed, NotComputed> {
        let known = |all: &[Draw]| {
            let draw = all.iter().find(|draw| draw.of == self.of && draw.seeds == self.seeds);
            draw.and_then(|draw| draw.expected.get(at).cloned())
        };
        if let Some(expected) = known(&DRAWN.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok((expected, None));
        }
        let inputs = source.inputs(&self.trials[at])?;
        let output = source.expected(&inputs, self.scaled)?;
        let expected = source.keep(&output).map_err(|response| NotComputed::from(response).not_kept())?;
        let mut all = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
        let draw = all.iter_mut().find(|draw| draw.of == self.of && draw.seeds == self.seeds);
        if let Some(draw) = draw.filter(|draw| draw.expected.len() == at) {
            draw.expected.push(expected.clone());
        }
        Ok((expected, Some((inputs, output))))
    }

    /// The inputs and expected values of the trial at that position.
    pub fn held(&self, at: usize, source: &Source<'_>) -> Result<Arc<TrialValues>, NotComputed> {
        Ok(match self.expected(at, source)? {
            (expected, Some(held)) => source.share(&self.trials[at], &expected, held)?,
            (expected, None) => source.whole(&self.trials[at], &expected)?,
        })
    }
}

/// The trial of one timed call, and the number that was drawn for it: of the distribution of one of the first two fixed trials, or of a stress class. No other
/// call has its inputs, and no other process can know them.
///
/// # Errors
/// The system gives no random numbers.
pub fn of_call(params: &VerifyParams, trial: u32, stressed: bool) -> Result<(Trial, u64), Response> {
    let random = [drawn()?, drawn()?, drawn()?, drawn()?];
    let numbers = match stressed {
        true => fresh::stress_number(&params.problem, random),
        false => fresh::timed_numbers(&params.trials, random),
    };
    let number = numbers.get(trial as usize % numbers.len().max(1)).copied();
    let number = number.ok_or_else(|| failed("a problem without trials has no inputs"))?;
    Ok((fresh::private(&params.problem, trial, number), number))
}

/// This many of `of` positions, by chance.
///
/// # Errors
/// The system gives no random numbers.
pub fn chosen(of: usize, many: usize) -> Result<BTreeSet<usize>, Response> {
    let mut left: Vec<usize> = (0..of).collect();
    let mut all = BTreeSet::new();
    while all.len() < many.min(of) {
        all.insert(left.swap_remove(drawn()? as usize % left.len()));
    }
    Ok(all)
}

fn drawn() -> Result<u64, Response> {
    getrandom::u64().map_err(|e| failed(format!("cannot draw a trial: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Reference, Role, Tensor};
    use kforge_types::record::testing::verification;

    #[test]
    fn positions_are_chosen_once_each() {
        let all = chosen(9, 5).unwrap();
        assert!(all.len() == 5 && all.iter().all(|at| *at < 9), "{all:?}");
        assert_eq!(chosen(3, 7).unwrap(), [0, 1, 2].into());
        let many: BTreeSet<BTreeSet<usize>> = (0..40).map(|_| chosen(20, 3).unwrap()).collect();
        assert!(many.len() > 10, "{many:?}");
    }

    #[test]
    fn each_timed_call_has_inputs_of_its_own_distribution_and_seed() {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[8]);
        let tensors = vec![tensor("x", Role::Input), tensor("y", Role::Output)];
        let problem = Problem::of(tensors, Reference::builtin("sum", &[]));
        let trial = |trial, distribution: &str| Trial { trial, seed: 1, distribution: distribution.into() };
        let trials = vec![trial(0, "normal"), trial(1, "wide"), trial(2, "large")];
        let params = VerifyParams { trials, ..verification("sm_90a", problem) };
        let calls: Vec<(Trial, u64)> = (3..13).map(|at| of_call(&params, at, false).unwrap()).collect();
        let seeds: BTreeSet<u64> = calls.iter().map(|(trial, _)| trial.seed).collect();
        let names: BTreeSet<&str> = calls.iter().map(|(trial, _)| &*trial.distribution).collect();
        assert_eq!((seeds.len(), names), (10, ["normal", "wide"].into()));
        // An overlay repeats a call by its number.
        assert!(calls.iter().all(|(trial, number)| fresh::private(&params.problem, trial.trial, *number) == *trial));
        let (stressed, _) = of_call(&params, 3, true).unwrap();
        assert!(fresh::STRESS.contains(&&*stressed.distribution), "{stressed:?}");
    }

    #[test]
    fn a_reason_is_what_the_reference_reported() {
        let said = |response: Response| NotComputed::from(response).to_string();
        assert_eq!(said(failed("`ref.py::f` raised")), "`ref.py::f` raised");
        assert_eq!(said(Response::Unavailable { why: "no Python".into() }), "no Python");
    }
}
