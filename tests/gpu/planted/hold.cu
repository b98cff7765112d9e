// y = 2x + 1, after ROUNDS of arithmetic on the data that changes nothing for any input there is, and that no compiler may leave out: neither what a comparison of
// parities could settle nor `asm volatile` holds, for NVRTC removes the first and ptxas the second. TAG changes the machine code and nothing else.
__global__ void kernel(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = __float_as_uint(x[i]) + TAG;
  // Unrolled otherwise for another ROUNDS, two per cent more of them would not take two per cent longer.
#pragma unroll 1
  for (int round = 0; round < ROUNDS; round++) state = (state * 1664525u + 1013904223u) ^ (state >> 7);
  // No distribution draws so large a number.
  y[i] = 2.0f * x[i] + 1.0f + (state == 0x12345678u + (unsigned)n && x[i] > 3e38f ? 1.0f : 0.0f);
}
