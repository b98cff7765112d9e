//! Conversions: every code of the small formats, and values between neighbors.

use super::{DType, Role, Tensor, Value};
use crate::reference::float::{decode, encode, encode_strided, gather_strided, round_to, ulp};
use crate::reference::values::Values;

const SMALL: [DType; 6] = [DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2, DType::F4e2m1x2, DType::F8e8m0];

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match decode(dtype, bytes) {
        Values::Float(values) => values,
        Values::Int(_) => panic!("{dtype} holds floats"),
    }
}

fn code_bytes(dtype: DType, code: u32) -> Vec<u8> {
    code.to_le_bytes()[..dtype.bytes() as usize].to_vec()
}

/// The value of a code; the packed format has it in its low nibble.
fn value_of(dtype: DType, code: u32) -> f64 {
    floats(dtype, &code_bytes(dtype, code))[0]
}

fn codes(dtype: DType) -> u32 {
    match dtype {
        DType::F16 | DType::Bf16 => 1 << 16,
        DType::F4e2m1x2 => 16,
        _ => 256,
    }
}

fn code_of(dtype: DType, x: f64) -> u32 {
    let mut bytes = encode(dtype, &Values::Float(vec![x]));
    bytes.resize(4, 0);
    u32::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn every_code_of_every_small_format_survives_a_round_trip() {
    for dtype in SMALL {
        for code in 0..codes(dtype) {
            let value = value_of(dtype, code);
            // These infinities can be read, but conversions saturate.
            if value.is_nan() || (dtype == DType::F8e5m2 && value.is_infinite()) {
                continue;
            }
            assert_eq!(code_of(dtype, value), code, "{dtype} {code:#x} is {value}");
            assert_eq!(round_to(dtype, value), value);
        }
    }
}

#[test]
fn sixteen_bit_floats_decode_as_the_half_crate_does() {
    for code in 0..=u16::MAX {
        let (half, brain) = (half::f16::from_bits(code).to_f64(), half::bf16::from_bits(code).to_f64());
        for (dtype, want) in [(DType::F16, half), (DType::Bf16, brain)] {
            let got = value_of(dtype, u32::from(code));
            assert!(got == want || (got.is_nan() && want.is_nan()), "{dtype} {code:#x}: {got}, expected {want}");
        }
    }
}

#[test]
fn halfway_goes_to_the_even_code_and_a_hair_beside_it_to_the_nearer_one() {
    for dtype in SMALL {
        let positive = if dtype == DType::F8e8m0 { 256 } else { codes(dtype) / 2 };
        for code in 0..positive - 1 {
            let (low, high) = (value_of(dtype, code), value_of(dtype, code + 1));
            if !low.is_finite() || !high.is_finite() {
                continue;
            }
            let middle = (low + high) / 2.0;
            let even = if code % 2 == 0 { code } else { code + 1 };
            assert_eq!(code_of(dtype, middle), even, "{dtype}: halfway between {low} and {high}");
            // Double rounding would get these wrong: they differ from the middle only in f64's last bit.
            assert_eq!(code_of(dtype, middle.next_down()), code, "{dtype}: below {middle}");
            assert_eq!(code_of(dtype, middle.next_up()), code + 1, "{dtype}: above {middle}");
            if dtype != DType::F8e8m0 {
                let sign = codes(dtype) / 2;
                assert_eq!(code_of(dtype, -middle), even | sign, "{dtype}: halfway between -{low} and -{high}");
                assert_eq!(ulp(dtype, low), high - low, "{dtype}: unit at {low}");
                assert_eq!(ulp(dtype, -low), high - low, "{dtype}: unit at -{low}");
            }
        }
    }
}

#[test]
fn what_is_too_large_becomes_infinite_or_saturates_as_the_format_says() {
    let infinity = f64::INFINITY;
    for (dtype, x, want) in [
        (DType::F16, 65519.99, 65504.0),
        (DType::F16, 65520.0, infinity),
        (DType::F16, -65520.0, -infinity),
        (DType::F16, 1e300, infinity),
        (DType::Bf16, 3.4e38, infinity),
        (DType::Bf16, 3.39e38, 3.3895313892515355e38),
        (DType::F32, 3.4028235677973366e38, infinity),
        (DType::F32, 3.4028235677973362e38, f64::from(f32::MAX)),
        (DType::F8e4m3, 1e9, 448.0),
        (DType::F8e4m3, -infinity, -448.0),
        (DType::F8e5m2, infinity, 57344.0),
        (DType::F4e2m1x2, -7.0, -6.0),
        (DType::F4e2m1x2, f64::NAN, 6.0),
        (DType::F8e8m0, 1e300, 2f64.powi(127)),
        (DType::F8e8m0, 0.0, 2f64.powi(-127)),
        (DType::F16, 5e-324, 0.0),
        (DType::F16, 2f64.powi(-25), 0.0),
        (DType::F16, 2f64.powi(-25) * 1.5, 2f64.powi(-24)),
    ] {
        assert_eq!(round_to(dtype, x), want, "{dtype} of {x}");
        assert_eq!(floats(dtype, &encode(dtype, &Values::Float(vec![x])))[0], want, "{dtype} of {x} through bytes");
    }
    assert!(round_to(DType::F8e8m0, -1.0).is_nan());
    for dtype in [DType::F64, DType::F32, DType::F16, DType::Bf16, DType::F8e4m3, DType::F8e5m2, DType::F8e8m0] {
        assert!(round_to(dtype, f64::NAN).is_nan());
        assert!(floats(dtype, &encode(dtype, &Values::Float(vec![f64::NAN])))[0].is_nan(), "{dtype}");
    }
    assert!(round_to(DType::F16, -1e-30).is_sign_negative(), "zero keeps its sign");
}

#[test]
fn a_value_between_f32_neighbours_is_rounded_once() {
    // 1 + 2^-11 + 2^-40 is above halfway between two f16 values; through f32 it would be exactly halfway, and round down to even.
    let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(round_to(DType::F16, x), 1.0 + 2f64.powi(-10));
    let x = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    assert_eq!(round_to(DType::Bf16, x), 1.0 + 2f64.powi(-7));
}

#[test]
fn units_in_the_last_place_are_those_of_the_rounded_value() {
    for (dtype, x, want) in [
        (DType::F32, 1.0, 2f64.powi(-23)),
        (DType::F32, 0.999_999, 2f64.powi(-24)),
        (DType::F32, 0.0, 2f64.powi(-149)),
        (DType::F32, f64::INFINITY, 2f64.powi(104)),
        (DType::F64, 1.0, 2f64.powi(-52)),
        (DType::F64, 0.0, 5e-324),
        (DType::F64, 2f64.powi(-1000), f64::from_bits(1 << 22)),
        (DType::F64, f64::INFINITY, 2f64.powi(971)),
        (DType::F16, 65504.0, 32.0),
        (DType::F16, 1e9, 32.0),
        (DType::I32, 1e6, 1.0),
    ] {
        assert_eq!(ulp(dtype, x), want, "{dtype} at {x}");
    }
    assert!(ulp(DType::F32, f64::NAN).is_nan());
}

#[test]
fn integers_keep_their_bits_and_wrap_to_their_width() {
    let extremes = vec![i64::MIN, -1, 0, 1, i64::MAX, 255, -129];
    for (dtype, want) in [
        (DType::I64, extremes.clone()),
        (DType::U64, extremes.clone()),
        (DType::I32, vec![0, -1, 0, 1, -1, 255, -129]),
        (DType::U16, vec![0, 65535, 0, 1, 65535, 255, 65407]),
        (DType::I8, vec![0, -1, 0, 1, -1, -1, 127]),
        (DType::U8, vec![0, 255, 0, 1, 255, 255, 127]),
        (DType::Bool, vec![1, 1, 0, 1, 1, 1, 1]),
    ] {
        let bytes = encode(dtype, &Values::Int(extremes.clone()));
        assert_eq!(bytes.len(), 7 * dtype.bytes() as usize);
        assert_eq!(decode(dtype, &bytes), Values::Int(want), "{dtype}");
    }
    let nibbles = Values::Int(vec![-8, 7, -1, 0]);
    assert_eq!(encode(DType::I4x2, &nibbles), [0x78, 0x0f]);
    assert_eq!(decode(DType::I4x2, &[0x78, 0x0f]), nibbles);
    let kept = Values::Int(extremes);
    assert_eq!(Values::from_le_bytes(DType::U64, &kept.to_le_bytes()), kept);
    let kept = Values::Float(vec![0.1, -0.0, f64::INFINITY]);
    assert_eq!(Values::from_le_bytes(DType::F16, &kept.to_le_bytes()), kept);
    assert_eq!(Values::Int(vec![-1]).to_f64(DType::U64), [18_446_744_073_709_551_615.0]);
}

#[test]
fn strided_buffers_hold_the_values_with_zeros_between() {
    let mut x = Tensor::dense("x", Role::Input, DType::F16, &[2, 3]);
    x.strides = vec![1, 3];
    let values = Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let bytes = encode_strided(&x, &values);
    assert_eq!(floats(DType::F16, &bytes), [1.0, 4.0, 0.0, 2.0, 5.0, 0.0, 3.0, 6.0]);
    assert_eq!(gather_strided(&x, &bytes), Ok(values));
    let error = gather_strided(&x, &bytes[..14]).unwrap_err().to_string();
    assert!(error.contains("`x` holds 14 bytes") && error.contains("span 16"), "{error}");

    let mut packed = Tensor::dense("q", Role::Input, DType::F4e2m1x2, &[2, 1]);
    packed.strides = vec![2, 1];
    let values = Values::Float(vec![1.0, -2.0, 6.0, 0.5]);
    let bytes = encode_strided(&packed, &values);
    assert_eq!(bytes, [0xc2, 0, 0x17]);
    assert_eq!(gather_strided(&packed, &bytes), Ok(values));
    assert_eq!(serde_json::to_value(packed.dtype).unwrap(), Value::from("f4e2m1x2"));
}
