//! `kforge import triton`: what it writes for sources of our own, what it asks for, and that it executes nothing.

use crate::place::Place;

const COMMON: &str = "import torch\nimport triton\nimport triton.language as tl\n\n";

const ADD: &str = r#"
@triton.jit
def scaled(x):
    return x * 2


@triton.jit
def add_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < n)
    tl.store(out_ptr + at, a + scaled(tl.load(b_ptr + at, mask=at < n)), mask=at < n)


def add(a, b):
    out = torch.empty_like(a)
    count = out.numel()
    grid = lambda meta: (triton.cdiv(count, meta["BLOCK"]),)
    add_kernel[grid](a, b, out, count, BLOCK=512, num_warps=8)
    return out
"#;

const SOFTMAX: &str = r#"
@triton.jit
def softmax_kernel(y_ptr, x_ptr, x_stride, y_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    rows = x_ptr + row * x_stride
    value = tl.exp(tl.load(rows + at, mask=at < n_cols, other=-float("inf")))
    tl.store(y_ptr + row * y_stride + at, value / tl.sum(value, axis=0), mask=at < n_cols)


def softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](y, x, x.stride(0), y.stride(0), n_cols, BLOCK=BLOCK)
    return y
"#;

const MATMUL: &str = r#"
@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 64, "BK": 32}, num_stages=3, num_warps=8),
        triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_stages=4, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def matmul_kernel(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BK)
    pa = a + pid * sam + at[None, :] * sak
    pb = b + at[:, None] * sbk
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK * sak
        pb += BK * sbk
    tl.store(c + pid * scm, acc.to(c.dtype.element_ty))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)

    def grid(META):
        return (triton.cdiv(M, META["BM"]) * triton.cdiv(N, META["BN"]),)

    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1))
    return c
"#;

/// The manifest that is written for a file.
fn imported(name: &str, text: &str) -> String {
    let place = Place::empty().file(&format!("mine/{name}"), &format!("{COMMON}{text}"));
    let manifest = place.run("import triton mine --stdout").expect(0).out;
    place
        .run("import triton mine")
        .expect(0)
        .says("Imported 1 kernel of 1 operator")
        .says("cd mine && kforge build --target cpu");
    has(&manifest, &["[targets.cpu]", "[targets.sm_90a]"]);
    assert_eq!(place.read("mine/kernel.toml"), manifest);
    place.run("metadata --manifest-path mine").expect(0);
    manifest
}

/// Whether the manifest has these lines, comments aside.
#[track_caller]
fn has(manifest: &str, lines: &[&str]) {
    for line in lines {
        assert!(manifest.lines().any(|own| own.split(" # ").next() == Some(line)), "{line}\n{manifest}");
    }
}

#[test]
fn elementwise_kernels_get_their_dims_grid_and_constants_from_the_launch() {
    let text = imported("add.py", ADD);
    has(
        &text,
        &[
            "[operator.add]",
            "dims = [\"n\"]",
            "types = { T = [\"f32\", \"f16\"] }",
            "inputs.a_ptr = { dtype = \"T\", shape = [\"n\"] }",
            "outputs.out_ptr = { dtype = \"T\", shape = [\"n\"] }",
            "reference = { builtin = \"elementwise\", out_ptr = \"a_ptr + b_ptr\" }",
            // Several blocks and a rest.
            "ragged = { n = 1185 }",
            "language = \"triton\"",
            "tune.BLOCK = [512]",
            "entry = \"add_kernel\"",
            "grid = [\"ceil_div(n, BLOCK)\"]",
            "args = [\"a_ptr\", \"b_ptr\", \"out_ptr\", \"n\"]",
            "options = { num_warps = 8 }",
        ],
    );
    assert!(text.contains("# check: guessed from the name `add_kernel`"), "{text}");
}

#[test]
fn strides_are_those_of_contiguous_tensors_and_powers_of_two_follow_the_shape() {
    let text = imported("softmax.py", SOFTMAX);
    has(
        &text,
        &[
            "dims = [\"n_rows\", \"n_cols\"]",
            "reference = { builtin = \"softmax\", names = { x = \"x_ptr\", y = \"y_ptr\" } }",
            "grid = [\"n_rows\"]",
            "args = [\"y_ptr\", \"x_ptr\", \"n_cols\", \"n_cols\", \"n_cols\"]",
            "constexprs = { BLOCK = { next_pow2 = \"n_cols\" } }",
        ],
    );
}

