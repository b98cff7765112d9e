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

/// What `auto` makes of a source: the compiler and its notes, or what is missing, or the error.
fn by_auto(main: &str, text: &str, tools: &BTreeMap<String, PathBuf>) -> (String, String) {
    let params = CompileParams { compiler: Compiler::Auto, main: main.into(), ..params(&["k"]) };
    match compile_with(&params, &[(main, text)], tools) {
        Ok(made) => (made.facts.compiler, made.notes.iter().map(|note| format!("{}\n", note.message)).collect()),
        Err(CudaCompileError::NeedsNvcc { why, .. }) => ("needs nvcc".into(), why),
        Err(CudaCompileError::Failed { message, log, .. }) => ("error".into(), format!("{message}\n{log}")),
        Err(other) => panic!("{other:?}"),
    }
}

const MAIN: &str = "norms/main.cu";
const HOST: &str = "void run(int *x) { k<<<1, 32>>>(x); cudaDeviceSynchronize(); std::vector<int> v(3); }\nint main() { run(nullptr); }\n";

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn auto_asks_for_nvcc_only_where_a_kernel_needs_the_host() {
    let plain = "__global__ void k(int *x) { x[threadIdx.x] = 1; }\n";
    for before in [
        "#include <vector>\n",
        "#include <torch/extension.h>\n#include <vector>\n",
        "#include <vector>\n#ifdef DEBUG\n#endif\n",
    ] {
        let (compiler, notes) = by_auto(MAIN, &format!("{before}{plain}{HOST}"), tools());
        assert_eq!(compiler, "nvrtc", "{before}{notes}");
        assert!(notes.contains("the header `vector`, which is not here") && notes.contains("`main`"), "{notes}");
    }
    // Headers of the host may define these macros, and an empty header does not.
    let asks = format!("#include <vector>\n#ifdef PATH_MAX\n#endif\n{plain}{HOST}");
    assert_eq!(by_auto(MAIN, &asks, tools()), ("needs nvcc".into(), "NVRTC has no header `vector`".into()));
    assert_eq!(
        by_auto(MAIN, &asks, &with_nvcc()),
        ("nvcc".into(), "compiled with nvcc: NVRTC has no header `vector`\n".into())
    );
    // The kernel needs the host, and the source a header that nobody has.
    let both = format!("#include <torch/extension.h>\n#include <vector>\n{}{HOST}", plain.replace("int *x", "uint *x"));
    let (missing, why) = by_auto(MAIN, &both, tools());
    assert!(missing == "needs nvcc" && why.contains("`uint`"), "{missing}: {why}");
    let (compiler, notes) = by_auto(MAIN, &both, &with_nvcc());
    assert!(
        compiler == "nvcc" && notes.contains("compiled with nvcc: NVRTC has no type `uint`"),
        "{compiler}: {notes}"
    );
    assert!(
        notes.contains("the header `torch/extension.h`, which is not here") && !notes.contains("`vector`"),
        "{notes}"
    );
    // nvcc lacks what the kernel needs, too.
    let lacks = format!("#include <ATen/ATen.h>\n#include <vector>\n{}{HOST}", plain.replace("int *x", "at::Half *x"));
    let (error, message) = by_auto(MAIN, &lacks, tools());
    assert!(
        error == "error" && message.starts_with("kernel `k` needs `at::Half` (norms/main.cu:3)"),
        "{error}: {message}"
    );
    let wrong = format!("#include <ATen/ATen.h>\n#include <vector>\n{}{HOST}", plain.replace("= 1", "= 1 +"));
    let (error, message) = by_auto(MAIN, &wrong, tools());
    assert!(error == "error" && message.starts_with("norms/main.cu:3: expected an expression"), "{error}: {message}");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn both_compilers_are_quoted_where_both_refuse_a_source() {
    let text = "#include <torch/extension.h>\n__global__ void k(uint *x) { x[0] = 1 +; }\nint main() { k<<<1, 1>>>(nullptr); }\n";
    let (error, message) = by_auto(MAIN, text, &with_nvcc());
    assert_eq!(error, "error", "{message}");
    let (nvccs, nvrtcs) = message.split_once("NVRTC, before nvcc:\n").unwrap_or_else(|| panic!("{message}"));
    assert!(nvccs.contains("(nvcc was tried because NVRTC refused the source: NVRTC has no type `uint`"), "{message}");
    assert!(
        nvccs.contains("expected an expression") && nvrtcs.contains("identifier \"uint\" is undefined"),
        "{message}"
    );
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_generated_source_is_never_handed_to_nvcc() {
    let text = "__global__ void k(uint *x) { x[0] = 1; }\n";
    assert_eq!(by_auto(MAIN, text, &with_nvcc()).0, "nvcc");
    let (error, message) = by_auto("kforge-generated/k.cu", text, &with_nvcc());
    assert!(error == "error" && message.contains("identifier \"uint\" is undefined"), "{error}: {message}");
    let named = CompileParams { compiler: Compiler::Nvcc, main: "kforge-generated/k.cu".into(), ..params(&["k"]) };
    assert!(compile_with(&named, &[("kforge-generated/k.cu", text)], &with_nvcc()).is_ok(), "its kernel names nvcc");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn kernels_that_share_a_file_have_binaries_of_their_own() {
    let text = "__device__ float own(float x) { return x * 3; }\n#define MAKE(name, f) extern \"C\" __global__ void name(float *y) { y[threadIdx.x] = f; }\n\
        MAKE(first, own(y[0]))\nMAKE(second, expf(y[1]))\n__global__ void third(float *y) { y[0] = 3; }\n";
    for (compiler, tools) in compilers() {
        let of = |entry: &str, text: &str| {
            let params = CompileParams { compiler, ..params(&[entry]) };
            compile_with(&params, &[("norms/main.cu", text)], &tools).unwrap_or_else(|e| panic!("{compiler:?}: {e:?}"))
        };
        let [first, third] = ["first", "third"].map(|entry| of(entry, text));
        assert!(first.cubin != third.cubin, "{compiler:?}");
        assert!(first.notes[0].message.contains("norms/main.cu:4: `second`"), "{:?}", first.notes);
        let edited = text.replace("expf", "sinf").replace("= 3;", "= 4;");
        assert!(of("first", &edited).cubin == first.cubin, "{compiler:?}: an edit of the others");
        // What only nvcc compiles, too.
        let uint = |text: &str| text.replace("(float *y)", "(float *y, uint n)");
        let chosen = |entry: &str, text: &str| {
            let params = CompileParams { compiler: Compiler::Auto, ..params(&[entry]) };
            compile_with(&params, &[("norms/main.cu", &uint(text))], &with_nvcc()).unwrap_or_else(|e| panic!("{e:?}"))
        };
        if compiler == Compiler::Nvcc {
            assert_eq!(chosen("first", text).facts.compiler, "nvcc");
            assert!(chosen("first", &edited).cubin == chosen("first", text).cubin);
        }
        // A candidate of a round and a generated source are compiled as they are written.
        let written = CompileParams { compiler, candidate: true, ..params(&["first"]) };
        let whole = compile_with(&written, &[("norms/main.cu", text)], &tools).unwrap();
        assert!(whole.notes.is_empty() && whole.cubin.len() > first.cubin.len(), "{compiler:?}");
    }
}
