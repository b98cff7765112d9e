// c = relu(a @ b + bias) by tiles.
//
// Every element of a is needed n times and every element of b m times. A block fetches a TILE x TILE tile of each into shared memory, where its threads then read them TILE
// times; and a thread makes ROWS elements of one column, so that it reads an element of b once for ROWS products.

__device__ float epilogue(float sum, float bias) { return fmaxf(sum + bias, 0.0f); }

template <int TILE, int ROWS>
__global__ void matmul(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ c, int m,
                       int n, int k) {
  constexpr int STEP = TILE / ROWS;  // threads along y: a thread's rows lie this far apart
  extern __shared__ float shared[];  // its size is `shared` in kernel.toml
  float *as = shared, *bs = shared + TILE * TILE;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row0 = blockIdx.y * TILE + ty;
  const int col = blockIdx.x * TILE + tx;

  float sums[ROWS] = {};
  for (int k0 = 0; k0 < k; k0 += TILE) {
    // Zeros where the tile goes beyond the matrix: they add nothing, and the loop below needs no bounds.
    for (int i = 0; i < ROWS; i++) {
      const int line = ty + i * STEP;
      const int row = row0 + i * STEP;
      as[line * TILE + tx] = row < m && k0 + tx < k ? a[static_cast<size_t>(row) * k + k0 + tx] : 0.0f;
      bs[line * TILE + tx] = k0 + line < k && col < n ? b[static_cast<size_t>(k0 + line) * n + col] : 0.0f;
    }
    __syncthreads(); // the tiles are whole
    for (int kk = 0; kk < TILE; kk++) {
      const float right = bs[kk * TILE + tx];
      for (int i = 0; i < ROWS; i++) sums[i] += as[(ty + i * STEP) * TILE + kk] * right;
    }
    __syncthreads(); // and may be overwritten
  }

  for (int i = 0; i < ROWS; i++) {
    const int row = row0 + i * STEP;
    if (row < m && col < n) c[static_cast<size_t>(row) * n + col] = epilogue(sums[i], bias[col]);
  }
}
