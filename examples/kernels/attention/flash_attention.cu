// Attention without the matrix of scores: keys and values come by tiles of 32 through shared memory, and softmax is rescaled as its maximum rises. Causal, aligned
// at the end: query i of m sees keys up to i + n - m.
// HEAD: width of a head. WARPS a block, ROWS queries a warp: what a block fetches serves WARPS * ROWS queries.
// A lane scores one key of the tile, then holds HEAD / 32 places of the output.

constexpr unsigned kAll = 0xffffffffu;

template <int HEAD, int WARPS, int ROWS>
__global__ void __launch_bounds__(32 * WARPS)
    flash_attention(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o,
                    float *__restrict__ lse, int h, int hkv, int m, int n, float scale) {
  static_assert(HEAD % 32 == 0, "lanes share a head evenly");
  constexpr int TILE = 32, PLACES = HEAD / 32, QUERIES = WARPS * ROWS;
  extern __shared__ float shared[];
  float *keys = shared;                       // [TILE][HEAD + 1]: lanes read down a column, each from another bank
  float *values = keys + TILE * (HEAD + 1);   // [TILE][HEAD]
  float *queries = values + TILE * HEAD;      // [QUERIES][HEAD]
  const int head = blockIdx.y, batch = blockIdx.z;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t of_q = (static_cast<size_t>(batch) * h + head) * m;
  const size_t of_kv = (static_cast<size_t>(batch) * hkv + head / (h / hkv)) * n;
  const int first = blockIdx.x * QUERIES;

  for (int i = threadIdx.x; i < QUERIES * HEAD; i += 32 * WARPS) {
    const int row = first + i / HEAD;
    queries[i] = row < m ? q[(of_q + row) * HEAD + i % HEAD] * scale : 0.0f; // scaled once here rather than at every score
  }

  float peak[ROWS], total[ROWS], sums[ROWS][PLACES];
  int seen[ROWS]; // how many keys a query sees; none where there is no such query
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int row = first + warp * ROWS + r;
    seen[r] = row < m ? min(n, row + 1 + n - m) : 0;
    peak[r] = -INFINITY;
    total[r] = 0.0f;
#pragma unroll
    for (int p = 0; p < PLACES; p++) sums[r][p] = 0.0f;
  }

  // The block goes on to the last key that its last query sees.
  const int end = min(n, min(first + QUERIES, m) + n - m);
  for (int key0 = 0; key0 < end; key0 += TILE) {
    __syncthreads(); // the tile before this one is done with, and the queries are there
    for (int i = threadIdx.x; i < TILE * HEAD; i += 32 * WARPS) {
      const int key = key0 + i / HEAD;
      const size_t from = (of_kv + key) * HEAD + i % HEAD;
      keys[i / HEAD * (HEAD + 1) + i % HEAD] = key < n ? k[from] : 0.0f;
      values[i] = key < n ? v[from] : 0.0f; // zeros, as 0 * garbage might be NaN
    }
    __syncthreads();

    float score[ROWS] = {};
#pragma unroll 8
    for (int at = 0; at < HEAD; at++) {
      const float key = keys[lane * (HEAD + 1) + at];
#pragma unroll
      for (int r = 0; r < ROWS; r++) score[r] += queries[(warp * ROWS + r) * HEAD + at] * key;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      if (key0 >= seen[r]) continue; // the same for all lanes: a whole tile hidden
      const float mine = key0 + lane < seen[r] ? score[r] : -INFINITY;
      float highest = mine;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) highest = fmaxf(highest, __shfl_xor_sync(kAll, highest, offset));
      highest = fmaxf(highest, peak[r]); // finite, as the first key of the tile is seen
      const float weight = __expf(mine - highest);
      const float before = __expf(peak[r] - highest); // 0 at the first tile
      float sum = weight;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
      peak[r] = highest;
      total[r] = total[r] * before + sum;
#pragma unroll
      for (int p = 0; p < PLACES; p++) sums[r][p] *= before;
#pragma unroll 8
      for (int j = 0; j < TILE; j++) {
        const float w = __shfl_sync(kAll, weight, j);
#pragma unroll
        for (int p = 0; p < PLACES; p++) sums[r][p] += w * values[j * HEAD + p * 32 + lane];
      }
    }
  }

#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int row = first + warp * ROWS + r;
    if (row >= m) continue;
    const float share = total[r] > 0.0f ? 1.0f / total[r] : 0.0f; // a query that sees no key gives 0
#pragma unroll
    for (int p = 0; p < PLACES; p++) o[(of_q + row) * HEAD + p * 32 + lane] = sums[r][p] * share;
    if (lane == 0) lse[of_q + row] = peak[r] + logf(total[r]); // minus infinity without keys
  }
}
