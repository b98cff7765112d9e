// Kernels that an entry can name, each in its own way, beside host code that uses the same names. Each adds its number to an element.
#include <library/tensor.h>
#include <vector>

#define ELEMENT(name, number) \
  __global__ void name##_made(int *x) { x[threadIdx.x] += number; }

namespace { __global__ void hidden(int *x) { x[threadIdx.x] += 1; } }
static __global__ void own(int *x) { x[threadIdx.x] += 2; }
extern "C" __global__ void plain(int *x) { x[threadIdx.x] += 3; }
extern "C" {
__global__ void listed(int *x) { x[threadIdx.x] += 4; }
}
namespace outer { namespace inner { template <typename T, int N> __global__ void deep(T *x) { x[threadIdx.x] += N; } } }
template <int N> __global__ void either(int *x) { x[threadIdx.x] += N; }
template <class T> __global__ void either(T *x) { x[threadIdx.x] += 6; }
template <class T> __global__ void several(T *x) { x[threadIdx.x] += 7; }
template <class T> __global__ void several(T *x, T more) { x[threadIdx.x] += more; }
__global__ void launched(int *x) { x[threadIdx.x] += 8; }
ELEMENT(first, 9)
template __global__ void several<float>(float *x);

// A launcher with its kernel's name, and with names that CUDA gives its variables.
void launched(library::Tensor x) {
  dim3 gridDim(1), blockDim = dim3(x.numel());
  int threadIdx = 0;
  launched<<<gridDim, blockDim, threadIdx>>>(x.data<int>());
  outer::inner::deep<int, 5><<<1, 1>>>(x.data<int>());
}

int main() {
  std::vector<int> shape{1, 2};
  launched(library::make(shape));
  auto all = [&](auto each) { return each + shape.size(); };
  return all(0);
}
