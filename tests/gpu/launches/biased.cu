#include "copies.h"
#include <cuda_fp16.h>

// Tiles of 16 rows of 128 bytes, in as many boxes side by side as the swizzle's span goes into that.
template <class T, int SWIZZLE> __global__ void biased(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y, const T *bias, int cols) {
  constexpr int SPAN = SWIZZLE > 0 ? SWIZZLE : 128, BOXES = 128 / SPAN, WIDTH = SPAN / sizeof(T);
  __shared__ alignas(1024) unsigned char tiles[BOXES][16 * SPAN];
  __shared__ alignas(8) unsigned long long bar;
  int col = blockIdx.x * BOXES * WIDTH, row = blockIdx.y * 16;
  if (threadIdx.x == 0) {
    barrier_init(&bar);
    barrier_expect(&bar, sizeof tiles);
    for (int box = 0; box < BOXES; ++box) load(tiles[box], &x, col + box * WIDTH, row, blockIdx.z, &bar);
  }
  __syncthreads();
  barrier_wait(&bar, 0);
  for (int i = threadIdx.x; i < BOXES * 16 * WIDTH; i += blockDim.x) {
    int box = i / (16 * WIDTH), r = i / WIDTH % 16, c = i % WIDTH, at = c * (int)sizeof(T), global = col + box * WIDTH + c;
    T *value = (T *)(tiles[box] + (SWIZZLE > 0 ? swizzled<SPAN>(r, at) : r * SPAN + at));
    *value = (T)(2.0f * (float)*value + (global < cols ? (float)bias[global] : 0.0f));
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0)
    for (int box = 0; box < BOXES; ++box) store(&y, col + box * WIDTH, row, blockIdx.z, tiles[box]);
}
