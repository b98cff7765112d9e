//! Matrix products of a warp.

use super::harness::*;

const MATRICES: &str = r#"
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;
template <class T, class Held, class Acc, int M, int N, int K>
__global__ void product(const Held *a, const Held *b, Acc *c) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
  wmma::fill_fragment(fc, Acc(1));
  for (int k = 0; k < 2; ++k) {
    wmma::load_matrix_sync(fa, a + k * K, 2 * K);
    wmma::load_matrix_sync(fb, b + k * K, 2 * K);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i];
    wmma::mma_sync(fc, fa, fb, fc);
  }
  __shared__ Acc tile[M * N];
  wmma::store_matrix_sync(tile, fc, N, wmma::mem_row_major);
  for (int i = threadIdx.x; i < M * N; i += 32) c[i] = tile[i];
}
"#;

#[test]
#[ignore = "second tier: many sources"]
fn warp_matrix_products_are_those_of_their_matrices() {
    type Encode = fn(i32) -> Vec<u8>;
    let f16: Encode = |v| half::f16::from_f32(v as f32).to_le_bytes().to_vec();
    let bf16: Encode = |v| half::bf16::from_f32(v as f32).to_le_bytes().to_vec();
    let f32: Encode = |v| (v as f32).to_le_bytes().to_vec();
    let s8: Encode = |v| vec![v as i8 as u8];
    let u8: Encode = |v| vec![v.unsigned_abs() as u8];
    let f64: Encode = |v| f64::from(v).to_le_bytes().to_vec();
    let cases: [(&str, Encode, &str, [usize; 3]); 11] = [
        ("product<__half, __half, float, 16, 16, 16>", f16, "f32", [16, 16, 16]),
        ("product<__half, __half, float, 32, 8, 16>", f16, "f32", [32, 8, 16]),
        ("product<__half, __half, float, 8, 32, 16>", f16, "f32", [8, 32, 16]),
        ("product<__half, __half, __half, 16, 16, 16>", f16, "f16", [16, 16, 16]),
        ("product<__half, __half, __half, 32, 8, 16>", f16, "f16", [32, 8, 16]),
        ("product<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>", bf16, "f32", [16, 16, 16]),
        ("product<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 16>", bf16, "f32", [8, 32, 16]),
        ("product<wmma::precision::tf32, float, float, 16, 16, 8>", f32, "f32", [16, 16, 8]),
        ("product<signed char, signed char, int, 16, 16, 16>", s8, "i32", [16, 16, 16]),
        ("product<unsigned char, unsigned char, int, 32, 8, 16>", u8, "i32", [32, 8, 16]),
        ("product<double, double, double, 8, 8, 4>", f64, "f64", [8, 8, 4]),
    ];
    let entries = cases.map(|c| c.0);
    for check in [false, true] {
        let built = build(MATRICES, &entries, check);
        for (entry, encode, sums, [m, n, k]) in cases {
            let sign = |v: i32| if entry.contains("unsigned") { v.abs() } else { v };
            let a: Vec<i32> = (0..m * 2 * k).map(|i| sign((i * 7 % 11) as i32 - 5)).collect();
            let b: Vec<i32> = (0..n * 2 * k).map(|i| sign((i * 5 % 13) as i32 - 6)).collect();
            let data = |name, values: &[i32]| Data {
                name,
                bytes: values.iter().flat_map(|v| encode(*v)).collect(),
                element: encode(0).len() as u64,
                writable: false,
                poisoned: false,
            };
            let width = [("f16", 2), ("f64", 8)].iter().find(|(name, _)| *name == sums).map_or(4, |(_, width)| *width);
            let data = [data("a", &a), data("b", &b), output("c", m * n, width)];
            let ran = run(&built, launch(entry, 1, 32, vec![ptr("a"), ptr("b"), ptr("c")]), &data).clean();
            let want = |e: usize| 1 + (0..2 * k).map(|l| a[e / n * 2 * k + l] * b[e % n * 2 * k + l]).sum::<i32>();
            for e in 0..m * n {
                let bytes = &ran.buffers["c"][e * width as usize..][..width as usize];
                let got = match sums {
                    "f16" => half::f16::from_le_bytes(bytes.try_into().unwrap()).to_f32() as i32,
                    "f64" => f64::from_le_bytes(bytes.try_into().unwrap()) as i32,
                    "i32" => i32::from_le_bytes(bytes.try_into().unwrap()),
                    _ => f32::from_le_bytes(bytes.try_into().unwrap()) as i32,
                };
                assert_eq!(got, want(e), "{entry} element {e}");
            }
        }
    }
}
