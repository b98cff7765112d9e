//! The carry flag of inline PTX: one statement sets it, another takes it, as kernels with numbers of several words do it.

use super::ORDERS;
use super::harness::*;

const CARRIES: &str = r#"
#include <cuda_runtime.h>
typedef unsigned u32;
typedef unsigned long long u64;
__device__ __forceinline__ u32 add_cc(u32 a, u32 b) { u32 r; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 addc_cc(u32 a, u32 b) { u32 r; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 addc(u32 a, u32 b) { u32 r; asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 sub_cc(u32 a, u32 b) { u32 r; asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 subc_cc(u32 a, u32 b) { u32 r; asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 subc(u32 a, u32 b) { u32 r; asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 mad_lo_cc(u32 a, u32 b, u32 c) { u32 r; asm volatile("mad.lo.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ __forceinline__ u32 madc_hi(u32 a, u32 b, u32 c) { u32 r; asm volatile("madc.hi.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ __forceinline__ u32 madc_hi_cc(u32 a, u32 b, u32 c) { u32 r; asm volatile("madc.hi.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ __forceinline__ u32 madc_lo_cc(u32 a, u32 b, u32 c) { u32 r; asm volatile("madc.lo.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ __forceinline__ u32 mul_hi(u32 a, u32 b) { u32 r; asm volatile("mul.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
// a and b are numbers of 128 bits; for each thread their sum, their difference, and the product of their low 64 bits.
__global__ void words(const u32 *a, const u32 *b, u32 *sum, u32 *less, u32 *product) {
  const int t = threadIdx.x;
  a += 4 * t, b += 4 * t, sum += 4 * t, less += 4 * t, product += 4 * t;
  sum[0] = add_cc(a[0], b[0]);
  sum[1] = addc_cc(a[1], b[1]);
  sum[2] = addc_cc(a[2], b[2]);
  sum[3] = addc(a[3], b[3]);
  less[0] = sub_cc(a[0], b[0]);
  less[1] = subc_cc(a[1], b[1]);
  // Others run meanwhile, with flags of their own.
  __syncthreads();
  less[2] = subc_cc(a[2], b[2]);
  __syncwarp();
  less[3] = subc(a[3], b[3]);
  u32 r0 = a[0] * b[0], r1 = mul_hi(a[0], b[0]), r2, r3;
  r1 = mad_lo_cc(a[0], b[1], r1);
  r2 = madc_hi(a[0], b[1], 0);
  r1 = mad_lo_cc(a[1], b[0], r1);
  r2 = madc_hi_cc(a[1], b[0], r2);
  r3 = addc(0, 0);
  r2 = mad_lo_cc(a[1], b[1], r2);
  r3 = madc_hi(a[1], b[1], r3);
  product[0] = r0, product[1] = r1, product[2] = r2, product[3] = r3;
}
// Words of 64 bits, and a product whose low and high halves both take the flag over.
__global__ void wide(const u64 *a, const u64 *b, u64 *sum, u32 *chain) {
  const int t = threadIdx.x;
  a += 2 * t, b += 2 * t;
  asm volatile("add.cc.u64 %0, %1, %2;" : "=l"(sum[2 * t]) : "l"(a[0]), "l"(b[0]));
  asm volatile("addc.u64 %0, %1, %2;" : "=l"(sum[2 * t + 1]) : "l"(a[1]), "l"(b[1]));
  const u32 x = static_cast<u32>(a[0]), y = static_cast<u32>(b[0]);
  u32 lost = add_cc(x, y);
  chain[t] = madc_lo_cc(x, y, lost);
}
"#;

/// Words of several kinds: all bits, none, and others.
fn words(count: usize, salt: u64) -> Vec<u32> {
    let mix = |i: usize| {
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt).wrapping_mul(0xd134_2543_de82_ef95)
    };
    (0..count)
        .map(|i| match mix(i) >> 61 {
            0 | 1 => u32::MAX,
            2 => 0,
            _ => (mix(i) >> 17) as u32,
        })
        .collect()
}

fn long(words: &[u32]) -> Vec<u128> {
    words.chunks(4).map(|w| w.iter().rev().fold(0, |all, w| all << 32 | u128::from(*w))).collect()
}

#[test]
#[ignore = "second tier: many sources"]
fn the_carry_flag_stays_from_one_statement_to_the_next() {
    let (threads, bytes) = (64u32, |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>());
    let (a, b) = (words(4 * threads as usize, 1), words(4 * threads as usize, 77));
    let given = |name, of: &[u32]| Data { name, bytes: bytes(of), element: 4, writable: false, poisoned: false };
    for check in [true, false] {
        let built = build(CARRIES, &["words", "wide"], check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let out = |name| output(name, 4 * threads as usize, 4);
            let data = [given("a", &a), given("b", &b), out("sum"), out("less"), out("product")];
            let args = ["a", "b", "sum", "less", "product"].map(ptr).to_vec();
            let ran = run_with(&built, vec![launch("words", 1, threads, args)], &data, &how).clean();
            let of = |name: &str| {
                let words: Vec<u32> =
                    ran.buffers[name].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
                long(&words)
            };
            let pairs: Vec<(u128, u128)> = long(&a).into_iter().zip(long(&b)).collect();
            let low = |x: u128| x & u128::from(u64::MAX);
            assert_eq!(of("sum"), pairs.iter().map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
            assert_eq!(of("less"), pairs.iter().map(|(a, b)| a.wrapping_sub(*b)).collect::<Vec<_>>());
            assert_eq!(of("product"), pairs.iter().map(|(a, b)| low(*a) * low(*b)).collect::<Vec<_>>());

            let chain = output("chain", threads as usize, 4);
            let data = [given("a", &a), given("b", &b), Data { element: 8, ..out("sum") }, chain];
            let args = ["a", "b", "sum", "chain"].map(ptr).to_vec();
            let ran = run_with(&built, vec![launch("wide", 1, threads, args)], &data, &how).clean();
            let sums: Vec<u128> =
                ran.buffers["sum"].chunks(16).map(|c| u128::from_le_bytes(c.try_into().unwrap())).collect();
            assert_eq!(sums, pairs.iter().map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
            let chained = |(a, b): &(u128, u128)| {
                let (x, y) = (*a as u32, *b as u32);
                let (sum, carry) = x.overflowing_add(y);
                x.wrapping_mul(y).wrapping_add(sum).wrapping_add(u32::from(carry)).cast_signed()
            };
            assert_eq!(ran.ints("chain"), pairs.iter().map(chained).collect::<Vec<_>>());
        }
    }
}
