//! Names of tunables that a source defines or declares itself.

use super::*;

/// What is reported of `BLOCK`.
fn of(all: &[(&str, &str)]) -> Option<(String, FixedBy)> {
    let files = files(all);
    let tree = SourceTree { files: &files, main: all[0].0, include: &[] };
    fixed(tree, &["OTHER", "BLOCK"], &["k"]).map(|fixed| (format!("{} {}", fixed.name, fixed.place), fixed.by))
}

#[test]
fn what_defines_or_declares_a_tunable_under_no_condition_is_found() {
    let kernel = "\n__global__ void k(float *x) { x[0] = BLOCK; }\n";
    for text in [
        "#define BLOCK 256",
        "#define BLOCK(x) x",
        "#undef BLOCK\n#  define BLOCK 2",
        "namespace a {\n#define BLOCK\n}",
    ] {
        let (place, by) = of(&[("k.cu", &format!("{text}{kernel}"))]).expect(text);
        assert!(place.starts_with("BLOCK k.cu:") && by == FixedBy::Define, "{text} {place}");
    }
    for text in [
        "static constexpr int BLOCK = 128;",
        "constexpr int A = 2, BLOCK{A};",
        "namespace a { namespace {\nconst unsigned BLOCK(128); } }",
        "enum { A, BLOCK = 128 };",
        "enum Sizes { BLOCK };",
        "__device__ float BLOCK[4];",
        "__constant__ int *BLOCK;",
        "typedef float BLOCK;",
        "using BLOCK = float;",
        "struct BLOCK { int x; };",
        "template <class T> constexpr int BLOCK = sizeof(T);",
        "inline int BLOCK(int x) { return x; }",
        "static const at::Size BLOCK = at::size();",
    ] {
        let found = of(&[("k.cu", &format!("{text}{kernel}"))]).map(|(_, by)| by);
        assert_eq!(found, Some(FixedBy::Declaration), "{text}");
    }
    let header = ("block.h", "#ifndef BLOCK_H\n#define BLOCK_H\n\n#define BLOCK 64\n#endif\n");
    assert_eq!(of(&[("k.cu", "#include \"block.h\"\n"), header]), Some(("BLOCK block.h:4".into(), FixedBy::Define)));
}

#[test]
fn a_parameter_of_a_kernel_that_is_launched_is_found() {
    for (text, found) in [
        ("__global__ void k(float *x, int BLOCK) { }", true),
        ("__global__ void k(float *x,\n const int BLOCK) { }", true),
        ("extern \"C\" __global__ void __launch_bounds__(BLOCK) k(int BLOCK = 3) { }", true),
        ("__global__ void k(float (*BLOCK)[4]) { }", true),
        ("__global__ void k(const float *__restrict__ BLOCK) { }", true),
        ("template <typename T, int BLOCK = 2> __global__ void k(T *x) { }", true),
        ("__global__ void other(float *x, int BLOCK) { }", false),
        ("__global__ void __launch_bounds__(BLOCK) k(float *x, V<BLOCK> v, int n = BLOCK, T *p[BLOCK]) { }", false),
        ("template <int N = BLOCK, class U = V<BLOCK>> __global__ void k(ns::BLOCK) { int y[BLOCK]; }", false),
    ] {
        let by = of(&[("k.cu", text)]).map(|(_, by)| by);
        assert_eq!(by, found.then(|| FixedBy::Parameter { kernel: "k".into() }), "{text}");
    }
}

