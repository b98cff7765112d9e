//! Checks baselines: names across tables, and whether each has an operator that it suits.

use crate::model::baseline::{Baseline, How};
use crate::model::expr::list;
use crate::model::package::Package;
use kforge_foundation::base::Diagnostic;

/// Errors of a package's baselines.
pub(super) fn baselines(package: &Package) -> Vec<Diagnostic> {
    package
        .baselines
        .iter()
        .flat_map(|baseline| [named(package, baseline), suited(package, baseline)])
        .flatten()
        .collect()
}

/// A score names its baseline: a kernel or one of these.
fn named(package: &Package, baseline: &Baseline) -> Option<Diagnostic> {
    let kernel = package.kernel(&baseline.name)?;
    let message = format!("`{}` is both a kernel and a baseline", baseline.name);
    let error = baseline.place.error("manifest.duplicate-name", message);
    Some(error.see(&kernel.place.file, kernel.place.span.clone(), "the kernel").expected("names that differ"))
}

fn suited(package: &Package, baseline: &Baseline) -> Option<Diagnostic> {
    let wants = match baseline.how {
        How::Cublas => {
            "an operator whose reference is the built-in `matmul`, without bias and other settings than transposition"
        }
        _ => "an operator with a reference in PyTorch, or `source`",
    };
    let error = |message: String| baseline.place.error("manifest.baseline", message);
    if let Some(name) = &baseline.operator {
        let Some(operator) = package.operator(&name.value) else {
            let names: Vec<&str> = package.operators.iter().map(|operator| operator.name.as_str()).collect();
            let error = name.place.error("manifest.unknown-operator", format!("unknown operator `{name}`"));
            return Some(
                error.expected(format!("one of {}", list(&names))).suggest(&name.value, names.iter().copied()),
            );
        };
        let message = format!("baseline `{}` does not suit operator `{name}`", baseline.name);
        return (!baseline.suits(operator) && !operator.broken).then(|| error(message).expected(wants));
    }
    if package.operators.iter().any(|operator| operator.broken) {
        return None;
    }
    if baseline.source.is_some() && package.operators.len() != 1 {
        let message = format!("baseline `{}` calls a function and does not say for which operator", baseline.name);
        return Some(error(message).expected("`operator = \"...\"`"));
    }
    let none = !package.operators.iter().any(|operator| baseline.suits(operator));
    none.then(|| error(format!("baseline `{}` suits no operator", baseline.name)).expected(wants))
}
