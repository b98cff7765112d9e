// Layer normalisation: a tile of TILE threads a row, BLOCK / TILE rows a block. Tiles of one row never wait for each other, so there is no block barrier.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

template <int BLOCK, int TILE>
__global__ void __launch_bounds__(BLOCK)
    layer_norm(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ b, float *__restrict__ y,
               float *__restrict__ mean_out, float *__restrict__ rstd_out, int rows, int cols, float eps) {
  const auto tile = cg::tiled_partition<TILE>(cg::this_thread_block());
  const int row = blockIdx.x * (BLOCK / TILE) + tile.meta_group_rank();
  if (row >= rows) return; // a whole tile leaves, so that reductions below stay complete
  const float *in = x + static_cast<size_t>(row) * cols;
  float *out = y + static_cast<size_t>(row) * cols;

  float sum = 0.0f;
  for (int i = tile.thread_rank(); i < cols; i += TILE) sum += in[i];
  const float mean = cg::reduce(tile, sum, cg::plus<float>()) / cols;

  // A second pass rather than E[x^2] - mean^2, which cancels where the mean is large. The row comes from cache.
  float squares = 0.0f;
  for (int i = tile.thread_rank(); i < cols; i += TILE) {
    const float d = in[i] - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(cg::reduce(tile, squares, cg::plus<float>()) / cols + eps);

  for (int i = tile.thread_rank(); i < cols; i += TILE) out[i] = (in[i] - mean) * rstd * w[i] + b[i];
  if (tile.thread_rank() == 0) {
    mean_out[row] = mean;
    rstd_out[row] = rstd;
  }
}
