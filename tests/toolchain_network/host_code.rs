//! Sources with host code whose headers are absent, compiled to machine code: every kernel can be named, what kernels lack is named, and so is what is wrong with
//! a source.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kforge::cuda::CudaCompileError;
use kforge::record::params::{CompileParams, Compiler};

use crate::{ROW, compile_with, params, seen, tools, with_nvcc};

const NAMES: &str = include_str!("../shared/names.cu");

/// Both compilers, each with its tools.
fn compilers() -> [(Compiler, BTreeMap<String, PathBuf>); 2] {
    [(Compiler::Nvrtc, tools().clone()), (Compiler::Nvcc, with_nvcc())]
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_kernel_can_be_named_however_it_is_declared() {
    let entries = [
        "hidden",
        "own",
        "plain",
        "listed",
        "outer::inner::deep<int, 5>",
        "either<10>",
        "either<int>",
        "several<int>(int *)",
        "launched",
        "first_made",
    ];
    for (compiler, tools) in compilers() {
        let params = CompileParams { compiler, ..params(&entries) };
        let made = compile_with(&params, &[("norms/main.cu", NAMES)], &tools);
        let made = made.unwrap_or_else(|e| panic!("{compiler:?}: {e}: {e:?}"));
        let mut symbols = made.facts.symbols.clone();
        symbols.sort();
        symbols.dedup();
        assert_eq!(symbols.len(), entries.len(), "{compiler:?}: {symbols:?}");
        assert!(seen(&params, &made).functions.iter().all(|f| f.registers.is_some()), "{compiler:?}");
        let listed = &made.notes.iter().find(|note| note.code == "compile.left-out").unwrap().message;
        assert!(listed.contains("norms/main.cu:2: the header `library/tensor.h`, which is not here"), "{listed}");
        assert!(listed.contains("norms/main.cu:24-29: `launched`") && listed.contains(": `main`"), "{listed}");
        assert_eq!(listed.contains("`vector`"), compiler == Compiler::Nvrtc, "{listed}");
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_source_that_compiles_keeps_its_bytes_and_has_nothing_left_out() {
    for (compiler, tools) in compilers() {
        let params = CompileParams { compiler, ..params(&["row<float, 64>"]) };
        let host = format!("{ROW}void host(float *x) {{ }}\n");
        let [plain, with] = [ROW, &host].map(|text| compile_with(&params, &[("norms/main.cu", text)], &tools).unwrap());
        assert!(plain.notes.is_empty() && with.notes.is_empty(), "{compiler:?}");
        let lost = format!("#include <lost.h>\n#line 1\n{ROW}void host(Lost x) {{ }}\n");
        let lost = compile_with(&params, &[("norms/main.cu", &lost)], &tools).unwrap();
        assert_eq!((lost.cubin == plain.cubin, lost.notes.len()), (true, 1), "{compiler:?}");
    }
}

#[track_caller]
fn refused(compiler: Compiler, tools: &BTreeMap<String, PathBuf>, text: &str, entry: &str) -> (String, String) {
    let params = CompileParams { compiler, ..params(&[entry]) };
    match compile_with(&params, &[("norms/main.cu", text)], tools) {
        Err(CudaCompileError::Failed { message, log, .. }) => (message, log),
        other => panic!("{compiler:?}: {other:?}"),
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn what_is_wrong_with_a_source_is_said_in_one_error() {
    for (compiler, tools) in compilers() {
        let open = "__global__ void k(float *x) {\n  if (x[0] > 0) {\n    x[0] = 1;\n}\n";
        let (message, log) = refused(compiler, &tools, open, "k");
        assert_eq!(message, "`norms/main.cu` ends inside the brace that opens at line 1", "{compiler:?}");
        assert_eq!(log, format!("norms/main.cu:1:1: error: {message}\n"));

        let several = "__global__ void k(float *x) { }\n__global__ void k(double *x, int n) { }\n";
        let (message, log) = refused(compiler, &tools, several, "k");
        assert_eq!(message, "entry `k` names 2 kernels; write the parameters of one of them: `k(float *)`", "{log}");
        assert!(log.contains("norms/main.cu:2: __global__ void k(double *x, int n)"), "{compiler:?}: {log}");

        let lacks = "#include <ATen/ATen.h>\n#include <other.h>\n__global__ void fine(float *x) { }\n__global__ void k(at::Half *x) { }\n";
        let (message, _) = refused(compiler, &tools, lacks, "k");
        let expected = "kernel `k` needs `at::Half` (norms/main.cu:4), which the missing header `ATen/ATen.h` (norms/main.cu:1) declares";
        assert_eq!(message, expected, "{compiler:?}");
        compile_with(&CompileParams { compiler, ..params(&["fine"]) }, &[("norms/main.cu", lacks)], &tools).unwrap();
    }
}
