//! Sources whose host code cannot be left out by looking at one spelling of them. What stays means what it means in the user's file, or it stays whole.

use super::*;

const HOST: &str = "void run_##n(torch::Tensor x) { n##_kernel<<<1, 1>>>(x.p()); }";

/// The line that takes the place of the last use of `MAKE`; none if it stays as it is written. `kept` names what must hold in any case.
fn made(text: &str, entry: &str) -> Option<String> {
    made_given(text, entry, &BTreeMap::new())
}

fn made_given(text: &str, entry: &str, defines: &BTreeMap<String, String>) -> Option<String> {
    let text = text.replace("HOST", HOST);
    let files = files(&[("k.cu", &text)]);
    let given = Given::new(defines, &[]);
    let sources = Sources::read_given(SourceTree { files: &files, main: "k.cu", include: &[] }, given);
    let out = sources.without_host_code(&[entry.to_string()], given);
    let at = text.lines().collect::<Vec<_>>().iter().rposition(|line| line.starts_with("MAKE"))?;
    let new = out.files.get("k.cu").map_or(text.as_str(), String::as_str).lines().nth(at)?;
    (new.trim() != text.lines().nth(at)?.trim()).then(|| new.trim().to_string())
}

#[test]
fn a_use_is_split_by_its_outer_macro_and_the_compiler_expands_the_rest() {
    let inner = "#ifdef FAST\n#define OP(x) (x + 1)\n#else\n#define OP(x) (x * 2)\n#endif\n";
    let text = format!(
        "{inner}#define MAKE(n, T) __global__ void n##_kernel(T *x) {{ x[0] = OP(SCALE); }} HOST\nMAKE(add, float)\n"
    );
    assert_eq!(made(&text, "add_kernel").unwrap(), "__global__ void add_kernel(float *x) { x[0] = OP(SCALE); }");
    // The same with a tunable, which the compiler is given.
    let defines = BTreeMap::from([("SCALE".to_string(), "3, 4".to_string())]);
    assert!(made_given(&text, "add_kernel", &defines).unwrap().contains("OP(SCALE)"));
    let nested = "#define KERNEL(n) __global__ void n##_kernel(float *x) { x[0] = 1; }\n#define LAUNCH(n) HOST\n#define BOTH(n) KERNEL(n) LAUNCH(n)\n#define MAKE(n) BOTH(n)\nMAKE(add)\n";
    assert_eq!(made(nested, "add_kernel").unwrap(), "KERNEL(add)");
    let list =
        "#define ONE(n) __global__ void n##_kernel(float *x) { } HOST\n#define MAKE(X) X(add) X(sub)\nMAKE(ONE)\n";
    assert_eq!(made(list, "sub_kernel").unwrap(), "__global__ void sub_kernel(float *x) { }");
    let removed = "#define MAKE(n) __global__ void n##_kernel(float *x) { } HOST\nMAKE(add)\n#undef MAKE\n#define MAKE(n) other\n";
    assert_eq!(made(removed, "add_kernel").unwrap(), "__global__ void add_kernel(float *x) { }");
}

#[test]
fn a_use_of_a_macro_that_may_be_another_one_stays_as_it_is_written() {
    let of = |body: &str| format!("#define MAKE(n) __global__ void n##_kernel(float *x) {{ x[0] = {body}; }} HOST\n");
    let (one, two) = (of("1"), of("2"));
    for text in [
        format!("#ifdef A\n{one}#else\n{two}#endif\nMAKE(add)\n"),
        format!("{one}#ifdef A\n#undef MAKE\n{two}#endif\nMAKE(add)\n"),
        format!("{one}#pragma push_macro(\"MAKE\")\n#undef MAKE\n{two}#pragma pop_macro(\"MAKE\")\nMAKE(add)\n"),
        format!("{one}_Pragma(\"pop_macro(\\\"MAKE\\\")\")\nMAKE(add)\n"),
        format!("{one}#include NAME\nMAKE(add)\n"),
    ] {
        assert_eq!(made(&text, "add_kernel"), None, "{text}");
    }
    let defines = BTreeMap::from([("MAKE(n)".to_string(), "int n;".to_string())]);
    assert_eq!(made_given(&format!("#ifndef MAKE\n{one}#endif\nMAKE(add)\n"), "add_kernel", &defines), None);
    // What it is for certain counts.
    assert!(made(&format!("{one}#undef MAKE\n{two}MAKE(add)\n"), "add_kernel").unwrap().contains("x[0] = 2"));
    assert!(made(&format!("#ifdef A\n{one}#else\n{one}#endif\nMAKE(add)\n"), "add_kernel").is_some());
}

