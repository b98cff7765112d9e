//! How much memory a step is expected to need, so that concurrent steps do not exceed the machine's memory. Knows sizes of problems and kinds of compilers.
//! These are estimates: they stop no step and enter no key.
//!
//! | step | needs |
//! |---|---|
//! | compile | the memory of the compiler's process for a kernel of a few hundred lines with its headers |
//! | oracle | inputs, expected values and one null candidate, each as float64; twice, because the reference may be another process; and the stored buffers |
//! | verify on `cpu` | the buffers of three runs in other thread orders, with inputs on either side of a guard page; inputs and expected values as float64 |
//! | verify of a kernel in PyTorch | a process with PyTorch, the tensors several times, and the results of calls; on a device, its context there |
//! | verify on `cpu` in a check build | also sixteen bytes of shadow for each byte of a run |
//! | bench, pairs, verify on a device | the host side of a context, and the buffers four times: those of two sets of inputs, and of a fresh trial or a stress class twice |
//! | baseline | as bench, and a second process with PyTorch, its context, and the buffers twice |
//! | oracle and verify on a device, of large products | if there is a device: its process too, and the largest matrix twice: in transfer and in the process |

use kforge_numerics::reference::cost;
use kforge_types::model::{Arch, InputsFunction, Problem, Reference, Tensor};
use kforge_types::record::params::{Compiler, VerifyParams};

const MIB: u64 = 1 << 20;

/// A process of kforge with little to do.
const PROCESS: u64 = 32;

/// The host side of a CUDA context, in MiB.
pub const CONTEXT: u64 = 512;

/// A process that has imported PyTorch, in MiB.
const TORCH: u64 = 384;

/// A process that has imported PyTorch with CUDA, and a compiler that it started, in MiB.
const TORCH_CUDA: u64 = 1536;

/// Bytes of a float64.
const F64: u64 = 8;

/// Memory for compiling, in MiB. nvcc runs a front end and an assembler besides the driver; g++ reads the standard library and the emulator's headers.
pub fn compile(compiler: Compiler) -> u64 {
    match compiler {
        Compiler::EmulatorCheck | Compiler::EmulatorPlain => 384,
        Compiler::Auto | Compiler::Nvrtc => 512,
        Compiler::Nvcc => 1024,
        // The library itself takes about 200.
        Compiler::Triton => 512,
        Compiler::TritonInterpreter | Compiler::Torch => 64,
    }
}

fn elements(problem: &Problem) -> u64 {
    problem.tensors.iter().map(Tensor::elements).fold(0, u64::saturating_add)
}

