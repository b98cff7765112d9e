//! Inputs of a trial: which distribution a tensor gets, and its values. Does not know the arithmetic of operators, only the hints of built-ins (labels are
//! below the number of classes). Every element is a function of seed, tensor ordinal and element index ([`super::philox`]), computed with integer arithmetic
//! and at most one rounded multiplication, without logarithms or cosines. So a device can compute the same bits.
//!
//! # Distributions
//!
//! A kernel that is correct on only one of them is wrong. Each distribution catches certain mistakes:
//!
//! | name | floats | catches |
//! |---|---|---|
//! | `normal` | mean 0, variance 1: the sum of eight 32-bit uniforms, so within 4.9 | baseline |
//! | `uniform` | [-1, 1) | baseline |
//! | `positive` | (0, 1] | sums that grow: lost carries, half accumulators |
//! | `wide` | sign, exponent and mantissa uniform: magnitudes over the dtype's range below 2 | lower precision, flushed small values |
//! | `sparse` | three in four exactly zero, else normal | divisions by zero, skipped work, ties |
//! | `large` | [-128, 128) for tensors whose magnitude the operator removes again, else normal | missing maximum subtraction, overflowing squares |
//!
//! Operators that do not remove such a magnitude do not use `large`. No value is infinite or NaN. Magnitudes are such that a product of 4096 terms stays
//! finite in `f16`. Integers: `wide` and `large` span ±1000 (0 to 2000 for unsigned types; the whole type if it is narrower), `positive` spans 1 to 16,
//! `sparse` is zero three times in four and otherwise as the rest: -8 to 8 (0 to 16 for unsigned types). [`fresh`] has the stress classes, which only trials
//! use that are drawn at the time of a verification.

use std::collections::BTreeMap;

use super::bind::Bound;
use super::error::Error;
use super::float::{exp2i, round_to, wrap};
use super::fresh::{self, Near};
use super::philox::{Stream, permute};
use super::values::{Values, logical_len, logical_shape};
use kforge_foundation::base::pieces::{self, PIECE};
use kforge_types::model::{DType, Init, Problem, Tensor};
use kforge_types::record::params::Trial;

/// Every distribution by name, for inputs whose `init` is auto.
pub const DISTRIBUTIONS: [&str; 6] = ["normal", "wide", "sparse", "large", "uniform", "positive"];

/// The position of the first value of `ties`, beyond those of elements.
const TIES: u64 = 1 << 63;

/// The distributions that suit a problem, in the order in which trials use them; `large` only if the built-in stays accurate on it.
pub fn distributions(problem: &Problem) -> Vec<&'static str> {
    let large = Bound::new(problem).is_ok_and(|bound| !bound.builtin.large.is_empty());
    DISTRIBUTIONS.into_iter().filter(|name| *name != "large" || large).collect()
}

/// The trials of a verification: `count` trials, each with its own seed derived from `seed`, using the distributions in turn.
pub fn trials(problem: &Problem, seed: u64, count: u32) -> Vec<Trial> {
    let names = distributions(problem);
    (0..count)
        .map(|trial| {
            let [low, high, ..] = Stream::new(seed, u32::MAX).block(u64::from(trial), 0);
            Trial {
                trial,
                seed: u64::from(low) | u64::from(high) << 32,
                distribution: names[trial as usize % names.len()].to_owned(),
            }
        })
        .collect()
}

/// The values of every tensor that a kernel reads (inputs and inouts), each representable in its dtype, without those that are in files: whoever calls reads the
/// files. Memory: eight bytes per value. Errors: inputs from a function of the package, an unknown distribution, an `init` that does not fit a dtype or shape.
pub fn inputs(problem: &Problem, trial: &Trial) -> Result<BTreeMap<String, Values>, Error> {
    if let Some(own) = &problem.generate_inputs {
        return Err(Error::OwnInputs { file: own.file().clone(), function: own.function().clone() });
    }
    let bound = Bound::new(problem).ok();
    let near = Near::of(problem);
    let mut values = BTreeMap::new();
    for (ordinal, tensor) in problem.tensors.iter().enumerate() {
        if tensor.role == kforge_types::model::Role::Output || matches!(tensor.init, Init::Safetensors { .. }) {
            continue;
        }
        let hint = bound.as_ref().and_then(|bound| {
            let small = || (trial.distribution == "large" && !bound.takes_large(&tensor.name)).then_some(Init::Normal);
            bound.hint(&tensor.name).or_else(small)
        });
        // A weight near zero would hide what happens to the values that it weighs.
        let is_weight = trial.distribution == "tiny" && !fresh::is_main(problem, tensor);
        let hint = hint.or_else(|| is_weight.then_some(Init::Normal));
        let drawn = Draw::near(tensor, ordinal as u32, hint, trial, near)?;
        values.insert(tensor.name.clone(), drawn.values(logical_len(tensor)));
    }
    Ok(values)
}

