//! Whether the shapes of a kernel come near the limit of the integers with which it seems to index. Pure; knows declared arguments, and reads no source and no
//! machine code: an argument that depends on the operator's dims and has 16 or 32 bits is the only sign of such indices.

use super::context::Scope;
use super::kernels::Selected;
use kforge_types::model::DType;
use kforge_types::model::expr::Expr;
use kforge_types::model::kernel::{ArgDecl, LaunchAction};
use kforge_types::model::operator::TypeRef;

/// An index type that no shape comes near.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLimit {
    /// The arguments with the narrowest type, as declared.
    pub arguments: Vec<String>,
    /// Their type.
    pub dtype: DType,
    /// The elements that this type can count.
    pub limit: u64,
    /// The elements of the largest tensor at any shape.
    pub elements: u64,
}

/// The elements that an integer type can count; none for wider types and others.
fn limit(dtype: DType) -> Option<u64> {
    Some(match dtype {
        DType::I16 => 1 << 15,
        DType::U16 => 1 << 16,
        DType::I32 => 1 << 31,
        DType::U32 => 1 << 32,
        _ => return None,
    })
}

/// The narrowest type among arguments, and the arguments that have it.
fn narrowest(arguments: Vec<(String, DType)>) -> Option<(Vec<String>, DType, u64)> {
    let (dtype, least) =
        arguments.iter().filter_map(|(_, dtype)| Some((*dtype, limit(*dtype)?))).min_by_key(|at| at.1)?;
    let mut names: Vec<String> = arguments.into_iter().filter(|(_, of)| *of == dtype).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    Some((names, dtype, least))
}

/// Whether a tensor of so many elements shows something near a limit: it has at least half of it.
fn is_near(elements: u64, limit: u64) -> bool {
    elements >= limit / 2
}

/// The argument, or the members of a struct and of the structs in it.
fn scalars(arg: &ArgDecl) -> Vec<&ArgDecl> {
    match arg {
        ArgDecl::Struct(members) => members.iter().flat_map(scalars).collect(),
        other => vec![other],
    }
}

/// The index type of a kernel that none of its shapes comes near; none if one does, or if no argument shows a type of 16 or 32 bits.
pub(super) fn index_limit(scope: Scope<'_>, selected: &Selected) -> Option<IndexLimit> {
    let operator = scope.operator;
    let known = || operator.dims.iter().chain(operator.derived.iter().map(|(name, _)| name));
    let dims = |expr: &Expr| expr.names().any(|name| known().any(|dim| dim.value == name));
    let of = |expr: &Expr, stated: Option<&TypeRef>| {
        let dtype = stated.map_or(Some(DType::I32), |stated| stated.under(scope.choice));
        dtype.filter(|_| dims(expr)).map(|dtype| (expr.text().to_string(), dtype))
    };
    let mut arguments = vec![];
    for launch in &scope.kernel.launches {
        let LaunchAction::Kernel { args, .. } = &launch.action else { continue };
        for arg in args {
            for scalar in scalars(arg) {
                match scalar {
                    ArgDecl::Plain(expr) => arguments.extend(of(expr, None)),
                    ArgDecl::Value { value, dtype } => arguments.extend(of(value, Some(dtype))),
                    _ => {}
                }
            }
        }
    }
    let (arguments, dtype, limit) = narrowest(arguments)?;
    let tensors = selected.cases.iter().flat_map(|case| &case.problem.tensors);
    let elements = tensors.map(|tensor| tensor.elements()).max()?;
    (!is_near(elements, limit)).then_some(IndexLimit { arguments, dtype, limit, elements })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_argument_counts_and_wide_ones_do_not() {
        let of =
            |all: &[(&str, DType)]| narrowest(all.iter().map(|(name, dtype)| (name.to_string(), *dtype)).collect());
        let [rows, cols, wide] = [("rows", DType::I32), ("cols", DType::U16), ("n", DType::I64)];
        assert_eq!(of(&[rows, cols, wide, cols]), Some((vec!["cols".into()], DType::U16, 65_536)));
        assert_eq!(of(&[rows, wide]), Some((vec!["rows".into()], DType::I32, 1 << 31)));
        assert_eq!((of(&[wide]), of(&[])), (None, None));
    }

    #[test]
    fn half_of_a_limit_is_near_it() {
        assert_eq!(
            [is_near(16_383, 1 << 15), is_near(16_384, 1 << 15), is_near(1 << 20, 1 << 15)],
            [false, true, true]
        );
    }
}
