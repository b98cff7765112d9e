//! The toolchain from the network to machine code: wheels are resolved and installed through pip, and real kernels are compiled and inspected. The installation
//! stays below `target/kforge-test-home`, so only the first run downloads it. Other tests use it if it exists; because of its name, cargo runs this test first.

#[path = "toolchain_network/confined.rs"]
mod confined;
#[path = "toolchain_network/cub.rs"]
mod cub;
#[path = "toolchain_network/fatbins.rs"]
mod fatbins;
#[path = "toolchain_network/host_code.rs"]
mod host_code;
#[path = "toolchain_network/methods.rs"]
mod methods;
#[path = "toolchain_network/own_kernels.rs"]
mod own_kernels;
#[path = "toolchain_network/templates.rs"]
mod templates;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[path = "installed/python.rs"]
mod python;
#[path = "installed/toolchain.rs"]
mod toolchain;

use kforge::cuda::{CudaCompileError, CudaCompiled, compile, inspect, shim_headers};
use kforge::model::target::CAPABILITIES;
use kforge::record::params::{CompileParams, Compiler, InspectParams};
use kforge::record::{FunctionFacts, Inspection};
use kforge::toolchain::cuda::{Cuda, Group, Source, resolve};
use kforge::toolchain::cxx;
use kforge::workspace::lockfile::Lockfile;
use toolchain::{RELEASE, environment, install, locked, pip, toolchains};

/// NVRTC and the disassembler.
fn tools() -> &'static BTreeMap<String, PathBuf> {
    static TOOLS: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let mut tools = install(Group::Compile);
        tools.extend(install(Group::Disassemble));
        tools
    })
}

fn with_nvcc() -> BTreeMap<String, PathBuf> {
    let mut tools = tools().clone();
    tools.extend(install(Group::Nvcc));
    tools.insert("c++".into(), cxx::find(None, &environment()["PATH"]).unwrap().path);
    tools
}

fn params(entries: &[&str]) -> CompileParams {
    CompileParams {
        compiler: Compiler::Auto,
        arch: "sm_90a".into(),
        main: "norms/main.cu".into(),
        entries: entries.iter().map(|e| e.to_string()).collect(),
        defines: BTreeMap::new(),
        std: "c++17".into(),
        include: vec!["common".into()],
        flags: vec![],
        candidate: false,
        lined: false,
        ptx: false,
        host: None,
        triton: vec![],
    }
}

fn lay_out(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn compile_with(
    params: &CompileParams,
    files: &[(&str, &str)],
    tools: &BTreeMap<String, PathBuf>,
) -> Result<CudaCompiled, CudaCompileError> {
    let dir = tempfile::tempdir().unwrap();
    let (source, shim, scratch) = (dir.path().join("source"), dir.path().join("shim"), dir.path().join("scratch"));
    lay_out(&source, files);
    lay_out(&shim, shim_headers());
    std::fs::create_dir(&scratch).unwrap();
    let made = compile(params, &source, &shim, tools, &scratch);
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "scratch is left empty");
    made
}

fn made(params: &CompileParams, text: &str) -> CudaCompiled {
    compile_with(params, &[("norms/main.cu", text)], tools()).unwrap_or_else(|e| panic!("{e}: {e:?}"))
}

fn seen(params: &CompileParams, made: &CudaCompiled) -> Inspection {
    let asked = InspectParams {
        arch: params.arch.clone(),
        entries: params.entries.clone(),
        disassemble: true,
        listing: false,
        launches: vec![],
        host: params.host.is_some(),
    };
    inspect(&asked, &made.cubin, &made.facts, Some(&tools()["nvdisasm"])).unwrap()
}

fn only(inspection: Inspection) -> FunctionFacts {
    let [function] = <[_; 1]>::try_from(inspection.functions).unwrap();
    function
}

