//! kforge's own kernels, which run beside candidates on a device, compared bit for bit with the host's results.

use kforge::cuda::device::checksum;
use kforge::model::DType;
use kforge::model::bound::{Arg, KernelLaunch, Scalar};
use kforge::reference::{Matrix, Product, product};

use super::harness::*;

const SOURCE: &str = include_str!("../../src/cuda/device/kernels.cu");

fn long(value: u64) -> Arg {
    Arg::Scalar { dtype: DType::U64, value: Scalar::Int(value as i64) }
}

fn word(value: i64) -> Arg {
    Arg::Scalar { dtype: DType::U32, value: Scalar::Int(value) }
}

#[test]
fn a_buffer_shows_the_sum_that_it_has_here_and_every_byte_around_it_that_is_another() {
    let built = build(SOURCE, &["kforge_show"], true);
    let words = (0..999u32).flat_map(|i| (i * 77_777).to_le_bytes());
    let bytes: Vec<u8> = words.collect();
    let canary = 0xc5;
    // The kernel's part of the buffer begins and ends at any word of a line, or within a word. Around it, some bytes are changed.
    for (offset, own) in
        [(0, 3996), (0, 3995), (4, 3000), (8, 3001), (12, 7), (1024, 3), (2048, 0), (3996, 0), (64, 17)]
    {
        let part: Vec<u8> = bytes[offset..offset + own].to_vec();
        let mut buffer = vec![canary; bytes.len()];
        buffer[offset..offset + own].copy_from_slice(&part);
        let around = |i: &usize| !(offset..offset + own).contains(i);
        let spoilt: Vec<usize> = (0..buffer.len()).step_by(53).chain([1, 3995]).filter(around).collect();
        // Changed by one bit each, at another position from byte to byte.
        spoilt.iter().enumerate().for_each(|(at, i)| buffer[*i] = canary ^ 1 << (at % 8));
        let spoilt = buffer.iter().enumerate().filter(|(i, byte)| around(i) && **byte != canary).count() as u64;
        let data = Data { name: "whole", bytes: buffer, element: 1, writable: false, poisoned: false };
        let found = Data { name: "found", bytes: vec![0; 16], element: 8, writable: true, poisoned: false };
        let sizes = [bytes.len(), offset, own].map(|n| long(n as u64));
        let args = [vec![ptr("whole")], sizes.to_vec(), vec![word(canary.into()), long(5), ptr("found")]].concat();
        let ran = run_with(&built, vec![launch("kforge_show", 4, 64, args)], &[data, found], &How::default()).clean();
        let of = |at: usize| u64::from_le_bytes(ran.buffers["found"][at..at + 8].try_into().unwrap());
        assert_eq!((of(0), of(8)), (checksum(&part, 5), spoilt), "{own} from {offset}");
    }
}

#[test]
fn every_word_is_flushed() {
    let built = build(SOURCE, &["kforge_flush"], true);
    let a = ints("a", 0..500).writable();
    let flush = launch("kforge_flush", 2, 64, vec![ptr("a"), long(500), word(1)]);
    // Once more without a value, which writes nothing.
    let read = launch("kforge_flush", 2, 64, vec![ptr("a"), long(500), word(0)]);
    let ran = run_with(&built, vec![flush, read], &[a], &How::default()).clean();
    assert_eq!(ran.ints("a"), (0..500).map(|i| i ^ 1).collect::<Vec<_>>());
}

/// Matrices with some zeros of either sign; the other elements are not exact in few bits.
fn numbers(count: usize, step: usize) -> Vec<f64> {
    let value = |i: usize| match i * step % 8 {
        0 => -0.0,
        1 | 2 => 0.0,
        _ => ((i * step) % 1009) as f64 / 997.0 - 0.5,
    };
    (0..count).map(value).collect()
}

#[test]
#[ignore = "second tier: many sources"]
fn a_product_made_on_a_device_has_every_bit_of_one_made_here() {
    let built = build(include_str!("../../src/cuda/device/products/kernel.cu"), &["kforge_product"], true);
    // The flags state whether each matrix is transposed. The extents are below, at and beyond a tile and a block of terms.
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
