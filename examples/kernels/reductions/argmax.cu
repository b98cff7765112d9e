// Places of maxima of rows: one block a row. Of equal values the least index wins, whichever thread saw it, so that the answer does not depend on BLOCK.
struct Best {
  float value;
  int at;

  __device__ void meet(float other, int other_at) {
    if (other > value || (other == value && other_at < at)) {
      value = other;
      at = other_at;
    }
  }
};

__device__ Best warp_best(Best mine) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float value = __shfl_down_sync(0xffffffffu, mine.value, offset);
    const int at = __shfl_down_sync(0xffffffffu, mine.at, offset);
    mine.meet(value, at);
  }
  return mine;
}

template <int BLOCK> __global__ void __launch_bounds__(BLOCK) argmax(const float *__restrict__ x, int *__restrict__ y, int cols) {
  constexpr int WARPS = BLOCK / 32;
  __shared__ Best warps[WARPS];
  const float *row = x + static_cast<size_t>(blockIdx.x) * cols;
  // Past the end rather than 0: a thread without values must not win against minus infinity at a place of its own.
  Best mine = {-INFINITY, cols};
  for (int i = threadIdx.x; i < cols; i += BLOCK) mine.meet(row[i], i);
  mine = warp_best(mine);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = threadIdx.x < WARPS ? warps[threadIdx.x] : Best{-INFINITY, cols};
    mine = warp_best(mine);
    if (threadIdx.x == 0) y[blockIdx.x] = mine.at;
  }
}
