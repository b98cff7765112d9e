//! Communication between the threads of a warp, a block and a grid: shuffles, votes, barriers, cooperative groups.

use super::ORDERS;
use super::harness::*;

pub(super) const WARPS: &str = r#"
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void shuffles(double *d, long long *l, int *i, __half *h) {
  int t = threadIdx.x, lane = t % 32;
  d[t] = __shfl_sync(0xffffffffu, lane + 0.5, 3);
  l[t] = __shfl_xor_sync(0xffffffffu, (long long)lane << 40, 1);
  i[t] = __shfl_up_sync(0xffffffffu, lane, 2, 8);
  i[64 + t] = __shfl_down_sync(0xffffffffu, lane, 2, 8);
  i[128 + t] = __shfl_sync(0xffffffffu, lane, 11, 8);
  h[t] = __shfl_down_sync(0xffffffffu, __float2half((float)lane), 16);
}
__global__ void votes(unsigned *out) {
  int lane = threadIdx.x;
  unsigned odd = 0xaaaaaaaau;
  if (lane & 1) {
    out[lane] = __ballot_sync(odd, lane > 16);
  } else {
    out[lane] = __reduce_add_sync(~odd, (unsigned)lane);
  }
  int same;
  unsigned all = __match_all_sync(0xffffffffu, lane / 32, &same);
  out[32 + lane] = __match_any_sync(0xffffffffu, lane % 3);
  out[64 + lane] = (all == 0xffffffffu) + 2 * same + 4 * __any_sync(0xffffffffu, lane == 5) + 8 * __all_sync(0xffffffffu, lane < 31)
    + 16 * (__reduce_min_sync(0xffffffffu, lane - 5) == -5) + 32 * (__reduce_max_sync(0xffffffffu, 3u + lane) == 34u);
}
__global__ void early(int *out, int n) {
  if (threadIdx.x >= n) return;
  int v = threadIdx.x;
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step) * (((int)threadIdx.x ^ step) < n);
  out[threadIdx.x] = v;
}
__global__ void active(unsigned *out) {
  if (threadIdx.x % 3 == 0) out[threadIdx.x] = __activemask(); else out[threadIdx.x] = __activemask();
}
__global__ void barriers(int *out) {
  int t = threadIdx.x;
  out[t] = __syncthreads_count(t % 3 == 0);
  out[64 + t] = __syncthreads_and(t < 64) + 2 * __syncthreads_and(t < 63) + 4 * __syncthreads_or(t == 63) + 8 * __syncthreads_or(t == 64);
}
__global__ void groups(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int t = block.thread_rank();
  out[t] = cg::reduce(warp, t, cg::plus<int>());
  out[64 + t] = cg::reduce(tile, t, cg::greater<int>()) * 100 + tile.meta_group_rank();
  block.sync();
  int got = 0;
  if (t % 5 == 0) {
    cg::coalesced_group some = cg::coalesced_threads();
    got = cg::reduce(some, 1, cg::plus<int>()) * 100 + some.thread_rank();
  }
  out[128 + t] = got;
  struct Wide { int a, b, c; } w = {t, t + 1, t + 2};
  w = tile.shfl(w, 2);
  out[192 + t] = w.a + w.c;
  out[256 + t] = cg::inclusive_scan(warp, 1) + 100 * warp.shfl_up(t, 1);
  auto by = cg::labeled_partition(warp, t % 4);
  out[320 + t] = cg::reduce(by, t, cg::plus<int>());
}
__global__ void grid_sum(int *part, int *out, int rounds) {
  __shared__ int mine;
  cg::grid_group grid = cg::this_grid();
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x == 0) { mine = blockIdx.x + r; part[blockIdx.x] = mine; }
    grid.sync();
    if (grid.thread_rank() == 0) { int s = 0; for (int i = 0; i < gridDim.x; ++i) s += part[i]; out[r] = s; }
    grid.sync();
    if (threadIdx.x == 0 && mine != blockIdx.x + r) out[r] = -1;
  }
}
"#;