/// The values of one tensor; `hint` replaces an auto `init`.
pub fn tensor_values(tensor: &Tensor, ordinal: u32, hint: Option<Init>, trial: &Trial) -> Result<Values, Error> {
    Ok(Draw::new(tensor, ordinal, hint, trial)?.values(logical_len(tensor)))
}

/// How the elements of one tensor are drawn, with everything resolved, so that any element can be computed independently.
#[derive(Debug, Clone)]
pub struct Draw {
    stream: Stream,
    dtype: DType,
    rule: Rule,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    Uniform,
    Normal,
    Positive,
    Wide,
    Sparse,
    Large,
    /// Small values; the number is the length of a row.
    Tiny(Near, u64),
    TinyPositive(Near),
    Ties,
    TiesPositive,
    Limits,
    Range(f64, f64),
    IntRange(i64, i64),
    OneHot {
        row: u64,
    },
    Permutation(u64),
    Offsets {
        total: u64,
        last: u64,
    },
    Constant(f64),
}

impl Draw {
    /// Resolves how a tensor is drawn in a trial.
    pub fn new(tensor: &Tensor, ordinal: u32, hint: Option<Init>, trial: &Trial) -> Result<Self, Error> {
        Self::near(tensor, ordinal, hint, trial, Near::default())
    }

