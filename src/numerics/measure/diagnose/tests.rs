//! Planted patterns are named in words, and near misses are not.

use std::collections::BTreeMap;

use super::*;
use crate::measure::compare::{Comparison, rms};
use crate::measure::diagnosed::sentence;
use crate::reference::float::round_to;

/// A seeded number from -1 to 1.
fn unit(i: usize, salt: u64) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xff51_afd7_ed55_8ccd);
    let bits = (bits ^ (bits >> 31)).wrapping_mul(0xd134_2543_de82_ef95);
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Expected values of an output.
fn expected(shape: &[u64]) -> Vec<f64> {
    (0..shape.iter().product::<u64>() as usize).map(|i| 3.0 * unit(i, 5)).collect()
}

struct Case {
    dtype: DType,
    shape: Vec<u64>,
    dims: BTreeMap<String, i64>,
    want: Vec<f64>,
}

impl Case {
    fn of(dtype: DType, shape: &[u64]) -> Self {
        let want = expected(shape).into_iter().map(|v| if dtype.is_float() { v } else { (v * 100.0).round() });
        let want = want.map(|v| round_to(dtype, v)).collect();
        Case { dtype, shape: shape.to_vec(), dims: BTreeMap::new(), want }
    }

    fn f32(shape: &[u64]) -> Self {
        Case::of(DType::F32, shape)
    }

    fn dim(mut self, name: &str, value: i64) -> Self {
        self.dims.insert(name.into(), value);
        self
    }

    fn wanting(mut self, want: impl Fn(usize) -> f64) -> Self {
        self.want.iter_mut().enumerate().for_each(|(i, v)| *v = want(i));
        self
    }

    /// What is said of these values, after a rounding to the type and the noise of another order of additions.
    fn said(&self, got: impl Fn(usize) -> f64) -> Option<String> {
        let noise = |i: usize| if self.dtype.is_float() { 1.0 + self.dtype.epsilon() * unit(i, 11) } else { 1.0 };
        let got: Vec<f64> = (0..self.want.len()).map(|i| round_to(self.dtype, got(i) * noise(i))).collect();
        let output = Output { dtype: self.dtype, shape: &self.shape, dims: &self.dims, got: &got, want: &self.want };
        let mut comparison = Comparison::new("y", self.dtype, &self.shape, rms(&self.want), None);
        comparison.floats(0, &got, &self.want, None);
        diagnose(&output).map(|found| sentence(&found, &comparison.finish()))
    }

    #[track_caller]
    fn says(&self, text: &str, got: impl Fn(usize) -> f64) {
        assert_eq!(self.said(got).as_deref(), Some(text));
    }

    #[track_caller]
    fn silent(&self, got: impl Fn(usize) -> f64) {
        assert_eq!(self.said(got), None);
    }
}

#[test]
fn a_transposed_output_is_named_with_its_layout() {
    for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I32] {
        let square = Case::of(dtype, &[16, 16]);
        square.says("it is the transpose of the expected output", |i| square.want[i % 16 * 16 + i / 16]);
    }
    let wide = Case::f32(&[8, 24]);
    wide.says("it is the transpose of the expected output: laid out as [24, 8], not [8, 24]", |i| {
        wide.want[i % 8 * 24 + i / 8]
    });
    let heads = Case::f32(&[2, 4, 6, 8]);
    heads.says(
        "it is the expected output with axes 1 and 2 exchanged: laid out as [2, 6, 4, 8], not [2, 4, 6, 8]",
        |i| {
            let (b, s, h, d) = (i / 192, i / 32 % 6, i / 8 % 4, i % 8);
            heads.want[((b * 4 + h) * 6 + s) * 8 + d]
        },
    );
    // Only the lower half is wrong, and one element that is not as the transposed one.
    let square = Case::f32(&[16, 16]);
    let lower = |i: usize| if i / 16 > i % 16 { square.want[i % 16 * 16 + i / 16] } else { square.want[i] };
    square.says("every wrong element holds the expected value of the transposed place", lower);
    square.silent(|i| if i == 200 { 9.0 } else { square.want[i % 16 * 16 + i / 16] });
}

