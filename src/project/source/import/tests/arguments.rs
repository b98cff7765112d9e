//! Arguments of launches and templates as import drafts them, and what it knows of their values.

use super::*;

#[test]
fn arguments_of_a_template_are_kept_as_the_launch_spells_them() {
    let globals = "enum class Mode { Copy, Scale };\nnamespace ns { enum Kind { A, B }; struct Own {}; constexpr int four = 4; }\n\
        __device__ float three(float x) { return 3; }\ntemplate <class T> struct Three { static constexpr int v = 3; };\n";
    let kernel = "__global__ void copy(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n";
    for (template, arguments, entry) in [
        ("class... T", "float, int", "copy<float, int>"),
        ("int A, int... R", "1, 2, 3", "copy<1, 2, 3>"),
        ("int... R", "1,2,3", "copy<1, 2, 3>"),
        ("int... R", "", "copy<>"),
        ("int B", "(1<<4)", "copy<16>"),
        ("int B", "sizeof(int) == 4 ? 4 : 8", "copy<sizeof(int) == 4 ? 4 : 8>"),
        ("int B", "(1 << L)", "copy<8>"),
        ("int B", "-3", "copy<-3>"),
        ("Mode M", "Mode::Scale", "copy<Mode::Scale>"),
        ("ns::Kind K, class T", "ns::B, ns::Own", "copy<ns::B, ns::Own>"),
        ("char B", "'a'", "copy<'a'>"),
        ("float (*F)(float)", "three", "copy<three>"),
        ("template <class> class P", "Three", "copy<Three>"),
        ("class T, int B = sizeof(T) * 2", "float", "copy<float>"),
        ("int A, int B = A * 2", "8", "copy<8, 16>"),
        ("class T, class = std::enable_if_t<sizeof(T) == 4>", "float", "copy<float>"),
        ("class T", "Local", "copy<float>"),
    ] {
        let host = format!(
            "void run(float *a, float *b, int n) {{ const int L = 3; using Local = float; copy<{arguments}><<<(n + 255) / 256, 256>>>(a, b, n); }}"
        );
        let found = of(&[("s.cu", &format!("{globals}template <{template}> {kernel}{host}"))]);
        assert_eq!(found.kernels[0].entry, entry, "{template}\n{}", found.text);
        assert!(!found.text.lines().any(|l| l.starts_with("entry") && l.contains("check")), "{}", found.text);
    }
    // In a namespace, what it declares has its name.
    let inside = format!(
        "namespace ns {{ enum Kind {{ A, B }}; namespace in {{ constexpr int one = 1; }} template <Kind K, int I> {kernel} void run(float *a, float *b, int n) {{ copy<B, (in::one << 2)><<<ceil_div(n, 64), 64>>>(a, b, n); }} }}"
    );
    assert_eq!(of(&[("s.cu", &inside)]).kernels[0].entry, "ns::copy<ns::B, 4>");
    // What only the launching function knows is asked for, by its name.
    for (template, arguments, asked) in [
        ("int B", "(m << 1)", "`B` of the template is `(m << 1)` at its launch: state it; 256 is a placeholder"),
        ("int B", "T::value", "`B` of the template is `T::value` at its launch: state it; 256 is a placeholder"),
        ("float (*F)(float)", "f", "`F` of the template is `f` at its launch: state it; F is a placeholder"),
        (
            "float (*)(float)",
            "f",
            "argument 1 of the template is `f` at its launch: state it; UNKNOWN is a placeholder",
        ),
        ("bool B", "m", "`B` of the template is `m` at its launch: state it; true is a placeholder"),
        ("Mode M", "mode", "`M` of the template is `mode` at its launch: state it; M is a placeholder"),
        ("int", "m", "argument 1 of the template is `m` at its launch: state it; 256 is a placeholder"),
    ] {
        let host = format!(
            "template <class T> void run(float *a, float *b, int n, float (*f)(float), int m, Mode mode) {{ copy<{arguments}><<<(n + 255) / 256, 256>>>(a, b, n); }}"
        );
        let found = of(&[("s.cu", &format!("{globals}template <{template}> {kernel}{host}"))]);
        assert!(found.text.contains(&format!("# check: {asked}")), "{template}\n{}", found.text);
    }
    let host = "void run(float *a, float *b, int n) { copy<<<(n + 255) / 256, 256>>>(a, b, n); }";
    let found = of(&[("s.cu", &format!("template <class T> {}{host}", kernel.replace("float *x", "T *x")))]);
    assert!(
        found.text.contains("# check: the launch does not write `T` of the template: state it; float is a placeholder"),
        "{}",
        found.text
    );
}

