// Wide accesses: N elements of T in one instruction of up to 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace common {

// N elements that are loaded and stored together. Aligned as a whole, so that the compiler may use one access.
template <class T, int N> struct alignas(sizeof(T) * N) Vec {
  T at[N];
};

// How many elements of T fit in the widest access of a thread, 16 bytes.
template <class T> constexpr int kWidest = 16 / static_cast<int>(sizeof(T));

template <int N, class T> __device__ __forceinline__ Vec<T, N> load(const T *from) {
  return *reinterpret_cast<const Vec<T, N> *>(from);
}

template <int N, class T> __device__ __forceinline__ void store(T *to, const Vec<T, N> &value) {
  *reinterpret_cast<Vec<T, N> *>(to) = value;
}

// Storage types are narrow, arithmetic is f32.
template <class T> __device__ __forceinline__ float to_float(T value) { return static_cast<float>(value); }
template <class T> __device__ __forceinline__ T from_float(float value) { return static_cast<T>(value); }

} // namespace common
