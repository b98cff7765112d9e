// Largest values of 3 x 3 windows, two apart, over images with one row and column of minus infinity around them: a thread a window. Neighbouring threads' windows
// overlap, which caches serve well enough that shared memory would not pay. Of equal values the first in reading order is kept, as the reference has it; NaN wins.
template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    max_pool2d(const float *__restrict__ x, float *__restrict__ y, int *__restrict__ indices, int windows, int h, int w, int p, int q) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= windows) return;
  const int col0 = i % q * 2 - 1, row0 = i / q % p * 2 - 1;
  const float *image = x + static_cast<size_t>(i / (p * q)) * h * w;
  float best = -INFINITY;
  int at = -1;
#pragma unroll
  for (int r = 0; r < 3; r++) {
#pragma unroll
    for (int s = 0; s < 3; s++) {
      const int row = row0 + r, col = col0 + s;
      if (row < 0 || row >= h || col < 0 || col >= w) continue;
      const float value = image[row * w + col];
      if (at < 0 || value > best || (isnan(value) && !isnan(best))) {
        best = value;
        at = row * w + col;
      }
    }
  }
  y[i] = best;
  indices[i] = at;
}
