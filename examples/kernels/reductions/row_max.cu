// Maxima of rows of f16: a warp a row, two values an instruction. NaN wins, as it does in PyTorch and NumPy.
#include <cuda_fp16.h>

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) row_max(const __half *__restrict__ x, __half *__restrict__ y, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
  if (row >= rows) return; // the whole warp
  const __half *in = x + static_cast<size_t>(row) * cols;
  __half2 best = __half2half2(__ushort_as_half(0xfc00)); // minus infinity
  // Pairs need rows that start on four bytes.
  const int paired = cols % 2 == 0 ? cols / 2 : 0;
  for (int i = lane; i < paired; i += 32) best = __hmax2_nan(best, reinterpret_cast<const __half2 *>(in)[i]);
  for (int i = 2 * paired + lane; i < cols; i += 32) best = __hmax2_nan(best, __half2half2(in[i]));
  for (int offset = 16; offset > 0; offset /= 2) best = __hmax2_nan(best, __shfl_xor_sync(0xffffffffu, best, offset));
  if (lane == 0) y[row] = __hmax_nan(__low2half(best), __high2half(best));
}