#[test]
fn every_argument_of_a_template_that_is_invented_is_asked_for() {
    let kernel = "typedef void (*fetch_t)(const float *, int, float &);\ntemplate <int QK, int QR, fetch_t FETCH, typename T> __global__ void deq(const float *x, T *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float v; FETCH(x, i, v); if (i < n) y[i] = v; }\n";
    let found = of(&[("s.cu", kernel)]);
    let asked = |name: &str, guess: &str| {
        format!("no launch was found: state `{name}` of the template; {guess} is a placeholder")
    };
    let all = [asked("QK", "256"), asked("QR", "256"), asked("FETCH", "FETCH"), asked("T", "float")].join("; ");
    says(&found, &[&format!("entry = \"deq<256, 256, FETCH, float>\" # check: {all}")]);
    let host = "template <int QK, int QR, typename T> void run(const float *x, T *y, int n) { deq<QK, QR><<<(n + 255) / 256, 256>>>(x, y, n); }";
    let found = of(&[("s.cu", &format!("{kernel}{host}"))]);
    for asked in [
        "`QK` of the template is `QK` at its launch: state it; 256 is a placeholder",
        "`QR` of the template is `QR` at its launch: state it; 256 is a placeholder",
        "the launch does not write `FETCH` of the template: state it; FETCH is a placeholder",
        "the launch does not write `T` of the template: state it; float is a placeholder",
    ] {
        assert!(found.text.contains(asked), "{asked}\n{}", found.text);
    }
}

#[test]
fn a_kernel_that_writes_through_a_struct_says_so() {
    let state = "state what they point to in `outputs` or `inouts`, and their names in the `struct` of `args`";
    let plain = "struct P { const float *x; float *y; float *z; int n; };";
    for (declared, body, asked) in [
        (plain, "p.y[0] = p.x[0];", "the kernel writes through `p.y`"),
        (plain, "p.y[0] = p.x[0]; *p.z += 1;", "the kernel writes through `p.y`, `p.z`"),
        (plain, "atomicAdd(p.z + 1, p.x[0]);", "the kernel writes through `p.z`"),
        (plain, "float *y = p.y; y[0] = p.x[0];", "the kernel writes through `p.y`"),
        (plain, "store(p, 1);", "the kernel may write through pointers in its struct `p`"),
        (
            "template <int N> struct Q { float *y; }; using P = Q<3>;",
            "p.y[0] = 1;",
            "the kernel writes through pointers in its struct `p`",
        ),
    ] {
        let text =
            format!("{declared}\n__global__ void frob(P p) {{ {body} }}\nvoid go(P p) {{ frob<<<1, 32>>>(p); }}");
        let found = of(&[("s.cu", &text)]);
        let line = format!("# dims = [] # check: {asked}: {state}\n");
        assert!(found.text.contains(&line), "{line}\n{}", found.text);
    }
    let text = format!("{plain}\n__global__ void frob(P p) {{ float v = p.y[0]; }}\n");
    let found = of(&[("s.cu", &text)]);
    assert!(found.text.contains("# dims = [] # check: no parameter of the kernel is written"), "{}", found.text);
}

