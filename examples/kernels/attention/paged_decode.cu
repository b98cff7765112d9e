// Attention of one query a sequence over keys and values in pages: a block for each head of each sequence. Its warps take keys in turn, each with a softmax of its own
// that is rescaled as its maximum rises; at the end they are merged. A lane holds HEAD / 32 neighbouring places of a key, so that a warp reads a key as one line.
#include <cuda_fp16.h>

// N halves in one access.
template <int N> struct alignas(2 * N) Halves {
  __half at[N];
};

template <int HEAD, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
    paged_decode(const __half *__restrict__ q, const __half *__restrict__ k, const __half *__restrict__ v,
                 const int *__restrict__ page_table, const int *__restrict__ lengths, __half *__restrict__ o, float *__restrict__ lse, int h,
                 int hkv, int page_size, int per_sequence, float scale) {
  constexpr int N = HEAD / 32;
  static_assert(HEAD % 32 == 0 && (N & (N - 1)) == 0, "lanes share a head evenly, in aligned accesses");
  extern __shared__ float shared[];
  float *peaks = shared;           // [WARPS]
  float *totals = peaks + WARPS;   // [WARPS]
  float *parts = totals + WARPS;   // [WARPS][HEAD]
  const int head = blockIdx.x, batch = blockIdx.y;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int length = lengths[batch];
  const int *pages = page_table + static_cast<size_t>(batch) * per_sequence;

  float query[N], sums[N] = {};
  const auto raw = *reinterpret_cast<const Halves<N> *>(q + (static_cast<size_t>(batch) * h + head) * HEAD + lane * N);
#pragma unroll
  for (int i = 0; i < N; i++) query[i] = __half2float(raw.at[i]) * scale;

  float peak = -INFINITY, total = 0.0f;
  for (int key = warp; key < length; key += WARPS) {
    // The page is looked up by every lane: one broadcast read, from cache.
    const size_t slot = static_cast<size_t>(pages[key / page_size]) * page_size + key % page_size;
    const size_t from = (slot * hkv + head / (h / hkv)) * HEAD + lane * N;
    const auto keys = *reinterpret_cast<const Halves<N> *>(k + from);
    const auto values = *reinterpret_cast<const Halves<N> *>(v + from); // early, so that it arrives while the score is made
    float score = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) score += query[i] * __half2float(keys.at[i]);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffffu, score, offset);
    const float highest = fmaxf(peak, score);
    const float weight = __expf(score - highest), before = __expf(peak - highest);
    peak = highest;
    total = total * before + weight;
#pragma unroll
    for (int i = 0; i < N; i++) sums[i] = sums[i] * before + weight * __half2float(values.at[i]);
  }
  if (lane == 0) {
    peaks[warp] = peak;
    totals[warp] = total;
  }
#pragma unroll
  for (int i = 0; i < N; i++) parts[warp * HEAD + lane * N + i] = sums[i];
  __syncthreads();

  float highest = -INFINITY;
#pragma unroll
  for (int w = 0; w < WARPS; w++) highest = fmaxf(highest, peaks[w]);
  float all = 0.0f, factor[WARPS];
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    factor[w] = totals[w] > 0.0f ? __expf(peaks[w] - highest) : 0.0f; // a warp without keys has no part, and -inf - -inf is NaN
    all += totals[w] * factor[w];
  }
  const float share = all > 0.0f ? 1.0f / all : 0.0f;
  for (int i = threadIdx.x; i < HEAD; i += 32 * WARPS) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += parts[w * HEAD + i] * factor[w];
    o[(static_cast<size_t>(batch) * h + head) * HEAD + i] = __float2half(sum * share);
  }
  if (threadIdx.x == 0) lse[static_cast<size_t>(batch) * h + head] = highest + logf(all);
}
