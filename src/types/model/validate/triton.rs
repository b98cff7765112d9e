//! Checks what kernels in Triton state: names, forms of arguments, targets.

use crate::model::expr::list;
use crate::model::kernel::{ArgDecl, Kernel, Language};
use crate::model::operator::Operator;
use crate::model::package::Package;
use crate::model::target::capability;
use crate::model::triton::{ConstDecl, Specialize, TritonDecl};
use crate::model::{Arch, Place, Text};
use kforge_foundation::base::Diagnostic;

/// The oldest capability for which Triton makes machine code here.
const LEAST: u32 = 80;
/// From this capability on, Triton's machine code is that of one architecture: `sm_90a`.
const OF_ONE: u32 = 90;

/// Errors of a kernel in Triton that do not concern one launch.
pub(super) fn kernel(package: &Package, operator: &Operator, kernel: &Kernel) -> Vec<Diagnostic> {
    if kernel.language != Language::Triton {
        return vec![];
    }
    let mut found = vec![];
    if !kernel.source.ends_with(".py") && !kernel.source.is_empty() {
        let message = format!("`{}` is not a Python file", kernel.source);
        found.push(kernel.source_place.error("manifest.triton", message).expected("a source that ends in `.py`"));
    }
    let named = |name: &String| {
        let at = kernel.targets.iter().position(|own| own == name);
        at.and_then(|at| kernel.target_places.get(at)).unwrap_or(&kernel.place).clone()
    };
    for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
        let Arch::Sm(arch) = &target.arch else { continue };
        let Ok((number, suffix)) = capability(arch) else { continue };
        let expected = match (number, suffix) {
            (LEAST..OF_ONE, _) | (OF_ONE.., "a") => continue,
            (OF_ONE.., _) => format!("`arch = \"sm_{number}a\"`: Triton's machine code is of this architecture alone"),
            _ => format!("sm_{LEAST} or newer, not {arch}"),
        };
        let message = format!("kernel `{}` is in Triton, and target `{}` is {arch}", kernel.name, target.name);
        let error = named(&target.name).error("manifest.triton", message).expected(expected);
        found.push(error.hint("name other `targets`, or correct the target"));
    }
    if let Specialize::Only(names) = &kernel.specialize {
        let dims = operator.names();
        for name in names.iter().filter(|name| !dims.contains(&name.as_str())) {
            let error = name.place.error("manifest.unknown-name", format!("`specialize` names no dim: `{name}`"));
            let error = error.expected(format!("one of {}", list(&dims)));
            found.push(error.suggest(&name.value, dims.iter().copied()));
        }
    }
    found
}

/// Errors of one launch.
pub(super) fn launch(
    entry: &Text,
    decl: &TritonDecl,
    args: &[ArgDecl],
    places: &[Place],
    known: &[&str],
) -> Vec<Diagnostic> {
    let mut found = vec![];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    if !entry.value.chars().all(is_name) {
        let message = format!("`{entry}` is not a function of Python");
        let error = entry.place.error("manifest.triton", message).expected("the name of a function with `@triton.jit`");
        found.push(error.hint("`constexprs` holds what template arguments hold in CUDA C++"));
    }
    for (arg, place) in args.iter().zip(places) {
        let what = match arg {
            ArgDecl::Struct(_) => "a struct",
            ArgDecl::Pointers(_) => "an array of pointers",
            ArgDecl::TensorMap(map) if !map.descriptor => "a tensor map with a `box`",
            ArgDecl::Plain(_) | ArgDecl::Value { .. } | ArgDecl::Ptr { .. } | ArgDecl::TensorMap(_) | ArgDecl::Null => {
                continue;
            }
        };
        let error = place.error("manifest.arg", format!("a launch in Triton cannot pass {what}"));
        let error = error.expected("a tensor, a workspace, a scalar, a tensor descriptor or a null pointer");
        found.push(match arg {
            ArgDecl::TensorMap(map) => error.hint(format!(
                "state the block of the descriptor: `{{ tensormap = \"{}\", block_shape = [...] }}`",
                map.buffer
            )),
            _ => error,
        });
    }
    for (_, value) in &decl.constexprs {
        match value {
            ConstDecl::Value(expr) | ConstDecl::NextPow2(expr) => found.extend(expr.check_names(known)),
            ConstDecl::Dtype(..) => {}
        }
    }
    let of = &decl.options;
    let options = [&of.num_warps, &of.num_stages, &of.num_ctas, &of.maxnreg, &of.enable_fp_fusion];
    found.extend(options.into_iter().flatten().flat_map(|expr| expr.check_names(known)));
    found
}
