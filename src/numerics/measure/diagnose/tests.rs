//! Planted patterns are named in words, and near misses are not.

use std::collections::BTreeMap;

use super::*;
use crate::measure::compare::{Comparison, rms};
use crate::measure::diagnosed::{sentence, stated};
use crate::reference::float::round_to;
use kforge_types::model::Tolerance;
use kforge_types::record::OutputObserved;

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
        self.said_of(&got, &self.tolerance())
    }

    /// What is said of exactly these values under a tolerance.
    fn said_of(&self, got: &[f64], tolerance: &Tolerance) -> Option<String> {
        let Case { dtype, shape, dims, want, .. } = self;
        let found = diagnose(&Output { dtype: *dtype, shape, dims, got, want, scale: None })?;
        let mut comparison = Comparison::new("y", *dtype, shape, rms(want), None);
        comparison.floats(0, got, want, None);
        let seen = OutputObserved { diagnosis: Some(found.diagnosis), fit: Some(found.fit), ..comparison.finish() };
        stated(&seen, tolerance).map(|diagnosis| sentence(&diagnosis, &seen))
    }

    /// A tolerance that allows the noise and little else.
    fn tolerance(&self) -> Tolerance {
        Tolerance { rtol: 4.0 * self.dtype.epsilon(), ..Tolerance::default() }
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
        "element i holds the expected value of element i + 1; 1 of 98 elements that are far off, at the edge, has no such element",
        |i| line.want.get(i + 1).copied().unwrap_or(77.0),
    );
    line.says("element i holds the expected value of element i - 2, modulo 100", |i| line.want[(i + 98) % 100]);
    let rows = Case::f32(&[16, 8]);
    rows.says(
        "row i holds the expected values of row i + 1; 8 of 125 elements that are far off, at the edge, have no such element",
        |i| rows.want.get(i + 8).copied().unwrap_or(50.0 + i as f64),
    );
    rows.says("element i holds the expected value of element i + 1; 1 of 126 elements that are far off, at the edge, has no such element", |i| {
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
        let output = Output { dtype: DType::F32, shape, dims: &dims, got: &got, want: &want, scale: None };
        assert_eq!(diagnose(&output), None);
    }
}

#[test]
fn a_pattern_is_stated_only_if_every_element_that_is_wrong_under_the_tolerance_follows_it() {
    let case = Case::f32(&[16, 16]);
    let transposed = |i: usize| case.want[i % 16 * 16 + i / 16];
    case.says("it is the transpose of the expected output", transposed);
    // Two mistakes at once: one row is also scaled, by much or by little.
    for factor in [2.0, 1.01, 1.0005, 1.000_01] {
        case.silent(|i| if i / 16 == 3 { factor * transposed(i) } else { transposed(i) });
    }
    // The second mistake is in an element that the first leaves where it is.
    case.silent(|i| if i == 17 { 1.0005 * transposed(i) } else { transposed(i) });
    // A looser tolerance does not see the second mistake.
    let both: Vec<f64> = (0..256).map(|i| transposed(i) * if i / 16 == 3 { 1.0005 } else { 1.0 }).collect();
    let loose = Tolerance { rtol: 1e-3, ..Tolerance::default() };
    assert_eq!(case.said_of(&both, &loose).as_deref(), Some("it is the transpose of the expected output"));
    assert_eq!(case.said_of(&both, &Tolerance { rtol: 1e-4, ..Tolerance::default() }), None);
}

