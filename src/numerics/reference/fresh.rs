//! Trials that nobody can know in advance, and the stress classes that only they use. Knows problems and numbers; where a number comes from is the caller's
//! business: a verification draws it from the system's entropy, an overlay states it.
//!
//! | class | floats | catches |
//! |---|---|---|
//! | `tiny` | rows near a small constant of the operator or near its root (2^-20, 2^-10 without one); some elements subnormal | an epsilon beside the root, flushed values |
//! | `ties` | three values in all of a tensor, drawn anew for each trial: multiples of an eighth, see [`eighths`] | an order that depends on which of two equal values comes first |
//! | `limits` | as `normal`; integers near both ends of their type | integers that pass through floats, limits that are not those of the type |
//!
//! `tiny` applies to the largest inputs and to positive ones; others are as `normal`, so that no small weight hides the values that it weighs. Subnormal
//! elements occur only where a built-in cannot divide by them. `limits` suits only built-ins that select or move values. Inputs that a function of the
//! package makes know no stress class.
//!
//! A number from [`FRESH`] on states its distribution in bits 56 to 61, so that an overlay repeats a trial from the number only.

use super::bind::Bound;
use super::cost;
use super::float::exp2i;
use super::generate::{self, DISTRIBUTIONS};
use super::values::logical_shape;
use kforge_foundation::base::Digest;
use kforge_types::model::{DType, Init, Problem, Reference, Tensor};
use kforge_types::record::params::Trial;

/// The stress classes. Their order is that of the bits in numbers, so new classes are added at the end.
pub const STRESS: [&str; 3] = ["tiny", "ties", "limits"];

/// The least number that states its distribution, and the least that is drawn for a verification.
pub const FRESH: u64 = 1 << 62;

/// The lowest bit of a distribution in a number.
const CLASS: u32 = 56;

/// Scalar operations up to which every stress class has a trial of its own. Larger problems have one trial, of a class that is drawn.
const EVERY_CLASS: f64 = 3e6;

/// The built-ins that select or move values, so that integers near the limits of their type cannot overflow.
const MOVES_VALUES: [&str; 8] = ["argmax", "argmin", "embedding", "gather", "max", "max_pool2d", "min", "transpose"];

/// The built-ins' own values of `eps`, if an operator states none.
const USUAL_EPS: [(&str, f64); 3] = [("rms_norm", 1e-6), ("layer_norm", 1e-5), ("batch_norm", 1e-5)];

/// The seed of a trial: a digest of everything in a problem, and of a private number. So no two contracts or shapes share inputs, and no seed is known before
/// the manifest is.
pub fn seed(problem: &Problem, private: Option<u64>) -> u64 {
    let said =
        serde_json::to_vec(&("seed of trials", problem, private)).expect("BUG: a problem that does not serialise");
    let digest = Digest::of(&said).hex();
    u64::from_str_radix(&digest[..16], 16).expect("BUG: a digest is written in hexadecimal digits")
}

/// The trial of a private number. Its distribution is the one that the number states, or otherwise the next in turn.
pub fn private(problem: &Problem, trial: u32, number: u64) -> Trial {
    let ordinary = generate::distributions(problem);
    let stated = (number >= FRESH).then_some((number >> CLASS) as usize & 0x3f).and_then(name);
    let suits = |name: &&str| ordinary.contains(name) || classes(problem).contains(name);
    let distribution = stated.filter(suits).unwrap_or(ordinary[trial as usize % ordinary.len()]).to_owned();
    Trial { trial, seed: seed(problem, Some(number)), distribution }
}

/// The numbers of a verification's own trials, from random words.
pub fn numbers(problem: &Problem, random: [u64; 4]) -> Vec<u64> {
    let ordinary = generate::distributions(problem);
    let stress = classes(problem);
    let [luck, words @ ..] = random;
    let any = ordinary[(luck >> 32) as usize % ordinary.len()];
    if cost::work(problem) > EVERY_CLASS {
        let one = stress.get(luck as u32 as usize % (stress.len() + 1)).unwrap_or(&any);
        return vec![number(one, words[0])];
    }
    // Each number needs bits of its own. With three words, the first serves twice.
    let all = std::iter::once(&any).chain(&stress).enumerate();
    all.map(|(at, class)| number(class, words[at % words.len()].rotate_left(at as u32))).collect()
}

/// A number of a stress class that suits the problem, from random words; of an ordinary distribution if none does.
pub fn stress_number(problem: &Problem, [luck, word, ..]: [u64; 4]) -> Vec<u64> {
    let classes = match classes(problem) {
        none if none.is_empty() => generate::distributions(problem),
        classes => classes,
    };
    vec![number(classes[luck as u32 as usize % classes.len()], word)]
}

/// The numbers of two trials that are timed, with the distributions of the first two of these trials, from random words.
pub fn timed_numbers(trials: &[Trial], [first, second, ..]: [u64; 4]) -> Vec<u64> {
    let of = |at: usize, word| Some(number(&trials.get(at).or(trials.first())?.distribution, word));
    [of(0, first), of(1, second)].into_iter().flatten().collect()
}

/// The number of a distribution, from a random word.
fn number(class: &str, word: u64) -> u64 {
    let at = DISTRIBUTIONS.iter().chain(&STRESS).position(|name| *name == class).unwrap_or(0) as u64;
    FRESH | at << CLASS | (word & ((1 << CLASS) - 1))
}