#[test]
fn warp_operations_and_groups_give_what_cuda_defines() {
    let entries = ["shuffles", "votes", "early", "active", "barriers", "groups", "grid_sum"];
    for check in [false, true] {
        let built = build(WARPS, &entries, check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let go = |launch, data: &[Data]| run_with(&built, vec![launch], data, &how).clean();
            let args = vec![ptr("d"), ptr("l"), ptr("i"), ptr("h")];
            let data = [output("d", 64, 8), output("l", 64, 8), output("i", 192, 4), output("h", 64, 2)];
            let ran = go(launch("shuffles", 1, 64, args), &data);
            assert!(ran.buffers["d"].chunks(8).all(|c| f64::from_le_bytes(c.try_into().unwrap()) == 3.5));
            for (t, c) in ran.buffers["l"].chunks(8).enumerate() {
                assert_eq!(i64::from_le_bytes(c.try_into().unwrap()), ((t as i64 % 32) ^ 1) << 40);
            }
            let got = ran.ints("i");
            for t in 0..64 {
                let lane = t as i32 % 32;
                assert_eq!(got[t], if lane % 8 < 2 { lane } else { lane - 2 });
                assert_eq!(got[64 + t], if lane % 8 > 5 { lane } else { lane + 2 });
                assert_eq!(got[128 + t], lane / 8 * 8 + 3);
                let h = half::f16::from_le_bytes(ran.buffers["h"][2 * t..2 * t + 2].try_into().unwrap());
                assert_eq!(h.to_f32(), if lane < 16 { lane + 16 } else { lane } as f32);
            }

            let got = go(launch("votes", 1, 32, vec![ptr("out")]), &[output("out", 96, 4)]).ints("out");
            for lane in 0..32 {
                assert_eq!(got[lane] as u32, if lane % 2 == 1 { 0xaaaa_0000 } else { 240 });
                let alike = (0..32).filter(|l| l % 3 == lane % 3).fold(0u32, |m, l| m | 1 << l);
                assert_eq!((got[32 + lane] as u32, got[64 + lane]), (alike, 1 + 2 + 4 + 16 + 32));
            }

            let got = go(launch("early", 1, 32, vec![ptr("out"), int(24)]), &[output("out", 32, 4)]).ints("out");
            let mut lanes: Vec<i32> = (0..24).collect();
            for step in [16, 8, 4, 2, 1] {
                lanes = (0..24).map(|t| lanes[t] + lanes.get(t ^ step).copied().unwrap_or(0)).collect();
            }
            assert_eq!(got[..24], lanes, "lanes that left take no part");
            let got = go(launch("active", 1, 32, vec![ptr("out")]), &[output("out", 32, 4)]).ints("out");
            let third = (0..32).step_by(3).fold(0u32, |m, l| m | 1 << l);
            assert_eq!((got[0] as u32, got[1] as u32), (third, !third));

            let got = go(launch("barriers", 1, 64, vec![ptr("out")]), &[output("out", 128, 4)]).ints("out");
            assert!(got[..64].iter().all(|v| *v == 22) && got[64..].iter().all(|v| *v == 1 + 4), "{got:?}");

            let got = go(launch("groups", 1, 64, vec![ptr("out")]), &[output("out", 384, 4)]).ints("out");
            for t in 0..64usize {
                let (warp, tile) = (t / 32 * 32, t / 8 * 8);
                assert_eq!(got[t] as usize, (warp..warp + 32).sum::<usize>());
                assert_eq!(got[64 + t] as usize, (tile + 7) * 100 + t / 8);
                let fives: Vec<usize> = (warp..warp + 32).filter(|t| t % 5 == 0).collect();
                let want = fives.iter().position(|f| *f == t).map_or(0, |rank| fives.len() * 100 + rank);
                assert_eq!(got[128 + t] as usize, want);
                assert_eq!(got[192 + t] as usize, 2 * (tile + 2) + 2);
                assert_eq!(got[256 + t] as usize, t % 32 + 1 + 100 * if t % 32 == 0 { t } else { t - 1 });
                assert_eq!(got[320 + t] as usize, (warp..warp + 32).filter(|u| u % 4 == t % 4).sum::<usize>());
            }

            let mut grid = launch("grid_sum", 9, 40, vec![ptr("part"), ptr("out"), int(3)]);
            grid.cooperative = true;
            let got = go(grid, &[output("part", 9, 4), output("out", 3, 4)]).ints("out");
            assert_eq!(got, [36, 45, 54]);
        }
    }
}
