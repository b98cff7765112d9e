// Tensor copies and the barriers that count their bytes, by the instructions' names.
#pragma once
#include <cuda.h>

__device__ inline unsigned at(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared); }

__device__ inline void barrier_init(unsigned long long *bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(bar)));
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void barrier_expect(unsigned long long *bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}

__device__ inline void barrier_wait(unsigned long long *bar, unsigned phase) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(at(bar)), "r"(phase) : "memory");
}

__device__ inline void load(void *tile, const CUtensorMap *map, int x, int y, unsigned long long *bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)), "l"(map), "r"(x), "r"(y),
               "r"(at(bar))
               : "memory");
}

__device__ inline void load(void *tile, const CUtensorMap *map, int x, int y, int z, unsigned long long *bar) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(at(tile)), "l"(map), "r"(x), "r"(y),
               "r"(z), "r"(at(bar))
               : "memory");
}

__device__ inline void store(const CUtensorMap *map, int x, int y, int z, const void *tile) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x), "r"(y), "r"(z), "r"(at(tile)) : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// Where byte `byte` of row `row` lies in a tile whose rows of SPAN bytes are swizzled: units of sixteen bytes change places within the span, by the number of the line of 128 bytes.
template <int SPAN> __device__ inline int swizzled(int row, int byte) {
  int flat = row * SPAN + byte;
  return flat ^ ((flat >> 7 & (SPAN / 16 - 1)) << 4);
}
