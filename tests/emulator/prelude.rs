//! The prelude of every source: it contains all parts that a source names, and does not interfere with a source.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use kforge::emulator::compile::{EmulatorCompile, compile};
use kforge::harness::compilers::ToolSandbox;

use super::harness::*;

/// Compiles `k.cu` with additional files and flags, and returns the binary.
fn build_among(
    text: &str,
    files: &[(&str, &str)],
    include: &[&str],
    flags: &[&str],
    std: &str,
) -> Result<Vec<u8>, String> {
    let (dir, source) = stage(text);
    for (name, text) in files {
        std::fs::create_dir_all(source.join(name).parent().unwrap()).unwrap();
        std::fs::write(source.join(name), text).unwrap();
    }
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let out = dir.path().join("out");
    let what = EmulatorCompile {
        cxx: Path::new("/usr/bin/g++"),
        source: &source,
        headers: &dir.path().join("headers"),
        main: "k.cu",
        entries: &["k".to_owned()],
        defines: &BTreeMap::new(),
        include: &owned(include),
        flags: &owned(flags),
        std,
        check: false,
        candidate: false,
        toolkit: None,
        within: ToolSandbox { scratch: &out, bounds: None, deadline: Instant::now() + Duration::from_secs(120) },
    };
    compile(&what, &out).map_err(|e| e.log)?;
    Ok(std::fs::read(out.join("binary")).unwrap())
}

const BARE: &str = r"__global__ void k(float *out) {
  __shared__ float s[32];
  s[threadIdx.x] = sinf(out[threadIdx.x]) + __shfl_xor_sync(~0u, out[threadIdx.x], 1);
  __syncthreads();
  out[threadIdx.x] = s[31 - threadIdx.x] * rsqrtf(2.0f);
}
";

#[test]
#[ignore = "second tier: many sources"]
fn what_no_source_names_changes_no_binary() {
    let names_all = "typedef __half k1; typedef std::size_t k2; typedef decltype(atomicAdd((int *)0, 1)) k3; typedef decltype(__vadd2(1u, 1u)) k4;\n";
    // Whether a source has a `typedef` decides whether a plain build checks alignment: here, both have one.
    let bare = &format!("{BARE}typedef int k0;\n");
    for std in ["c++17", "c++20"] {
        let least = build_among(bare, &[], &[], &[], std).unwrap();
        assert!(least == build_among(&format!("{bare}{names_all}"), &[], &[], &[], std).unwrap(), "{std}");
    }
    let check = |text: &str| build(text, &["k"], true).binary;
    assert!(check(BARE) == check(&format!("{BARE}{names_all}")), "in a check build");
}

