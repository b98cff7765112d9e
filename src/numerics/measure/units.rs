//! Peak rates of arithmetic units: operations per clock of a multiprocessor, by architecture and dtype. Pure: a table and what follows from it.
//!
//! A fused multiply-add counts as two operations, and matrices count as dense. If products of an architecture differ (some add to `f32` at half the rate, for
//! example), the fastest counts, because a floor must not exceed the time of any of them. Architectures without numbers from NVIDIA are not listed.
//!
//! | architectures | source of the numbers | resulting peaks |
//! |---|---|---|
//! | 7.5 | "NVIDIA Turing GPU Architecture", appendix A | T4: 65 TFLOP/s of `f16`, 130 TOP/s of `i8` |
//! | 8.0 | "NVIDIA A100 Tensor Core GPU Architecture", table 1 | A100: 156, 312 and 624 for `tf32`, `f16` and `i8` |
//! | 8.6 | "NVIDIA Ampere GA102 GPU Architecture", appendix A | A40: 74.8, 149.7 and 299.3 |
//! | 8.7 | "NVIDIA Jetson AGX Orin Series Technical Brief" | AGX Orin: 5.3 of `f32`, 85 of `i8` |
//! | 8.9 | "NVIDIA Ada GPU Architecture", appendix A | L40S: 183, 362 and 733 of `tf32`, `f16` and `f8` |
//! | 9.0 | "NVIDIA H100 Tensor Core GPU Architecture", table 2 | H100 SXM at 1830 MHz: 67 (at 1980) of `f32`, 494.7, 989.4 and 1978.9 |
//! | 10.0, 10.3 | data sheets of HGX B200 and B300, per GPU | B200 at 1.85 GHz: 1.1, 2.25 and 4.5 PFLOP/s |
//! | 12.0, 12.1 | "NVIDIA RTX Blackwell GPU Architecture", appendix A | RTX 5090: 104.8 of `f32`, 419 and 838 of `f16` and `f8` |

use std::collections::BTreeMap;

use kforge_types::model::DType;

/// Operations per clock of a multiprocessor by unit: `f32`, `tf32`, `f16`, `bf16`, `i8`, `f8`. `arch` is as in
/// [`kforge_types::record::DeviceClass`]; empty for an unknown one.
pub fn per_clock(arch: &str) -> &'static [(&'static str, f64)] {
    match arch {
        "sm_75" => &[("f32", 128.0), ("f16", 1024.0), ("i8", 2048.0)],
        "sm_80" => &[("f32", 128.0), ("tf32", 1024.0), ("f16", 2048.0), ("bf16", 2048.0), ("i8", 4096.0)],
        "sm_86" => &[("f32", 256.0), ("tf32", 512.0), ("f16", 1024.0), ("bf16", 1024.0), ("i8", 2048.0)],
        "sm_87" => &[("f32", 256.0), ("tf32", 1024.0), ("f16", 2048.0), ("bf16", 2048.0), ("i8", 4096.0)],
        "sm_89" | "sm_120" | "sm_121" => {
            &[("f32", 256.0), ("tf32", 512.0), ("f16", 1024.0), ("bf16", 1024.0), ("i8", 2048.0), ("f8", 2048.0)]
        }
        "sm_90" => {
            &[("f32", 256.0), ("tf32", 2048.0), ("f16", 4096.0), ("bf16", 4096.0), ("i8", 8192.0), ("f8", 8192.0)]
        }
        "sm_100" => {
            &[("f32", 256.0), ("tf32", 4096.0), ("f16", 8192.0), ("bf16", 8192.0), ("i8", 16384.0), ("f8", 16384.0)]
        }
        // Its rate for integers is lower than its predecessor's, and no whitepaper says by how much.
        "sm_103" => &[("f32", 256.0), ("tf32", 4096.0), ("f16", 8192.0), ("bf16", 8192.0), ("f8", 16384.0)],
        _ => &[],
    }
}

/// Operations per second by unit, for that many multiprocessors at their highest clock; empty if any of it is unknown.
pub fn per_second(arch: &str, processors: u32, clock_mhz: u32) -> BTreeMap<String, f64> {
    let clocks = f64::from(processors) * f64::from(clock_mhz) * 1e6;
    let known = per_clock(arch).iter().filter(|_| clocks > 0.0);
    known.map(|(unit, ops)| ((*unit).to_string(), ops * clocks)).collect()
}

