//! Outputs that were written in elements of another type or size than declared. Knows bytes; does not know how a kernel declares its pointers.

use super::super::compare::rms;
use super::super::front::Front;
use super::evidence::{Apart, closeness};
use super::{ENOUGH, Explained};
use crate::reference::Values;
use crate::reference::float::{decode, encode, round_to};
use kforge_types::model::DType;
use kforge_types::record::{Diagnosis, Fit, FrontPoint, WrongPattern};

/// Types in which a kernel may have written instead.
const OTHERS: [DType; 14] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F64,
    DType::F8e4m3,
    DType::F8e5m2,
    DType::I32,
    DType::I64,
    DType::I16,
    DType::I8,
    DType::U32,
    DType::U64,
    DType::U16,
    DType::U8,
];

/// The type in which the bytes of an output without gaps are the expected values, if that is another type than its own. `wrong` is the number of wrong
/// elements.
pub fn other_type(dtype: DType, bytes: &[u8], want: &[f64], wrong: u64) -> Option<Explained> {
    OTHERS.into_iter().filter(|other| *other != dtype).find_map(|other| {
        let count = want.len().min(bytes.len() / other.bytes() as usize);
        let want = &want[..count];
        let close = closeness(other.epsilon().max(dtype.epsilon()));
        let unit = rms(want);
        let fits = |got: f64, want: f64| {
            let exact = if other.is_float() { round_to(other, want) } else { want };
            got == exact || (got.is_nan() && want.is_nan()) || (got - want).abs() <= close * (want.abs() + unit)
        };
        // Most types fail at the first elements.
        let part = |range: std::ops::Range<usize>| {
            let width = other.bytes() as usize;
            let got = decode(other, &bytes[range.start * width..range.end * width]);
            got.as_f64(other).iter().zip(&want[range]).all(|(got, want)| fits(*got, *want))
        };
        if !part(0..count.min(ENOUGH)) || !part(0..count) {
            return None;
        }
        let mut apart = Apart::default();
        want.iter().for_each(|value| apart.add(*value, close * (value.abs() + unit)));
        let pattern = WrongPattern::ElementType { dtype: other, values: count as u64 };
        let diagnosis = Diagnosis { pattern, wrong, explained: wrong, whole: false };
        let fit = || {
            let got = decode(other, &bytes[..count * other.bytes() as usize]);
            let mut front = Front::default();
            for (index, (got, want)) in got.as_f64(other).iter().zip(want).enumerate() {
                let exact = if other.is_float() { round_to(other, *want) } else { *want };
                // What the narrower of the two types rounds is no difference.
                let rounding = other.ulp(*want).max(dtype.ulp(*want));
                let error = if *got == exact || got.is_nan() { 0.0 } else { ((got - want).abs() - rounding).max(0.0) };
                let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
                let error = if error.is_nan() { f64::MAX } else { error.min(f64::MAX) };
                front.push(FrontPoint {
                    index: index as u64,
                    error,
                    got: finite(*got),
                    want: finite(*want),
                    scale: None,
                });
            }
            Fit { nearest: front.finish(), every: vec![] }
        };
        (apart.count() >= ENOUGH).then(|| Explained { diagnosis, fit: fit() })
    })
}

/// The size of an element with which all elements fill exactly the part of an output without gaps that was written: half of it, or a quarter. `unwritten` are the
/// number of the first element that was not written and how many were not, and `wrong` is how many of all elements are wrong.
pub fn written_part(dtype: DType, elements: u64, unwritten: (u64, u64), wrong: u64) -> Option<Diagnosis> {
    let (first, missing) = unwritten;
    if first + missing != elements || first < ENOUGH as u64 {
        return None;
    }
    let sizes = [2, 4].map(|part| dtype.bytes() / part).into_iter().filter(|size| *size > 0);
    let size = sizes.into_iter().find(|size| (elements * size).div_ceil(dtype.bytes()) == first)?;
    let pattern = WrongPattern::ElementSize { bytes: size };
    Some(Diagnosis { pattern, wrong, explained: missing.min(wrong), whole: false })
}

