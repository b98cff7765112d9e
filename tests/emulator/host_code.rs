//! Sources with host code that does not compile here: their kernels run as they are, what kernels lack is named, and so is what is wrong with a source.

use super::harness::*;

const NAMES: &str = include_str!("../shared/names.cu");
/// The entries of that source, with what each adds.
const ENTRIES: [(&str, i32); 10] = [
    ("hidden", 1),
    ("own", 2),
    ("plain", 3),
    ("listed", 4),
    ("outer::inner::deep<int, 5>", 5),
    ("either<10>", 10),
    ("either<int>", 6),
    ("several<int>(int *)", 7),
    ("launched", 8),
    ("first_made", 9),
];

#[test]
fn a_kernel_can_be_named_however_it_is_declared() {
    let built = build(NAMES, &ENTRIES.map(|(entry, _)| entry), false);
    for (entry, adds) in ENTRIES {
        let one = launch(entry, 1, 4, vec![ptr("x")]);
        let ran = run(&built, one, &[ints("x", 0..4).writable()]).clean();
        assert_eq!(ran.ints("x"), (0..4).map(|i| i + adds).collect::<Vec<_>>(), "{entry}");
    }
}

#[track_caller]
fn refusal(text: &str, entry: &str) -> String {
    try_build(text, &[entry], false, &[]).err().expect("the source is wrong")
}

#[test]
#[ignore = "second tier: many sources"]
fn a_source_that_ends_inside_something_is_one_error_at_its_opening() {
    for (text, what, line) in [
        (
            "__global__ void k(float *x) {\n  if (x[0] > 0) {\n    x[0] = 1;\n}\n__global__ void j(float *x) { }\n",
            "the brace",
            1,
        ),
        ("int a;\n__global__ void k(float *x) { }\ntemplate <int BLOCK,\n", "the template", 3),
        ("__global__ void k(float *x) { }\n\n/* the end is missing\n", "the comment", 3),
        ("namespace ops {\n__global__ void k(float *x) { }\n", "the namespace", 1),
        ("#if 1\n__global__ void k(float *x) { }\n", "the condition", 1),
    ] {
        let expected = format!("k.cu:{line}:1: error: `k.cu` ends inside {what} that opens at line {line}\n");
        assert_eq!(refusal(text, "k"), expected, "{text}");
    }
}

#[test]
fn an_entry_that_means_several_kernels_lists_them() {
    let text = "__global__ void k(float *x) { }\n__global__ void k(const double *__restrict__ x, int n) { }\n";
    let expected = "entry `k` names 2 kernels; write the parameters of one of them: `k(float *)`\n\
                    k.cu:1: __global__ void k(float *x)\nk.cu:2: __global__ void k(const double *__restrict__ x, int n)\n";
    assert_eq!(refusal(text, "k"), expected);
    for entry in ["k(float *)", "k(const double *, int)"] {
        build(text, &[entry], false);
    }
}

const LACKS: &str = r#"
#include <torch/extension.h>
#include "helper_math.h"
struct Params { c10::Half *x; };
__device__ float4 twice(float4 v) { return v + v; }
__global__ void fine(float *x) { x[0] = 1; }
__global__ void half(c10::Half *x) { x[0] = 1; }
__global__ void within(Params p) { p.x[0] = 1; }
__global__ void vectors(float4 *x) { x[0] = twice(x[0]); }
__global__ void by_macro(float *x) { CUDA_KERNEL_LOOP(i, 4) x[i] = 1; }
"#;

#[test]
#[ignore = "second tier: many sources"]
fn a_kernel_that_needs_a_missing_header_is_unknown_with_the_name_and_the_others_run() {
    let entry = |entry: &str, args| {
        let built = build(LACKS, &[entry], false);
        run(&built, launch(entry, 1, 1, args), &[output("x", 4, 4)])
    };
    entry("fine", vec![ptr("x")]).clean();
    for (name, needs, line) in [
        ("half", "c10::Half", 7),
        ("within", "c10::Half", 4),
        ("vectors", "operator+", 5),
        ("by_macro", "CUDA_KERNEL_LOOP", 10),
    ] {
        let ran = entry(name, vec![ptr("x")]);
        let expected = format!("{needs}, which a missing header declares, at k.cu:{line}");
        assert!(ran.findings.is_empty() && ran.not_emulated.iter().all(|what| *what == expected), "{name}: {ran:#?}");
        assert!(!ran.not_emulated.is_empty(), "{name}");
    }
}

#[test]
fn a_mistake_of_a_kernel_stays_an_error_in_the_words_of_the_compiler() {
    let text =
        "#include <torch/extension.h>\n__global__ void k(float *x) { x[0] = 1 }\nint main() { torch::init(); }\n";
    let log = refusal(text, "k");
    assert!(log.contains("k.cu:2:") && log.contains("';'") && !log.contains("torch"), "{log}");
    let text = "__global__ void k(float *x) { x[0] = 1 }\nvoid f() { cublasCreate(nullptr); }\n";
    let log = refusal(text, "k");
    assert!(log.contains("k.cu:1:"), "{log}");
}