#[test]
fn a_struct_is_asked_for_with_its_members() {
    for (declared, of_type, asked) in [
        (
            "struct P { const float *x; float *y; int n; float alpha; };",
            "P",
            "state `p`, a `P`: `{ struct = [\"x\", \"y\", \"n:i32\", \"alpha:f32\"] }`, where `x`, `y` are tensors of the operator",
        ),
        (
            "typedef struct { int n, m; half h; } P;",
            "const P",
            "state `p`, a `P`: `{ struct = [\"n:i32\", \"m:i32\", \"h:f16\"] }`",
        ),
        (
            "namespace ns { using real = double; struct P { public: static constexpr int k = 3; real a{}; }; }",
            "ns::P",
            "state `p`, a `ns::P`: `{ struct = [...] }` with its members",
        ),
        (
            "#define N 2\nstruct P { size_t size[N] = {1, 2}; float *__restrict__ x; };",
            "struct P",
            "state `p`, a `P`: `{ struct = [...] }` with its members",
        ),
        (
            "#define N 2\nstruct P { size_t size[N]; float *__restrict__ x = nullptr; };",
            "struct P",
            "state `p`, a `P`: `{ struct = [\"size_0:u64\", \"size_1:u64\", \"x\"] }`, where `x` is a tensor of the operator",
        ),
        (
            "struct Q { int a; }; struct P : Q { int b; };",
            "P",
            "state `p`, a `P`: `{ struct = [...] }` with its members",
        ),
        ("enum class P { A };", "P", "state `p`, a `P`"),
    ] {
        let text = format!(
            "{declared}\n__global__ void frob(float *z, {of_type} p) {{ z[0] = 1; }}\nvoid go(float *z, {of_type} p) {{ frob<<<1, 32>>>(z, p); }}"
        );
        let found = of(&[("s.cu", &text)]);
        let line = format!("# args = [\"z\", \"0\"] # check: {asked}");
        assert!(found.text.lines().any(|l| l == line), "{line}\n{}", found.text);
    }
}

#[test]
fn a_null_pointer_at_a_launch_is_no_tensor() {
    let kernel = "__global__ void relu(const float *x, const float *extra, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = fmaxf(x[i] + (extra ? extra[i] : 0), 0.f); }\n";
    for (before, null) in [
        ("", "nullptr"),
        ("", "NULL"),
        ("", "0"),
        ("", "(const float *)nullptr"),
        ("", "static_cast<const float *>(nullptr)"),
        ("const float *none = nullptr;", "none"),
    ] {
        let host =
            format!("void f(float *a, float *b, int n) {{ {before} relu<<<(n + 63) / 64, 64>>>(a, {null}, b, n); }}");
        let found = of(&[("s.cu", &format!("{kernel}{host}"))]);
        says(
            &found,
            &["args = [\"x\", { null = true }, \"y\", \"n\"] # check: the launch passes a null pointer for `extra`"],
        );
        assert!(found.known == 1 && !found.text.contains("inputs.extra"), "{null}\n{}", found.text);
    }
    // A launch that passes a tensor says more, and a variable that changes is one.
    for host in [
        "void f(float *a, float *b, int n) { relu<<<(n + 63) / 64, 64>>>(a, nullptr, b, n); relu<<<(n + 63) / 64, 64>>>(a, b, b, n); }",
        "void f(float *a, float *b, int n) { float *c = nullptr; if (a) c = a; relu<<<(n + 63) / 64, 64>>>(a, c, b, n); }",
        "void f(float *a, float *b, int n) { float *c = nullptr; cudaMalloc(&c, n); relu<<<(n + 63) / 64, 64>>>(a, c, b, n); }",
    ] {
        let found = of(&[("s.cu", &format!("{kernel}{host}"))]);
        says(&found, &["args = [\"x\", \"extra\", \"y\", \"n\"]"]);
    }
}

