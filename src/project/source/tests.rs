//! Tests of declarations, reach and what is left out of sources, on texts. `tests/e2e/host_code` compiles whole sources.

use super::*;

mod fixed;
mod foreign;
mod hostile;
mod names;
mod reading;
mod splitting;

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

fn reduced(all: &[(&str, &str)], entries: &[&str]) -> Reduced {
    let files = files(all);
    let tree = SourceTree { files: &files, main: all[0].0, include: &[] };
    let entries: Vec<String> = entries.iter().map(|e| e.to_string()).collect();
    let out = Sources::read(tree).without_host_code(&entries, Given::default());
    for (name, text) in &out.files {
        assert_eq!(text.lines().count(), files[name].lines().count(), "{text}");
    }
    out
}

/// What stays of a text: its lines without those that are blank.
fn left(text: &str, entry: &str) -> String {
    let out = reduced(&[("k.cu", text)], &[entry]);
    let text = out.files.get("k.cu").cloned().unwrap_or(text.to_string());
    text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_an_entry_reaches_stays_byte_for_byte_and_the_rest_is_blank() {
    let text = "#include <vector>\n#define TILE (2 * HALF)\n#define CHECK(x) check(x, __LINE__)\nconstexpr int HALF = 8, OTHER = 9;\n\
                struct Shape { int n; };\n__constant__ float scale[4];\nstruct Unused { torch::Tensor x; };\n\
                __device__ float helper(Shape s) {  /* odd   spacing */ return s.n * TILE; }\n\
                __global__ void k(float *x, Shape s) { int n = 0; x[n] = helper(s) * scale[0]; }\n\
                __global__ void other(at::Half *x) { }\n\
                void check(cudaError_t e, int line) { if (e) exit(1); }\n\
                void launch(float *x) { k<<<1, 2>>>(x, {}); CHECK(cudaGetLastError()); }\nint main() { launch(nullptr); }\n";
    let kept = left(text, "k");
    let dropped = ["Unused", "other", "check(cuda", "launch", "main"];
    for line in text.lines() {
        let expected = !dropped.iter().any(|word| line.contains(word));
        assert_eq!(kept.contains(line), expected, "{line}\n---\n{kept}");
    }
}

#[test]
fn what_is_left_out_is_listed_with_its_lines() {
    let text = "#include <torch/extension.h>\n#include \"../common/check.h\"\n__global__ void k(float *x) { }\n\nint main() {\n}\nPYBIND11_MODULE(NAME, m) { }\n";
    let out = reduced(&[("src/k.cu", text)], &["k"]);
    let listed: Vec<_> = out.left_out.iter().map(|l| format!("{} {}-{}", l.name, l.place, l.to)).collect();
    assert_eq!(listed, ["main src/k.cu:5-6", "PYBIND11_MODULE src/k.cu:7-7"]);
    let absent: Vec<_> = out.absent.iter().map(|a| format!("{} {} {}", a.name, a.place, a.stands)).collect();
    assert_eq!(absent, ["../common/check.h src/k.cu:2 false", "torch/extension.h src/k.cu:1 true"]);
    let text = &out.files["src/k.cu"];
    assert!(text.contains("#include <torch/extension.h>") && !text.contains("check.h"), "{text}");
}

#[test]
fn headers_of_the_package_are_read_too_and_found_as_a_compiler_finds_them() {
    let all = [
        (
            "src/k.cu",
            "#include \"common.h\"\n#include <inc/tile.h>\n#include \"../up.h\"\n__global__ void k(float *x) { x[0] = tile(1) + up; }\n",
        ),
        (
            "src/common.h",
            "#pragma once\n#include <cublas_v2.h>\nstatic cublasHandle_t handle;\ninline void cublasCheck(cublasStatus_t s) { }\n",
        ),
        ("inc/tile.h", "template <class T> T tile(T x) { return x; }\n"),
        ("up.h", "constexpr int up = 3;\n"),
    ];
    let out = reduced(&all, &["k"]);
    assert_eq!(out.absent.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["cublas_v2.h"]);
    assert_eq!(out.files.keys().collect::<Vec<_>>(), ["src/common.h"]);
    assert_eq!(out.files["src/common.h"].trim_end(), "#pragma once\n#include <cublas_v2.h>");
}

#[test]
fn a_kernel_keeps_its_name_from_its_launcher_and_its_overloads() {
    let text = "__global__ void softmax(float *x);\nvoid softmax(torch::Tensor x) { softmax<<<1, 2>>>(x.data_ptr<float>()); }\n\
                void softmax(float *x, int n) { }\n__global__ void softmax(float *x) { }\n__global__ void softmax(double *x) { }\n";
    let kept = left(text, "softmax");
    assert_eq!(kept.lines().count(), 3, "{kept}");
    assert!(!kept.contains("torch") && !kept.contains("int n"), "{kept}");
    let files = files(&[("k.cu", text)]);
    let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
    let expected = "entry `softmax` names 2 kernels; write the parameters of one of them: `softmax(float *)`\n\
                    k.cu:4: __global__ void softmax(float *x)\nk.cu:5: __global__ void softmax(double *x)\n";
    assert_eq!(sources.ambiguous("softmax").as_deref(), Some(expected));
    assert_eq!(sources.ambiguous("launch"), None);
}

#[test]
fn specializations_that_nobody_can_choose_are_left_out_and_others_stay() {
    let text = "#include <ATen/ATen.h>\ntemplate <class T> struct Vec { };\ntemplate <> struct Vec<float> { };\ntemplate <> struct Vec<c10::Half> { c10::Half x; };\n\
                __device__ float up(float x) { return x; }\n__device__ float up(c10::Half x) { return x; }\n\
                template <class T> __global__ void k(T *x) { Vec<T> v; typename Vec<T>::type *w; x[0] = up(x[1]); }\ntemplate __global__ void k<c10::Half>(c10::Half *);\n";
    let kept = left(text, "k<float>");
    assert!(!kept.contains("c10"), "{kept}");
    assert_eq!(kept.lines().count(), 5, "{kept}");
}

#[test]
fn macros_that_make_kernels_and_bindings_are_followed() {
    let text = "#define KERNEL(name, T) __global__ void name##_kernel(T *x) { x[0] = 1; } void name(torch::Tensor x) { name##_kernel<<<1, 1>>>(x.data_ptr<T>()); }\n\
                #define STRINGIFY(x) #x\n#define BIND(f) m.def(STRINGIFY(f), &f, STRINGIFY(f));\n\
                KERNEL(add, float)\nKERNEL(sub,\n  float)\nPYBIND11_MODULE(NAME, m) {\n  BIND(add)\n}\nTORCH_LIBRARY_IMPL(ops, CUDA, m) { m.impl(\"f\", f); }\n";
    let kept = left(text, "add_kernel");
    let made = kept.lines().last().unwrap();
    assert_eq!(made, "__global__ void add_kernel(float *x) { x[0] = 1; }", "{kept}");
    assert_eq!(kept.lines().count(), 4, "{kept}");
}

#[test]
fn directives_and_fragments_stay() {
    let all = [
        (
            "k.cu",
            "void host() {\n#define N 4\n#pragma unroll\n  f<<<1, 1>>>();\n}\n__global__ void k(float *x) {\n#include \"body.inc\"\n}\n__device__ int used() { return 1; }\n",
        ),
        ("body.inc", "x[0] = N + used();\n"),
    ];
    let out = reduced(&all, &["k"]);
    let text = &out.files["k.cu"];
    assert!(text.contains("#define N 4") && !text.contains("unroll") && text.contains("used()"), "{text}");
}

#[test]
fn namespaces_assertions_and_operators_stay_where_they_mean_what_is_kept() {
    let text = "using namespace at;\nusing namespace own;\nnamespace cg = cooperative_groups;\nusing namespace nvcuda;\nnamespace own { namespace {\nstruct V { float x; };\n\
                __device__ V operator+(V a, V b) { return a; }\n} }\nstatic_assert(sizeof(own::V) == 4, \"\");\nstatic_assert(sizeof(Host) == 4, \"\");\nstruct Host { std::vector<int> x; };\n\
                std::ostream &operator<<(std::ostream &o, const own::V &v) { return o; }\n__global__ void k(V *x) { auto b = cg::this_thread_block(); x[0] = x[0] + x[1]; }\n";
    let kept = left(text, "k");
    for word in ["at;", "Host", "ostream"] {
        assert!(!kept.contains(word), "{word}\n{kept}");
    }
    for word in ["namespace own;", "cg = ", "nvcuda", "operator+", "own::V) == 4"] {
        assert!(kept.contains(word), "{word}\n{kept}");
    }
}

#[test]
fn a_header_that_is_asked_for_is_not_made_up() {
    let out = reduced(
        &[("k.cu", "#if __has_include(<fast.h>)\n#include <fast.h>\n#endif\n__global__ void k() { }\n")],
        &["k"],
    );
    assert_eq!(out, Reduced::default());
}

#[test]
fn conditions_on_what_nothing_defines_are_listed() {
    let text = "#ifndef GUARD\n#define GUARD\n#include <lost.h>\n#if defined(USE_OTHER) && VERSION > 2 && GIVEN && __CUDA_ARCH__ >= 800\n#endif\n#endif\n__global__ void k() { }\n";
    let files = files(&[("k.cu", text)]);
    let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
    let defines = BTreeMap::from([("GIVEN".to_string(), "1".to_string())]);
    let out = sources.without_host_code(&["k".into()], Given::new(&defines, &[]));
    assert_eq!(
        out.asked.iter().map(|(name, place)| format!("{name} {place}")).collect::<Vec<_>>(),
        ["USE_OTHER k.cu:4", "VERSION k.cu:4"]
    );
    let expected = "k.cu:4: a condition asks about `VERSION`, which nothing here defines";
    assert!(out.listed("k.cu").contains(expected), "{}", out.listed("k.cu"));
}

#[test]
fn only_files_that_the_source_includes_are_read() {
    let other = ("other.h", "void host(at::Tensor x) { }\n/* open");
    let out = reduced(&[("k.cu", "__global__ void k() { }\nint main() { }\n"), other], &["k"]);
    assert_eq!(out.files.keys().collect::<Vec<_>>(), ["k.cu"]);
    let computed = "#define NAME \"other.h\"\n#include NAME\n__global__ void k() { }\n";
    assert_eq!(reduced(&[("k.cu", computed), other], &["k"]).files.keys().collect::<Vec<_>>(), ["other.h"]);
}

#[test]
fn a_name_is_spelled_with_its_namespaces_and_found_by_its_entry() {
    let text = "__global__ void a(float *x) { }\n__global__ void b(const at::cuda::Philox p, float *x) { }\n";
    let files = files(&[("k.cu", text)]);
    let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
    let place = Place { file: "k.cu".into(), line: 2 };
    for name in ["at", "at::cuda", "Philox"] {
        assert_eq!(sources.spelled_at(&place, name), "at::cuda::Philox");
    }
    let entries = ["a".to_string(), "b".to_string()];
    assert_eq!(sources.entry_at(&entries, &place), Some(&entries[1]));
}

#[test]
fn a_file_that_ends_inside_something_is_named_first_the_main_one() {
    let of = |all: &[(&str, &str)]| {
        let files = files(all);
        Sources::read(SourceTree { files: &files, main: all[0].0, include: &[] }).unfinished().map(|u| u.to_string())
    };
    let open = ("k.cu", "#include \"a.h\"\n__global__ void k() {\n if (1) {\n}\n");
    let expected = "`k.cu` ends inside the brace that opens at line 2";
    assert_eq!(of(&[open, ("a.h", "/* x")]).as_deref(), Some(expected));
    assert_eq!(
        of(&[("k.cu", "#include \"a.h\"\nint a;\n"), ("a.h", "int b;\n/* x")]).as_deref(),
        Some("`a.h` ends inside the comment that opens at line 2")
    );
    assert_eq!(of(&[("k.cu", "__global__ void k() { }\n")]), None);
}

#[test]
fn a_header_is_certain_if_the_file_to_compile_includes_it_under_no_condition() {
    let text = "#include \"own.h\"\n#ifdef WITH_TORCH\n#include <torch/a.h>\n#endif\n#include <torch/b.h>\n#if 1\n#include <torch/b.h>\n#endif\n__global__ void k() { }\n";
    let out = reduced(&[("k.cu", text), ("own.h", "#include <torch/c.h>\n")], &["k"]);
    let certain: Vec<_> = out.absent.iter().map(|header| (header.name.as_str(), header.certain)).collect();
    assert_eq!(certain, [("torch/a.h", false), ("torch/b.h", true), ("torch/c.h", false)]);
}

#[test]
fn a_condition_on_what_a_standard_header_may_define_is_told_from_others() {
    let asks = |name: &str| {
        let text = format!("#include <vector>\n#ifdef {name}\n#endif\n__global__ void k() {{ }}\n");
        reduced(&[("k.cu", &text)], &["k"]).asks_standard()
    };
    for name in ["INT_MAX", "CHAR_BIT", "NULL", "EINVAL", "M_PI", "SIGINT", "PRIu64", "HUGE_VALF"] {
        assert!(asks(name), "{name}");
    }
    for name in ["DEBUG", "USE_HALF", "TORCH_VERSION", "BLOCK_SIZE", "ENABLE_BF16", "E", "__GNUC__"] {
        assert!(!asks(name), "{name}");
    }
}

#[test]
fn an_entry_that_a_macro_of_an_absent_header_makes_needs_that_macro() {
    let text = "#include \"makers.cuh\"\nstruct Op {};\nMADE(float, (Op), first, 1)\n\nMADE(float, (Op), second, 2)\n";
    let files = BTreeMap::from([("ops/main.cu".to_string(), text.to_string())]);
    let sources = Sources::read(SourceTree { files: &files, main: "ops/main.cu", include: &[] });
    let reduced = sources.without_host_code(&["second".into()], Given::default());
    let need = |entry: &str| sources.need(&[entry.to_string()], &[], &reduced.absent).map(|need| need.to_string());
    assert_eq!(
        need("second").unwrap(),
        "kernel `second` needs `MADE` (ops/main.cu:5), which the missing header `makers.cuh` (ops/main.cu:1) declares"
    );
    // A struct is declared here, and nothing here names the last one.
    assert_eq!((need("Op"), need("third")), (None, None));
    assert_eq!(sources.need(&["second".into()], &[], &[]), None, "all headers are here");
}
