//! What a package needs of toolchains, by its manifest. Finds and installs nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::tools::NoCuda;
use kforge_project::toolchain::{self, Cuda};
use kforge_project::workspace::lockfile::LockedWheel;
use kforge_types::model::{Arch, CudaSpec, InputsFunction, Language, Package, Reference, TorchSpec};

/// The CUDA release for packages without `[toolchain]`.
pub const DEFAULT_CUDA: &str = "13.0";

/// Whether a package compiles CUDA C++: it has such a kernel, or none at all.
pub fn needs_cuda(package: &Package) -> bool {
    package.kernels.is_empty() || package.kernels.iter().any(|kernel| kernel.language == Language::Cuda)
}

/// Whether a package has a kernel in Triton for some target. `cpu` needs Triton, too: its interpreter runs there.
pub fn needs_triton(package: &Package) -> bool {
    package.kernels.iter().any(|kernel| kernel.language == Language::Triton && !kernel.targets.is_empty())
}

/// Whether a package has a kernel in PyTorch.
pub fn has_torch_kernels(package: &Package) -> bool {
    package.kernels.iter().any(|kernel| kernel.language == Language::Torch)
}

/// Whether a package has a reference, a generator of inputs or a kernel in PyTorch, or baselines that its PyTorch can run.
pub fn needs_torch(package: &Package) -> bool {
    has_torch_kernels(package)
        || package.operators.iter().any(|operator| {
            matches!(operator.reference, Reference::Torch { .. })
                || operator.generate_inputs.as_ref().is_some_and(InputsFunction::needs_torch)
        })
        || runs_baselines(package) && !matches!(package.toolchain.torch, Some(TorchSpec::Release { cuda: false, .. }))
}

/// Whether baselines of a package can run: on a device.
pub fn runs_baselines(package: &Package) -> bool {
    !package.baselines.is_empty() && package.targets.values().any(|target| target.arch != Arch::Cpu)
}

/// The name of a release's wheels in the lockfile.
pub fn lock_name(release: &str) -> String {
    format!("cuda {release}")
}

/// The CUDA that a package requests: locked wheels, which may still be missing, or a folder.
pub enum CudaRequest {
    /// Wheels of a release.
    Release(String),
    /// A folder.
    Local(Result<Cuda, NoCuda>),
}

/// The CUDA that a package requests.
pub fn wanted(package: &Package, folder: &Path, environment: &BTreeMap<String, String>) -> CudaRequest {
    match &package.toolchain.cuda {
        None => CudaRequest::Release(DEFAULT_CUDA.into()),
        Some(CudaSpec::Version(version)) => CudaRequest::Release(version.clone()),
        Some(CudaSpec::Path(path)) => CudaRequest::Local(Ok(Cuda::Local(folder.join(path)))),
        Some(CudaSpec::System) => {
            let root = toolchain::cuda::find_root(environment);
            CudaRequest::Local(root.map(Cuda::Local).map_err(NoCuda::from))
        }
    }
}

/// The wheels of a release from the lockfile.
pub fn locked(lock: &BTreeMap<String, Vec<LockedWheel>>, release: &str) -> Option<Cuda> {
    lock.get(&lock_name(release)).map(|wheels| Cuda::Wheels(wheels.clone()))
}
