#pragma once

#include "backend-impl.h"
#include "backend-cuda.h"

#include <cstdint>
#include <memory>
#include <string>

#if defined(BACKEND_USE_HIP)
#include "vendors/hip.h"
#else
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#endif

#define WARP_SIZE 32

#define CUDA_CHECK_GEN(err, success, error_fn)                                                 \
    do {                                                                                       \
        auto err_ = (err);                                                                     \
        if (err_ != (success)) backend_error(#err, __func__, __FILE__, __LINE__, error_fn(err_)); \
    } while (0)
#define CUDA_CHECK(err) CUDA_CHECK_GEN(err, cudaSuccess, cudaGetErrorString)

[[noreturn]]
void backend_error(const char *stmt, const char *func, const char *file, int line, const char *msg);

#ifdef __CUDA_ARCH__
#define NO_DEVICE_CODE __trap()
#else
#define NO_DEVICE_CODE
#endif

template <int width = WARP_SIZE>
static __device__ __forceinline__ float warp_reduce_sum(float x) {
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x += __shfl_xor_sync(0xffffffff, x, offset, width);
    }
    return x;
}

struct cuda_device_info {
    int cc;
    size_t smpb;
    backend_vec<int> splits;
};

struct pool_alloc {
    std::unique_ptr<backend_pool> pool;
    cublasHandle_t handle = nullptr;
    ~pool_alloc() { if (handle) cublasDestroy(handle); }
};
