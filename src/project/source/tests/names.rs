//! Declarations whose names are easily missed. Where one is left out, an outer name of the same spelling takes its place, and the kernel means something else.

use super::*;

/// Whether the line with `/*inner*/` stays for a kernel that uses `name`.
fn stays(declaration: &str, name: &str) -> bool {
    let text = format!(
        "#include <torch/extension.h>\nnamespace ops {{\n{declaration}\n__global__ void k(float *x) {{ x[0] = {name}; }}\n}}\ntorch::Tensor run(torch::Tensor x) {{ return x; }}\n"
    );
    let kept = left(&text, "k");
    assert!(!kept.contains("run("), "{kept}");
    declaration.split('\n').all(|line| kept.contains(line.trim()))
}

#[test]
fn every_declarator_declares_a_name() {
    for (text, name) in [
        ("constexpr int a(2), b(3);", "b"),
        ("constexpr int a(2), b(3);", "a"),
        ("constexpr int a{2}, b{3};", "b"),
        ("constexpr const float *p = &one, *q = &three;", "q"),
        ("constexpr const float *const p = f(c, d), *const q = &three;", "q"),
        ("constexpr int a[2] = {1, 2}, b[2]{3, 4};", "b"),
        ("constexpr int a = 2, (*b)(int) = nullptr;", "b"),
        ("constexpr V<int, 3> a(2), b(3);", "b"),
        ("constexpr int a = x < 3, b = 3;", "b"),
        ("typedef int real, *preal;", "real"),
        ("typedef int real, *preal;", "preal"),
        ("typedef struct { float v; } Vec, *PVec;", "Vec"),
        ("typedef struct { float v; } Vec, *PVec;", "PVec"),
        ("typedef float (*F)(float), R;", "R"),
        ("typedef float (&F)[4];", "F"),
        ("struct S : A, B { int x; } a = {1}, *b = nullptr;", "b"),
        ("static union { int a; float b; };", "b"),
        ("#define AND_B , b = 3\nconstexpr int a = 2 AND_B;", "b"),
        ("#define AND(n, v) , n = v\nconstexpr int a = 2 AND(b, 3);", "b"),
    ] {
        assert!(stays(text, name), "{text} {name}");
        assert!(!stays(text, "other"), "{text}");
    }
}

#[test]
fn attributes_are_no_names() {
    for (text, name) in [
        ("using real [[maybe_unused]] = int;", "real"),
        ("using real C10_UNUSED = int;", "real"),
        ("constexpr int b __attribute__((unused)) = 3;", "b"),
        ("constexpr int b [[maybe_unused]](3);", "b"),
        ("constexpr int b C10_UNUSED = 3;", "b"),
        ("constexpr int b ALIGNED(8) = 3;", "b"),
        ("alignas(16) constexpr int b = 3;", "b"),
        ("typedef int real __attribute__((aligned(8)));", "real"),
        ("typedef int real __align__(8);", "real"),
        ("typedef struct { int x; } real __attribute__((aligned(8)));", "real"),
        ("typedef struct __attribute__((packed)) { int x; } real;", "real"),
        ("enum class [[nodiscard]] E { A };", "E"),
        ("__declspec(align(8)) constexpr int b = 3;", "b"),
    ] {
        assert!(stays(text, name), "{text} {name}");
        assert!(!stays(text, "other"), "{text}");
    }
}

#[test]
fn every_branch_may_give_the_name() {
    let nested = "constexpr int\n#ifdef A_\n a\n#else\n#ifndef B_\n b\n#else\n c\n#endif\n#endif\n = 3;";
    let many = |count: usize| {
        let branches: String = (1..count).map(|n| format!("#elif V_ == {n}\n v{n}\n")).collect();
        format!("constexpr int\n#if V_ == 0\n v0\n{branches}#else\n b\n#endif\n = 3;")
    };
    for text in [nested.to_string(), many(8), many(30), many(100)] {
        assert!(stays(&text, "b"), "{text}");
        assert!(!stays(&text, "other"), "{text}");
    }
    let body = "enum Mode { M0,\n#ifdef A_\n M1,\n#else\n#ifndef B_\n M2 = 1,\n#endif\n#endif\n M3 };";
    assert!(stays(body, "M2") && !stays(body, "other"));
}

#[test]
fn a_constant_expression_is_no_host_code() {
    for text in [
        "constexpr int b(int v) { return v > 0 ? v : throw std::invalid_argument(\"v\"); }",
        "template <class T> constexpr T b(T v) { if (v < 0) { throw std::runtime_error(std::to_string(v)); } return v; }",
        "constexpr int b(int v) { if (v < 0) { abort(); } return v; }",
    ] {
        assert!(stays(text, "b(1)"), "{text}");
    }
    assert!(!stays("int b(int v) { if (v < 0) { abort(); } return v; }", "b(1)"));
}

