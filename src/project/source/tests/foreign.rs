//! Overloads and specializations that name a namespace of an absent header: those that nobody can choose without it are left out, all others stay, so that a
//! kernel never silently uses another one.

use super::*;

/// Whether every line of `kept` stays, and none of `gone`, for a kernel with that body.
#[track_caller]
fn check(kept: &[&str], gone: &[&str], body: &str) {
    let text = format!(
        "#include <torch/extension.h>\n#include <type_traits>\n{}\n{}\ntorch::Tensor host(torch::Tensor x) {{ return x; }}\n__global__ void k(float *x) {{ {body}; }}\n",
        kept.join("\n"),
        gone.join("\n")
    );
    let left = left(&text, "k");
    assert!(!left.contains("host("), "{left}");
    kept.iter().for_each(|line| assert!(left.contains(line), "stays: {line}\n{left}"));
    gone.iter().for_each(|line| assert!(!left.contains(line), "is left out: {line}\n{left}"));
}

#[test]
fn a_specialization_stays_unless_it_is_for_a_foreign_type() {
    let op = "template <typename T, typename = void> struct Op { };";
    for specialization in [
        "template <typename T> struct Op<T, std::enable_if_t<!c10::is_complex<T>::value>> { };",
        "template <typename T> struct Op<T, decltype(at::use(T()))> { };",
        "template <> struct Op<float> : at::Base { };",
        "template <typename T> struct Op<T, typename c10::Void<T>::type> { };",
        "template <> struct Op<at::opmath_type<float>> { };",
        "template <> struct Op<mylib::real> { };",
        "template <> struct Op<mylib::Real> { };",
        "template <> struct Op<mylib::real<4>> { };",
        "template <> struct Op<at::native::Half> { };",
        "template <typename T> requires at::Number<T> struct Op<T> { };",
        "#ifdef HALF\ntemplate <> struct Op<c10::Half>\n#else\ntemplate <> struct Op<float>\n#endif\n{ int both; };",
    ] {
        let lines: Vec<&str> = specialization.lines().collect();
        check(&[&[op], &lines[..]].concat(), &[], "Op<float> op");
    }
    for specialization in [
        "template <> struct Op<c10::Half> { };",
        "template <> struct Op<const ::at::BFloat16 *> : at::Base { };",
        "template <typename T> struct Op<c10::complex<T>, void> { };",
        "template <typename T> struct Op<T, c10::Half> { };",
    ] {
        check(&[op], &[specialization], "Op<float> op");
    }
    let value = "template <int N> struct W { };";
    for specialization in ["template <> struct W<(int)sizeof(at::Half)> { };", "template <> struct W<at::kWarp> { };"] {
        check(&[value, specialization], &[], "W<2> w");
    }
    let both = "template <typename T, int N> struct V { };";
    check(
        &[both, "template <int N> struct V<float, at::kWarp> { };"],
        &["template <int N> struct V<at::Half, N> { };"],
        "V<float, 2> v",
    );
}

#[test]
fn a_function_stays_unless_a_parameter_has_a_foreign_type() {
    let act = "__device__ float act(double v) { return 2; }";
    for overload in [
        "__device__ float act(float v, at::Tensor *t = nullptr) { return 3; }",
        "template <typename T> __device__ at::opmath_type<T> act(T v) { return 3; }",
        "template <typename T> __device__ auto act(T v) -> at::opmath_type<T> { return 3; }",
        "template <typename T, std::enable_if_t<!c10::is_complex<T>::value, int> = 0> __device__ T act(T v) { return 3; }",
        "template <typename T> __device__ T act(at::opmath_type<T> v) { return 3; }",
        "__device__ float act(mylib::real v) { return 3; }",
        "__device__ float act(const mylib::Real &v) { return 3; }",
        "__device__ float act(const ::mylib::Scalar v) { return 3; }",
        "__device__ float act(mylib::real<4> v) { return 3; }",
        "template <int N> __device__ float act(mylib::Real<N> v) { return 3; }",
        "template <> __device__ float act<mylib::Real>(float v) { return 3; }",
        "__device__ float act(mylib::Real v, mylib::Real *w) { return 3; }",
        "template <typename T> __device__ T act(typename at::OpMath<T>::type v) { return 3; }",
        "__device__ float act(float v, int (*a)[sizeof(at::Half)] = 0) { return 3; }",
        "template <typename... T> __device__ float act(float v, c10::complex<T>... t) { return 3; }",
        "template <> __device__ float act<sizeof(at::Half)>(float v) { return 3; }",
    ] {
        check(&[act, overload], &[], "x[0] = act(x[1])");
    }
    for overload in [
        "__device__ float act(at::Half v) { return 3; }",
        "__device__ at::opmath_type<at::Half> act(const c10::BFloat16 &v, at::Tensor *t = nullptr) { return 3; }",
        "__device__ float act(c10::Half *v, float w) { return 3; }",
        "__device__ float act(c10::Half &v, ...) { return 3; }",
        "template <typename T> __device__ T act(c10::complex<T> v) { return 3; }",
        "__device__ float act(c10::Half);",
        "template <> __device__ float act<c10::Half>(float v) { return 3; }",
    ] {
        check(&[act], &[overload], "x[0] = act(x[1])");
    }
}