#[test]
fn a_use_whose_parts_would_expand_otherwise_by_themselves_stays_as_it_is_written() {
    for text in [
        // An argument that is a macro is expanded before an inner macro quotes or pastes it.
        "#define NAME add\n#define CAT(a, b) a##b\n#define MAKE(n) __global__ void CAT(n, _kernel)(float *x) { } HOST\nMAKE(NAME)\n",
        // An argument that holds a comma.
        "#define TWO 1, 2\n#define FIRST(a, ...) a\n#define MAKE(n, v) __global__ void n##_kernel(float *x) { x[0] = FIRST(v, 3); } HOST\nMAKE(add, TWO)\n",
        // A macro of a header may hold one.
        "#define COUNT(a, ...) a\n#define MAKE(n, v) __global__ void n##_kernel(float *x) { x[0] = COUNT(v, 3); } HOST\nMAKE(add, CUDART_ZERO_F)\n",
        "#define QUOTE(a) #a\n#define MAKE(n, v) __global__ void n##_kernel(float *x) { f(QUOTE(v)); } HOST\nMAKE(add, INT_MAX)\n",
        // The macro's own name does not expand in it.
        "#define MAKE(n) __global__ void n##_kernel(float *x) { MAKE(n); } HOST\nMAKE(add)\n",
        "#define CAT(a, b) a##b\n#define MAKE(n) __global__ void n##_kernel(float *x) { CAT(MA, KE)(n); } HOST\nMAKE(add)\n",
        // The arguments of an inner macro follow the macro.
        "#define MAKE(n, ...) __VA_OPT__(__global__ void n##_kernel(float *x) { }) HOST\nMAKE(add, 1)\n",
        "#define MAKE(n) __global__ void n##_kernel(int *x) { x[0] = __LINE__; } HOST\nMAKE(\n  add)\n",
        "#define MAKE(n, v) __global__ void n##_kernel(float *x) { x[0] = v; } HOST\nMAKE(add,\n#ifdef A\n  1\n#else\n  2\n#endif\n)\n",
    ] {
        // The name is not known where the argument is not expanded.
        let out = made(text, "add_kernel");
        assert_eq!(out, None, "{text}");
    }
}

#[test]
fn a_file_that_is_read_twice_has_the_meanings_of_both_readings() {
    let one = |body: &str| {
        format!(
            "#define OP(n) __global__ void n##_kernel(float *x) {{ x[0] = {body}; }} {HOST}\n#include \"ops.inc\"\n#undef OP\n"
        )
    };
    let ops = ("ops.inc", "OP(add)\n");
    let out = reduced(&[("k.cu", &one("1")), ops], &["add_kernel"]);
    assert_eq!(out.files["ops.inc"].trim(), "__global__ void add_kernel(float *x) { x[0] = 1; }");
    let out = reduced(&[("k.cu", &(one("1") + &one("2"))), ops], &["add_kernel"]);
    assert!(out.files.is_empty(), "{:?}", out.files);
}

#[test]
fn why_a_use_stays_is_said() {
    let text = "#ifdef A\n#define MAKE(n) __global__ void n##_kernel(float *x) { x[0] = 1; } HOST\n#else\n#define MAKE(n) __global__ void n##_kernel(float *x) { } HOST\n#endif\nMAKE(add)\nMAKE(sub)\n";
    let out = reduced(&[("k.cu", &text.replace("HOST", HOST))], &["add_kernel"]);
    let expected = "k.cu:6: `MAKE` may make host code also, and stays as it is: what it stands for depends on conditions, `#undef` or `push_macro`\n";
    assert_eq!(out.why_whole(), expected);
    assert!(out.listed("k.cu").contains(expected.trim()));
    assert!(!out.files["k.cu"].contains("MAKE(sub)"), "a use that makes nothing needed is left out");
}

