//! Checks an operator by itself: its names, and whether every shape binds under every choice of types.

use crate::model::expr::{Expr, list};
use crate::model::grid::{OCCUPANCY, SM_COUNT};
use crate::model::operator::{InitDecl, Operator, TensorDecl, ToleranceDecl, TypeRef};
use crate::model::{Compare, DType, Reference, Text};
use kforge_foundation::base::{Diagnostic, Severity};

/// The arguments of a function of the package that compares, besides names of the operator.
const CHECK_NAMES: [&str; 2] = ["got", "want"];

/// Names that have a meaning in expressions besides the names that an operator declares.
const RESERVED: [&str; 17] = [
    "and",
    "or",
    "not",
    "if",
    "else",
    "true",
    "false",
    "in",
    "is",
    "none",
    "iteration",
    "target",
    "arch",
    "role",
    SM_COUNT,
    OCCUPANCY,
    "tolerance",
];

/// Names that a shape gives a meaning where it binds dims and params. A tensor may have them.
const OF_SHAPES: [&str; 1] = ["init"];

/// Whether a name has the form of a name in expressions.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.ends_with("__")
}

/// Whether a name already has a meaning in expressions.
fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.parse::<DType>().is_ok()
}

/// Whether an operator can declare a dim, tensor or param of this name.
pub fn is_free_name(name: &str) -> bool {
    is_identifier(name) && !is_reserved(name) && !OF_SHAPES.contains(&name)
}

