// Picks along rows. BLOCK comes as a macro.
__global__ void __launch_bounds__(BLOCK)
    gather(const float *__restrict__ x, const int *__restrict__ index, float *__restrict__ y, int cols, int picks) {
  const int pick = blockIdx.x * BLOCK + threadIdx.x;
  if (pick >= picks) return;
  const size_t at = static_cast<size_t>(blockIdx.y) * picks + pick;
  // Rows of x are read at random, but stay in cache while a block works on them; the read-only path keeps their lines.
  y[at] = __ldg(x + static_cast<size_t>(blockIdx.y) * cols + index[at]);
}
