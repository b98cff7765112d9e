// C = A * B in fp32 for square n, a multiple of every tile. A block of TX by TY threads makes a tile of TY*RY by TX*RX elements, RY by RX in registers of each
// thread, and walks along k in steps of TK through shared memory.
extern "C" __global__ void mm(const float *A, const float *B, float *C, int n) {
  constexpr int M = TY * RY, N = TX * RX, THREADS = TX * TY;
  __shared__ float left[M][TK + 1];
  __shared__ float right[TK][N];
  const int me = threadIdx.y * TX + threadIdx.x;
  const float *a = A + blockIdx.y * M * n;
  const float *b = B + blockIdx.x * N;
  float sum[RY][RX] = {};
  for (int k = 0; k < n; k += TK) {
    for (int at = me; at < M * TK; at += THREADS) left[at / TK][at % TK] = a[at / TK * n + k + at % TK];
    for (int at = me; at < TK * N; at += THREADS) right[at / N][at % N] = b[(k + at / N) * n + at % N];
    __syncthreads();
#pragma unroll
    for (int step = 0; step < TK; ++step)
      for (int y = 0; y < RY; ++y)
        for (int x = 0; x < RX; ++x) sum[y][x] += left[threadIdx.y + y * TY][step] * right[step][threadIdx.x + x * TX];
    __syncthreads();
  }
  for (int y = 0; y < RY; ++y)
    for (int x = 0; x < RX; ++x)
      C[(blockIdx.y * M + threadIdx.y + y * TY) * n + blockIdx.x * N + threadIdx.x + x * TX] = sum[y][x];
}
