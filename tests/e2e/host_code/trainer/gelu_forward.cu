/*
Kernels for the forward pass of GELU.

nvcc -O3 gelu_forward.cu -o gelu_forward -lcublas
*/
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <assert.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include "common.h"

namespace cg = cooperative_groups;

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)

void gelu_forward_cpu(float *out, const float *inp, int n) {
    for (int i = 0; i < n; i++) {
        float x = inp[i];
        out[i] = 0.5f * x * (1.0f + tanhf(GELU_SCALING_FACTOR * (x + 0.044715f * x * x * x)));
    }
}

__device__ float gelu_of(float x) {
    float cube = 0.044715f * x * x * x;
    return 0.5f * x * (1.0f + tanhf(GELU_SCALING_FACTOR * (x + cube)));
}

__global__ void gelu_forward_kernel1(float *out, const float *inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = gelu_of(inp[i]);
}

template <class T>
__global__ void gelu_forward_kernel2(T *out, const T *inp, int N) {
    cg::grid_group grid = cg::this_grid();
    int per = ceil_div(N, (int)grid.size()), error = 0;
    for (int i = 0; i < per; i++) {
        int at = i * (int)grid.size() + (int)grid.thread_rank();
        if (at < N + error) out[at] = gelu_of(inp[at]);
    }
}

void gelu_forward1(float *out, const float *inp, int N, const int block_size) {
    const int grid_size = ceil_div(N, block_size);
    gelu_forward_kernel1<<<grid_size, block_size>>>(out, inp, N);
    cudaCheck(cudaGetLastError());
}

void gelu_forward(int kernel_num, float *out, const float *inp, int N, int block_size) {
    switch (kernel_num) {
        case 1:
            gelu_forward1(out, inp, N, block_size);
            break;
        default:
            printf("Invalid kernel number\n");
            exit(1);
    }
}

int main(int argc, const char **argv) {
    cudaCheck(cudaSetDevice(0));
    cublasCheck(cublasCreate(&cublas_handle));
    cublasCheck(cublasLtCreate(&cublaslt_handle));
    cudaDeviceProp deviceProp;
    cudaGetDeviceProperties(&deviceProp, 0);
    int n = 8 * 1024 * 768;
    float *inp = make_random_float(n), *out = (float *)malloc(n * sizeof(float));
    float *d_out, *d_inp;
    cudaCheck(cudaMalloc(&d_out, n * sizeof(float)));
    cudaCheck(cudaMalloc(&d_inp, n * sizeof(float)));
    cudaCheck(cudaMemcpy(d_inp, inp, n * sizeof(float), cudaMemcpyHostToDevice));
    gelu_forward_cpu(out, inp, n);
    int block_sizes[] = {32, 64, 128, 256, 512, 1024};
    for (size_t j = 0; j < sizeof(block_sizes) / sizeof(int); j++) {
        gelu_forward(1, d_out, d_inp, n, block_sizes[j]);
        validate_result(d_out, out, "out", n, 1e-5f);
        const float alpha = 1.0f, beta = 0.0f;
        cublasCheck(cublasSgemm(cublas_handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 1, &alpha, inp, 1, inp, 1, &beta, d_out, 1));
    }
    free(out);
    cudaCheck(cudaFree(d_out));
    cublasDestroy(cublas_handle);
    return 0;
}
