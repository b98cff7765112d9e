// Memory and a stream of the launcher's own, as libraries take them; nobody waits but who called.
#include <cuda_runtime.h>

#include "kforge_host.h"
#include "row_sum.cuh"

extern "C" int run(const kforge_call* call) {
    auto x = (const float*)kforge_data(call, "x");
    auto y = (float*)kforge_data(call, "y");
    int rows = kforge_dim_of(call, "rows"), cols = kforge_dim_of(call, "cols");
    float scale = kforge_param_of(call, "scale")->real;
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) return 1;
    float* copy;
    if (cudaMallocAsync(&copy, kforge_find(call, "x")->bytes, stream)) return 2;
    cudaMemcpyAsync(copy, x, kforge_find(call, "x")->bytes, cudaMemcpyDeviceToDevice, stream);
    row_sum<128><<<rows, 128, 0, stream>>>(copy, y, cols, scale);
    cudaFreeAsync(copy, stream);
    return cudaGetLastError();
}