#[test]
fn a_shift_is_named_by_its_distance_and_its_edge() {
    let line = Case::f32(&[100]);
    line.says(
        "element i holds the expected value of element i + 1; 1 of 98 wrong elements, at the edge, has no such element",
        |i| line.want.get(i + 1).copied().unwrap_or(77.0),
    );
    line.says("element i holds the expected value of element i - 2, modulo 100", |i| line.want[(i + 98) % 100]);
    let rows = Case::f32(&[16, 8]);
    rows.says(
        "row i holds the expected values of row i + 1; 8 of 125 wrong elements, at the edge, have no such element",
        |i| rows.want.get(i + 8).copied().unwrap_or(50.0 + i as f64),
    );
    rows.says("element i holds the expected value of element i + 1; 1 of 126 wrong elements, at the edge, has no such element", |i| {
        rows.want.get(i + 1).copied().unwrap_or(77.0)
    });
    rows.says("column i holds the expected values of column i + 1, modulo 8", |i| rows.want[i / 8 * 8 + (i + 1) % 8]);
    let three = Case::f32(&[3, 5, 8]).dim("s", 5);
    three.says("along axis 1 (extent 5, as `s`), slice i holds the expected values of slice i + 1, modulo 5", |i| {
        three.want[i / 40 * 40 + (i / 8 + 1) % 5 * 8 + i % 8]
    });
    // The second half is shifted by two instead of one, and one element is off.
    line.silent(|i| line.want.get(if i < 50 { i + 1 } else { i + 2 }).copied().unwrap_or(0.0));
    line.silent(|i| if i == 60 { 5.0 } else { line.want.get(i + 1).copied().unwrap_or(0.0) });
}

#[test]
fn exchanged_slices_are_named() {
    let heads = Case::f32(&[4, 3, 8]).dim("b", 4);
    heads.says("slices 0 and 1 along axis 0 (extent 4, as `b`) are swapped", |i| match i / 24 {
        0 => heads.want[i + 24],
        1 => heads.want[i - 24],
        _ => heads.want[i],
    });
    // The name of an extent that two dims have would be a guess.
    let heads = Case::f32(&[4, 3, 8]).dim("b", 4).dim("h", 4);
    heads.says("slices 1 and 3 along axis 0 (extent 4) are swapped", |i| match i / 24 {
        1 => heads.want[i + 48],
        3 => heads.want[i - 48],
        _ => heads.want[i],
    });
    let rows = Case::f32(&[6, 16]);
    rows.says("every wrong row holds the expected values of row 0", |i| rows.want[i % 16]);
    rows.says("the rows are in the opposite order", |i| rows.want[(5 - i / 16) * 16 + i % 16]);
    let order = [2, 0, 1, 5, 3, 4];
    rows.says(
        "every wrong row holds the expected values of another: row 0 those of 2, 1 those of 0, 2 those of 1, 3 those of 5, and so on",
        |i| rows.want[order[i / 16] * 16 + i % 16],
    );
    rows.says("columns 3 and 4 are swapped", |i| match i % 16 {
        3 => rows.want[i + 1],
        4 => rows.want[i - 1],
        _ => rows.want[i],
    });
    // One element of a swapped row is not from the other.
    rows.silent(|i| match i / 16 {
        0 if i == 7 => 9.0,
        0 => rows.want[i + 16],
        1 => rows.want[i - 16],
        _ => rows.want[i],
    });
    // Rows that are expected to be equal do not tell which of them was taken.
    let equal = Case::f32(&[6, 16]).wanting(|i| if i < 16 { unit(i, 1) } else { unit(i % 16, 2) });
    equal.silent(|i| if i < 16 { equal.want[i + 16] } else { equal.want[i] });
}

#[test]
fn factors_signs_and_offsets_are_named() {
    for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I32] {
        let case = Case::of(dtype, &[4, 32]);
        case.says("every element has the opposite sign", |i| -case.want[i]);
        case.says("every element is 2 times its expected value", |i| 2.0 * case.want[i]);
    }
    let case = Case::f32(&[4, 64]).dim("k", 96).dim("n", 64);
    case.says("every element is 96 times its expected value; 96 is the value of `k`", |i| 96.0 * case.want[i]);
    case.says("every element is 1/64 of its expected value; 64 is the value of `n`", |i| case.want[i] / 64.0);
    case.says("every element is 1.443 times its expected value", |i| case.want[i] * std::f64::consts::LOG2_E);
    case.says("every element is 1.5 times its expected value", |i| case.want[i] * 1.5);
    case.says("every element is -0.125 times its expected value".replace("-0.125 times", "1/-8 of").as_str(), |i| {
        case.want[i] / -8.0
    });
    case.says("every wrong element is 2 times its expected value", |i| {
        if i < 64 { 2.0 * case.want[i] } else { case.want[i] }
    });
    case.says("every element is 0.75 above its expected value", |i| case.want[i] + 0.75);
    case.says("every element is 1000 below its expected value", |i| case.want[i] - 1000.0);
    let indices = Case::of(DType::I64, &[40]);
    indices.says("every element is 1 above its expected value", |i| indices.want[i] + 1.0);
    // Factors that differ slightly, and one that does not hold for one element.
    case.silent(|i| case.want[i] * (2.0 + 0.01 * unit(i, 3)));
    case.silent(|i| if i == 100 { 3.0 * case.want[i] + 4.0 } else { 2.0 * case.want[i] });
    indices.silent(|i| indices.want[i] + if i == 33 { 2.0 } else { 1.0 });
}

