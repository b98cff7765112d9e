// Batch normalisation as trained, images as [n, c, h, w]: one block a channel. Statistics in one pass by Welford's recurrence, merged across threads by Chan's
// formula: no cancellation where a mean is large against the deviation, and x is read from memory once (the second reading finds it in cache).

// Count, mean and sum of squared deviations of some values.
struct Moments {
  float count, mean, m2;

  __device__ void add(float value) {
    count += 1.0f;
    const float before = value - mean;
    mean += before / count;
    m2 += before * (value - mean);
  }

  __device__ void merge(const Moments &other) {
    const float all = count + other.count;
    if (all == 0.0f) return;
    const float between = other.mean - mean;
    const float share = other.count / all;
    mean += between * share;
    m2 += other.m2 + between * between * count * share;
    count = all;
  }
};

__device__ Moments warp_merge(Moments mine) {
  for (int offset = 16; offset > 0; offset /= 2) {
    Moments other;
    other.count = __shfl_down_sync(0xffffffffu, mine.count, offset);
    other.mean = __shfl_down_sync(0xffffffffu, mine.mean, offset);
    other.m2 = __shfl_down_sync(0xffffffffu, mine.m2, offset);
    mine.merge(other);
  }
  return mine; // of the whole warp in lane 0
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    batch_norm(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ b, float *running_mean,
               float *running_var, float *__restrict__ y, int n, int c, int area, float eps, float momentum) {
  constexpr int WARPS = BLOCK / 32;
  __shared__ Moments partial[WARPS];
  __shared__ float factor, shift;
  const int channel = blockIdx.x;
  const int values = n * area;

  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < values; i += BLOCK) {
    const size_t image = i / area, pixel = i % area;
    mine.add(x[(image * c + channel) * area + pixel]);
  }
  mine = warp_merge(mine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = threadIdx.x < WARPS ? partial[threadIdx.x] : Moments{0.0f, 0.0f, 0.0f};
    mine = warp_merge(mine);
    if (threadIdx.x == 0) {
      const float rstd = rsqrtf(mine.m2 / values + eps);
      factor = rstd * w[channel];
      shift = mine.mean;
      running_mean[channel] += momentum * (mine.mean - running_mean[channel]);
      // The running variance is the unbiased one, that used here is not: as every framework has it.
      running_var[channel] += momentum * (mine.m2 / (values - 1) - running_var[channel]);
    }
  }
  __syncthreads();

  // (x - mean) first: x * factor - mean * factor would cancel.
  const float scale = factor, mean = shift, offset = b[channel];
  for (int i = threadIdx.x; i < values; i += BLOCK) {
    const size_t image = i / area, pixel = i % area;
    const size_t at = (image * c + channel) * area + pixel;
    y[at] = (x[at] - mean) * scale + offset;
  }
}
