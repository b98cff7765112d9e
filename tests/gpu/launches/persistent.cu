extern "C" __global__ void persistent(const float *x, float *y, int rows, int cols) {
  __shared__ float partial[256];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += x[(size_t)row * cols + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) y[row] = partial[0];
    __syncthreads();
  }
}