/// Whether a value is what a byte that fills memory gives, so that it may have been written by nobody.
pub(super) fn is_filled(dtype: DType, value: f64) -> bool {
    let value_of = if dtype.is_float() { Values::Float(vec![value]) } else { Values::Int(vec![value as i64]) };
    let bytes = encode(dtype, &value_of);
    value != 0.0 && bytes.iter().all(|byte| *byte == bytes[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 37 % 101) as f64 - 50.0) / 8.0).collect()
    }

    fn written(as_type: DType, declared: DType, count: usize) -> Option<WrongPattern> {
        let want = values(count);
        let mut bytes = encode(as_type, &Values::Float(want.clone()).as_kind_of(as_type));
        bytes.resize(count * declared.bytes() as usize, 0xff);
        other_type(declared, &bytes, &want, count as u64).map(|found| found.diagnosis.pattern)
    }

    #[test]
    fn the_expected_values_in_another_type_are_recognised() {
        let of = |dtype, values| Some(WrongPattern::ElementType { dtype, values });
        assert_eq!(written(DType::Bf16, DType::F32, 64), of(DType::Bf16, 64));
        assert_eq!(written(DType::F16, DType::F32, 65), of(DType::F16, 65));
        assert_eq!(written(DType::F16, DType::Bf16, 64), of(DType::F16, 64));
        assert_eq!(written(DType::Bf16, DType::F16, 64), of(DType::Bf16, 64));
        assert_eq!(written(DType::F64, DType::F32, 64), of(DType::F64, 32));
        assert_eq!(written(DType::F32, DType::F64, 64), of(DType::F32, 64));
        assert_eq!(written(DType::F8e4m3, DType::F16, 64), of(DType::F8e4m3, 64));
    }

    #[test]
    fn one_other_value_or_too_few_values_show_no_type() {
        let want = values(64);
        let mut bytes = encode(DType::Bf16, &Values::Float(want.clone()));
        bytes.resize(256, 0xff);
        bytes[100] ^= 0x40;
        bytes[101] ^= 0x01;
        assert_eq!(other_type(DType::F32, &bytes, &want, 64), None);
        assert_eq!(written(DType::Bf16, DType::F32, 7), None);
        let constant = vec![1.5; 64];
        let mut bytes = encode(DType::Bf16, &Values::Float(constant.clone()));
        bytes.resize(256, 0xff);
        assert_eq!(other_type(DType::F32, &bytes, &constant, 64), None);
    }

    #[test]
    fn exactly_half_or_a_quarter_may_be_elements_of_that_size() {
        let of = |dtype, elements, unwritten, wrong| {
            written_part(dtype, elements, unwritten, wrong).map(|found| found.pattern)
        };
        let size = |bytes| Some(WrongPattern::ElementSize { bytes });
        assert_eq!(of(DType::F32, 1028, (514, 514), 1028), size(2));
        assert_eq!(of(DType::F32, 1029, (515, 514), 1029), size(2));
        assert_eq!(of(DType::F32, 1028, (257, 771), 1000), size(1));
        assert_eq!(of(DType::F64, 100, (50, 50), 100), size(4));
        // What was written may be correct: twice a number in bf16 is nearly twice the f32 that holds two of them.
        assert_eq!(of(DType::F32, 1028, (514, 514), 514), size(2));
        // One element more or less, a gap, and a type that has no smaller one.
        assert_eq!(of(DType::F32, 1028, (515, 513), 1028), None);
        assert_eq!(of(DType::F32, 1028, (513, 515), 1028), None);
        assert_eq!(of(DType::F32, 1028, (500, 514), 1028), None);
        assert_eq!(of(DType::F8e4m3, 1028, (514, 514), 1028), None);
    }

    #[test]
    fn what_a_byte_gives_that_fills_memory_is_known() {
        assert!(is_filled(DType::I32, -1.0) && is_filled(DType::F32, f64::from(f32::from_bits(0x7b7b_7b7b))));
        assert!(!is_filled(DType::F32, 0.0) && !is_filled(DType::I32, 0.0) && !is_filled(DType::F32, -1.0));
    }
}