#[test]
fn every_meaning_of_an_annotation_and_of_a_maker_counts() {
    // Not known to be a kernel: another entry does not leave it out.
    let annotation = "#ifdef A\n#define KERNEL __global__\n#else\n#define KERNEL __device__\n#endif\n\
                      KERNEL void first(float *x) { }\n__global__ void k(float *x) { }\n__global__ void other(float *x) { }\n";
    let files_of = |text: &str| files(&[("k.cu", text)]);
    let alone = |text: &str| {
        let files = files_of(text);
        let tree = SourceTree { files: &files, main: "k.cu", include: &[] };
        let out = without_other_kernels(tree, &["k".into()], Given::default());
        out.map(|out| out.left_out.into_iter().map(|l| l.name).collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(alone(annotation), ["other"]);
    let maker = "#ifdef A\n#define MAKE(n) __global__ void n() { }\n#else\n#define MAKE(n) __device__ int n() { return 1; }\n#endif\nMAKE(first)\n__global__ void k(float *x) { }\n__global__ void other() { }\n";
    assert_eq!(alone(maker), ["other"]);
    // A name that only the second definition gives.
    let second = "#ifdef A\n#define MAKE(n) __global__ void n##_a() { }\n#else\n#define MAKE(n) __global__ void n##_b() { }\n#endif\nMAKE(first)\nint main() { }\n";
    assert!(left(second, "first_b").contains("MAKE(first)"));
    // A function that may be one of the device is no host overload, and what a check calls in one mode only is no host code.
    let overload = "#ifdef A\n#define DEV __device__\n#else\n#define DEV\n#endif\nDEV float f(float x) { return x; }\n__device__ float f(int x) { return 0; }\n__global__ void k(float *x) { x[0] = f(x[0]); }\nint main() { }\n";
    assert!(left(overload, "k").contains("f(float x)"));
    let check = "#ifdef DEBUG\n#define CHECK(x) if (!(x)) fprintf(stderr, #x)\n#else\n#define CHECK(x)\n#endif\nconstexpr float f(float x) { CHECK(x); return x; }\n__global__ void k(float *x) { x[0] = f(x[0]); }\nint main() { }\n";
    assert!(left(check, "k").contains("float f(float x)"));
    // A compiler defines the annotation where the source does not.
    let empty = "#ifndef __CUDACC__\n#define __device__\n#define __global__\n#endif\n__device__ float f(float x) { return x; }\n__device__ float f(int x) { return 0; }\n__global__ void k(float *x) { x[0] = f(x[0]); }\nint main() { }\n";
    assert!(left(empty, "k").contains("f(float x)"));
    // A macro before a body has a body of its own: what follows is another declaration.
    let swallowed = "#define MAKE(n) __global__ void n() { } void run() { n<<<1, 1>>>(); }\ntemplate <class T> MAKE(a)\n__device__ int f() { return 1; }\n__global__ void k(int *x) { x[0] = f(); }\nint main() { }\n";
    assert!(left(swallowed, "k").contains("int f()"));
    // The maker was a macro once, and is a function now.
    let was = "#define min(a, b) ((a) < (b) ? (a) : (b))\n#undef min\n__device__ float min(float a, float b) { return 1; }\n__global__ void k(float *x) { x[0] = min(x[0], 2.0f); }\nint main() { }\n";
    assert!(left(was, "k").contains("float min(float a"));
}

#[test]
fn includes_and_pragmas_act_where_they_stand() {
    let body = ("body.inc", "#pragma unroll\nfor (;;) { }\n#include \"more.inc\"\n");
    let more = ("more.inc", "x[0] = 1;\n");
    let text = "void other(float *x) {\n#include \"body.inc\"\n}\n__global__ void k(float *x) { }\n";
    let out = reduced(&[("k.cu", text), body, more], &["k"]);
    assert_eq!(out.files["k.cu"].trim(), "__global__ void k(float *x) { }");
    for acts in [
        "#define N 3\n",
        "#undef N\n",
        "#pragma once\n",
        "#pragma pack(1)\n",
        "#include <absent.h>\n",
        "_Pragma(\"pack(1)\")\n",
        "#endif\n",
    ] {
        let out = reduced(&[("k.cu", text), ("body.inc", acts), more], &["k"]);
        assert!(out.files.is_empty(), "{acts}\n{:?}", out.files);
    }
    let pragmas = "void other(float *x) {\n#pragma unroll\n#pragma omp parallel for\n#pragma STDC FP_CONTRACT OFF\n#pragma pack(push, 1)\n#pragma push_macro(\"N\")\n#pragma GCC diagnostic pop\n#line 70 \"x.cu\"\n  x[0] = 1;\n}\n__global__ void k(float *x) { }\n";
    let out = reduced(&[("k.cu", pragmas)], &["k"]);
    let kept: Vec<&str> = out.files["k.cu"].lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(
        kept,
        [
            "#pragma pack(push, 1)",
            "#pragma push_macro(\"N\")",
            "#pragma GCC diagnostic pop",
            "#line 70 \"x.cu\"",
            "__global__ void k(float *x) { }"
        ]
    );
    for (operator, stays) in [
        ("_Pragma(\"unroll 4\")", false),
        ("UNROLL(4)", false),
        ("_Pragma(\"GCC diagnostic push\")", false),
        ("_Pragma(\"push_macro(\\\"N\\\")\")", true),
        ("PACK", true),
    ] {
        let text = format!(
            "#define QUOTED(x) _Pragma(#x)\n#define UNROLL(n) QUOTED(unroll n)\n#define PACK QUOTED(pack(1))\nvoid other() {{ {operator} f(); }}\n__global__ void k() {{ }}\n"
        );
        assert_eq!(left(&text, "k").contains("other"), stays, "{operator}");
    }
}

#[test]
fn namespaces_that_something_declares_stay_visible() {
    let text = "namespace own { namespace inner { } }\nnamespace alias = own::inner;\nnamespace lost = torch::nn;\nint torch;\nusing namespace ::own::inner;\nusing namespace own::gone;\nusing namespace torch;\n\
                using namespace alias;\nnamespace own { using namespace inner; }\nusing namespace std::chrono;\nusing enum Mode;\nusing enum at::Mode;\nenum class Mode { A };\nusing own::f, own::g;\n__global__ void k(int *x) { g(lost, alias::x, Mode::A); }\n";
    let kept = left(text, "k");
    for word in [
        "::own::inner;",
        "namespace alias;",
        "using namespace inner;",
        "std::chrono",
        "enum Mode",
        "own::f, own::g",
        "alias = own",
    ] {
        assert!(kept.contains(word), "{word}\n{kept}");
    }
    for word in ["gone", "namespace torch;", "torch::nn", "at::Mode"] {
        assert!(!kept.contains(word), "{word}\n{kept}");
    }
}

#[test]
fn declarations_that_count_keep_their_numbers() {
    let text = "#define UNIQUE __COUNTER__\nint first() { return UNIQUE; }\nint second() { return 1; }\n__global__ void k(int *x) { x[0] = __COUNTER__; }\n";
    let kept = left(text, "k");
    assert!(kept.contains("first") && !kept.contains("second"), "{kept}");
}

#[test]
fn a_declaration_that_ends_in_several_branches_is_one() {
    let text = "#include <cublas_v2.h>\nint gemm(cublasHandle_t handle, float *c,\n#if defined(AMD)\n  int algo);\n#else\n  long algo);\n#endif\n\
        int other(cublasHandle_t handle);\n__global__ void k(float *x) { x[0] = 1; }\n";
    let kept = left(text, "k");
    assert!(!kept.contains("gemm") && !kept.contains("algo") && !kept.contains("other"), "{kept}");
    assert!(kept.contains("#if defined(AMD)") && kept.contains("#endif") && kept.contains("x[0] = 1"), "{kept}");
    // Another declaration stands in one of the branches.
    let kept = left(&text.replace("  int algo);\n", "  int algo); int more(float y);\n"), "k");
    assert!(kept.contains("gemm") && kept.contains("more"), "{kept}");
}
