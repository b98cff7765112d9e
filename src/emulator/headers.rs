//! The emulator's headers as a tree: `.cu` sources are compiled against them. Their content enters compile keys.

macro_rules! tree {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("include/", $name)) as &'static [u8])),*]
    };
}

macro_rules! libcu {
    ($($name:literal),* $(,)?) => {
        [$((concat!("cuda/", $name), LIBCU)),*]
    };
}

/// The content of each libcu++ header that only renames the standard library: it includes all of `kf_std.h`.
const LIBCU: &[u8] = b"// See kf_std.h.\n#pragma once\n#include <kf_std.h>\n";

/// Every header by its path below the include folder, and its bytes.
pub fn headers() -> Vec<(&'static str, &'static [u8])> {
    let mut all = tree![
        "assert.h",
        "bits/basic_string.h",
        "bits/basic_string.tcc",
        "bits/shared_ptr_base.h",
        "cassert",
        "cooperative_groups.h",
        "cooperative_groups/memcpy_async.h",
        "cooperative_groups/reduce.h",
        "cooperative_groups/scan.h",
        "cuda.h",
        "cuda/access_property",
        "cuda/annotated_ptr",
        "cuda/atomic",
        "cuda/barrier",
        "cuda/cmath",
        "cuda/discard_memory",
        "cuda/functional",
        "cuda/latch",
        "cuda/pipeline",
        "cuda/ptx",
        "cuda/semaphore",
        "cuda_awbarrier_primitives.h",
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
        "kf_copy.h",
        "kf_device.h",
        "kf_floats.h",
        "kf_fp8.h",
        "kf_half.h",
        "kf_host.h",
        "kf_intrinsics.h",
        "kf_math.h",
        "kf_mbarrier.h",
        "kf_mma_values.h",
        "kf_narrow.h",
        "kf_narrow_ops.h",
        "kf_narrow_types.h",
        "kf_narrow_undef.h",
        "kf_ptx.h",
        "kf_ptx_convert.h",
        "kf_ptx_float.h",
        "kf_ptx_integer.h",
        "kf_ptx_matrix.h",
        "kf_ptx_mbarrier.h",
        "kf_ptx_memory.h",
        "kf_ptx_values.h",
        "kf_ptx_warp.h",
        "kf_runtime.h",
        "kf_simd.h",
        "kf_std.h",
        "kf_system.h",
        "kf_unsupported.h",
        "kf_vector_types.h",
        "kf_warp.h",
        "kforge_cuda.h",
        "math_constants.h",
        "mma.h",
        "nv/target",
        "vector_functions.h",
        "vector_types.h",
    ]
    .to_vec();
    all.extend(libcu![
        "std/algorithm",
        "std/array",
        "std/atomic",
        "std/barrier",
        "std/bit",
        "std/bitset",
        "std/cassert",
        "std/ccomplex",
        "std/cfloat",
        "std/chrono",
        "std/cinttypes",
        "std/climits",
        "std/cmath",
        "std/complex",
        "std/concepts",
        "std/cstddef",
        "std/cstdint",
        "std/cstdio",
        "std/cstdlib",
        "std/cstring",
        "std/ctime",
        "std/exception",
        "std/execution",
        "std/functional",
        "std/initializer_list",
        "std/iosfwd",
        "std/iterator",
        "std/latch",
        "std/limits",
        "std/memory",
        "std/new",
        "std/numbers",
        "std/numeric",
        "std/optional",
        "std/ranges",
        "std/ratio",
        "std/semaphore",
        "std/source_location",
        "std/span",
        "std/stdexcept",
        "std/string_view",
        "std/tuple",
        "std/type_traits",
        "std/utility",
        "std/variant",
        "std/version",
        "bit",
        "iterator",
        "memory",
        "numeric",
        "tuple",
        "type_traits",
        "utility",
        "version",
    ]);
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_include_folder_is_in_the_tree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let files: BTreeSet<String> = walkdir::WalkDir::new(&folder)
            .into_iter()
            .map(|e| e.unwrap())
            .filter(|e| e.file_type().is_file())
            .map(|e| e.path().strip_prefix(&folder).unwrap().display().to_string())
            .collect();
        let here = super::headers().into_iter().filter(|(_, bytes)| *bytes != super::LIBCU);
        assert_eq!(here.map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>(), files);
    }

    #[test]
    fn no_name_stands_twice_in_the_tree() {
        let names: Vec<&str> = super::headers().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
    }
}
