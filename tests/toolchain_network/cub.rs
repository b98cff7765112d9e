//! cub's primitives as the compilers of GPU targets take them: the sources that the emulator runs, with the same headers.

use super::*;

const SOURCES: [(&str, &[&str]); 3] = [
    (
        include_str!("../emulator_values/cub.cu"),
        &[
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
        ],
    ),
    (include_str!("../exploits/honest/cub_softmax.cu"), &["kernel"]),
    (include_str!("../exploits/honest/cub_running_sum.cu"), &["kernel"]),
];

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn sources_with_cub_compile_for_a_gpu_by_either_compiler() {
    for (compiler, tools) in [(Compiler::Nvrtc, tools().clone()), (Compiler::Nvcc, with_nvcc())] {
        for (text, entries) in SOURCES {
            let params = CompileParams { compiler, include: vec![], ..params(entries) };
            let made = compile_with(&params, &[("norms/main.cu", text)], &tools);
            let made = made.unwrap_or_else(|e| panic!("{compiler:?} {entries:?}: {e}: {e:?}"));
            assert_eq!(made.facts.symbols.len(), entries.len());
        }
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn sources_with_split_barriers_and_bulk_copies_compile_for_a_gpu() {
    for text in
        [include_str!("../exploits/honest/ptx_bulk_stages.cu"), include_str!("../exploits/honest/ptx_split_barrier.cu")]
    {
        let params = CompileParams { compiler: Compiler::Nvrtc, include: vec![], ..params(&["kernel"]) };
        made(&params, text);
    }
}
