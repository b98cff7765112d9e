// Helpers that every file of this project includes: checks, a handle, a timer, random inputs.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cublasLt.h>

template <class T>
__host__ __device__ T ceil_div(T dividend, T divisor) {
    return (dividend + divisor - 1) / divisor;
}

void cuda_check(cudaError_t error, const char *file, int line) {
    if (error != cudaSuccess) {
        printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))

void cublasCheck(cublasStatus_t status, const char *file, int line) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        printf("[cuBLAS ERROR]: %d %s %d\n", status, file, line);
        exit(EXIT_FAILURE);
    }
}
#define cublasCheck(status) { cublasCheck((status), __FILE__, __LINE__); }

static size_t cublaslt_workspace_size = 32 * 1024 * 1024;
static void *cublaslt_workspace = NULL;
static cublasComputeType_t cublas_compute_type;
cublasHandle_t cublas_handle;
cublasLtHandle_t cublaslt_handle;

float *make_random_float(size_t n) {
    float *arr = (float *)malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) arr[i] = ((float)rand() / RAND_MAX) * 2.0f - 1.0f;
    return arr;
}

template <class D, class T>
void validate_result(D *device_result, const T *cpu_reference, const char *name, size_t n, T tolerance = 1e-4) {
    D *out = (D *)malloc(n * sizeof(D));
    cudaCheck(cudaMemcpy(out, device_result, n * sizeof(D), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) {
        if (fabs(cpu_reference[i] - (T)out[i]) > tolerance) printf("Mismatch of %s at %zu\n", name, i);
    }
    free(out);
}
