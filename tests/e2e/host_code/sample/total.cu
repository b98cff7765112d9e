// System includes
#include <stdio.h>
#include <assert.h>
#include <iostream>
#include <chrono>

// CUDA runtime
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

// Helper functions and utilities to work with CUDA
#include <helper_cuda.h>
#include <helper_functions.h>
#include "../../common/inc/helper_timer.h"

namespace cg = cooperative_groups;

template <int BLOCK>
__global__ void total(const int *g_idata, int *g_odata, unsigned int n) {
  cg::thread_block cta = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cta);
  __shared__ int sdata[BLOCK / 32];
  int sum = 0;
  for (unsigned int i = threadIdx.x; i < n; i += BLOCK) sum += g_idata[i];
  sum = cg::reduce(tile, sum, cg::plus<int>());
  if (tile.thread_rank() == 0) sdata[threadIdx.x / 32] = sum;
  cg::sync(cta);
  if (threadIdx.x == 0) {
    int all = 0;
    for (int i = 0; i < BLOCK / 32; i++) all += sdata[i];
    g_odata[0] = all;
  }
}

class Timer {
  StopWatchInterface *hTimer = NULL;
  std::chrono::steady_clock::time_point begin;

 public:
  Timer() { sdkCreateTimer(&hTimer); begin = std::chrono::steady_clock::now(); }
  float ms() const { return sdkGetTimerValue(const_cast<StopWatchInterface **>(&hTimer)); }
};

template <int BLOCK>
int run(int argc, char **argv, unsigned int n) {
  int *h_idata = (int *)malloc(n * sizeof(int)), *d_idata, *d_odata;
  checkCudaErrors(cudaMalloc((void **)&d_idata, n * sizeof(int)));
  checkCudaErrors(cudaMalloc((void **)&d_odata, sizeof(int)));
  cudaEvent_t start, stop;
  checkCudaErrors(cudaEventCreate(&start));
  checkCudaErrors(cudaEventCreate(&stop));
  checkCudaErrors(cudaProfilerStart());
  Timer timer;
  dim3 dimBlock(BLOCK, 1, 1), dimGrid(1, 1, 1);
  total<BLOCK><<<dimGrid, dimBlock>>>(d_idata, d_odata, n);
  getLastCudaError("Kernel execution failed");
  float msec = 0.0f;
  checkCudaErrors(cudaEventElapsedTime(&msec, start, stop));
  std::cout << "took " << msec << " or " << timer.ms() << std::endl;
  free(h_idata);
  return 0;
}

int main(int argc, char **argv) {
  int dev = findCudaDevice(argc, (const char **)argv);
  unsigned int n = 1 << 24;
  if (checkCmdLineFlag(argc, (const char **)argv, "n")) n = getCmdLineArgumentInt(argc, (const char **)argv, "n");
  exit(run<256>(argc, argv, n + dev));
}
