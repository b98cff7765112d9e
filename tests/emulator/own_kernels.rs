//! kforge's own kernels, which run beside candidates on a device, bit for bit against what the host computes.

use kforge::model::DType;
use kforge::model::bound::{Arg, Scalar};
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
    let built = build(SOURCE, &["kforge_checksum"], true);
    let bytes: Vec<u8> = (0..999u32).flat_map(|i| (i * 77_777).to_le_bytes()).collect();
    for length in [3996, 3995, 3993] {
        let data = Data { name: "area", bytes: bytes[..length].to_vec(), element: 1, writable: false, poisoned: false };
        let sum = Data { name: "sum", bytes: vec![0; 8], element: 8, writable: true, poisoned: false };
        let args = vec![ptr("area"), long(length as u64), long(5), ptr("sum")];
        let ran = run_with(&built, vec![launch("kforge_checksum", 4, 64, args)], &[data, sum], &How::default()).clean();
        let got = u64::from_le_bytes(ran.buffers["sum"][..8].try_into().unwrap());
        assert_eq!(got, checksum(&bytes[..length], 5), "{length}");
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