#[test]
fn enumerators_that_macros_make_are_names() {
    for (text, name) in [
        ("#define COLORS(X) X(GREEN, 1) X(RED, 3)\n#define AS(n, v) n = v,\nenum Color { COLORS(AS) };", "RED"),
        ("#define MORE RED\nenum Color { GREEN, MORE };", "RED"),
        ("#define COLOR(n) COLOR_##n\nenum Color : int { COLOR(GREEN), COLOR(RED) };", "COLOR_RED"),
        ("#ifdef A_\n#define COLOR(n) A_##n\n#else\n#define COLOR(n) B_##n\n#endif\nenum { COLOR(RED) };", "B_RED"),
        ("#define COLOR(n) COLOR_##n\ntypedef enum { COLOR(RED) } Color;", "COLOR_RED"),
    ] {
        assert!(stays(text, name), "{text} {name}");
    }
    let used = "#define COLORS(X) X(GREEN, 1)\n#define AS(n, v) n = v,\nenum Color { COLORS(AS) };";
    assert!(!stays(used, "other"));
}

#[test]
fn only_a_namespace_of_an_absent_header_makes_an_overload_foreign() {
    let two = |before: &str, parameter: &str| {
        let text = format!(
            "{before}\ntemplate <class T> __device__ float f(T x) {{ return 1; }}\n__device__ float f({parameter} x) {{ return 3; }}\n__global__ void k(float *x) {{ x[0] = f(x[0]); }}\nint main() {{ }}\n"
        );
        let files = [
            ("k.cu", text.as_str()),
            (
                "cfg.cuh",
                "struct Cfg {\n#if 1\n using T = float; struct I {\n#else\n struct I { struct J {\n#endif\n }; };\n#if 0\n };\n#endif\n",
            ),
        ];
        let out = reduced(&files, &["k"]);
        out.files["k.cu"].contains("return 3")
    };
    let torch = "#include <torch/extension.h>\n";
    assert!(!two(torch, "at::Half"));
    for (before, parameter) in [
        ("", "opps2::Relu"),
        ("#include <vector>\n#include <cuda_runtime.h>", "opps2::Relu"),
        (
            &format!("{torch}#include <mma.h>\nusing namespace nvcuda;"),
            "wmma::fragment<wmma::accumulator, 16, 16, 16, float> &",
        ),
        (&format!("{torch}#include \"cfg.cuh\""), "Cfg::T"),
        (&format!("{torch}struct A {{ struct B {{ using T = float; }}; }};\nusing namespace X;"), "B::T"),
        (&format!("{torch}struct A {{ typedef Other B; }};"), "B::T"),
    ] {
        assert!(two(before, parameter), "{before} {parameter}");
    }
}

#[test]
fn what_may_hide_an_outer_name_is_not_left_out_for_it() {
    for text in ["using b = at::Half;", "using at::b;", "struct b : at::Base { };", "static const int b = at::three;"] {
        let outer = "using b = float;\nnamespace ops {\n";
        let all = format!(
            "#include <ATen/ATen.h>\n{outer}{text}\n__global__ void k(float *x) {{ x[0] = b(1); }}\n}}\nint main() {{ }}\n"
        );
        assert!(left(&all, "k").contains(text), "{text}");
    }
}

#[test]
fn what_the_library_and_the_language_look_up_for_a_type_stays() {
    let of = |text: &str, body: &str| {
        let all = format!(
            "#include <torch/extension.h>\nstruct Pair {{ float a; }};\nstruct Wide {{ float a; }};\n{text}\n__global__ void k(float *x) {{ {body}; }}\nint main() {{ }}\n"
        );
        let kept = left(&all, "k");
        text.lines().all(|line| kept.contains(line))
    };
    for text in [
        "namespace std { template <> struct tuple_size<Pair> { static const int value = 2; }; }",
        "namespace std {\ntemplate <unsigned long I> struct tuple_element<I, Pair> { using type = float; };\n}",
        "template <> struct std::common_type<Pair, float> { using type = Wide; };",
        "template <> struct ::cuda::std::is_floating_point<Pair> : std::true_type { };",
        "template <class T> struct std::is_floating_point<Box<Pair, T>> : std::true_type { };",
        "namespace std { template <> constexpr bool is_integral_v<Pair> = true; }",
        "namespace std { template <> __device__ void swap<Pair>(Pair &a, Pair &b) { } }",
        "namespace std { __device__ void swap(Pair &a, Pair &b) { } }",
    ] {
        assert!(of(text, "Pair p"), "{text}");
        assert!(!of(text, "x[0] = 1"), "{text}");
    }
    for (text, stays) in [
        ("__device__ const float *begin(const Pair &r) { return r.v; }", true),
        ("template <int I> __device__ float get(Pair p) { return p.a; }", true),
        ("constexpr float get(Pair p) { return p.a; }", true),
        ("float get(Pair p) { return p.a; }", false),
        ("namespace std { template <> struct hash<Pair> { int operator()(Pair p) { return 1; } }; }", false),
        ("namespace std { template <> struct tuple_size<at::Half, Pair> { }; }", false),
    ] {
        assert_eq!(of(text, "Pair p"), stays, "{text}");
    }
}
