// Blocks that wait for one another within a launch: those of a cluster, or all of the grid; or no block waits for another.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void with(float* y, float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 2;
    cg::this_grid().sync();
    y[i] = x[gridDim.x * blockDim.x - 1 - i];
}

#if __CUDA_ARCH__ >= 900
__global__ void with_cluster(float* y, float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 2;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    y[i] = x[i ^ 128];
}
#endif

__global__ void without(float* y, float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[gridDim.x * blockDim.x - 1 - i] * 2;
}
