#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <torch/types.h>
#include <torch/extension.h>
#include "utils.h"

#define WARP_SIZE 32
#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])
#define HALF2(value) (reinterpret_cast<half2 *>(&(value))[0])

// Relu, x and y of n elements
__global__ void relu_f32_kernel(float *x, float *y, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N) y[idx] = fmaxf(0.0f, x[idx]);
}

__global__ void relu_f32_kernel(float *x, float *y, int N, float slope) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N) y[idx] = x[idx] > 0 ? x[idx] : slope * x[idx];
}

__global__ void relu_f32x4_kernel(float *x, float *y, int N) {
  int idx = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (idx < N) {
    float4 reg_x = FLOAT4(x[idx]);
    float4 reg_y;
    reg_y.x = fmaxf(0.0f, reg_x.x);
    reg_y.y = fmaxf(0.0f, reg_x.y);
    reg_y.z = fmaxf(0.0f, reg_x.z);
    reg_y.w = fmaxf(0.0f, reg_x.w);
    FLOAT4(y[idx]) = reg_y;
  }
}

__global__ void relu_naive(float *x, float *y, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N) y[idx] = fmaxf(0.0f, x[idx]);
}

void relu_naive(torch::Tensor x, torch::Tensor y) {
  const int N = x.size(0);
  dim3 blockDim(256);
  dim3 gridDim((N + blockDim.x - 1) / blockDim.x);
  relu_naive<<<gridDim, blockDim>>>(x.data_ptr<float>(), y.data_ptr<float>(), N);
}

#define STRINGFY(str) #str
#define TORCH_BINDING_COMMON_EXTENSION(func) m.def(STRINGFY(func), &func, STRINGFY(func));

#define CHECK_TORCH_TENSOR_DTYPE(T, th_type)                         \
  if (((T).options().dtype() != (th_type))) {                        \
    std::cout << "Tensor Info:" << (T).options() << std::endl;       \
    throw std::runtime_error("values must be " #th_type);            \
  }

#define TORCH_BINDING_RELU(packed_type, th_type, element_type, n_elements)                       \
  void relu_##packed_type(torch::Tensor x, torch::Tensor y) {                                    \
    CHECK_TORCH_TENSOR_DTYPE(x, (th_type))                                                       \
    CHECK_TORCH_TENSOR_DTYPE(y, (th_type))                                                       \
    const int N = x.numel();                                                                     \
    dim3 block(256 / (n_elements));                                                              \
    dim3 grid((N + 256 - 1) / 256);                                                              \
    relu_##packed_type##_kernel<<<grid, block>>>(reinterpret_cast<element_type *>(x.data_ptr()), \
                                                 reinterpret_cast<element_type *>(y.data_ptr()), N); \
  }

#define KERNEL_AND_BINDING(name, element_type)                                                          \
  __global__ void name##_kernel(element_type *x, element_type *y, int N) {                             \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                     \
    if (i < N) y[i] = x[i] > element_type(0) ? x[i] : element_type(0);                                 \
  }                                                                                                    \
  void name(torch::Tensor x, torch::Tensor y) {                                                        \
    name##_kernel<<<x.numel() / 256, 256>>>(x.data_ptr<element_type>(), y.data_ptr<element_type>(), x.numel()); \
  }

TORCH_BINDING_RELU(f32, torch::kFloat32, float, 1)
TORCH_BINDING_RELU(f32x4, torch::kFloat32, float, 4)
KERNEL_AND_BINDING(relu_made, float)

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  TORCH_BINDING_COMMON_EXTENSION(relu_f32)
  TORCH_BINDING_COMMON_EXTENSION(relu_f32x4)
  TORCH_BINDING_COMMON_EXTENSION(relu_naive)
}
