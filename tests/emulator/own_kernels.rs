//! kforge's own kernels, which run beside candidates on a device, bit for bit against what the host computes.

use kforge::model::DType;
use kforge::model::bound::{Arg, KernelLaunch, Scalar};
use kforge::reference::{Matrix, Product, product};
use kforge::worker::cuda::device::checksum;

use super::harness::*;

const SOURCE: &str = include_str!("../../src/worker/cuda/device/kernels.cu");

fn long(value: u64) -> Arg {
    Arg::Scalar { dtype: DType::U64, value: Scalar::Int(value as i64) }
}

fn word(value: i64) -> Arg {
    Arg::Scalar { dtype: DType::U32, value: Scalar::Int(value) }
}

#[test]
fn a_buffer_summed_on_a_device_has_the_sum_it_has_here() {
    // Words are read four at a time where they lie so: from any word on.
    let source = format!(
        "{SOURCE}\nextern \"C\" __global__ void from(const unsigned char* area, u64 skip, u64 bytes, u64* sum) {{
            add_checksum(area + skip, bytes, 5, sum);
        }}"
    );
    let built = build(&source, &["kforge_checksum", "from"], true);
    let bytes: Vec<u8> = (0..999u32).flat_map(|i| (i * 77_777).to_le_bytes()).collect();
    let area = || Data { name: "area", bytes: bytes.clone(), element: 1, writable: false, poisoned: false };
    let sum = || Data { name: "sum", bytes: vec![0; 8], element: 8, writable: true, poisoned: false };
    let summed = |entry, args| {
        let ran = run_with(&built, vec![launch(entry, 4, 64, args)], &[area(), sum()], &How::default()).clean();
        u64::from_le_bytes(ran.buffers["sum"][..8].try_into().unwrap())
    };
    let whole = bytes.len() as u64;
    assert_eq!(summed("kforge_checksum", vec![ptr("area"), long(whole), long(5), ptr("sum")]), checksum(&bytes, 5));
    for (skip, length) in [(0, 3995), (4, 3992), (8, 3985), (12, 3984), (4, 7), (8, 3), (0, 0)] {
        let got = summed("from", vec![ptr("area"), long(skip), long(length), ptr("sum")]);
        assert_eq!(got, checksum(&bytes[skip as usize..(skip + length) as usize], 5), "{length} from {skip}");
    }
}

#[test]
fn every_byte_that_is_another_is_counted_and_every_word_is_flushed() {
    let built = build(SOURCE, &["kforge_unlike", "kforge_flush"], true);
    let a = ints("a", 0..500).writable();
    let spoilt: Vec<u8> = (0..997).map(|i| if i % 100 == 7 { 0 } else { 0xc5 }).collect();
    let around = Data { name: "around", bytes: spoilt, element: 1, writable: false, poisoned: false };
    let count = Data { name: "count", bytes: vec![0; 8], element: 8, writable: true, poisoned: false };
    let unlike = launch("kforge_unlike", 2, 64, vec![ptr("around"), long(997), word(0xc5), ptr("count")]);
    let flush = launch("kforge_flush", 2, 64, vec![ptr("a"), long(500), word(1)]);
    // Once more without a value: then nothing is written.
    let read = launch("kforge_flush", 2, 64, vec![ptr("a"), long(500), word(0)]);
    let ran = run_with(&built, vec![unlike, flush, read], &[a, around, count], &How::default()).clean();
    assert_eq!(ran.buffers["count"][0], 10);
    assert_eq!(ran.ints("a"), (0..500).map(|i| i ^ 1).collect::<Vec<_>>());
}

/// Matrices of which some elements are zero, of either sign, and the rest not exact in few bits.
fn numbers(count: usize, step: usize) -> Vec<f64> {
    let value = |i: usize| match i * step % 8 {
        0 => -0.0,
        1 | 2 => 0.0,
        _ => ((i * step) % 1009) as f64 / 997.0 - 0.5,
    };
    (0..count).map(value).collect()
}

#[test]
fn a_product_made_on_a_device_has_every_bit_of_one_made_here() {
    let built = build(include_str!("../../src/worker/cuda/device/products/kernel.cu"), &["kforge_product"], true);
    // Whether the matrices lie transposed; extents below, at and beyond a tile and a block of terms.
    for (m, k, n, left, right) in
        [(1, 1, 1, false, false), (65, 300, 3, true, false), (5, 256, 70, false, true), (64, 17, 64, true, true)]
    {
        let (a, b) = (numbers(m * k, 7919), numbers(k * n, 104_729));
        let strides = |rows: usize, columns: usize, transposed: bool| if transposed { (1, rows) } else { (columns, 1) };
        let ((a_row, a_column), (b_row, b_column)) = (strides(m, k, left), strides(k, n, right));
        let asked = Product {
            m,
            k,
            n,
            a: Matrix { values: &a, start: 0, row: a_row, column: a_column },
            b: Matrix { values: &b, start: 0, row: b_row, column: b_column },
        };
        let mut want = vec![f64::NAN; m * n];
        product(&asked, &mut want);

        let bytes = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let data = |name, values: &[f64], writable| Data {
            name,
            bytes: bytes(values),
            element: 8,
            writable,
            poisoned: writable,
        };
        let buffers = [data("a", &a, false), data("b", &b, false), data("c", &vec![0.0; m * n], true)];
        let sizes = |numbers: &[usize]| numbers.iter().map(|n| long(*n as u64)).collect::<Vec<_>>();
        let mut args = vec![ptr("a")];
        args.extend(sizes(&[a_row, a_column]));
        args.push(ptr("b"));
        args.extend(sizes(&[b_row, b_column]));
        args.push(ptr("c"));
        args.extend(sizes(&[m, k, n, 0]));
        let grid = [n.div_ceil(64) as u32, m.div_ceil(64) as u32, 1];
        let launched = KernelLaunch { grid, ..launch("kforge_product", 1, 256, args) };
        let ran = run_with(&built, vec![launched], &buffers, &How::default()).clean();
        let got = &ran.buffers["c"][..m * n * 8];
        assert!(got == bytes(&want), "{m} x {k} x {n}");
    }
}
