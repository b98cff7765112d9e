// A matrix product whose k is split among blocks: each makes a partial sum of its tile over its share of k, and a second launch adds them up in a fixed order, so that
// the result is the same each time.
constexpr int TILE = 16;

// blockIdx.z: which share, of `share` elements (the last may be shorter, or empty: it then writes zeros, which are read as any other).
__global__ void __launch_bounds__(TILE *TILE)
    split_k_partial(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ partial, int m, int n, int k, int share) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  const int first = blockIdx.z * share, end = min(k, first + share);
  float sum = 0.0f;
  for (int k0 = first; k0 < end; k0 += TILE) {
    const int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ka < end ? a[static_cast<size_t>(row) * k + ka] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = kb < end && col < n ? b[static_cast<size_t>(kb) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < TILE; kk++) sum += as[threadIdx.y][kk] * bs[kk][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) partial[(static_cast<size_t>(blockIdx.z) * m + row) * n + col] = sum;
}

__global__ void __launch_bounds__(128) split_k_sum(const float *__restrict__ partial, float *__restrict__ c, int elements, int split) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= elements) return;
  float sum = 0.0f;
  for (int part = 0; part < split; part++) sum += partial[static_cast<size_t>(part) * elements + i];
  c[i] = sum;
}
