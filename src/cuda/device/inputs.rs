//! Inputs as bytes, made once per process for all variants that run on them. Knows trials and what a process keeps, but not devices.
//!
//! Without this, a worker that verifies and times the variants of one operator would draw the same numbers for each variant. Inputs that depend on files of the
//! package are not kept, because these may change between two steps.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::own_kernels;
use kforge_foundation::base::Digest;
use kforge_harness::message::Response;
use kforge_harness::oracle::Source;
use kforge_harness::task::{Task, failed};
use kforge_numerics::reference::float::encode_strided;
use kforge_types::model::{Problem, Role, Tensor};
use kforge_types::record::params::Trial;

/// The most bytes that a process keeps, not counting those of the current step.
const KEPT: u64 = 2 << 30;

/// The contents of a tensor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TensorBytes {
    /// The name of the contents: a digest of the bytes.
    pub(super) name: String,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// The sum of the bytes, salted with [`salt`].
    pub(super) sum: u64,
}

/// The contents of every tensor that a kernel reads, by name.
pub(super) type Inputs = BTreeMap<String, Arc<TensorBytes>>;

static MADE: Mutex<Vec<(Digest, Arc<Inputs>)>> = Mutex::new(vec![]);

/// The salt of sums: only this process knows it.
pub(super) fn salt() -> u64 {
    static SALT: OnceLock<u64> = OnceLock::new();
    *SALT.get_or_init(secret)
}

/// A number that only this process knows.
pub(super) fn secret() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Numbers that only this process knows, for what a candidate must not foresee.
pub(super) struct Luck(u64);

impl Luck {
    /// A sequence of its own.
    pub(super) fn new() -> Self {
        Luck(secret())
    }

    /// The next number below `below`.
    pub(super) fn below(&mut self, below: u64) -> u64 {
        self.0 = another(self.0);
        self.0 % below
    }
}

/// The next number of a sequence that cannot be predicted without the first number (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014).
fn another(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl TensorBytes {
    /// Creates contents from bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        TensorBytes { name: Digest::of_long(&bytes).to_string(), sum: own_kernels::checksum(&bytes, salt()), bytes }
    }
}

/// The inputs of a trial.
pub(super) fn inputs(task: &Task, problem: &Problem, trial: &Trial) -> Result<Arc<Inputs>, Response> {
    let name = serde_json::to_vec(&(problem, trial)).map_err(|e| failed(e.to_string()))?;
    let name = Digest::of(&name);
    let lock = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = {
        let mut made = lock();
        let at = made.iter().position(|(of, _)| *of == name);
        at.map(|at| {
            let found = made.remove(at);
            made.push(found.clone());
            found.1
        })
    };
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let made = unkept(task, problem, trial)?;
    if !problem.has_own_inputs() {
        let mut all = lock();
        all.push((name, Arc::clone(&made)));
        while all.len() > 1 && all.iter().map(|(_, inputs)| bytes(inputs)).sum::<u64>() > KEPT {
            all.remove(0);
        }
    }
    Ok(made)
}

/// Makes the inputs of these trials before the device is locked, if all of them can be kept.
pub(super) fn ahead(task: &Task, problem: &Problem, trials: &[Trial]) -> Result<(), Response> {
    let read = problem.tensors.iter().filter(|tensor| tensor.role != Role::Output);
    let all = read.map(Tensor::bytes).sum::<u64>().saturating_mul(trials.len() as u64);
    if !problem.has_own_inputs() && all <= KEPT / 2 {
        trials.iter().try_for_each(|trial| inputs(task, problem, trial).map(drop))?;
    }
    Ok(())
}

/// The inputs of a trial, without keeping them for other steps.
pub(super) fn unkept(task: &Task, problem: &Problem, trial: &Trial) -> Result<Arc<Inputs>, Response> {
    let values = Source::new(task, problem).inputs(trial)?;
    let read = problem.tensors.iter().filter(|tensor| tensor.role != Role::Output);
    let read = read.filter_map(|tensor| Some((tensor, values.get(&tensor.name)?)));
    let made =
        read.map(|(tensor, values)| (tensor.name.clone(), Arc::new(TensorBytes::new(encode_strided(tensor, values)))));
    Ok(Arc::new(made.collect()))
}

fn bytes(inputs: &Inputs) -> u64 {
    inputs.values().map(|made| made.bytes.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_name_and_others_another() {
        let of = |bytes: &[u8]| TensorBytes::new(bytes.to_vec());
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]).name, of(&[2, 1]).name);
        assert_ne!(of(&[1, 2]).sum, of(&[2, 1]).sum);
        assert_ne!(secret(), secret());
    }
}
