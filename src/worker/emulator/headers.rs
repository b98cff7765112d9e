//! The emulator's headers as a tree: what `.cu` sources are compiled against. Their content enters compile keys.

macro_rules! tree {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("include/", $name)) as &'static [u8])),*]
    };
}

/// Every header by its path below the include folder, and its bytes.
pub fn headers() -> Vec<(&'static str, &'static [u8])> {
    tree![
        "assert.h",
        "cassert",
        "cooperative_groups.h",
        "cooperative_groups/memcpy_async.h",
        "cooperative_groups/reduce.h",
        "cooperative_groups/scan.h",
        "cuda.h",
        "cuda_bf16.h",
        "cuda_fp16.h",
        "cuda_fp8.h",
        "cuda_pipeline.h",
        "cuda_pipeline_primitives.h",
        "cuda_runtime.h",
        "cuda_runtime_api.h",
        "device_launch_parameters.h",
        "kf_atomic.h",
        "kf_bf16.h",
        "kf_device.h",
        "kf_fp8.h",
        "kf_half.h",
        "kf_intrinsics.h",
        "kf_math.h",
        "kf_mma_values.h",
        "kf_narrow.h",
        "kf_narrow_ops.h",
        "kf_narrow_types.h",
        "kf_narrow_undef.h",
        "kf_runtime.h",
        "kf_simd.h",
        "kf_unsupported.h",
        "kf_vector_types.h",
        "kf_warp.h",
        "kforge_cuda.h",
        "math_constants.h",
        "mma.h",
        "vector_functions.h",
        "vector_types.h",
    ]
    .to_vec()
}
