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
        "cuda/atomic",
        "cuda/barrier",
        "cuda/pipeline",
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_include_folder_is_in_the_tree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/worker/emulator/include");
        let files: BTreeSet<String> = walkdir::WalkDir::new(&folder)
            .into_iter()
            .map(|e| e.unwrap())
            .filter(|e| e.file_type().is_file())
            .map(|e| e.path().strip_prefix(&folder).unwrap().display().to_string())
            .collect();
        assert_eq!(super::headers().iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), files);
    }
}
