//! Runs the kernels of examples/bindings/kernels through their Rust loader, compares results with sums in f64 on the host, and times the calls.
//!
//! ```sh
//! kforge bindings loaders-1.0.0.tar --language rust --output target/bindings/loaders-rust
//! cargo run --release --manifest-path examples/bindings/rust/Cargo.toml
//! ```
//!
//! Without a driver it says so.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaContext, CudaStream};
use half::f16;

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: only looks for the library.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        println!("no driver here; the program is complete without one");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let correct = rms_norm(&stream, 37, 4099)? & matmul(&stream, 200, 136, 328)? & split_k(&stream, 32, 40, 2000)?;
    let correct = correct & refused(&stream)?;
    println!("{}", if correct { "correct" } else { "WRONG" });
    if correct { Ok(()) } else { Err("a result is wrong".into()) }
}

/// Multiples of 1/512 in [-1, 1), which halves hold exactly.
fn values(count: usize, mut seed: u32) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((seed >> 22) as f32 - 512.0) / 512.0
    };
    (0..count).map(|_| next()).collect()
}

/// Microseconds of host time a call.
fn timed(
    stream: &Arc<CudaStream>,
    mut call: impl FnMut() -> Result<(), loaders::Error>,
) -> Result<f64, Box<dyn Error>> {
    call()?;
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..500 {
        call()?;
    }
    let took = start.elapsed().as_secs_f64() * 1e6 / 500.0;
    stream.synchronize()?;
    Ok(took)
}

fn report(name: &str, worst: f64, limit: f64, micros: f64) -> bool {
    println!("{name:10} worst error {worst:.2e}, {micros:.2} us of host time a call");
    worst <= limit
}

fn product_error(a: &[f32], b: &[f32], c: &[f32], [m, n, k]: [usize; 3]) -> f64 {
    let sum = |i: usize, j: usize| (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>();
    let pairs = (0..m).flat_map(|i| (0..n).map(move |j| (i, j)));
    pairs.map(|(i, j)| (sum(i, j) - f64::from(c[i * n + j])).abs()).fold(0.0, f64::max)
}

fn rms_norm(stream: &Arc<CudaStream>, rows: usize, cols: usize) -> Result<bool, Box<dyn Error>> {
    let (x, w) = (values(rows * cols, 1), values(cols, 2));
    let (dx, dw) = (stream.clone_htod(&x)?, stream.clone_htod(&w)?);
    let mut dy = stream.alloc_zeros::<f32>(rows * cols)?;
    // SAFETY: every value of x and w is allowed.
    let call = || unsafe { loaders::rms_norm(stream, &dx, &dw, &mut dy, rows as i64, cols as i64, 1e-6) };
    let micros = timed(stream, call)?;
    let y = stream.clone_dtoh(&dy)?;
    let mut worst = 0.0f64;
    for (x, y) in x.chunks(cols).zip(y.chunks(cols)) {
        let squares: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
        for ((x, w), y) in x.iter().zip(&w).zip(y) {
            let expected = f64::from(*x) / (squares / cols as f64 + 1e-6).sqrt() * f64::from(*w);
            worst = worst.max((expected - f64::from(*y)).abs());
        }
    }
    Ok(report("rms_norm", worst, 1e-5, micros))
}

fn matmul(stream: &Arc<CudaStream>, m: usize, n: usize, k: usize) -> Result<bool, Box<dyn Error>> {
    let (a, b) = (values(m * k, 3), values(k * n, 4));
    let halves = |all: &[f32]| all.iter().map(|value| f16::from_f32(*value)).collect::<Vec<_>>();
    // The kernels take halves as cudarc holds them: sixteen bits.
    let (da, db) = (stream.clone_htod(&bits(&halves(&a)))?, stream.clone_htod(&bits(&halves(&b)))?);
    // SAFETY: the slices hold halves.
    let (da, db) = unsafe { (da.transmute::<f16>(m * k), db.transmute::<f16>(k * n)) };
    let (da, db) = (da.ok_or("too short")?, db.ok_or("too short")?);
    let mut dc = stream.alloc_zeros::<f32>(m * n)?;
    // SAFETY: every value of a and b is allowed.
    let call = || unsafe { loaders::matmul(stream, &da, &db, &mut dc, m as i64, n as i64, k as i64) };
    let micros = timed(stream, call)?;
    let c = stream.clone_dtoh(&dc)?;
    Ok(report("matmul", product_error(&a, &b, &c, [m, n, k]), 1e-3, micros))
}

fn bits(all: &[f16]) -> Vec<u16> {
    all.iter().map(|value| value.to_bits()).collect()
}

fn split_k(stream: &Arc<CudaStream>, m: usize, n: usize, k: usize) -> Result<bool, Box<dyn Error>> {
    let (a, b) = (values(m * k, 5), values(k * n, 6));
    let (da, db) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let mut dc = stream.alloc_zeros::<f32>(m * n)?;
    let bytes = loaders::split_k_workspace(stream, m as i64, n as i64, k as i64)?;
    let mut workspace = stream.alloc_zeros::<u8>(bytes)?;
    // SAFETY: every value of a and b is allowed.
    let call = || unsafe {
        loaders::split_k(stream, &da, &db, &mut dc, m as i64, n as i64, k as i64, &mut workspace)
    };
    let micros = timed(stream, call)?;
    let c = stream.clone_dtoh(&dc)?;
    Ok(report("split_k", product_error(&a, &b, &c, [m, n, k]), 1e-3, micros))
}

/// What no champion serves, and a slice that is too short, is refused by name before anything runs.
fn refused(stream: &Arc<CudaStream>) -> Result<bool, Box<dyn Error>> {
    let x = stream.alloc_zeros::<f32>(64)?;
    let mut y = stream.alloc_zeros::<f32>(64)?;
    // SAFETY: nothing is launched.
    let short = unsafe { loaders::rms_norm(stream, &x, &x, &mut y, 2, 64, 1e-6) };
    // SAFETY: nothing is launched.
    let negative = unsafe { loaders::rms_norm(stream, &x, &x, &mut y, -1, 64, 1e-6) };
    Ok(short == Err(loaders::Error::TooShort("x")) && negative == Err(loaders::Error::WrongShape))
}