fn stored(problem: &Problem) -> u64 {
    problem.tensors.iter().map(Tensor::bytes).fold(0, u64::saturating_add)
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

/// Memory for the expected values of a problem, in MiB.
pub fn oracle(problem: &Problem) -> u64 {
    // One process of PyTorch holds three sets of inputs and expected values, and copies of one.
    let in_torch = matches!(problem.reference, Reference::Torch { .. })
        || problem.generate_inputs.as_ref().is_some_and(InputsFunction::needs_torch);
    let (process, sets) = if in_torch { (TORCH, 4 * 2) } else { (PROCESS, 3 * 2) };
    let values = elements(problem).saturating_mul(F64 * sets);
    PROCESS + process + mib(values.saturating_add(stored(problem)))
}

/// Additional memory for computing the large products of a reference on a device, in MiB; 0 if it has none.
pub fn products(problem: &Problem) -> u64 {
    match cost::handed_over(problem) {
        0 => 0,
        largest => CONTEXT + mib(largest.saturating_mul(2)),
    }
}

/// Memory for a verification, in MiB.
pub fn verify(params: &VerifyParams) -> u64 {
    let run = buffers(params);
    let (runs, shadow) = match params.compiler {
        Compiler::EmulatorCheck => (4, 16),
        Compiler::EmulatorPlain => (4, 0),
        // The shadow state of each element is seven words, for one run at a time. The runs of a trial lie in memory together.
        Compiler::TritonInterpreter => (4, 28),
        // PyTorch and the tensors of a call, with what the kernel allocates beside them; and the results of calls.
        Compiler::Torch => {
            let process = if params.arch == Arch::Cpu.name() { TORCH } else { TORCH_CUDA + CONTEXT };
            return process + 3 * PROCESS + mib(run.saturating_mul(12)).max(oracle(&params.problem));
        }
        Compiler::Auto | Compiler::Nvrtc | Compiler::Nvcc | Compiler::Triton => return timing(params),
    };
    let values = elements(&params.problem).saturating_mul(F64 * 2);
    let runs = 3 * PROCESS + mib(run.saturating_mul(runs + shadow).saturating_add(values));
    // The expected values of a fresh trial are computed while no candidate runs.
    runs.max(oracle(&params.problem))
}

/// Memory for timing a variant, in MiB.
pub fn timing(params: &VerifyParams) -> u64 {
    CONTEXT + mib(buffers(params).saturating_mul(4))
}

/// Memory for timing a baseline beside a champion, in MiB: both processes, what `torch.compile` starts, and the buffers in transfer.
pub fn baseline(champion: &VerifyParams) -> u64 {
    timing(champion).saturating_add(CONTEXT + TORCH_CUDA).saturating_add(mib(buffers(champion).saturating_mul(2)))
}

fn buffers(params: &VerifyParams) -> u64 {
    let workspaces = params.workspaces.iter().map(|w| w.elements.saturating_mul(w.dtype.bytes()));
    workspaces.fold(stored(&params.problem), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Role};
    use kforge_types::record::testing::verification;

    fn params(compiler: Compiler, n: u64) -> VerifyParams {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[n]);
        let tensors = vec![tensor("x", Role::Input), tensor("y", Role::Output)];
        let problem = Problem::of(tensors, Reference::builtin("sum", &[]));
        VerifyParams { compiler, ..verification("cpu", problem) }
    }

    #[test]
    fn what_a_verification_needs_grows_with_its_buffers_and_with_what_watches_them() {
        let of = |compiler, n| verify(&params(compiler, n));
        // Two tensors of 64 MiB: twenty times with checks, and 32 Mi values as float64, twice. Four times plain is less than what the expected values of a
        // fresh trial need.
        let n = 16 << 20;
        assert_eq!(of(Compiler::EmulatorPlain, n), oracle(&params(Compiler::EmulatorPlain, n).problem));
        let mut worked = params(Compiler::EmulatorPlain, n);
        worked.workspaces = vec![kforge_types::model::bound::Buffer {
            name: "w".into(),
            dtype: DType::F32,
            elements: 1 << 28,
            fill: kforge_types::model::bound::Fill::Poison,
        }];
        assert_eq!(verify(&worked) - of(Compiler::EmulatorPlain, 0).min(3 * PROCESS), 4 * (128 + 1024) + 512);
        assert_eq!(of(Compiler::EmulatorCheck, n) - of(Compiler::EmulatorCheck, 0), 20 * 128 + 512);
        assert_eq!(of(Compiler::Nvrtc, n) - of(Compiler::Nvrtc, 0), 4 * 128);
        let on = |arch: &str| verify(&VerifyParams { arch: arch.into(), ..params(Compiler::Torch, n) });
        assert_eq!(on("sm_90a") - on("cpu"), TORCH_CUDA + CONTEXT - TORCH);
        let oracle = |n| oracle(&params(Compiler::Nvrtc, n).problem);
        assert_eq!(oracle(n) - oracle(0), 32 * 8 * 3 * 2 + 128);
    }

    #[test]
    fn large_products_are_handed_over_through_memory() {
        let of = |m: u64, k: u64, n: u64, dtype: DType| {
            let tensor = |name: &str, role, shape: &[u64]| Tensor::dense(name, role, dtype, shape);
            let tensors = vec![
                tensor("a", Role::Input, &[m, k]),
                tensor("b", Role::Input, &[k, n]),
                tensor("c", Role::Output, &[m, n]),
            ];
            products(&Problem::of(tensors, Reference::builtin("matmul", &[])))
        };
        // 512 MiB per matrix; the largest of three; too small to be worth it; integers, which are not multiplied in float64.
        assert_eq!(of(8192, 8192, 8192, DType::Bf16), CONTEXT + 2 * 512);
        assert_eq!(of(1024, 1024, 16384, DType::F32), CONTEXT + 2 * 128);
        assert_eq!(of(1024, 1024, 1024, DType::F32), 0);
        assert_eq!(of(8192, 8192, 8192, DType::I32), 0);
        assert_eq!(products(&params(Compiler::Nvrtc, 1 << 24).problem), 0);
    }

    #[test]
    fn absurd_sizes_do_not_overflow() {
        let mut huge = params(Compiler::EmulatorCheck, 1);
        huge.workspaces = vec![kforge_types::model::bound::Buffer {
            name: "w".into(),
            dtype: DType::F64,
            elements: u64::MAX,
            fill: kforge_types::model::bound::Fill::Poison,
        }];
        assert!(verify(&huge) >= u64::MAX / MIB);
    }
}