    /// The same, with what tiny values are near to.
    pub fn near(tensor: &Tensor, ordinal: u32, hint: Option<Init>, trial: &Trial, near: Near) -> Result<Self, Error> {
        let init = match (&tensor.init, hint) {
            (Init::Auto, Some(hint)) => hint,
            (init, _) => init.clone(),
        };
        let name = &tensor.name;
        let float = tensor.dtype.is_float();
        let count = |init: &'static str, n: i64| {
            u64::try_from(n).map_err(|_| Error::Count { tensor: name.clone(), init, found: n })
        };
        let rule = match init {
            Init::Auto => match trial.distribution.as_str() {
                "uniform" => Rule::Uniform,
                "normal" => Rule::Normal,
                "positive" => Rule::Positive,
                "wide" => Rule::Wide,
                "sparse" => Rule::Sparse,
                "large" => Rule::Large,
                "tiny" => Rule::Tiny(near, fresh::row(tensor)),
                "ties" => Rule::Ties,
                "limits" => Rule::Limits,
                other => return Err(Error::UnknownDistribution(other.to_owned())),
            },
            Init::Uniform => Rule::Uniform,
            Init::Normal => Rule::Normal,
            Init::Positive => match trial.distribution.as_str() {
                "tiny" => Rule::TinyPositive(near),
                "ties" => Rule::TiesPositive,
                _ => Rule::Positive,
            },
            Init::Range(a, b) if !(a <= b && a.is_finite() && b.is_finite()) => {
                return Err(Error::Bounds { tensor: name.clone(), low: a, high: b });
            }
            Init::Range(a, b) if float => Rule::Range(a, b),
            Init::Range(a, b) => Rule::IntRange(a.ceil() as i64, (b.floor() as i64).max(a.ceil() as i64)),
            Init::OneHot => Rule::OneHot { row: logical_shape(tensor).last().map_or(1, |n| *n as u64).max(1) },
            Init::Permutation(n) if n < 1 => return Err(Error::EmptyPermutation { tensor: name.clone(), found: n }),
            Init::Permutation(n) => Rule::Permutation(count("permutation", n)?),
            Init::Offsets(total) => {
                Rule::Offsets { total: count("offsets", total)?, last: (logical_len(tensor) as u64).saturating_sub(1) }
            }
            Init::Constant(value) => Rule::Constant(value),
            Init::Safetensors { file, .. } => return Err(Error::Stored { tensor: name.clone(), file }),
        };
        let ends = match rule {
            Rule::Range(a, b) => Some((a, b)),
            Rule::Constant(value) if value.is_finite() => Some((value, value)),
            _ => None,
        };
        if let Some((a, b)) = ends
            && float
            && !(round_to(tensor.dtype, a).is_finite() && round_to(tensor.dtype, b).is_finite())
        {
            let (tensor, dtype) = (name.clone(), tensor.dtype);
            return Err(Error::FloatsDoNotFit { tensor, low: a, high: b, dtype });
        }
        let largest = match rule {
            Rule::IntRange(a, b) => Some((a, b)),
            Rule::Permutation(n) => Some((0, n as i64 - 1)),
            Rule::Offsets { total, .. } => Some((0, total as i64)),
            Rule::Constant(value) if !float => Some((value as i64, value as i64)),
            _ => None,
        };
        if let Some((a, b)) = largest
            && !float
            && (wrap(tensor.dtype, a) != a || wrap(tensor.dtype, b) != b)
        {
            let (tensor, dtype) = (name.clone(), tensor.dtype);
            return Err(Error::IntegersDoNotFit { tensor, low: a, high: b, dtype });
        }
        Ok(Draw { stream: Stream::new(trial.seed, ordinal), dtype: tensor.dtype, rule })
    }

    /// The first `len` elements.
    fn values(&self, len: usize) -> Values {
        if !self.dtype.is_float() {
            return Values::Int(pieces::values(len, |i| self.int(i as u64)));
        }
        let mut values = vec![0.0; len];
        pieces::chunks(&mut values, PIECE, |at, piece| self.floats((at * PIECE) as u64, piece));
        Values::Float(values)
    }

    /// Elements of a float tensor from `start` on, representable in its dtype.
    pub fn floats(&self, start: u64, values: &mut [f64]) {
        match self.rule {
            Rule::Normal if self.dtype != DType::F8e8m0 => normals(&self.stream, start, values),
            _ => (start..).zip(&mut *values).for_each(|(index, value)| *value = self.raw(index)),
        }
        values.iter_mut().for_each(|value| *value = self.rounded(*value));
    }

    /// Element `index` of a float tensor, representable in its dtype.
    pub fn float(&self, index: u64) -> f64 {
        self.rounded(self.raw(index))
    }

    fn rounded(&self, raw: f64) -> f64 {
        let rounded = round_to(self.dtype, raw);
        // An excluded upper end of an interval must stay excluded after rounding.
        match self.rule {
            Rule::Positive | Rule::TinyPositive(_) | Rule::TiesPositive if rounded == 0.0 => {
                super::float::ulp(self.dtype, 0.0)
            }
            Rule::Uniform if rounded >= 1.0 && self.dtype != DType::F8e8m0 => -1.0,
            Rule::Range(a, b) if rounded >= b && a < b => round_to(self.dtype, a),
            _ => rounded,
        }
    }

    fn raw(&self, index: u64) -> f64 {
        // A scale format has neither signs nor zeros: its values are powers of two around one for every rule except ranges and constants.
        if self.dtype == DType::F8e8m0 && !matches!(self.rule, Rule::Range(..) | Rule::Constant(_)) {
            return exp2i(self.stream.below(index, 0, 7) as i32 - 3);
        }
        match self.rule {
            Rule::Uniform => 2.0 * self.unit(index) - 1.0,
            Rule::Normal => normal(&self.stream, index),
            Rule::Positive => 1.0 - self.unit(index),
            Rule::Large => 128.0 * (2.0 * self.unit(index) - 1.0),
            Rule::Range(a, b) => a + (b - a) * self.unit(index),
            Rule::Wide => self.wide(index),
            Rule::Sparse if self.stream.block(index, 2)[0] & 3 != 0 => 0.0,
            Rule::Sparse | Rule::Limits => normal(&self.stream, index),
            Rule::Tiny(near, row) => self.tiny(near, row, index),
            Rule::TinyPositive(near) => {
                (1.0 - self.unit(index)) * near.scale(self.dtype, self.stream.block(index, 3)[0])
            }
            Rule::Ties => match fresh::tie(index, self.stream.below(index, 0, 3)) {
                2 => fresh::eighths(normal(&self.stream, TIES + 1)),
                at => match round_to(self.dtype, fresh::eighths(normal(&self.stream, TIES))) {
                    // Two values must differ whatever was drawn.
                    0.0 => 1.0 - 2.0 * at as f64,
                    value => value * (1.0 - 2.0 * at as f64),
                },
            },
            Rule::TiesPositive => match fresh::tie(index, self.stream.below(index, 0, 3)) {
                2 => fresh::eighths(1.0 - self.unit(TIES + 1)).max(0.125),
                at => fresh::eighths(1.0 - self.unit(TIES)).max(0.125) * exp2i(-(at as i32)),
            },
            Rule::IntRange(..) | Rule::OneHot { .. } | Rule::Permutation(_) | Rule::Offsets { .. } => {
                self.structured(index) as f64
            }
            Rule::Constant(value) => value,
        }
    }

    /// Element `index` of an integer tensor, within its dtype.
    pub fn int(&self, index: u64) -> i64 {
        let (low, high) = match self.dtype {
            DType::Bool => (0, 1),
            DType::I4x2 => (-8, 7),
            DType::U64 | DType::U32 | DType::U16 | DType::U8 => (0, 16),
            _ => (-8, 8),
        };
        let (widest_low, widest_high) = match self.dtype {
            DType::Bool | DType::I4x2 => (low, high),
            DType::I8 => (-128, 127),
            DType::U8 => (0, 255),
            DType::U64 | DType::U32 | DType::U16 => (0, 2000),
            _ => (-1000, 1000),
        };
        match self.rule {
            Rule::Uniform | Rule::Normal | Rule::Tiny(..) => self.between(index, low, high),
            Rule::Positive | Rule::TinyPositive(_) => self.between(index, 1, widest_high.min(16)),
            Rule::Wide | Rule::Large => self.between(index, widest_low, widest_high),
            Rule::Sparse if self.stream.block(index, 2)[0] & 3 != 0 => 0,
            Rule::Sparse => self.between(index, low, high),
            Rule::Ties | Rule::TiesPositive => {
                let (low, high) = if matches!(self.rule, Rule::Ties) { (low, high) } else { (1, widest_high.min(16)) };
                let first = self.between(TIES, low, high);
                match fresh::tie(index, self.stream.below(index, 0, 3)) {
                    0 => first,
                    // Two values must differ whatever was drawn.
                    1 if first == high => low,
                    1 => first + 1,
                    _ => self.between(TIES + 1, low, high),
                }
            }
            Rule::Limits => match fresh::ends(self.dtype) {
                Some((low, _)) if self.stream.block(index, 2)[0] & 1 == 0 => self.between(index, low, low + 15),
                Some((_, high)) => self.between(index, high - 15, high),
                None => self.between(index, widest_low, widest_high),
            },
            Rule::Range(a, b) => self.between(index, a as i64, b as i64),
            Rule::Constant(value) => wrap(self.dtype, value as i64),
            Rule::IntRange(..) | Rule::OneHot { .. } | Rule::Permutation(_) | Rule::Offsets { .. } => {
                self.structured(index)
            }
        }
    }

    fn structured(&self, index: u64) -> i64 {
        match self.rule {
            Rule::IntRange(a, b) => self.between(index, a, b),
            Rule::OneHot { row } => i64::from(self.stream.below(index / row, 0, row) == index % row),
            Rule::Permutation(n) => permute(&self.stream, index % n, n) as i64,
            Rule::Offsets { total, last } if index >= last => total as i64,
            Rule::Offsets { .. } if index == 0 => 0,
            // One point in each of as many equal parts as there are steps: the offsets rise, are ragged, and have fixed ends.
            Rule::Offsets { total, last } => {
                let fraction = u128::from(self.stream.block(index, 0)[0]);
                let point = (u128::from(index) << 32) - fraction;
                ((point * u128::from(total) / u128::from(last)) >> 32) as i64
            }
            _ => 0,
        }
    }

    fn between(&self, index: u64, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.stream.below(index, 0, (high.wrapping_sub(low) as u64).saturating_add(1)) as i64)
    }

    /// A uniform number in [0, 1), with 53 bits.
    fn unit(&self, index: u64) -> f64 {
        let b = self.stream.block(index, 0);
        ((u64::from(b[0]) | u64::from(b[1]) << 32) >> 11) as f64 * exp2i(-53)
    }

    /// A small number. All elements of a row have one scale; one element in eight is subnormal, if elements may be.
    fn tiny(&self, near: Near, row: u64, index: u64) -> f64 {
        match near.subnormal(self.dtype) {
            Some(least) if self.stream.block(index, 2)[0] & 7 == 0 => (2.0 * self.unit(index) - 1.0) * least,
            _ => normal(&self.stream, index) * near.scale(self.dtype, self.stream.block(index / row, 3)[0]),
        }
    }

    /// A number whose exponent is between the dtype's least useful one and 0, so its magnitude is below 2.
    fn wide(&self, index: u64) -> f64 {
        let lowest: i32 = match self.dtype {
            DType::F64 => -60,
            DType::F32 | DType::Bf16 => -30,
            DType::F16 | DType::F8e5m2 => -14,
            DType::F8e4m3 => -6,
            _ => -1,
        };
        let [a, b, c, d] = self.stream.block(index, 0);
        let steps = u64::from(lowest.unsigned_abs()) + 1;
        let e = lowest + ((u64::from(a) * steps) >> 32) as i32;
        let fraction = ((u64::from(b) | u64::from(c) << 32) >> 12) as f64 * exp2i(-52);
        let magnitude = (1.0 + fraction) * exp2i(e);
        if d & 1 == 1 { -magnitude } else { magnitude }
    }
}

