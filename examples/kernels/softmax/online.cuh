// The maximum of some values and the sum of exp(value - maximum), mergeable in any order: what softmax and its kin need of a row, in one pass over it.
#pragma once

struct Online {
  float peak, total;

  __device__ static Online none() { return {-INFINITY, 0.0f}; }

  __device__ void add(float value) {
    // Most values do not raise the maximum, and cost one exponential.
    if (value <= peak) {
      total += __expf(value - peak);
    } else {
      total = total * __expf(peak - value) + 1.0f; // exp(-inf) is 0 at the first value
      peak = value;
    }
  }

  __device__ void merge(Online other) {
    const float higher = fmaxf(peak, other.peak);
    // Minus infinity less itself is NaN: of nothing and nothing comes nothing.
    if (higher == -INFINITY) return;
    total = total * __expf(peak - higher) + other.total * __expf(other.peak - higher);
    peak = higher;
  }

  __device__ float log_sum() const { return peak + logf(total); }
};

// Of a whole block, for every thread.
template <int BLOCK> __device__ Online block_online(Online mine) {
  constexpr int WARPS = BLOCK / 32;
  __shared__ Online warps[WARPS];
  const auto across = [](Online value) {
    for (int offset = 16; offset > 0; offset /= 2) {
      Online other;
      other.peak = __shfl_xor_sync(0xffffffffu, value.peak, offset);
      other.total = __shfl_xor_sync(0xffffffffu, value.total, offset);
      value.merge(other);
    }
    return value;
  };
  mine = across(mine);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  return across(lane < WARPS ? warps[lane] : Online::none());
}