#[test]
fn a_sum_in_f64_has_the_derived_tolerance() {
    for (dtype, stated) in [("float", true), ("double", false)] {
        let text = format!("__global__ void row_sum(const {dtype} *x, {dtype} *y, int rows, int cols) {{ int r = blockIdx.x; {dtype} s = 0; for (int c = 0; c < cols; c++) s += x[r * cols + c]; y[r] = s; }}
void f({dtype} *a, {dtype} *b, int rows, int cols) {{ row_sum<<<rows, 1>>>(a, b, rows, cols); }}");
        let found = of(&[("s.cu", &text)]);
        assert!(found.known == 1 && found.text.contains("tolerance = ") == stated, "{}", found.text);
    }
}

#[test]
fn values_that_are_indices_are_asked_for() {
    for (body, asked) in [
        ("y[i] = x[ids[i]];", true),
        ("int t = ids[i]; y[i] = x[t * 4 + 1];", true),
        ("const int t = __ldg(&ids[i]); y[i] = x[t];", true),
        ("y[i] = x[i] * ids[i];", false),
    ] {
        let text = format!(
            "__global__ void embedding(const int *ids, const float *x, float *y, int n) {{ int i = threadIdx.x; if (i < n) {{ {body} }} }}"
        );
        let found = of(&[("s.cu", &text)]);
        let says = "# check: state the shape; its values index `x`; state `init = { range = [0, \"N - 1\"] }`, where N - 1 is the largest valid index: both ends are drawn";
        assert_eq!(found.text.contains(says), asked, "{body}\n{}", found.text);
    }
}

#[test]
fn constants_that_host_code_fills_are_inputs() {
    let text = |declared: &str, read: &str| {
        format!("#define TAPS 5\nconstexpr int K = 3;\nstruct S {{ int a; }};\n{declared}\n__device__ float tap(int i) {{ return {read}; }}
__global__ void scale(const float *x, float *y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = tap(i) * x[i]; }}
void f(int n) {{ cudaMemcpyToSymbol(c, host, sizeof(float)); scale<<<(n + 63) / 64, 64>>>(p, q, n); }}")
    };
    for (declared, shape) in [
        ("__constant__ float c[TAPS];", "dtype = \"f32\", shape = [5]"),
        ("__constant__ float unread[9], c[K * 2][TAPS];", "dtype = \"f32\", shape = [6, 5]"),
        ("static __constant__ double c;", "dtype = \"f64\", shape = [1]"),
        ("__constant__ float4 c[2];", "dtype = \"f32\", shape = [2, 4]"),
        ("__constant__ float c[2] = {1, 2};", "dtype = \"f32\", shape = [2]"),
    ] {
        let found = of(&[("s.cu", &text(declared, "c[0]"))]);
        let input = format!(
            "inputs.c = {{ {shape} }} # check: host code fills this constant: state its shape and how its values are drawn"
        );
        says(&found, &[&input, "constants.c = \"c\" # check: `c` is a constant that host code fills"]);
        assert!(found.known == 0 && !found.text.contains("unread"), "{}", found.text);
    }
    for declared in ["__constant__ S c;", "namespace ns { __constant__ float c[2]; } using namespace ns;"] {
        let found = of(&[("s.cu", &text(declared, "c[0]"))]);
        assert!(!found.text.contains("inputs.c"), "{}", found.text);
        says(
            &found,
            &["args = [\"x\", \"y\", \"n\"] # check: `c` is a constant that host code fills, and no input here"],
        );
    }
    // One that is not read, and one that its declaration fills.
    let found = of(&[("s.cu", &text("__constant__ float c[2];", "1.f"))]);
    assert!(!found.text.contains("constant"), "{}", found.text);
    let found = of(&[("s.cu", &text("__constant__ float d[2] = {1, 2}; __constant__ float c[2];", "d[0]"))]);
    assert!(!found.text.contains("constant"), "{}", found.text);
}
