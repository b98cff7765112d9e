#include <torch/extension.h>

__global__ void embedding_lookup(const int *idx, const float *weight, float *output, int n, int emb_size) {
  int column = blockIdx.y * blockDim.x + threadIdx.x;
  int row = blockIdx.x;
  if (column < emb_size) output[row * emb_size + column] = weight[idx[row] * emb_size + column];
}

void embedding(torch::Tensor idx, torch::Tensor weight, torch::Tensor output) {
  const int n = idx.size(0);
  const int emb_size = weight.size(1);
  dim3 block(64);
  dim3 grid(n, (emb_size + 63) / 64);
  embedding_lookup<<<grid, block>>>(idx.data_ptr<int>(), weight.data_ptr<float>(), output.data_ptr<float>(), n, emb_size);
}