/// The sum of eight uniform words, exact in an i64, centered, and scaled to variance one: sqrt(12 / 8) / 2^32.
#[inline(always)]
fn centred(sum: i64) -> f64 {
    (sum - 4 * ((1i64 << 32) - 1)) as f64 * (1.224_744_871_391_589 * exp2i(-32))
}

fn normal(stream: &Stream, index: u64) -> f64 {
    let [a, b] = [0, 1].map(|draw| stream.block(index, draw));
    centred(a.iter().chain(&b).map(|word| i64::from(*word)).sum())
}

/// The results of [`normal`] for each index from `start` on.
#[expect(unsafe_code, reason = "a function is compiled for instructions that not every processor has")]
fn normals(stream: &Stream, start: u64, values: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has the instructions.
        return unsafe { normals_avx2(stream, start, values) };
    }
    normals_at_once::<4>(stream, start, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn normals_avx2(stream: &Stream, start: u64, values: &mut [f64]) {
    normals_at_once::<16>(stream, start, values);
}

/// `N` values at a time. All steps are integer operations up to one product that is rounded once, so the bits are the same as one value at a time.
#[inline(always)]
fn normals_at_once<const N: usize>(stream: &Stream, start: u64, values: &mut [f64]) {
    for (at, values) in values.chunks_mut(N).enumerate() {
        let index = start + (at * N) as u64;
        let (a, b) = (stream.blocks::<N>(index, 0), stream.blocks::<N>(index, 1));
        let mut drawn = [0.0; N];
        for (i, value) in drawn.iter_mut().enumerate() {
            *value = centred((0..4).map(|word| i64::from(a[word][i]) + i64::from(b[word][i])).sum());
        }
        values.copy_from_slice(&drawn[..values.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_made_together_are_those_made_alone() {
        let stream = Stream::new(7, 3);
        for (start, count) in [(0, 37), ((1 << 32) - 5, 16), (9, 3)] {
            let alone: Vec<f64> = (start..start + count).map(|i| normal(&stream, i)).collect();
            let mut together = vec![0.0; count as usize];
            normals(&stream, start, &mut together);
            assert_eq!(together, alone);
            normals_at_once::<4>(&stream, start, &mut together);
            assert_eq!(together, alone);
        }
        for distribution in DISTRIBUTIONS {
            let trial = Trial { trial: 0, seed: 7, distribution: distribution.into() };
            let tensor = Tensor::dense("x", kforge_types::model::Role::Input, DType::F16, &[2 * PIECE as u64 + 5]);
            let drawn = Draw::new(&tensor, 1, None, &trial).unwrap();
            let Values::Float(all) = tensor_values(&tensor, 1, None, &trial).unwrap() else { panic!("no floats") };
            assert!((0..all.len()).all(|i| all[i] == drawn.float(i as u64)), "{distribution}");
        }
    }
}