#[test]
fn a_function_stays_where_an_argument_may_be_converted_to_its_foreign_type() {
    // Every conversion is better than `...`.
    let any = "template <typename T> __device__ T act(T v, ...) { return 2; }";
    check(&[any, "template <typename T> __device__ T act(T v, at::Half w) { return 3; }"], &[], "x[0] = act(x[1], 1)");
    // Another argument decides between two conversions to classes.
    let own = "struct Own { float v; __device__ Own(float v) : v(v) { } };";
    let taken = "__device__ float act(Own v, double w) { return 2; }";
    check(&[own, taken, "__device__ float act(at::Half v, float w) { return 3; }"], &[], "x[0] = act(x[1], x[2])");
    check(&[own, taken], &["__device__ float act(at::Half v, double w) { return 3; }"], "x[0] = act(x[1], x[2])");
    // A null pointer is one of every type.
    let pointers = [
        "__device__ float act(float v, ...) { return 2; }",
        "__device__ float act(float v, at::Tensor *t) { return 3; }",
    ];
    for null in ["nullptr", "0", "NULL", "{}"] {
        check(&pointers, &[], &format!("x[0] = act(x[1], {null})"));
    }
    check(&pointers, &[], "auto p = nullptr; x[0] = act(x[1], p)");
    check(&pointers, &[], "x[0] = act<float>(x[1], nullptr)");
    check(
        &pointers[..1],
        &pointers[1..],
        "x[0] = act(x[1], 2.0); other(nullptr); more<float>(0); k<<<1, 2>>>(nullptr)",
    );
}

#[test]
fn a_function_that_hides_others_stays() {
    let outer = "__device__ float act(float v) { return 2; }";
    let inner = "__device__ float act(at::Half v) { return 3; }";
    check(&[outer, &format!("namespace ops {{ {inner} }}")], &[], "x[0] = act(x[1])");
    check(&[outer], &[inner], "x[0] = act(x[1])");
    let both = format!("namespace ops {{\n{inner}\n__device__ float act(int v) {{ return 1; }}\n}}");
    let text =
        format!("#include <ATen/ATen.h>\n{outer}\n{both}\n__global__ void k(float *x) {{ x[0] = act(x[1]); }}\n");
    assert!(!left(&text, "k").contains("at::Half"), "{}", left(&text, "k"));
    // A variable is no overload.
    check(&["constexpr int a(2);", "namespace ops { constexpr int a(at::kWarp); }"], &[], "x[0] = a");
}

#[test]
fn operators_and_lookups_of_the_library_stay_unless_they_are_for_a_foreign_type() {
    let own = "struct V { float x; };";
    let plain = "__device__ V operator+(V a, double b) { return a; }";
    for operator in [
        "template <typename T> __device__ std::enable_if_t<!c10::is_complex<T>::value, V> operator+(V a, T b) { return a; }",
        "__device__ at::Thing operator+(V a, float b) { return {}; }",
    ] {
        check(&[own, plain, operator], &[], "V v; v + 1.0f");
    }
    let foreign = [
        "__device__ V operator+(V a, at::Half b) { return a; }",
        "__device__ at::Half operator*(at::Half a, float b) { return a; }",
    ];
    check(&[own, plain], &foreign, "V v; v + 1.0f");
    check(&[own, "namespace std { template <> struct tuple_size<V> : at::Size<2> { }; }"], &[], "V v; auto [a] = v");
}

#[test]
fn a_constant_whose_foreign_type_may_be_a_number_is_no_host_code() {
    let outer = "constexpr float scale = 2;";
    for hides in [
        "namespace ops { const mylib::real scale = 3; }",
        "namespace ops { static mylib::Real const scale = 3; }",
        "namespace ops { template <int N> const ::mylib::real<N> scale = 3; }",
    ] {
        check(&[outer, hides], &[], "x[0] = x[1] * scale");
    }
    for host in ["namespace ops { const at::Tensor scale; }", "namespace ops { mylib::Table scale; }"] {
        let gone = host.trim_start_matches("namespace ops { ").trim_end_matches(" }");
        check(&[outer], &[gone], "x[0] = x[1] * scale");
    }
}

#[test]
fn a_function_that_a_macro_of_an_absent_header_may_annotate_is_no_host_overload() {
    let plain = "__device__ float act(double v) { return 2; }";
    for overload in [
        "MYLIB_FN float act(float v) { return 3; }",
        "static MYLIB_FN inline float act(float v) { return 3; }",
        "inline MYLIB_FN(3) float act(float v) { return 3; }",
        "template <typename T> MYLIB_FN T act(T v) { return 3; }",
        "template <typename T> MYLIB_FN std::enable_if_t<true, T> act(T v) { return 3; }",
        "MYLIB_FN auto act(float v) -> float { return 3; }",
        "MYLIB_FN float act(mylib::real v) { return 3; }",
        "MYLIB_FN size_t act(float v) { return mylib::three(v); }",
    ] {
        check(&[plain, overload], &[], "x[0] = act(x[1])");
    }
    let own = ["struct V { float x; };", "__device__ V operator+(V a, double b) { return a; }"];
    check(&[own[0], own[1], "MYLIB_FN V operator+(V a, float b) { return a; }"], &[], "V v; v + 1.0f");
    for host in [
        "float act(float v) { return 3; }",
        "static __inline__ size_t act(float v) { return 3; }",
        "[[nodiscard]] Own act(float v) { return {}; }",
        "mylib::deep::Real act(float v) { return {}; }",
        "typename mylib::Trait<float>::type act(float v) { return {}; }",
        "unsigned long long act(float v) { return 3; }",
        "MYLIB_API void act(float *v) { act<<<1, 2>>>(v); }",
        "MYLIB_API void act(float v) { std::vector<float> all; }",
        "MYLIB_API void act(at::Tensor v) { cudaDeviceSynchronize(); }",
    ] {
        check(&[plain], &[host], "x[0] = act(x[1])");
    }
    // Where every header is here, an unknown word is a mistake.
    let text = format!(
        "{plain}\nMYLIB_FN float act(float v) {{ return 3; }}\n__global__ void k(float *x) {{ x[0] = act(x[1]); }}\n"
    );
    assert!(!left(&text, "k").contains("MYLIB_FN"));
}
