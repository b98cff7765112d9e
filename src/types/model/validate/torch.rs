//! Checks what kernels in PyTorch state: their file, and names of what they are called with.

use crate::model::Role;
use crate::model::bound::Reference;
use crate::model::kernel::Kernel;
use crate::model::operator::Operator;
use kforge_foundation::base::Diagnostic;

/// Errors of a kernel in PyTorch.
pub(super) fn kernel(operator: &Operator, kernel: &Kernel) -> Vec<Diagnostic> {
    let Some(torch) = &kernel.torch else { return vec![] };
    let mut found = vec![];
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