#[test]
fn what_the_kernels_reach_declares_a_tunable_inside_itself() {
    let (local, parameter, member) = (
        |function: &str| FixedBy::Local { function: function.into() },
        |function: &str| FixedBy::InnerParameter { function: function.into() },
        || FixedBy::Member { class: "P".into() },
    );
    let helped = |helper: &str| format!("{helper}\n__global__ void k(float *x) {{ x[0] = f(2); }}");
    let taken = |class: &str| format!("{class}\n__global__ void k(float *x, P p) {{ x[0] = 1; }}");
    for (text, by) in [
        ("__global__ void k(float *x) {\n  const int BLOCK = 4; x[0] = BLOCK; }".to_string(), local("k")),
        ("__global__ void k(float *x) {\n  for (int BLOCK = 0; BLOCK < 4; ++BLOCK) x[0] = 1; }".into(), local("k")),
        ("__global__ void k(float *x) {\n  __shared__ float BLOCK[4]; }".into(), local("k")),
        ("__global__ void k(float *x) {\n  float *const BLOCK = x, y; }".into(), local("k")),
        ("struct V { int x; };\n__global__ void k(float *x) { V BLOCK; V *other; }".into(), local("k")),
        (helped("\n__device__ int f(int n) { uint4 BLOCK{}; return n; }"), local("f")),
        (helped("\n__device__ int f(int BLOCK) { return BLOCK; }"), parameter("f")),
        (helped("template <int BLOCK>\n__device__ int f(int n) { return n; }"), parameter("f")),
        (
            helped("constexpr int g(int *BLOCK) { return 1; }\n__device__ int f(int n) { return g(&n); }"),
            parameter("g"),
        ),
        (taken("struct P {\n  int n, m;\n  int BLOCK; };"), member()),
        (taken("struct P { int n; __device__ int g() {\n  int BLOCK = n; return 2; } };"), local("P")),
        (taken("struct P { float\n*BLOCK; };"), member()),
        (taken("typedef struct P_ { size_t BLOCK[2]; } P;"), FixedBy::Member { class: "P_".into() }),
    ] {
        let found = of(&[("k.cu", &text)]).map(|(_, by)| by);
        assert_eq!(found, Some(by), "{text}");
        let line = text.lines().position(|line| line.contains("BLOCK")).unwrap() + 1;
        assert_eq!(of(&[("k.cu", &text)]).unwrap().0, format!("BLOCK k.cu:{line}"), "{text}");
        for kept in [
            format!("#ifndef BLOCK\n{text}\n#endif"),
            format!("{text}\n#undef BLOCK\n"),
            text.replace("void k(", "void other("),
        ] {
            assert_eq!(of(&[("k.cu", &kept)]), None, "{kept}");
        }
        assert!(of(&[("k.cu", "#include \"a.h\"\n"), ("a.h", &text)]).is_some(), "{text}");
    }
    for used in [
        "int n = BLOCK; return BLOCK;",
        "int n = x[0] * BLOCK, m = (int)BLOCK; n = n * BLOCK;",
        "int y[BLOCK]; V<float, BLOCK> v; unsigned u{BLOCK}; S::BLOCK = 2; x.BLOCK = 3;",
        "switch (n) { case BLOCK: break; } if (int(BLOCK) == 3) f(BLOCK); else BLOCK;",
        "auto f = [](int n = BLOCK) { return n; }; UNROLL BLOCK; p->BLOCK = 2;",
        "static_assert(BLOCK > 1); y = sizeof(float) * BLOCK; a = b & BLOCK;",
    ] {
        let text = format!(
            "struct S {{ int v[BLOCK]; static constexpr int n = BLOCK; }};\n__global__ void k(float *x, S s) {{ {used} }}"
        );
        assert_eq!(of(&[("k.cu", &text)]), None, "{used}");
    }
}

#[test]
fn what_a_condition_surrounds_or_only_uses_a_tunable_is_none() {
    for text in [
        "#ifndef BLOCK\n#define BLOCK 256\n#endif\n",
        "#pragma once\n#ifndef BLOCK\nstatic constexpr int BLOCK = 128;\n#endif\n",
        "#ifdef BY_HAND\n#define BLOCK 256\n#endif\n",
        "#if !defined(BLOCK)\n#define BLOCK 256\n#else\n#endif\n",
        "// #define BLOCK 2\nconst char *s = \"BLOCK = 2\";\n",
        "#define N BLOCK\nconstexpr int M = BLOCK, L{BLOCK};\nfloat a[BLOCK];\nV<BLOCK> v(BLOCK);\ntemplate struct W<BLOCK>;\n",
        "enum { A = BLOCK, B };\nstruct S : V<BLOCK> { static constexpr int N = BLOCK; };\nint f(int n = BLOCK);\n",
        "void launch() { const int BLOCK = 128; k<<<1, BLOCK>>>(); }\nvoid run(int BLOCK) { }\n",
        "KERNEL(float, BLOCK)\nREGISTER(a, BLOCK);\nusing T = V<BLOCK>;\nstatic_assert(BLOCK > 2);\n",
    ] {
        assert_eq!(of(&[("k.cu", text)]), None, "{text}");
        assert_eq!(of(&[("k.cu", "#include \"a.h\"\n"), ("a.h", text)]), None, "{text}");
    }
    let conditional = "#ifndef BLOCK\n#include \"a.h\"\n#endif\n";
    assert_eq!(of(&[("k.cu", conditional), ("a.h", "#define BLOCK 2\n")]), None);
}

#[test]
fn what_declares_the_name_of_a_macro_is_not_left_out_for_the_macro() {
    let of = |define: &str| {
        let text = "#include <torch/extension.h>\n#ifdef X\nstatic constexpr int BLOCK = 128;\n#endif\nint main() { }\n__global__ void k(float *x) { x[0] = BLOCK; }\n";
        let files = files(&[("k.cu", text)]);
        let tree = SourceTree { files: &files, main: "k.cu", include: &[] };
        let defines = BTreeMap::from([(define.to_string(), "64".to_string())]);
        let given = Given::new(&defines, &[]);
        Sources::read_given(tree, given).without_host_code(&["k".into()], given).files["k.cu"].clone()
    };
    for define in ["BLOCK", "OTHER"] {
        assert!(of(define).contains("constexpr int BLOCK") && !of(define).contains("main"), "{}", of(define));
    }
}
