// Reductions over warps and blocks, by any associative operator.
#pragma once

namespace common {

constexpr unsigned kFullWarp = 0xffffffffu;

// Operators: `apply` combines two values, `identity` changes nothing.
struct Sum {
  template <class T> __device__ static T identity() { return T(0); }
  template <class T> __device__ static T apply(T a, T b) { return a + b; }
};

struct Max {
  template <class T> __device__ static T identity() { return T(-INFINITY); }
  template <class T> __device__ static T apply(T a, T b) { return a > b ? a : b; }
};

// Every lane gets the result. A butterfly, so that all lanes combine in the same tree and agree to the last bit.
template <class Op, class T> __device__ __forceinline__ T warp_reduce(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = Op::apply(value, __shfl_xor_sync(kFullWarp, value, offset));
  return value;
}

// Every thread of a one-dimensional block of BLOCK threads gets the result. Any number of calls may follow each other.
template <int BLOCK, class Op, class T> __device__ T block_reduce(T value) {
  static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "whole warps, and one value a warp must fit in one warp");
  constexpr int WARPS = BLOCK / 32;
  value = warp_reduce<Op>(value);
  if constexpr (WARPS == 1) return value;
  __shared__ T partial[WARPS];
  __syncthreads(); // the array may still be read by an earlier call
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  // Each warp reduces the partials by itself: cheaper than one warp doing it and a third barrier to tell the rest.
  const int lane = threadIdx.x % 32;
  return warp_reduce<Op>(lane < WARPS ? partial[lane] : Op::template identity<T>());
}

} // namespace common
