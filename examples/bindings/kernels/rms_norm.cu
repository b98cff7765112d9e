// Root mean square normalisation: one block a row, two passes over it.
// BLOCK: threads a block. VEC: elements an access (1 or 4). SHUFFLE: sum across a warp in registers rather than in shared memory.

template <int BLOCK, bool SHUFFLE>
__device__ float block_sum(float value) {
  if constexpr (SHUFFLE) {
    __shared__ float warps[BLOCK / 32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < BLOCK / 32; warp++) sum += warps[warp];
    return sum;
  } else {
    __shared__ float partial[BLOCK];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
      __syncthreads();
    }
    return partial[0];
  }
}

template <int BLOCK, int VEC, bool SHUFFLE>
__global__ void rms_norm(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int cols, float eps) {
  const float *row = x + (size_t)blockIdx.x * cols;
  float *out = y + (size_t)blockIdx.x * cols;
  // A row starts on 16 bytes only if every row before it is a multiple of four elements long.
  const bool wide = VEC == 4 && cols % 4 == 0;
  float squares = 0.0f;
  if (wide) {
    for (int i = threadIdx.x; i < cols / 4; i += BLOCK) {
      const float4 v = reinterpret_cast<const float4 *>(row)[i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
  } else {
    for (int i = threadIdx.x; i < cols; i += BLOCK) squares += row[i] * row[i];
  }
  const float scale = rsqrtf(block_sum<BLOCK, SHUFFLE>(squares) / cols + eps);
  if (wide) {
    for (int i = threadIdx.x; i < cols / 4; i += BLOCK) {
      const float4 v = reinterpret_cast<const float4 *>(row)[i];
      const float4 g = reinterpret_cast<const float4 *>(w)[i];
      reinterpret_cast<float4 *>(out)[i] = make_float4(v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w);
    }
  } else {
    for (int i = threadIdx.x; i < cols; i += BLOCK) out[i] = row[i] * scale * w[i];
  }
}
