// Rows of a table by index: a warp a token. WIDE: sixteen bytes an access where rows are whole accesses long. Bits are moved, so the type is that of the access.
#include <cuda_bf16.h>

template <int BLOCK, bool WIDE>
__global__ void __launch_bounds__(BLOCK)
    embedding(const __nv_bfloat16 *__restrict__ w, const int *__restrict__ ids, __nv_bfloat16 *__restrict__ y, int tokens, int width) {
  const int lane = threadIdx.x % 32;
  const int token = blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const __nv_bfloat16 *from = w + static_cast<size_t>(ids[token]) * width;
  __nv_bfloat16 *to = y + static_cast<size_t>(token) * width;
  if (WIDE && width % 8 == 0) {
    for (int i = lane; i < width / 8; i += 32) reinterpret_cast<uint4 *>(to)[i] = reinterpret_cast<const uint4 *>(from)[i];
  } else {
    for (int i = lane; i < width; i += 32) to[i] = from[i];
  }
}
