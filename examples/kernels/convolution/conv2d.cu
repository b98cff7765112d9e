// Direct 2-D convolution with FILTER x FILTER filters, stride one, padding one: a block makes 16 x 16 pixels of four output channels, fetching CHANNELS channels of
// the image (a patch with its surroundings) and of the filters at a time. Each value of a patch that a thread reads serves four channels.
constexpr int TILE = 16, OUT = 4;

template <int FILTER, int CHANNELS>
__global__ void __launch_bounds__(TILE *TILE)
    conv2d(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ y, int c, int h,
           int width, int k, int p, int q) {
  constexpr int SIDE = TILE + FILTER - 1, PATCH = SIDE * SIDE, TAPS = FILTER * FILTER;
  extern __shared__ float shared[];
  float *patches = shared;                      // [CHANNELS][SIDE][SIDE]
  float *filters = patches + CHANNELS * PATCH;  // [OUT][CHANNELS][TAPS]
  const int groups = (k + OUT - 1) / OUT;
  const int image = blockIdx.z / groups, out0 = blockIdx.z % groups * OUT;
  const int row0 = blockIdx.y * TILE - 1, col0 = blockIdx.x * TILE - 1; // of the patch in the image: one outside, by the padding
  const int thread = threadIdx.y * TILE + threadIdx.x;

  float sums[OUT] = {};
  for (int c0 = 0; c0 < c; c0 += CHANNELS) {
    for (int i = thread; i < CHANNELS * PATCH; i += TILE * TILE) {
      const int channel = c0 + i / PATCH, row = row0 + i % PATCH / SIDE, col = col0 + i % SIDE;
      const bool inside = channel < c && row >= 0 && row < h && col >= 0 && col < width;
      patches[i] = inside ? x[((static_cast<size_t>(image) * c + channel) * h + row) * width + col] : 0.0f;
    }
    for (int i = thread; i < OUT * CHANNELS * TAPS; i += TILE * TILE) {
      const int out = out0 + i / (CHANNELS * TAPS), channel = c0 + i / TAPS % CHANNELS;
      filters[i] = out < k && channel < c ? w[(static_cast<size_t>(out) * c + channel) * TAPS + i % TAPS] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int channel = 0; channel < CHANNELS; channel++) {
#pragma unroll
      for (int tap = 0; tap < TAPS; tap++) {
        const float value = patches[channel * PATCH + (threadIdx.y + tap / FILTER) * SIDE + threadIdx.x + tap % FILTER];
#pragma unroll
        for (int out = 0; out < OUT; out++) sums[out] += value * filters[(out * CHANNELS + channel) * TAPS + tap];
      }
    }
    __syncthreads();
  }

  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  if (row >= p || col >= q) return;
#pragma unroll
  for (int out = 0; out < OUT; out++) {
    if (out0 + out < k) {
      const size_t at = ((static_cast<size_t>(image) * k + out0 + out) * p + row) * q + col;
      y[at] = fmaxf(sums[out] + bias[out0 + out], 0.0f);
    }
  }
}
