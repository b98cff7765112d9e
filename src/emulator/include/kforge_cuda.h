// Stands in front of every `.cu` source that is compiled for the `cpu` target: CUDA C++ in terms of host C++ and the emulator's runtime.
// Knows CUDA's keywords and built-in variables. Standard headers come first, because CUDA's keywords become macros after them.
// All of it is parsed with every source, so parts that few sources name can be left out by KF_WITHOUT_* (`prelude.rs` says when).
#pragma once
#include <kf_system.h>

#define __CUDACC__ 1
#ifndef __CUDA_ARCH__
// The least architecture with all that is emulated: asynchronous copies, reduce operations, bfloat16, tf32.
#define __CUDA_ARCH__ 800
#endif
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __KFORGE_EMULATOR__ 1
#ifdef KF_CCCL
// What the toolkit's libraries ask of a compiler of CUDA, before they take its features for given.
#define __NVCC__ 1
#define __CUDACC_VER_BUILD__ 0
#define CUDART_VERSION 13000
#define __CUDA_ARCH_LIST__ 800
#endif

#define __host__
#define __device__
#define __global__
#define __constant__ __attribute__((used))
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __nv_pure__ __attribute__((pure))
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))

#include "kf_vector_types.h"
#include "kf_runtime.h"
#include "kf_warp.h"
#ifndef KF_WITHOUT_ATOMIC
#include "kf_atomic.h"
#endif
#include "kf_intrinsics.h"
#ifndef KF_WITHOUT_SIMD
#include "kf_simd.h"
#endif
#ifndef KF_WITHOUT_NARROW
#include "kf_floats.h"
#endif
#include "kf_device.h"
#include "kf_host.h"
#include "kf_unsupported.h"
#ifdef KF_PTX
#include "kf_ptx.h"
#endif

#ifdef KFORGE_WARP_SYNCHRONOUS
// Declares that the source counts on lanes running in step at volatile accesses to shared memory: check builds then step them together.
extern "C" __attribute__((visibility("default"), used)) char kf_warp_synchronous;
char kf_warp_synchronous = 1;
#endif

// Macros over words of C++ come last.
#define __shared__ thread_local
#define alignas(...) __attribute__((aligned(kf_align_of<__VA_ARGS__>())))
#define threadIdx (kf_thread_index())
#define blockIdx (kf_block_index())
#define blockDim (kf_block_extent())
#define gridDim (kf_grid_extent())
#define warpSize 32
#define printf(...) kf_printf(__VA_ARGS__)
#undef assert
#define assert(condition) ((condition) ? (void)0 : kf_assert_failed(#condition))
// Inline PTX compiles, and says so when it is executed: `asm(...)` and `asm volatile(...)`, while `volatile float *` stays.
#define asm(...) __asm__("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#define volatile(...) ("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#define __volatile__(...) ("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#ifdef KF_EVERY_ASM
// A macro does not expand in its own expansion, so each spelling expands to itself.
#undef asm
#define asm(...) asm("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#define __asm__(...) __asm__("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#define __asm(...) __asm("" : : "r"(kf_not_emulated("inline PTX " #__VA_ARGS__)))
#endif