#[test]
fn a_pattern_of_large_elements_is_none_of_small_ones() {
    let small = |i: usize| i.is_multiple_of(8);
    let case = Case::f32(&[512]).wanting(|i| unit(i, 5) * if small(i) { 1e-4 } else { 3.0 });
    case.says("every element is 2 times its expected value", |i| 2.0 * case.want[i]);
    // Small elements are correct, which is no contradiction, or wrong in another way, which is one.
    case.says("every wrong element is 2 times its expected value", |i| case.want[i] * if small(i) { 1.0 } else { 2.0 });
    case.silent(|i| case.want[i] * if small(i) { 3.0 } else { 2.0 });
    case.silent(|i| if small(i) { case.want[i] + 1e-5 } else { -case.want[i] });
    case.silent(|i| case.want[i] * if small(i) { -1.0 } else { 2.0 });
    // Under a tolerance that does not tell small elements from each other, they say nothing.
    let got: Vec<f64> = (0..512).map(|i| case.want[i] * if small(i) { 3.0 } else { 2.0 }).collect();
    let coarse = Tolerance { rtol: 1e-5, atol: 1e-3, ..Tolerance::default() };
    assert_eq!(case.said_of(&got, &coarse).as_deref(), Some("every element is 2 times its expected value"));
}

#[test]
fn a_pattern_that_leaves_more_than_a_tenth_open_is_not_stated() {
    let line = Case::f32(&[100]);
    let shifted = |by: usize, i: usize| line.want.get(i + by).copied().unwrap_or(77.0);
    line.says("element i holds the expected value of element i + 8; 8 of 98 elements that are far off, at the edge, have no such element", |i| {
        shifted(8, i)
    });
    line.silent(|i| shifted(16, i));
    // An element at the edge that is slightly wrong has another cause.
    let edge = |i: usize| if i == 99 { line.want[i] * 1.001 } else { shifted(1, i) };
    line.silent(edge);
}

#[test]
fn what_a_type_rounds_is_no_other_cause() {
    for dtype in [DType::F16, DType::Bf16, DType::F32] {
        let case = Case::of(dtype, &[8, 64]);
        let exact = Tolerance { ulp: 1.0, ..Tolerance::default() };
        let rounded = |f: &dyn Fn(f64) -> f64| case.want.iter().map(|v| round_to(dtype, f(*v))).collect::<Vec<_>>();
        let says = |f: &dyn Fn(f64) -> f64| case.said_of(&rounded(f), &exact);
        assert_eq!(says(&|v| v / 3.0).as_deref(), Some("every element is 1/3 of its expected value"));
        assert!(says(&|v| v + 1.5).is_some_and(|text| text.ends_with(" above its expected value")), "{dtype}");
        assert_eq!(says(&f64::abs).as_deref(), Some("every element is the magnitude of its expected value"));
        assert_eq!(says(&f64::exp).as_deref(), Some("every element is the exponential of its expected value"));
    }
}

#[test]
fn a_scale_widens_what_a_pattern_may_be_off_by_as_it_does_for_expected_values() {
    let case = Case::f32(&[16, 16]);
    let scale: Vec<f64> = (0..256).map(|i| if i % 16 == 2 { 1e3 } else { 1.0 }).collect();
    let tolerance = Tolerance { scaled: 4.0, acc: DType::F32, ..Tolerance::default() };
    let said = |off: &dyn Fn(usize, usize) -> f64| {
        let source = |i: usize| i % 16 * 16 + i / 16;
        let got: Vec<f64> = (0..256).map(|i| case.want[source(i)] + off(i, source(i))).collect();
        let Case { dtype, shape, dims, want, .. } = &case;
        let output = Output { dtype: *dtype, shape, dims, got: &got, want, scale: Some(&scale) };
        let found = diagnose(&output)?;
        let mut comparison = Comparison::new("y", *dtype, shape, rms(want), None);
        comparison.floats(0, &got, want, Some(&scale));
        let seen = OutputObserved { diagnosis: Some(found.diagnosis), fit: Some(found.fit), ..comparison.finish() };
        stated(&seen, &tolerance)
    };
    // The error is that of the place from which the value is.
    assert!(said(&|_, from| if from % 16 == 2 { 1e-4 } else { 0.0 }).is_some());
    assert!(said(&|at, from| if at % 16 == 2 && from % 16 != 2 { 1e-4 } else { 0.0 }).is_none());
}