#[test]
fn functions_and_factors_of_rows_are_named() {
    let case = Case::f32(&[6, 32]);
    case.says("every element is the magnitude of its expected value", |i| case.want[i].abs());
    let positive = Case::f32(&[6, 32]).wanting(|i| 2.0 + 1.5 * unit(i, 7));
    positive.says("every element is the reciprocal of its expected value", |i| 1.0 / positive.want[i]);
    positive.says("every element is the square of its expected value", |i| positive.want[i].powi(2));
    positive.says("every element is the square root of its expected value", |i| positive.want[i].sqrt());
    positive.says("every element is the natural logarithm of its expected value", |i| positive.want[i].ln());
    case.says(
        "every wrong row along the last axis is its expected values times a number of its own, from 1.5 to 4",
        |i| case.want[i] * (1.5 + 0.5 * (i / 32) as f64),
    );
    // One element of one row is off.
    case.silent(|i| case.want[i] * (1.5 + 0.5 * (i / 32) as f64) + if i == 40 { 1.0 } else { 0.0 });
}

#[test]
fn one_value_everywhere_is_named_if_it_is_no_poison() {
    let case = Case::f32(&[6, 32]);
    case.says("every element is 0", |_| 0.0);
    case.says("every wrong element is 0", |i| if i / 32 == 3 { 0.0 } else { case.want[i] });
    case.silent(|_| f64::NAN);
    case.silent(|_| f64::from(f32::from_bits(0x7b7b_7b7b)));
    case.silent(|i| if i == 5 { 9.0 } else { 0.0 });
}

#[test]
fn outputs_that_say_too_little_are_not_explained() {
    // Too few elements, too few different ones, and unrelated values.
    let few = Case::f32(&[7]);
    few.silent(|i| 2.0 * few.want[i]);
    let constant = Case::f32(&[64]).wanting(|_| 1.0);
    constant.silent(|_| 2.0);
    constant.silent(|_| 0.0);
    let two = Case::f32(&[64]).wanting(|i| if i % 2 == 0 { 1.0 } else { 4.0 });
    two.silent(|i| 2.0 * two.want[i]);
    two.silent(|i| two.want[i ^ 1]);
    for shape in [&[256][..], &[16, 16], &[4, 8, 8], &[2, 2, 8, 8]] {
        for dtype in [DType::F32, DType::Bf16, DType::F8e4m3, DType::I8, DType::Bool] {
            for salt in 0..20 {
                let case = Case::of(dtype, shape);
                case.silent(
                    |i| if dtype.is_float() { unit(i, 100 + salt) } else { (100.0 * unit(i, 100 + salt)).round() },
                );
            }
        }
    }
}

#[test]
fn a_sum_that_misses_a_term_is_not_taken_for_a_factor() {
    let case = Case::f32(&[8, 32]).wanting(|i| 20.0 + unit(i, 3));
    case.silent(|i| case.want[i] - 1.0 - 0.4 * unit(i, 9));
    let near = Case::f32(&[8, 32]);
    near.silent(|i| near.want[i] + 0.3 * unit(i, 9));
}

#[test]
fn correct_outputs_have_no_diagnosis() {
    let case = Case::f32(&[16, 16]);
    case.silent(|i| case.want[i]);
    case.silent(|i| case.want[i] * 1.0001);
}

#[test]
fn extents_that_do_not_fit_the_values_are_not_explained() {
    let (want, dims) = (expected(&[16]), BTreeMap::new());
    let got: Vec<f64> = want.iter().map(|v| -v).collect();
    for shape in [&[4, 8][..], &[u64::MAX, 2], &[0]] {
        let output = Output { dtype: DType::F32, shape, dims: &dims, got: &got, want: &want };
        assert_eq!(diagnose(&output), None);
    }
}
