// Values of the neighbouring block: from its shared memory, within a cluster, or through global memory.
#include "ptx.cuh"

__global__ void with(float* y, const float* x) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    unsigned there;
    float v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(tile + threadIdx.x)), "r"((blockIdx.x ^ 1) & 1));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    y[blockIdx.x * 128 + threadIdx.x] = v;
}

__global__ void with_stores(float* y, const float* x) {
    __shared__ float tile[128];
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(tile + threadIdx.x)), "r"((blockIdx.x ^ 1) & 1));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(x[blockIdx.x * 128 + threadIdx.x]) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    y[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x];
}

__global__ void with_asynchronous_stores(float* y, const float* x) {
    __shared__ float tile[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    unsigned there, signal;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(tile + threadIdx.x)), "r"((blockIdx.x ^ 1) & 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(shared_address(&full)), "r"((blockIdx.x ^ 1) & 1));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
                 ::"r"(there), "f"(x[blockIdx.x * 128 + threadIdx.x]), "r"(signal) : "memory");
    barrier_wait(&full, 0);
    y[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x];
}

__global__ void without(float* y, const float* x) {
    y[blockIdx.x * 128 + threadIdx.x] = x[(blockIdx.x ^ 1) * 128 + threadIdx.x];
}
