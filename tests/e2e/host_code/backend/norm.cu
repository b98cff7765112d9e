#include "common.cuh"
#include "norm.cuh"

namespace backend {

template <int block_size>
static __global__ void rms_norm_f32(const float * x, float * dst, const int ncols, const float eps) {
    const int row = blockIdx.x*blockDim.y + threadIdx.y;
    const int tid = threadIdx.x;

    float tmp = 0.0f; // partial sum for thread in warp

    for (int col = tid; col < ncols; col += block_size) {
        const float xi = x[row*ncols + col];
        tmp += xi * xi;
    }

    // sum up partial sums
    tmp = warp_reduce_sum(tmp);
    if (block_size > WARP_SIZE) {
        NO_DEVICE_CODE;
    }

    const float mean = tmp / ncols;
    const float scale = rsqrtf(mean + eps);

    for (int col = tid; col < ncols; col += block_size) {
        dst[row*ncols + col] = scale * x[row*ncols + col];
    }
}

static void rms_norm_f32_cuda(const float * x, float * dst, const int ncols, const int nrows, const float eps, cudaStream_t stream) {
    BACKEND_ASSERT(ncols % WARP_SIZE == 0);
    const dim3 block_dims(WARP_SIZE, 1, 1);
    rms_norm_f32<WARP_SIZE><<<nrows, block_dims, 0, stream>>>(x, dst, ncols, eps);
}

} // namespace backend

void backend_cuda_op_rms_norm(backend_cuda_context & ctx, backend_tensor * dst) {
    const backend_tensor * src0 = dst->src[0];
    cudaStream_t stream = ctx.stream();
    float eps;
    memcpy(&eps, dst->op_params, sizeof(float));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    backend::rms_norm_f32_cuda((const float *) src0->data, (float *) dst->data, src0->ne[0], 1, eps, stream);
}
