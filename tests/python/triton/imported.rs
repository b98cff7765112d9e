//! Manifests that `kforge import triton` writes, built on `cpu` as they are.

use std::fs;

use super::Lab;

const ADD: &str = r#"
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < n)
    b = tl.load(b_ptr + at, mask=at < n)
    tl.store(out_ptr + at, a + b, mask=at < n)


def add(a, b):
    out = torch.empty_like(a)
    n = out.numel()
    add_kernel[(triton.cdiv(n, 512),)](a, b, out, n, BLOCK=512)
    return out
"#;

const MATMUL: &str = r#"
import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * sam + k[None, :] * sak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * sbk + n[None, :] * sbn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m[:, None] * scm + n[None, :] * scn, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), BM=32, BN=32, BK=32)
    return c
"#;

#[test]
#[ignore = "second tier: installs Triton"]
fn kernels_as_imported_are_verified_on_cpu_at_every_shape_that_is_not_timed() {
    let lab = Lab::new(&[("add.py", ADD), ("matmul.py", MATMUL)]);
    let Some(lab) = lab.importing() else { return };
    let ran = lab.run(&["build", "--target", "cpu"]);
    let judged = ran.lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "judge");
    let (mut passed, mut unknown) = (vec![], vec![]);
    for line in judged {
        let (id, verdict) = (line["id"].to_string(), line["verdict"].to_string());
        match verdict == "\"pass\"" {
            true => passed.push(id),
            false => unknown.push((id, verdict)),
        }
    }
    // Two types of two kernels.
    for (kernel, shape) in [("add", "small"), ("add", "ragged"), ("matmul", "small"), ("matmul", "ragged")] {
        let of = passed.iter().filter(|id| id.contains(kernel) && id.contains(shape)).count();
        assert_eq!(of, 2, "{kernel} at {shape}: {passed:?}\n{unknown:?}\n{}", ran.said);
    }
    let right = |(id, verdict): &(String, String)| id.contains("large") && verdict.contains("raise the setting");
    assert!(unknown.iter().all(right), "{unknown:?}");
}

impl Lab {
    /// The package that `kforge import triton` writes for the files, with Triton; none if there is none.
    fn importing(self) -> Option<Self> {
        let done = self.command(&["import", "triton", ".", "--name", "p"]);
        assert_eq!(done.code, Some(0), "{}", done.said);
        assert!(fs::read_to_string(self.path("kernel.toml")).unwrap().contains("[targets.cpu]"));
        self.interpreting()
    }
}
