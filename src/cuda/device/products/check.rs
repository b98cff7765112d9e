//! `kforge worker --check-products`: compares the digests of products on this machine's first device with those on its processors, for `tests/gpu/run`. Knows
//! both ways; decides nothing.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use super::Products;
use crate::device::probe;
use kforge_foundation::base::Digest;
use kforge_numerics::reference::{Matrix, Product, Values, product};

/// Extents, and whether each matrix is transposed: odd and even sizes, sums below, at and beyond 256 terms, more rows than one launch computes, and a large
/// case for the rate.
const CASES: &[(usize, usize, usize, bool, bool)] = &[
    (1, 1, 1, false, false),
    (63, 255, 65, false, false),
    (64, 256, 64, true, true),
    (65, 257, 1, false, true),
    (1, 1030, 129, true, false),
    (1090, 511, 70, false, true),
    (300, 20001, 200, true, true),
    (2049, 2050, 2051, false, false),
    (4096, 4096, 4096, false, false),
];

/// One case in the output.
#[derive(Serialize)]
struct CaseReport {
    product: String,
    same: bool,
    device_s: f64,
    host_s: f64,
    why: Option<String>,
}

/// The main function of the process: prints one line of JSON per case. Fails if any bit differs or a product was not computed.
pub fn check_main() -> ExitCode {
    let Some(products) = Products::of(probe(Path::new("/proc/self/exe"), &[], &AtomicBool::new(false)), |_| None)
    else {
        let _ = writeln!(io::stderr(), "error: there is no device");
        return ExitCode::FAILURE;
    };
    let all = CASES.iter().map(|case| told(&products, *case));
    let said = |told: CaseReport| {
        let text = serde_json::to_string(&told).unwrap_or_default();
        writeln!(io::stdout(), "{text}").is_ok() && told.same
    };
    match all.map(said).filter(|held| !held).count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn told(products: &Products, (m, k, n, a_lies, b_lies): (usize, usize, usize, bool, bool)) -> CaseReport {
    // Three of eight values are zero, of either sign, and the others need many bits; the first five are unused.
    let values = |count: usize, step: usize| -> Vec<f64> {
        let value = |i: usize| match i.wrapping_mul(step) % 8 {
            0 => -0.0,
            1 | 2 => 0.0,
            _ => (i.wrapping_mul(step) % 1_000_003) as f64 / 500_001.5 - 1.0,
        };
        (0..count + 5).map(value).collect()
    };
    let (a, b) = (values(m * k, 7919), values(k * n, 104_729));
    let matrix = |values, rows, columns, transposed| match transposed {
        false => Matrix { values, start: 5, row: columns, column: 1 },
        true => Matrix { values, start: 5, row: 1, column: rows },
    };
    let asked = Product { m, k, n, a: matrix(&a, m, k, a_lies), b: matrix(&b, k, n, b_lies) };
    let (mut there, mut here) = (vec![0.0; m * n], vec![0.0; m * n]);
    let began = Instant::now();
    let made = products.make(&asked, &mut there);
    let device_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    product(&asked, &mut here);
    let host_s = began.elapsed().as_secs_f64();
    let of = |values| Digest::of_long(&Values::Float(values).to_le_bytes());
    let lies = |transposed: bool| if transposed { " transposed" } else { "" };
    CaseReport {
        product: format!("{m} x {k}{} by {k} x {n}{}", lies(a_lies), lies(b_lies)),
        same: made.is_ok() && of(there) == of(here),
        device_s,
        host_s,
        why: made.err(),
    }
}