const ROW: &str = "template <typename T, int N> __global__ void __launch_bounds__(128) row(T* p, const T* q, int n) {\n\
    __shared__ T s[N];\n  s[threadIdx.x % N] = q[threadIdx.x];\n  __syncthreads();\n  p[threadIdx.x] = s[(threadIdx.x + 1) % N] + T(n);\n}\n";

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn ptx_comes_with_the_machine_code_and_leaves_it_as_it_is() {
    for (compiler, tools) in [(Compiler::Nvrtc, tools().clone()), (Compiler::Nvcc, with_nvcc())] {
        let plain = CompileParams { compiler, ..params(&["row<float, 64>"]) };
        let asked = CompileParams { ptx: true, ..plain.clone() };
        let [plain, made, again] =
            [&plain, &asked, &asked].map(|params| compile_with(params, &[("norms/main.cu", ROW)], &tools).unwrap());
        assert_eq!((&plain.ptx, &plain.cubin), (&None, &made.cubin), "{compiler:?}");
        let ptx = String::from_utf8(made.ptx.clone().unwrap()).unwrap();
        assert!(ptx.contains(".target sm_90a") && ptx.contains(&format!(".entry {}(", made.facts.symbols[0])), "{ptx}");
        assert_eq!(made.ptx, again.ptx, "{compiler:?}");
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn line_tables_leave_the_code_as_it_is() {
    let plain = params(&["row<float, 64>"]);
    let lined = CompileParams { flags: vec!["-lineinfo".into()], ..plain.clone() };
    let (one, other) = (made(&plain, ROW), made(&lined, ROW));
    assert_ne!(one.cubin, other.cubin);
    assert_eq!(seen(&plain, &one), seen(&lined, &other));
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_release_resolves_to_pinned_wheels_without_addresses() {
    let wheels = resolve(RELEASE, pip()).unwrap();
    assert_eq!(wheels.len(), 8, "{wheels:#?}");
    for wheel in &wheels {
        assert!(wheel.digest.size > 100_000 && wheel.file.ends_with(".whl"), "{wheel:?}");
    }
    assert!(wheels.iter().any(|w| w.name == "nvidia-cuda-nvrtc" && w.version.starts_with("13.0.")));
    let mut lock = Lockfile::default();
    lock.wheels.insert("cuda 13.0".into(), wheels);
    assert!(!lock.to_text().contains("://") && !lock.to_text().contains("pypi"), "{}", lock.to_text());
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_release_that_is_not_there_is_an_error_in_pips_words() {
    let error = resolve("13.99", pip()).unwrap_err().to_string();
    assert!(error.contains("13.99") && error.contains("ERROR"), "{error}");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn offline_refuses_what_is_missing_and_takes_what_is_there() {
    tools();
    let cuda = Cuda::Wheels(locked().clone());
    let empty = tempfile::tempdir().unwrap();
    let error = cuda.install(Group::Compile, empty.path(), Source::Offline, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("nvidia-cuda-nvrtc 13.0") && error.contains("kforge fetch"), "{error}");
    cuda.install(Group::Compile, &toolchains(), Source::Offline, &mut |_| {}).unwrap();
    assert_eq!(cuda.installed(Group::Compile, empty.path()).unwrap(), None);
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn every_architecture_compiles_and_says_the_same_of_parameters_and_shared_memory() {
    for capability in CAPABILITIES {
        let suffixes: &[&str] = if capability >= 100 {
            &["", "a", "f"]
        } else if capability == 90 {
            &["", "a"]
        } else {
            &[""]
        };
        for suffix in suffixes {
            let params = CompileParams { arch: format!("sm_{capability}{suffix}"), ..params(&["row<float, 64>"]) };
            let made = made(&params, ROW);
            let asked = InspectParams {
                arch: params.arch.clone(),
                entries: params.entries.clone(),
                disassemble: false,
                listing: false,
                launches: vec![],
                host: false,
            };
            let seen = inspect(&asked, &made.cubin, &made.facts, None).unwrap();
            assert_eq!(seen.architectures.join(" "), params.arch);
            let row = only(seen);
            assert_eq!(row.params, [(0, 8), (8, 8), (16, 4)], "{}", params.arch);
            assert_eq!((row.shared, row.max_threads), (Some(256), Some(128)), "{}", params.arch);
            assert!(row.registers.is_some_and(|r| r > 4) && row.spill_stores == Some(0), "{row:?}");
        }
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn templates_half_precision_cooperative_groups_and_standard_headers_compile() {
    let text = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n\
        #include <cmath>\n#include <cstdio>\n#include <algorithm>\n#include <limits>\n#include <type_traits>\n#include \"sum.cuh\"\n\
        namespace cg = cooperative_groups;\nnamespace ops {\n\
        template <typename T, int V> __global__ void f(T* p, uint32_t n) {\n\
          auto tile = cg::tiled_partition<32>(cg::this_thread_block());\n\
          float s = cg::reduce(tile, float(p[threadIdx.x]), cg::plus<float>());\n\
          static_assert(!std::is_same<T, int>::value, \"\");\n\
          s = std::max(s, -std::numeric_limits<float>::infinity()) + twice(V) + std::sqrt(s) + INFINITY * 0;\n\
          if (n > UINT32_MAX - 1) printf(\"%f\", s);\n\
          p[0] = T(s);\n}\n}\n";
    let files =
        [("norms/main.cu", text), ("common/sum.cuh", "#pragma once\ninline float twice(float x) { return 2 * x; }\n")];
    for arch in ["sm_80", "sm_90a", "sm_100"] {
        let params = CompileParams { arch: arch.into(), ..params(&["ops::f<__half, 4>", "&ops::f<__nv_bfloat16, 8>"]) };
        let made = compile_with(&params, &files, tools()).unwrap_or_else(|e| panic!("{e}: {e:?}"));
        assert_eq!(made.facts.symbols.len(), 2);
        assert_eq!(made.facts.compiler, "nvrtc");
        assert!(made.notes.is_empty(), "{:?}", made.notes);
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn every_stand_in_compiles_beside_cudas_own_headers() {
    let own: String = shim_headers().iter().map(|(name, _)| format!("#include <{name}>\n")).collect();
    let cuda = "#include <cuda/std/type_traits>\n#include <cuda/std/limits>\n#include <cuda/std/cmath>\n#include <cuda/std/cstdint>\n\
        #include <cuda_runtime.h>\n#include <cuda_fp8.h>\n#include <mma.h>\n#include <cuda/barrier>\n#include <cub/block/block_reduce.cuh>\n";
    let kernel = "template <size_t... i> __device__ int sum(std::index_sequence<i...>) { int s = 0; for (int x : {int(i)...}) s += x; return s; }\n\
        __global__ void k(float* p, ptrdiff_t d, int64_t q) {\n  std::array<float, 4> a{};\n  a[1] = std::clamp(p[d], 0.f, FLT_MAX);\n\
        p[0] = a[q] + sum(std::make_index_sequence<4>{}) + float(offsetof(int4, y)) + float(M_PI);\n  assert(p[0] > 0);\n}\n";
    for (std, text) in [("c++17", format!("{own}{cuda}{kernel}")), ("c++20", format!("{cuda}{own}{kernel}"))] {
        let params = CompileParams { compiler: Compiler::Nvrtc, std: std.into(), ..params(&["k"]) };
        let made = made(&params, &text);
        assert!(made.notes.is_empty(), "{:?}", made.notes);
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_comment_or_another_folder_changes_no_byte() {
    let asserting = "#include \"check.cuh\"\n#include <cuda_fp16.h>\n__global__ void k(float* p) { check(p); }\nstatic __global__ void s(float* p) { p[1] = 2; }\nnamespace { __global__ void n(float* p) { p[2] = 3; } }\n";
    let header = "inline void check(float* p) { assert(p[0] > 0); p[0] = 1; }\n";
    let of = |main: &str| {
        let files = [("norms/main.cu", main), ("common/check.cuh", header)];
        compile_with(&params(&["k", "s", "n"]), &files, tools()).unwrap()
    };
    let (one, two) = (of(asserting), of(&format!("{asserting}// a comment\n")));
    assert_eq!(one.cubin, two.cubin);
    assert_eq!(one.log, two.log, "the log holds no times");
    let names = |needle: &str| one.cubin.windows(needle.len()).any(|w| w == needle.as_bytes());
    assert!(names("common/check.cuh"), "assert names the header as the package does");
    assert!(!names(&std::env::temp_dir().to_string_lossy()) && !names("kforge-test-home"));
    let lines = |text: &str| made(&params(&["row<float,64>"]), text).cubin;
    assert_eq!(lines(ROW), lines(&format!("// a comment\n\n{ROW}")), "without assert, lines do not enter");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn defines_reach_the_source_and_change_the_code() {
    let of = |v: &str| {
        let params = CompileParams { defines: [("V".to_string(), v.to_string())].into(), ..params(&["k"]) };
        made(&params, "__global__ void k(int* p) { p[0] = V; }\n").cubin
    };
    assert_ne!(of("7"), of("8"));
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn an_error_comes_with_file_line_and_the_compilers_words() {
    let failure =
        |entries: &[&str], text: &str| match compile_with(&params(entries), &[("norms/main.cu", text)], tools()) {
            Err(CudaCompileError::Failed { message, log, .. }) => (message, log),
            other => panic!("{other:?}"),
        };
    let (message, log) = failure(&["k"], "__global__ void k(int* p) {\n  p[0] = oops;\n}\n");
    assert_eq!(message, "norms/main.cu:2: identifier \"oops\" is undefined");
    assert!(log.contains("p[0] = oops;"), "the quoted source: {log}");
    let (message, _) = failure(&["nope<4>"], "__global__ void k(int* p) {}\n");
    assert!(message.contains("entry `nope<4>` cannot be found"), "{message}");
    let (message, _) =
        failure(&["helper"], "__device__ int helper(int p) { return p; }\n__global__ void k(int* p) {}\n");
    assert!(message.contains("entry `helper`"), "{message}");
    // Without `scale`, the header would be left out.
    let (message, _) = failure(&["k"], "#include \"mine.cuh\"\n__global__ void k(int* p) { p[0] = scale(2); }\n");
    assert_eq!(
        message,
        "kernel `k` needs `scale` (norms/main.cu:2), which the missing header `mine.cuh` (norms/main.cu:1) declares"
    );
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn spills_and_vector_loads_are_seen() {
    let text = "__global__ void __launch_bounds__(1024, 2) h(float4* p, const float4* q) {\n  float4 a[24];\n#pragma unroll\n\
        for (int i = 0; i < 24; i++) a[i] = q[i * threadIdx.x];\n  __syncthreads();\n#pragma unroll\n\
        for (int i = 0; i < 24; i++) p[i * threadIdx.x] = a[23 - i];\n}\n";
    let params = params(&["h"]);
    let h = only(seen(&params, &made(&params, text)));
    assert!(h.spill_stores.is_some_and(|bytes| bytes > 0) && h.stack.is_some_and(|bytes| bytes > 0), "{h:?}");
    assert!(h.opcodes.keys().any(|op| op.starts_with("LDG.E.128")), "{:?}", h.opcodes);
    assert!(h.opcodes.keys().any(|op| op.starts_with("STL")), "{:?}", h.opcodes);
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn another_nvrtc_wants_another_process() {
    made(&params(&["row<float,64>"]), ROW);
    let dir = tempfile::tempdir().unwrap();
    let mut other = tools().clone();
    let copy = dir.path().join("libnvrtc.so.13");
    std::os::unix::fs::symlink(&other["nvrtc"], &copy).unwrap();
    other.insert("nvrtc".into(), copy);
    let error = compile_with(&params(&["row<float,64>"]), &[("norms/main.cu", ROW)], &other).unwrap_err();
    assert!(matches!(error, CudaCompileError::NeedsFreshProcess { .. }), "{error:?}");
}

const LAUNCHER: &str = "#include <vector>\n#include \"kforge_host.h\"\n#include \"row.h\"\nnamespace { __global__ void hidden(int* p) { p[0] = 1; } }\n\
    extern \"C\" int run(const kforge_call* call) {\n  std::vector<int> sizes(SIZE);\n  auto y = (float*)kforge_data(call, \"y\");\n\
    row<float, SIZE><<<1, 128, 0, (cudaStream_t)call->stream>>>(y, y, sizes.size());\n  hidden<<<1, 1>>>((int*)y);\n  return cudaGetLastError();\n}\n";

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_launcher_of_a_kernels_own_becomes_a_library_whose_kernels_are_inspected() {
    let hosted = CompileParams {
        compiler: Compiler::Nvcc,
        host: Some("run".into()),
        defines: [("SIZE".to_string(), "64".to_string())].into(),
        ..params(&[])
    };
    let tools = with_nvcc();
    let make = |params: &CompileParams, text: &str| {
        compile_with(params, &[("norms/main.cu", text), ("common/row.h", ROW)], &tools)
    };
    let one = make(&hosted, LAUNCHER).unwrap_or_else(|e| panic!("{e}: {e:?}"));
    let inspected = seen(&hosted, &one);
    assert_eq!((&inspected.architectures[..], inspected.disassembled), (&["sm_90a".to_string()][..], true));
    let [row, hidden] = &inspected.functions[..] else { panic!("{inspected:?}") };
    assert!(hidden.entry.contains("hidden") && row.entry == "_Z3rowIfLi64EEvPT_PKS0_i", "{inspected:?}");
    assert_eq!((row.shared, row.max_threads), (Some(256), Some(128)));
    assert!(row.registers.is_some() && row.opcodes.keys().any(|o| o.starts_with("LDS")), "{row:?}");
    // In another folder, and with another comment, the output is byte for byte the same.
    let other = make(&hosted, &LAUNCHER.replace("return", "/* all is queued */ return")).unwrap();
    assert!(one.cubin == other.cubin);
    for (text, says) in [
        (LAUNCHER.replace("extern \"C\"", ""), "has no function `run`"),
        (LAUNCHER.replace("sizes.size()", "sizes.large()"), "norms/main.cu:8"),
    ] {
        match make(&hosted, &text) {
            Err(CudaCompileError::Failed { message, log, .. }) => assert!(message.contains(says), "{message}\n{log}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let without = tools.iter().filter(|(name, _)| *name != "nvcc").map(|(n, p)| (n.clone(), p.clone())).collect();
    let files = [("norms/main.cu", LAUNCHER), ("common/row.h", ROW)];
    assert!(matches!(compile_with(&hosted, &files, &without), Err(CudaCompileError::NeedsNvcc { .. })));
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn host_code_and_host_headers_go_to_nvcc() {
    let text = "#include <vector>\n#include <cuda_fp16.h>\n#include <cassert>\n#include \"sum.cuh\"\n\
        namespace ops { template <typename T, int N> __global__ void row(T* p, int n) { assert(n > 2); p[threadIdx.x] = T(twice(n + N)); } }\n\
        static __global__ void hidden(float* p) { p[0] = 1; }\nnamespace { __global__ void nameless(int* p) { p[0] = 2; } }\nextern \"C\" __global__ void plain(float* p, double c) { p[0] = c; }\n\
        void run(float* p) { plain<<<1, 2>>>(p, 1.0); cudaDeviceSynchronize(); std::vector<int> v; }\n";
    let header = "__device__ inline float twice(float x) { return 2 * x + 0 * sizeof(std::vector<int>); }\n";
    let files = |text: &'static str| [("norms/main.cu", text), ("common/sum.cuh", header)];
    let params = params(&["ops::row<float, 4>", "hidden", "plain", "&ops::row<__half, 8>", "nameless"]);
    match compile_with(&params, &files(text), tools()) {
        Err(CudaCompileError::NeedsNvcc { why, log }) => {
            assert!(why.contains("`std::vector`") && log.contains("catastrophic error"), "{why}\n{log}");
        }
        other => panic!("{other:?}"),
    }
    let tools = with_nvcc();
    let one = compile_with(&params, &files(text), &tools).unwrap_or_else(|e| panic!("{e}: {e:?}"));
    assert_eq!(one.facts.compiler, "nvcc");
    assert_eq!(one.facts.symbols[0], "_ZN3ops3rowIfLi4EEEvPT_i");
    assert_eq!(one.facts.symbols[2], "plain");
    assert!(one.facts.spills.contains_key("plain"), "{:?}", one.facts.spills);
    assert!(
        one.notes.iter().any(|n| n.message.contains("compiled with nvcc: NVRTC has no `std::vector`")),
        "{:?}",
        one.notes
    );
    let inspection = seen(&params, &one);
    assert_eq!(inspection.architectures, ["sm_90a"]);
    assert_eq!(inspection.functions[2].params, [(0, 8), (8, 8)]);
    let again = compile_with(&params, &files(text), &tools).unwrap();
    assert_eq!((&one.cubin, &one.log), (&again.cubin, &again.log), "another folder, the same bytes");

    let uint = "__global__ void plain(uint* p) { p[0] = 1; }\n";
    assert!(matches!(
        compile_with(&self::params(&["plain"]), &files(uint), self::tools()),
        Err(CudaCompileError::NeedsNvcc { .. })
    ));
    let made = compile_with(&self::params(&["plain"]), &files(uint), &tools).unwrap_or_else(|e| panic!("{e}: {e:?}"));
    let said: String = made.notes.iter().map(|note| note.message.as_str()).collect();
    assert!(made.facts.compiler == "nvcc" && said.contains("NVRTC has no type `uint`"), "{said}");

    let wrong = "__global__ void plain(uint* p) { p[0] = oops; }\n";
    match compile_with(&self::params(&["plain"]), &files(wrong), &tools) {
        Err(CudaCompileError::Failed { message, log, .. }) => {
            assert!(
                message.starts_with("norms/main.cu:1: identifier \"oops\" is undefined (nvcc was tried because"),
                "{message}"
            );
            assert!(message.contains("`uint`") && log.contains("NVRTC, before nvcc:\n"), "{message}\n{log}");
        }
        other => panic!("{other:?}"),
    }

    let wrong = "#include <vector>\n__global__ void plain(int* p) { p[0] = oops; }\n";
    let asked = CompileParams { compiler: Compiler::Nvcc, ..self::params(&["plain"]) };
    match compile_with(&asked, &files(wrong), &tools) {
        Err(CudaCompileError::Failed { message, .. }) => {
            assert_eq!(message, "norms/main.cu:2: identifier \"oops\" is undefined")
        }
        other => panic!("{other:?}"),
    }
    let asked = CompileParams { compiler: Compiler::Nvcc, ..self::params(&["nope"]) };
    match compile_with(&asked, &files("__global__ void plain(int* p) {}\n"), &tools) {
        Err(CudaCompileError::Failed { message, .. }) => assert!(message.contains("entry `nope`"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_worker_that_holds_one_nvrtc_compiles_with_another() {
    use kforge::base::Digest;
    use kforge::harness::message::{Places, Request, Response};
    use kforge::record::spec::{Form, Input};
    use kforge::record::{Spec, StepKind};
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    let dir = tempfile::tempdir().unwrap();
    lay_out(&dir.path().join("in/tree-source"), &[("norms/main.cu", ROW)]);
    lay_out(&dir.path().join("in/tree-shim"), shim_headers());
    let input = |name: &str| (name.to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Tree });
    let params = serde_json::to_value(params(&["row<float,64>"])).unwrap();
    let inputs = ["tree:source", "tree:shim"].map(input).into();
    let spec = Spec { kind: StepKind::Compile, version: 1, implementation: None, params, inputs };
    let copy = dir.path().join("libnvrtc.so.13");
    std::os::unix::fs::symlink(&tools()["nvrtc"], &copy).unwrap();
    let mut other = tools().clone();
    other.insert("nvrtc".into(), copy);

    let mut worker = Command::new(env!("CARGO_BIN_EXE_kforge"))
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(worker.stdout.take().unwrap()).lines();
    let mut requests = worker.stdin.take().unwrap();
    let mut binaries = vec![];
    for tools in [tools().clone(), other] {
        let output = dir.path().join(format!("out{}", binaries.len()));
        std::fs::create_dir(&output).unwrap();
        let request = Request {
            spec: spec.clone(),
            input: dir.path().join("in"),
            output: output.clone(),
            places: Places { tools, read: vec![], scratch: None },
            device: None,
            time_limit_s: 60,
            run_limit_s: 60,
            memory_limit: 1 << 30,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
            hang: None,
            planned: std::time::SystemTime::UNIX_EPOCH,
            warm_up: false,
        };
        writeln!(requests, "{}", serde_json::to_string(&request).unwrap()).unwrap();
        let answer: Response = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert!(matches!(answer, Response::Done { .. }), "{answer:?}");
        binaries.push(std::fs::read(output.join("binary")).unwrap());
    }
    drop(requests);
    worker.wait().unwrap();
    assert_eq!(binaries[0], binaries[1]);
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn a_python_with_numpy_is_there_for_tests_of_references() {
    let python = python::place().join("bin/python");
    let run = |program: &Path, words: &[&str]| {
        let said = std::process::Command::new(program).args(words).output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
    };
    if !python.exists() {
        std::fs::create_dir_all(python::place().parent().unwrap()).unwrap();
        // Both commands need only Python with pip: distributions put the module that installs pip into a new environment in a separate package.
        let system = Path::new("python3");
        run(system, &["-m", "venv", "--without-pip", &python::place().to_string_lossy()]);
        run(system, &["-m", "pip", "--python", &python.to_string_lossy(), "install", "-q", "numpy"]);
    }
    run(&python, &["-c", "import numpy"]);
    assert!(python::python().is_some());
}