#[test]
#[ignore = "second tier: many sources"]
fn narrow_floats_and_the_standard_library_need_no_include() {
    let kernel = "(int *out) { out[0] = (int)(float)(T(1.5f) + T(2.5f)); }\n";
    let by_name = format!("typedef __nv_bfloat16 T;\n__global__ void k{kernel}");
    // Pasted, with both spellings of `##`.
    let pasted = format!("#define CAT(a, b) a##b\ntypedef CAT(__ha, lf) T;\n__global__ void k{kernel}");
    let digraphs = format!("%:define CAT(a, b) a%:%:b\ntypedef CAT(__ha, lf) T;\n__global__ void k{kernel}");
    let of_std = "__global__ void k(int *out) { std::array<int, 2> a = {4, 3}; out[0] = std::max(a[0], int(std::numeric_limits<bool>::max())); }\n";
    for text in [by_name.as_str(), &pasted, &digraphs, of_std] {
        let ran = run(&build(text, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
        assert_eq!(ran.clean().ints("out"), [4], "{text}");
    }
    // Only in an entry, and only in a macro's value.
    let generic = format!("template <class T> __global__ void k{kernel}");
    let built = build(&generic, &["k<__half>"], false);
    let ran = run(&built, launch("k<__half>", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [4]);
    let built = build_with(&format!("__global__ void k{kernel}"), &["k"], false, &[("T", "__half")]);
    assert_eq!(run(&built, launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]).clean().ints("out"), [4]);
}

#[test]
fn a_source_that_asks_whether_a_header_of_narrow_floats_was_included_gets_yes() {
    // Without the header, such a source declares the types itself, and they are declared here.
    let own = "#ifdef __CUDA_BF16_H__\nstatic_assert(sizeof(__nv_bfloat162) == 4);\n#else\nusing __nv_bfloat162 = int;\n#endif\n\
               #ifndef __CUDA_FP16_H__\nstruct __half { };\n#endif\n#ifndef __CUDA_FP8_H__\nstruct __nv_fp8_e4m3 { };\n#endif\n\
               __global__ void k(int *out) { out[0] = sizeof(__nv_bfloat162); }\n";
    let ran = run(&build(own, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [4]);
}

/// Builds with a compiler that runs `first`, and returns how often it was asked to compile.
fn asked(first: &str, text: &str) -> (Result<Built, String>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let (cxx, asked) = (dir.path().join("g++"), dir.path().join("asked"));
    let count = format!("case \"$*\" in *kforge_cuda.h*) echo >> {};; esac", asked.display());
    std::fs::write(&cxx, format!("#!/bin/sh\n{count}\n{first}\nexec /usr/bin/g++ \"$@\"\n")).unwrap();
    std::fs::set_permissions(&cxx, std::fs::Permissions::from_mode(0o755)).unwrap();
    let built = try_build_by(&cxx, text, &["k"], false, &[]);
    (built, std::fs::read(asked).unwrap().len())
}

#[test]
fn what_is_refused_with_parts_left_out_is_compiled_with_everything() {
    // The C library's macro pastes tokens, which a scan of the source does not see.
    let pasted =
        "typedef __CONCAT(__ha, lf) T;\n__global__ void k(int *out) { out[0] = (int)(float)(T(1.5f) + T(2.5f)); }\n";
    let (built, times) = asked("", pasted);
    let ran = run(&built.unwrap(), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!((ran.clean().ints("out"), times), (vec![4], 2));
    // A mistake is reported once, as in a compilation with the whole prelude.
    let (refused, times) = asked("", "__global__ void k(int *out) { out[0] = undeclared; }\n");
    let said = refused.map(|_| ()).unwrap_err();
    assert_eq!((said.matches("error: ").count(), times), (1, 2), "{said}");
    let (built, times) = asked("", BARE);
    assert!(built.is_ok() && times == 1);
    // A compiler that was killed says nothing about the source.
    let (killed, times) = asked("kill -9 $$", BARE);
    assert!(killed.is_err() && times == 1);
}

#[test]
fn a_macro_called_as_a_function_of_the_c_library_does_not_reach_its_headers() {
    let text = "#define round 3\n#include <math.h>\n#include <cmath>\n#include <stdlib.h>\n__global__ void k(float *out) { out[0] = round + trunc; }\n";
    let built = build_with(text, &["k"], false, &[("trunc", "4")]);
    let ran = run(&built, launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().floats("out"), [7.0]);
}

#[test]
#[ignore = "second tier: many sources"]
fn a_packages_own_header_may_be_called_as_one_of_the_c_library() {
    let own = "#pragma once\n__device__ inline float cube(float x) { return x * x * x + threadIdx.x + sinf(0); }\n";
    for name in ["math.h", "cmath", "stdlib.h", "cstdlib", "cfloat", "algorithm"] {
        for spelt in [format!("\"{name}\""), format!("<{name}>")] {
            let text =
                format!("#include {spelt}\n__global__ void k(float *out) {{ out[0] = cube(out[0]) + exp(out[0]); }}\n");
            let std = if spelt.starts_with('<') == name.starts_with('c') { "c++17" } else { "c++20" };
            let built = build_among(&text, &[(&format!("inc/{name}"), own)], &["inc"], &[], std);
            assert!(built.is_ok(), "{name}, {std}: {}", built.err().unwrap());
        }
    }
}

/// As in libstdc++ 13, in front of the installed one.
const SPELLS: &str =
    "__attribute__((__noinline__, __noclone__, __cold__)) inline int kf_of_the_library() { return 1; }\n";

#[test]
#[ignore = "second tier: many sources"]
fn the_standard_librarys_attributes_do_not_meet_cudas_keywords() {
    let text = "#include <cuda_runtime.h>\n#include <string>\n#include <memory>\n#include <functional>\n#include <vector>\n\
                __noinline__ __device__ int one() { return kf_of_the_library(); }\n\
                std::shared_ptr<std::string> on_the_host() { return std::make_shared<std::string>(\"a\"); }\n\
                __global__ void k(int *out) { out[0] = one(); }\n";
    let next = |name: &str| format!("#pragma once\n{SPELLS}#include_next <bits/{name}>\n");
    for (name, std) in [("basic_string.h", "c++17"), ("basic_string.tcc", "c++20"), ("shared_ptr_base.h", "c++20")] {
        let file = format!("later/bits/{name}");
        let built = build_among(text, &[(&file, &next(name))], &[], &["-isystem", "source/later"], std);
        assert!(built.is_ok(), "{name}, {std}: {}", built.err().unwrap());
    }
}

#[test]
fn macros_of_a_source_do_not_reach_into_our_headers() {
    let text = "#define raw 1\n#define sign 2\n#define mode 3\n#define value 4\n#define x 5\n#define N 6\n#define mask 7\n\
                #include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n\
                __global__ void k(int *out) { __half h = __float2half(1.0f); out[0] = (int)__half2float(h) + raw + sign + mode + value + x + N + mask; }\n";
    let ran = run(&build(text, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [29]);
    // kforge's names do not leak into a source either.
    let text = "#include <cuda_fp8.h>\nstruct own { int raw, sign, mode, value, mask, bits, T, T2, name; };\n\
                __global__ void k(int *out) { own o{1, 2, 3, 4, 5, 6, 7, 8, 9}; out[0] = o.raw + o.sign + o.mode + o.name; }\n";
    let ran = run(&build(text, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [15]);
}