/// The rate of the fastest unit that may do an operator's arithmetic, given the dtypes that the operator reads, in operations per second, from `rates` by unit.
/// None if a dtype has no known unit (`f64`, four bits), or if no dtype has any.
///
/// Units for narrower numbers than those that the operator reads do not keep the precision, and an operator that cannot detect this is found to be indecisive.
/// There are two exceptions, which err low. `f32` may be split into parts of half the width, so the units of the parts count for it. Scales and weights may
/// have another dtype than the multiplied values, so the fastest unit of all dtypes counts.
pub fn fastest(read: impl IntoIterator<Item = DType>, rates: &BTreeMap<String, f64>) -> Option<f64> {
    let mut most: Option<f64> = None;
    for dtype in read {
        let units: &[&str] = match dtype {
            DType::F32 => &["f32", "tf32", "f16", "bf16"],
            DType::F16 | DType::Bf16 => &["f16", "bf16"],
            DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => &["f8"],
            DType::I8 | DType::U8 => &["i8"],
            DType::F64 | DType::F4e2m1x2 | DType::I4x2 => return None,
            // Positions, counts and truth values: no unit multiplies matrices of these.
            DType::I64 | DType::U64 | DType::I32 | DType::U32 | DType::I16 | DType::U16 | DType::Bool => continue,
        };
        // If an architecture has no unit for a dtype, the next wider one does its arithmetic.
        let wider = ["f16", "bf16", "f32"];
        let own = units.iter().filter_map(|unit| rates.get(*unit)).copied().reduce(f64::max);
        let rate = own.or_else(|| wider.iter().filter_map(|unit| rates.get(*unit)).copied().reduce(f64::max))?;
        most = Some(most.map_or(rate, |most| most.max(rate)));
    }
    most.filter(|rate| *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_gives_what_data_sheets_say() {
        // Architecture, processors, MHz, unit, tera-operations per second.
        for (arch, processors, mhz, unit, tera) in [
            ("sm_75", 40, 1590, "f16", 65.1),
            ("sm_75", 40, 1590, "i8", 130.3),
            ("sm_80", 108, 1410, "tf32", 155.9),
            ("sm_80", 108, 1410, "f16", 311.9),
            ("sm_80", 108, 1410, "i8", 623.7),
            ("sm_80", 108, 1410, "f32", 19.5),
            ("sm_86", 84, 1740, "tf32", 74.8),
            ("sm_86", 84, 1740, "bf16", 149.7),
            ("sm_87", 16, 1300, "i8", 85.2),
            ("sm_89", 142, 2520, "tf32", 183.2),
            ("sm_89", 142, 2520, "f8", 732.9),
            ("sm_90", 132, 1830, "f16", 989.4),
            ("sm_90", 132, 1830, "bf16", 989.4),
            ("sm_90", 132, 1830, "tf32", 494.7),
            ("sm_90", 132, 1830, "f8", 1978.9),
            ("sm_90", 132, 1980, "f32", 66.9),
            ("sm_100", 148, 1850, "f16", 2243.0),
            ("sm_120", 170, 2407, "f16", 419.0),
        ] {
            let told = per_second(arch, processors, mhz)[unit] / 1e12;
            assert!((told / tera - 1.0).abs() < 2e-3, "{arch} {unit}: {told} for {tera}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert!(per_clock("sm_130").is_empty() && per_clock("sm_90a").is_empty());
        assert!(per_second("sm_90", 132, 0).is_empty() && per_second("sm_90", 0, 1980).is_empty());
        assert!(!per_second("sm_103", 148, 1900).contains_key("i8"));
    }

    #[test]
    fn the_fastest_unit_is_that_of_what_is_read_and_errs_low() {
        let rates = |arch| per_second(arch, 1, 1);
        let of = |arch, read: &[DType]| fastest(read.iter().copied(), &rates(arch)).map(|r| r / 1e6);
        assert_eq!(of("sm_90", &[DType::F16, DType::F16]), Some(4096.0));
        assert_eq!(of("sm_90", &[DType::F32]), Some(4096.0), "it may be split into halves");
        assert_eq!(of("sm_90", &[DType::F8e4m3, DType::F32]), Some(8192.0), "scales are not what is multiplied");
        assert_eq!(of("sm_90", &[DType::F32, DType::I64]), Some(4096.0));
        assert_eq!(of("sm_80", &[DType::F8e4m3]), Some(2048.0), "without a unit of its own it is widened");
        assert_eq!(of("sm_75", &[DType::Bf16]), Some(1024.0));
        for none in [&[DType::F64][..], &[DType::F4e2m1x2, DType::F32], &[DType::I32], &[]] {
            assert_eq!(of("sm_90", none), None, "{none:?}");
        }
        assert_eq!(of("sm_130", &[DType::F16]), None);
    }
}
