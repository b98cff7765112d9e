//! Checks what kernels in PyTorch state: names of what they are called with, and targets.

use crate::model::bound::Reference;
use crate::model::kernel::Kernel;
use crate::model::operator::Operator;
use crate::model::package::Package;
use crate::model::{Arch, Role};
use kforge_foundation::base::Diagnostic;

/// Errors of a kernel in PyTorch.
pub(super) fn kernel(package: &Package, operator: &Operator, kernel: &Kernel) -> Vec<Diagnostic> {
    let Some(torch) = &kernel.torch else { return vec![] };
    let mut found: Vec<Diagnostic> = device(package, kernel).into_iter().collect();
    if let Some((_, decl)) = &torch.call {
        let given = operator.tensors.iter().filter(|tensor| tensor.role != Role::Output);
        let tensors: Vec<&str> = given.map(|tensor| tensor.name.as_str()).collect();
        let tunables = kernel.tune.iter().map(|(name, _)| name.as_str());
        let all: Vec<&str> = operator.names().into_iter().chain(tunables).collect();
        decl.check("`call`", &tensors, &all, &mut found);
    }
    if let Reference::Torch { file, .. } = &operator.reference
        && *file == kernel.source
    {
        let message = format!("kernel `{}` is in the file of the reference", kernel.name);
        let error = kernel.source_place.error("manifest.torch", message);
        found.push(error.expected("another file: a kernel cannot import what gives expected values"));
    }
    found
}

/// The error for a target with a device.
fn device(package: &Package, kernel: &Kernel) -> Option<Diagnostic> {
    let named = |name: &&String| package.targets.get(*name).is_some_and(|target| target.arch != Arch::Cpu);
    let target = kernel.targets.iter().find(named)?;
    let at = kernel.targets.iter().position(|name| name == target);
    let place = at.and_then(|at| kernel.target_places.get(at)).unwrap_or(&kernel.place);
    let message = format!("kernel `{}` is in PyTorch, and target `{target}` is a device", kernel.name);
    let error = place.error("manifest.torch", message).expected("`cpu`: kforge runs kernels in PyTorch only there");
    Some(error.hint("list targets of `arch = \"cpu\"` in `targets`"))
}
