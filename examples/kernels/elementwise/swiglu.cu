// Swish-gated linear unit in bf16: two elements a thread, the last one of an odd count alone.
#include <cuda_bf16.h>

__device__ __forceinline__ float swiglu_one(float gate, float up) {
  return gate / (1.0f + __expf(-gate)) * up; // exp overflows to infinity for very negative gates, and the quotient is 0, as it should be
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    swiglu(const __nv_bfloat16 *__restrict__ gate, const __nv_bfloat16 *__restrict__ up, __nv_bfloat16 *__restrict__ y, long long n) {
  const long long i = 2 * (static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x);
  if (i + 1 < n) {
    const float2 g = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(gate + i));
    const float2 u = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(up + i));
    *reinterpret_cast<__nv_bfloat162 *>(y + i) = __floats2bfloat162_rn(swiglu_one(g.x, u.x), swiglu_one(g.y, u.y));
  } else if (i < n) {
    y[i] = __float2bfloat16(swiglu_one(__bfloat162float(gate[i]), __bfloat162float(up[i])));
  }
}