/// The distribution of that position in numbers.
fn name(at: usize) -> Option<&'static str> {
    DISTRIBUTIONS.iter().chain(&STRESS).nth(at).copied()
}

/// The stress classes that suit a problem.
pub fn classes(problem: &Problem) -> Vec<&'static str> {
    if problem.generate_inputs.is_some() {
        return vec![];
    }
    let bound = Bound::new(problem).ok();
    let drawn: Vec<(&Tensor, Init)> = problem
        .read()
        .map(|tensor| {
            let hint = bound.as_ref().and_then(|bound| bound.hint(&tensor.name)).filter(|_| tensor.init == Init::Auto);
            (tensor, hint.unwrap_or_else(|| tensor.init.clone()))
        })
        .filter(|(_, init)| matches!(init, Init::Auto | Init::Positive))
        .collect();
    let floats = drawn.iter().any(|(tensor, _)| tensor.dtype.is_float() && tensor.dtype != DType::F8e8m0);
    let integers = drawn.iter().any(|(tensor, init)| !tensor.dtype.is_float() && *init == Init::Auto);
    let moves = bound.is_some_and(|bound| MOVES_VALUES.contains(&bound.builtin.name));
    let suits = [floats, !drawn.is_empty(), integers && moves];
    STRESS.into_iter().zip(suits).filter(|(_, suits)| *suits).map(|(name, _)| name).collect()
}

/// What `tiny` is near to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The exponent of a small constant.
    at: i32,
    /// Whether some elements may be subnormal.
    subnormal: bool,
}

impl Default for Near {
    fn default() -> Self {
        Near { at: -20, subnormal: false }
    }
}

impl Near {
    /// The small constant of a problem: the built-in's `eps`, or otherwise the first param that is positive and at most a hundredth.
    pub(super) fn of(problem: &Problem) -> Self {
        let bound = Bound::new(problem).ok();
        let builtin = match &problem.reference {
            Reference::Builtin { name, .. } => Some(name.as_str()),
            Reference::Python { .. } | Reference::Torch { .. } | Reference::Cpp { .. } => None,
        };
        let usual = || USUAL_EPS.iter().find(|(name, _)| builtin == Some(name)).map(|(_, eps)| *eps);
        let stated = bound.as_ref().and_then(|bound| bound.number("eps")).or_else(usual);
        let params = problem.params.iter().filter(|param| param.dtype.is_float()).map(|param| param.value.as_f64());
        let small = stated.into_iter().chain(params).find(|value| *value > 0.0 && *value <= 0.01);
        Near {
            at: small.map_or(-20, |value| ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023),
            subnormal: builtin.is_some_and(|name| name != "elementwise"),
        }
    }

    /// The least exponent of a dtype's tiny values.
    fn least(dtype: DType) -> i32 {
        match dtype {
            DType::F64 | DType::F32 | DType::Bf16 => -60,
            DType::F16 => -22,
            DType::F8e5m2 => -14,
            DType::F8e4m3 => -7,
            _ => -1,
        }
    }

    /// A scale near the constant, or near its root, from a random word: a power of two.
    pub(super) fn scale(&self, dtype: DType, word: u32) -> f64 {
        let near = if word & 1 == 0 { self.at / 2 } else { self.at };
        exp2i((near + (word >> 1) as i32 % 3 - 1).max(Self::least(dtype)))
    }

    /// The least normal magnitude of a dtype if some of its elements are to be subnormal. Narrower types have subnormal values among the other tiny ones.
    pub(super) fn subnormal(&self, dtype: DType) -> Option<f64> {
        (self.subnormal && matches!(dtype, DType::F32 | DType::Bf16)).then(|| exp2i(-126))
    }
}

/// Whether a tensor is one of those that `tiny` makes small: the largest one that is read, or one of the same size and rank.
pub(super) fn is_main(problem: &Problem, tensor: &Tensor) -> bool {
    let size = |tensor: &Tensor| (tensor.elements(), tensor.shape.len());
    problem.read().filter(|other| other.dtype.is_float()).all(|other| size(other) <= size(tensor))
}

/// The number of the elements whose values are the same, for the rows of `tiny`.
pub(super) fn row(tensor: &Tensor) -> u64 {
    logical_shape(tensor).last().map_or(1, |n| *n as u64).max(1)
}

/// The nearest multiple of an eighth. Errors of a sum in another order are independent of each other for most inputs. For equal values they all have one sign,
/// so that a tolerance for sums of other inputs would accuse an honest kernel. Sums of a hundred thousand such eighths are exact in `f32`
/// in every order.
pub(super) fn eighths(value: f64) -> f64 {
    (8.0 * value).round_ties_even() / 8.0
}

/// Which of the three values of `ties` an element has. Positions have fixed values at a stride that rarely divides an extent, so that neither a row nor a
/// column has equal values only.
pub(super) fn tie(index: u64, drawn: u64) -> u64 {
    match index % 13 {
        at @ 0..=5 => at % 3,
        _ => drawn,
    }
}

/// The ends of an integer type for `limits`; none for types whose whole range is drawn anyway, or does not fit.
pub(super) fn ends(dtype: DType) -> Option<(i64, i64)> {
    Some(match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN, i64::MAX),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        _ => return None,
    })
}
