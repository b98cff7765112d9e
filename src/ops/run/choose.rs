//! Chooses the package, shape and variant of a kernel if the request leaves them open.

use std::collections::HashSet;

use super::RunError;
use crate::session::build::Packages;
use kforge_engine::{Graph, Node};
use kforge_types::model::{Arch, Package};
use kforge_types::record::StepKind;

/// The name of the `cpu` target of the one package that has the kernel.
pub(super) fn cpu(kernel: &str, packages: &[&Package]) -> Result<String, RunError> {
    let package = match packages {
        [package] => *package,
        [] => return Err(RunError::NoKernel(kernel.into())),
        several => {
            let packages = several.iter().map(|p| p.name.clone()).collect();
            return Err(RunError::SeveralPackages { kernel: kernel.into(), packages });
        }
    };
    let cpu = package.targets.values().find(|t| t.arch == Arch::Cpu);
    cpu.map(|t| t.name.clone()).ok_or_else(|| RunError::NoCpu(package.name.clone()))
}

/// The named shape, or the only one that exists.
pub(super) fn shape(kernel: &str, named: Option<&str>, packages: &Packages) -> Result<String, RunError> {
    let operators = packages.all().filter_map(|p| p.operator(&p.kernel(kernel)?.operator));
    let known: Vec<String> = operators.flat_map(|o| &o.shapes).map(|s| s.name.clone()).collect();
    match (named, known.as_slice()) {
        (Some(shape), _) if known.iter().any(|name| name == shape) => Ok(shape.into()),
        (None, [only]) => Ok(only.clone()),
        (Some(shape), _) => Err(RunError::NoShape { kernel: kernel.into(), shape: shape.into(), known }),
        (None, _) => Err(RunError::ShapeNeeded { kernel: kernel.into(), known }),
    }
}

/// The judge step of the requested variant: the named one, or the first in declared order.
pub(super) fn variant(kernel: &str, named: Option<&str>, shape: &str, graph: &Graph) -> Result<Node, RunError> {
    let judges: Vec<&Node> = graph.nodes().filter(|n| n.kind == StepKind::Judge && !n.labels.confirms).collect();
    let Some(wanted) = named else {
        let first = judges.first().map(|judge| (*judge).clone());
        return first.ok_or_else(|| RunError::NotServed { kernel: kernel.into(), shape: shape.into() });
    };
    // People may write the tunables in any order, and may omit types if there is only one choice.
    let found = judges
        .iter()
        .find(|n| n.labels.variant.as_deref() == Some(wanted))
        .or_else(|| judges.iter().find(|n| n.labels.variant.as_deref().is_some_and(|l| means(wanted, l))));
    found.map(|judge| (*judge).clone()).ok_or_else(|| RunError::NoVariant {
        kernel: kernel.into(),
        variant: wanted.into(),
        shape: shape.into(),
        known: judges.iter().filter_map(|n| n.labels.variant.clone()).collect(),
    })
}

/// Whether the label contains every `NAME=VALUE` of `wanted`.
fn means(wanted: &str, label: &str) -> bool {
    let parts: HashSet<&str> = label.split(',').collect();
    !wanted.is_empty() && wanted.split(',').all(|p| parts.contains(p.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_may_be_written_in_any_order_and_without_types() {
        let label = "T=f16,BLOCK=256,VEC=4";
        assert!(means("VEC=4,BLOCK=256", label) && means("T=f16, VEC=4", label) && means("BLOCK=256", label));
        assert!(!means("BLOCK=25", label) && !means("", label) && !means("BLOCK=256,VEC=1", label));
    }
}