#[test]
fn configurations_become_tunables_and_heuristics_are_to_be_checked() {
    let text = imported("matmul.py", MATMUL);
    let listed =
        "(BM == 128 and NUM_WARPS == 8 and NUM_STAGES == 3) or (BM == 64 and NUM_WARPS == 4 and NUM_STAGES == 4)";
    has(
        &text,
        &[
            "dims = [\"M\", \"N\", \"K\"]",
            "inputs.a = { dtype = \"T\", shape = [\"M\", \"K\"] }",
            "tune.BM = [128, 64]",
            "tune.BN = [64]",
            "tune.NUM_WARPS = [8, 4]",
            "tune.NUM_STAGES = [3, 4]",
            &format!("tune.where = [\"{listed}\"]"),
            "grid = [\"ceil_div(M, BM) * ceil_div(N, BN)\"]",
            "args = [\"a\", \"b\", \"c\", \"M\", \"N\", \"K\", \"K\", \"1\", \"N\", \"1\", \"N\", \"1\"]",
            "constexprs = { EVEN = \"(K % BK) == 0\" }",
            "options = { num_warps = \"NUM_WARPS\", num_stages = \"NUM_STAGES\" }",
        ],
    );
    assert!(text.contains("# check: `EVEN` is from `@triton.heuristics`: `lambda args:"), "{text}");
}

const DESCRIPTORS: &str = r#"
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), acc)
    c_desc.store([row, col], acc.to(tl.float16))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    BM, BN, BK = 128, 64, 32
    of_b = TensorDescriptor(b, b.shape, b.stride(), [BK, BN])
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    matmul_kernel[grid](
        TensorDescriptor.from_tensor(a, [BM, BK], padding="nan"), of_b, TensorDescriptor.from_tensor(c, block_shape=[BM, BN]), M, N, K, BM=BM, BN=BN, BK=BK
    )
    return c
"#;

#[test]
fn descriptors_of_the_host_keep_their_blocks() {
    let text = imported("described.py", DESCRIPTORS);
    has(
        &text,
        &[
            // Rows that a descriptor can have.
            "ragged = { M = 297, N = 152, K = 40 }",
            "requires = [\"K % 8 == 0\", \"N % 8 == 0\"]",
            "inputs.a_desc = { dtype = \"T\", shape = [\"M\", \"K\"] }",
            "outputs.c_desc = { dtype = \"T\", shape = [\"M\", \"N\"] }",
            "tune.BM = [128]",
            "args = [{ tensormap = \"a_desc\", block_shape = [\"BM\", \"BK\"], oob = \"nan\" }, { tensormap = \"b_desc\", block_shape = [\"BK\", \"BN\"] }, \
             { tensormap = \"c_desc\", block_shape = [\"BM\", \"BN\"] }, \"M\", \"N\", \"K\"]",
        ],
    );
}

#[test]
fn what_cannot_be_read_is_a_placeholder_or_is_named() {
    let text = format!(
        "{COMMON}CONFIGS = [1]\n\n\n@triton.autotune(configs=CONFIGS, key=[])\n@triton.jit\ndef fancy(x, y, n, stride, scale, MODE: tl.constexpr):\n    tl.store(y, tl.load(x) * scale)\n\n\n\
         def run(x, y, plan):\n    fancy[plan.blocks()](x, y, len(x), x.stride(0), 0.5, MODE=plan.mode)\n"
    );
    let place = Place::empty().file("mine/fancy.py", &text).file("mine/broken.py", "def f(:\n");
    let said = place.run("import triton mine").expect(0);
    said.says("`broken.py` is not imported: line 1:").says("state a `reference`");
    let manifest = place.read("mine/kernel.toml");
    for part in [
        "# # check: `@triton.autotune` also has `CONFIGS`, which is no literal: add its values",
        "# check: state it; the source has `plan.blocks()` at fancy.py:",
        "`stride` is the stride of `x` along axis 0: state it",
        "# constexprs = { MODE = 1 } # check: `MODE` is `plan.mode` at the launch",
        "# params.scale = { dtype = \"f32\"",
        "# Not imported: `broken.py`: line 1:",
    ] {
        assert!(manifest.contains(part), "{part}\n{manifest}");
    }
    let empty = Place::empty().file("mine/a.cu", "");
    empty.run("import triton mine").expect(4).says("there is no `.py` file");
}

#[test]
fn a_source_is_parsed_and_never_executed() {
    let place = Place::empty();
    let text = format!("open('written', 'w').close()\nprint('{{}}')\nraise SystemExit(3)\n{COMMON}{ADD}");
    let place = place.file("add.py", &text);
    place.run("import triton add.py --name mine").expect(0).says("Imported 1 kernel");
    assert!(!place.at("written").exists());
}
