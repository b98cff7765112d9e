// A block that has finished takes over one that has not started; or every block is started by the hardware.
#include "ptx.cuh"

__global__ void with(float* y, const float* x) {
    __shared__ alignas(16) unsigned answer[4];
    __shared__ unsigned long long full;
    int block = blockIdx.x, phase = 0;
    if (threadIdx.x == 0) barrier_init(&full, 1);
    __syncthreads();
    while (block >= 0) {
        if (threadIdx.x == 0) {
            barrier_expect(&full, 16);
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                         ::"r"(shared_address(answer)), "r"(shared_address(&full)) : "memory");
        }
        y[block * 128 + threadIdx.x] = x[block * 128 + threadIdx.x] * 2;
        barrier_wait(&full, phase);
        phase ^= 1;
        asm volatile("{ .reg .b128 r; .reg .pred p; ld.shared.b128 r, [%1];\n"
                     " clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; mov.b32 %0, -1;\n"
                     " @p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, r; }"
                     : "=r"(block) : "r"(shared_address(answer)) : "memory");
        __syncthreads();
    }
}

__global__ void without(float* y, const float* x) {
    y[blockIdx.x * 128 + threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x] * 2;
}
