// A matrix product from shared memory: each thread keeps a tile of 4 by 4 sums in registers, or one.
template <typename T, int TILE>
__device__ void product(T* c, const T* a, const T* b, int k) {
    __shared__ T x[16 * 64], y[16 * 64];
    T sum[TILE][TILE] = {};
    const int row = threadIdx.y * TILE, column = threadIdx.x * TILE;
    for (int i = 0; i < k; i += 16) {
        for (int j = threadIdx.y * blockDim.x + threadIdx.x; j < 16 * 64; j += blockDim.x * blockDim.y) {
            x[j] = a[i * 64 + j];
            y[j] = b[i * 64 + j];
        }
        __syncthreads();
#pragma unroll 1
        for (int s = 0; s < 16; s++) {
#pragma unroll
            for (int p = 0; p < TILE; p++)
#pragma unroll
                for (int q = 0; q < TILE; q++) sum[p][q] += x[s * 64 + row + p] * y[s * 64 + column + q];
        }
        __syncthreads();
    }
    for (int p = 0; p < TILE; p++)
        for (int q = 0; q < TILE; q++) c[(row + p) * 64 + column + q] = sum[p][q];
}

__global__ void with(float* c, const float* a, const float* b, int k) { product<float, 4>(c, a, b, k); }
__global__ void without(float* c, const float* a, const float* b, int k) { product<float, 1>(c, a, b, k); }
__global__ void with_doubles(double* c, const double* a, const double* b, int k) { product<double, 4>(c, a, b, k); }
__global__ void without_doubles(double* c, const double* a, const double* b, int k) { product<double, 1>(c, a, b, k); }