/// The error for a dim or param that a shape could not bind.
fn unbindable((kind, name): &(&'static str, &Text)) -> Option<Diagnostic> {
    (matches!(*kind, "dim" | "param") && OF_SHAPES.contains(&name.value.as_str())).then(|| {
        let error = name.place.error("manifest.name", format!("`{name}` is reserved"));
        error.expected(format!("another name for a {kind}: in shapes, `{name}` states where values of inputs are"))
    })
}

/// The error for a name that expressions cannot use, or that already has a meaning there.
pub(in crate::model) fn identifier(name: &Text) -> Option<Diagnostic> {
    if !is_identifier(&name.value) {
        let error = name.place.error("manifest.name", format!("`{name}` is not a name for expressions"));
        return Some(error.expected("letters, digits and `_`, not starting with a digit"));
    }
    is_reserved(&name.value).then(|| {
        let error = name.place.error("manifest.name", format!("`{name}` is reserved"));
        error.expected("a name that means nothing else in a manifest")
    })
}

/// Errors for names that are declared twice.
pub(super) fn duplicates<'a>(names: impl IntoIterator<Item = (&'static str, &'a Text)>) -> Vec<Diagnostic> {
    let mut seen: Vec<(&'static str, &Text)> = vec![];
    let mut found = vec![];
    for (kind, name) in names {
        match seen.iter().find(|(_, n)| n.value == name.value) {
            Some((other, first)) => {
                let error =
                    name.place.error("manifest.duplicate-name", format!("`{name}` is both a {other} and a {kind}"));
                let error = if *other == kind {
                    name.place.error("manifest.duplicate-name", format!("{kind} `{name}` is declared twice"))
                } else {
                    error
                };
                found.push(
                    error
                        .see(&first.place.file, first.place.span.clone(), "first declared here")
                        .expected("names that differ"),
                );
            }
            None => seen.push((kind, name)),
        }
    }
    found
}

/// Every name that an operator declares, with its kind.
pub(super) fn declared(operator: &Operator) -> Vec<(&'static str, &Text)> {
    let mut names: Vec<(&'static str, &Text)> = operator.dims.iter().map(|d| ("dim", d)).collect();
    names.extend(operator.derived.iter().map(|d| ("derived dim", &d.0)));
    names.extend(operator.types.iter().map(|t| ("type", &t.0)));
    names.extend(operator.tensors.iter().map(|t| ("tensor", &t.name)));
    names.extend(operator.params.iter().map(|p| ("param", &p.name)));
    names
}

/// Errors of an operator that involve several of its values.
pub(in crate::model) fn operator(operator: &Operator) -> Vec<Diagnostic> {
    let names = declared(operator);
    let mut found: Vec<Diagnostic> = names.iter().filter_map(|(_, name)| identifier(name)).collect();
    found.extend(names.iter().filter_map(unbindable));
    found.extend(duplicates(names));
    if !operator.partial {
        expressions(operator, &mut found);
        references(operator, &mut found);
    }
    if operator.written().next().is_none() && !operator.broken {
        let error = operator.place.error("manifest.no-output", format!("operator `{}` writes nothing", operator.name));
        found.push(error.expected("at least one tensor in `outputs` or `inouts`"));
    }
    if operator.broken || found.iter().any(|d| d.severity == Severity::Error) {
        return found;
    }
    if operator.shapes.is_empty() {
        let message = format!("operator `{}` has no shapes, so it is not verified", operator.name);
        found.push(
            Diagnostic::warning("manifest.no-shapes", message)
                .at(&operator.place.file, operator.place.span.clone(), "")
                .expected(format!("`[operator.{}.shapes]`", operator.name)),
        );
    }
    tolerances(operator, &mut found);
    exact_or_checked(operator, &mut found);
    for choice in operator.choices() {
        for shape in &operator.shapes {
            let bound = operator.bind(&choice, shape).map(|_| ());
            let numbers =
                [operator.flops(&choice, shape), operator.flops_min(&choice, shape), operator.bytes(&choice, shape)];
            found.extend(bound.err());
            found.extend(numbers.into_iter().filter_map(Result::err));
        }
    }
    found
}

fn expressions(operator: &Operator, found: &mut Vec<Diagnostic>) {
    let mut known: Vec<&str> = operator.dims.iter().map(Text::as_str).collect();
    for (name, expr) in &operator.derived {
        found.extend(expr.check_names(&known));
        known.push(name.as_str());
    }
    for param in &operator.params {
        found.extend(param.value.iter().flat_map(|e| e.check_names(&known)));
        known.push(param.name.as_str());
    }
    let known = operator.names();
    let mut check = |expr: &Expr| found.extend(expr.check_names(&known));
    for tensor in &operator.tensors {
        tensor.shape.iter().chain(tensor.strides.iter().flatten()).for_each(&mut check);
        match &tensor.init {
            InitDecl::Fixed(_) => {}
            InitDecl::Range(a, b) => [a, b].into_iter().for_each(&mut check),
            InitDecl::Permutation(n) | InitDecl::Offsets(n) => check(n),
        }
    }
    [&operator.flops, &operator.flops_min, &operator.bytes].into_iter().flatten().for_each(&mut check);
}

/// Checks that the names given to a built-in reference are names of the operator. The names of the built-in itself are checked where built-ins are known.
fn references(operator: &Operator, found: &mut Vec<Diagnostic>) {
    if let Some(decl) = &operator.torch {
        let tensors: Vec<&str> = operator.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        decl.check("the reference", &tensors, &operator.names(), found);
    }
    let Reference::Builtin { names, .. } = &operator.reference else { return };
    let known: Vec<&str> = operator
        .tensors
        .iter()
        .map(|t| t.name.as_str())
        .chain(operator.params.iter().map(|p| p.name.as_str()))
        .collect();
    for name in names.values().filter(|n| !known.contains(&n.as_str())) {
        let error = operator.reference_place.error(
            "manifest.unknown-tensor",
            format!("the reference names `{name}`, which is neither a tensor nor a param"),
        );
        found.push(error.expected(format!("one of {}", list(&known))).suggest(name, known.iter().copied()));
    }
}

/// Checks for tolerances without effect. A function of the package that compares an output decides by itself, and integers are compared exactly. A tolerance
/// for such an output, or for all outputs if all are such outputs, would have no effect. Also checks that no name of the operator is the name of an argument of
/// such a function.
fn exact_or_checked(operator: &Operator, found: &mut Vec<Diagnostic>) {
    let by = |name: &str| match operator.compare.get(name) {
        Some(Compare::Python(file, function)) => Some(format!("`{file}::{function}` decides instead")),
        _ => None,
    };
    let of_integers = |tensor: &TensorDecl| match &tensor.dtype {
        TypeRef::Fixed(dtype) => !dtype.is_float(),
        TypeRef::Named(name) => {
            let dtypes = operator.types.iter().filter(|t| t.0.value == *name).flat_map(|t| &t.1);
            dtypes.clone().next().is_some() && dtypes.clone().all(|d| !d.is_float())
        }
    };
    let stated = operator.shapes.iter().filter_map(|s| s.tolerance.as_ref().map(|t| (t.as_ref(), &s.place)));
    for (decl, place) in stated.chain([(operator.tolerance.as_ref(), &operator.tolerance_place)]) {
        let unused = |tensor: &TensorDecl| {
            let why = by(tensor.name.as_str()).or_else(|| {
                of_integers(tensor).then(|| "its elements are integers, which are compared exactly".to_string())
            })?;
            let message = format!("a tolerance for `{}` has no effect: {why}", tensor.name);
            Some(
                place.error("manifest.unused-tolerance", message).expected("tolerances of other outputs only, or none"),
            )
        };
        let all: Option<Vec<Diagnostic>> = operator.written().map(unused).collect();
        match (decl, all) {
            (Some(_), Some(all)) => found.extend(all),
            (Some(ToleranceDecl::By(by)), None) => {
                found.extend(operator.written().filter(|t| by.contains_key(&t.name.value)).filter_map(unused));
            }
            (Some(ToleranceDecl::All(_)) | None, _) => {}
        }
    }
    if operator.written().any(|t| by(t.name.as_str()).is_some()) {
        let taken = declared(operator).into_iter().filter(|(_, name)| CHECK_NAMES.contains(&name.as_str()));
        for (what, name) in taken {
            let message = format!("the {what} `{name}` has the name of an argument of the function that compares");
            found.push(name.place.error("manifest.name", message).expected("a name other than `got` and `want`"));
        }
    }
}

/// Checks that a tolerance by dtype covers every floating-point dtype that is written.
fn tolerances(operator: &Operator, found: &mut Vec<Diagnostic>) {
    let stated = operator.shapes.iter().filter_map(|s| s.tolerance.as_ref().map(|t| (t.as_ref(), &s.place)));
    for (decl, place) in stated.chain([(operator.tolerance.as_ref(), &operator.tolerance_place)]) {
        let Some(ToleranceDecl::By(by)) = decl else { continue };
        for tensor in operator.written().filter(|t| !by.contains_key(&t.name.value)) {
            let dtypes: Vec<DType> = match &tensor.dtype {
                TypeRef::Fixed(dtype) => vec![*dtype],
                TypeRef::Named(name) => {
                    operator.types.iter().filter(|t| t.0.value == *name).flat_map(|t| t.1.clone()).collect()
                }
            };
            for dtype in dtypes.into_iter().filter(|d| d.is_float() && !by.contains_key(d.name())) {
                let error = place
                    .error("manifest.no-tolerance", format!("`{}` of dtype {dtype} has no tolerance", tensor.name));
                found.push(
                    error.expected(format!("`{dtype} = {{ ... }}` or `{} = {{ ... }}` in `tolerance`", tensor.name)),
                );
            }
        }
    }
}
