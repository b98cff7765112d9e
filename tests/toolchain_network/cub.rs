//! Sources with cub, and with split barriers and bulk copies, as the compilers of GPU targets take them: what the emulator runs, with the same headers.

use super::*;

/// All of cub with one include: NVRTC refuses the algorithms that the host launches, so `auto` takes nvcc.
const WHOLE: &str = include_str!("../emulator_values/cub.cu");

/// A kernel of each template of `WHOLE`.
const PRIMITIVES: [&str; 10] = [
    "sums<float, 32, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 1>",
    "arg_max",
    "half_sums",
    "warp_sums<16>",
    "warp_scans<8>",
    "scans<cub::BLOCK_SCAN_RAKING>",
    "copies<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>",
    "sorts<true>",
    "exchanges",
    "histograms<cub::BLOCK_HISTO_ATOMIC>",
];

/// Single headers of cub, and none.
const PARTS: [&str; 6] = [
    include_str!("../exploits/honest/cub_softmax.cu"),
    include_str!("../exploits/honest/cub_running_sum.cu"),
    include_str!("../exploits/honest/cub_count_by_warps.cu"),
    include_str!("../exploits/honest/cub_largest_by_sort.cu"),
    include_str!("../exploits/honest/ptx_bulk_stages.cu"),
    include_str!("../exploits/honest/ptx_split_barrier.cu"),
];

#[track_caller]
fn compiles(compiler: Compiler, text: &str, entries: &[&str], with: &str) {
    let params = CompileParams { compiler, include: vec![], ..params(entries) };
    let made = compile_with(&params, &[("norms/main.cu", text)], &with_nvcc());
    let made = made.unwrap_or_else(|e| panic!("{compiler:?} {entries:?}: {e}: {e:?}"));
    assert_eq!((made.facts.symbols.len(), made.facts.compiler.as_str()), (entries.len(), with));
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn all_of_cub_compiles_for_a_gpu() {
    compiles(Compiler::Auto, WHOLE, &PRIMITIVES, "nvcc");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn headers_of_cub_split_barriers_and_bulk_copies_compile_for_a_gpu_by_either_compiler() {
    for text in PARTS {
        compiles(Compiler::Auto, text, &["kernel"], "nvrtc");
        let params = CompileParams { compiler: Compiler::Nvcc, include: vec![], ..params(&["kernel"]) };
        compile_with(&params, &[("norms/main.cu", text)], &with_nvcc()).unwrap_or_else(|e| panic!("{e}: {e:?}"));
    }
}
