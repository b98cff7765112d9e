//! Reads shapes and tolerances. The names in a shape mean something only together with its operator: see [`RawShape::resolve`].

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::is_by_key;
use super::read::Reader;
use crate::model::dtype::suggest as suggest_dtype;
use crate::model::expr::list;
use crate::model::operator::{Operator, Shape, ShapeRole, StoredTensor, ToleranceDecl};
use crate::model::{DType, Nonfinite, Place, Role, Scalar, Text, Tolerance};
use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::diag::closest;

/// A shape as written, before the meaning of its names is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawShape {
    pub(crate) name: Text,
    role: ShapeRole,
    values: Vec<(Text, Scalar, Place)>,
    tolerance: Option<Option<ToleranceDecl>>,
    tolerance_keys: Vec<Text>,
    stored: Vec<(Text, StoredTensor)>,
    /// Keys whose values could not be read.
    unread: Vec<String>,
}

impl RawShape {
    /// The shape for `operator`, and its errors.
    pub(crate) fn resolve(&self, operator: &Operator) -> (Shape, Vec<Diagnostic>) {
        let mut found = vec![];
        let (mut dims, mut bound) = (BTreeMap::new(), BTreeMap::new());
        let missing: Vec<&Text> = operator.dims.iter().filter(|d| !self.states(operator, &d.value)).collect();
        let strange: Vec<&Text> = self.values.iter().map(|v| &v.0).filter(|n| is_strange(operator, n)).collect();
        // One unknown name and one unbound dim are one mistake.
        let meant = match (strange.as_slice(), missing.as_slice()) {
            ([_], [dim]) => Some(*dim),
            _ => None,
        };
        for (name, value, place) in &self.values {
            if operator.dims.iter().any(|d| d.value == name.value) {
                match value {
                    Scalar::Int(i) if *i >= 0 => {
                        dims.insert(name.value.clone(), *i);
                    }
                    _ => found.push(
                        place
                            .error("manifest.dim", format!("dim `{name}` cannot be {}", place.text()))
                            .expected("an integer, 0 or more"),
                    ),
                }
            } else if operator.params.iter().any(|p| p.name.value == name.value) {
                bound.insert(name.value.clone(), *value);
            } else if operator.derived.iter().any(|d| d.0.value == name.value) {
                let error = name.place.error("manifest.dim", format!("dim `{name}` is derived"));
                found.push(error.expected("dims and params only; derived dims are computed"));
            } else if let Some(dim) = meant.filter(|_| strange.contains(&name)) {
                let message = format!("operator `{}` has no dim or param `{name}`", operator.name);
                let error = name.place.error("manifest.unknown-dim", message).expected(format!("`{dim} = ...`"));
                found.push(error.hint(format!("did you mean `{dim}`, which shape `{}` does not bind?", self.name)));
            } else if !operator.partial {
                let known: Vec<&str> = operator
                    .dims
                    .iter()
                    .map(Text::as_str)
                    .chain(operator.params.iter().map(|p| p.name.as_str()))
                    .collect();
                let error = name.place.error(
                    "manifest.unknown-dim",
                    format!("operator `{}` has no dim or param `{name}`", operator.name),
                );
                found.push(
                    error
                        .expected(format!("one of {}, or `role`, `tolerance`", list(&known)))
                        .suggest(&name.value, known.into_iter().chain(["role", "tolerance"])),
                );
            }
        }
        for dim in missing.into_iter().filter(|_| meant.is_none()) {
            let error =
                self.name.place.error("manifest.missing-dim", format!("shape `{}` does not bind `{dim}`", self.name));
            found.push(error.expected(format!("`{dim} = ...`")).hint("a shape must bind every dim"));
        }
        found.extend(
            self.tolerance_keys
                .iter()
                .filter_map(|key| unknown_tolerance_key(key, operator.written().map(|t| t.name.as_str()))),
        );
        let stored = self.stored(operator, &mut found);
        let shape = Shape {
            name: self.name.value.clone(),
            place: self.name.place.clone(),
            role: self.role,
            dims,
            params: bound,
            tolerance: self.tolerance.clone(),
            stored,
        };
        (shape, found)
    }

    /// The tensors whose values are in a file. Each must be one that kernels read.
    fn stored(&self, operator: &Operator, found: &mut Vec<Diagnostic>) -> BTreeMap<String, StoredTensor> {
        let read = || operator.tensors.iter().filter(|t| t.role != Role::Output).map(|t| t.name.as_str());
        let mut out = BTreeMap::new();
        for (name, of) in &self.stored {
            if !read().any(|known| known == name.value) {
                if !operator.partial {
                    let message = format!("operator `{}` has no input or inout `{name}`", operator.name);
                    let error = name.place.error("manifest.unknown-tensor", message);
                    let known: Vec<&str> = read().collect();
                    found.push(error.expected(format!("one of {}", list(&known))).suggest(&name.value, known));
                }
                continue;
            }
            if operator.generate_inputs.is_some() {
                let message = format!("`{name}` is from a file, and `generate_inputs` makes the inputs");
                found.push(name.place.error("manifest.conflict", message).expected("one of the two"));
                continue;
            }
            out.insert(name.value.clone(), of.clone());
        }
        out
    }

    /// Whether a dim is bound, possibly under a misspelt name, which is reported elsewhere.
    fn states(&self, operator: &Operator, dim: &str) -> bool {
        let meant = |name: &str| name == dim || misspells(operator, name) == Some(dim);
        self.values.iter().any(|v| meant(&v.0.value)) || self.unread.iter().any(|u| meant(u))
    }
}

/// Whether the operator does not declare a name and the name is not close to a dim.
fn is_strange(operator: &Operator, name: &Text) -> bool {
    let declared = operator.dims.iter().any(|d| d.value == name.value)
        || operator.params.iter().any(|p| p.name.value == name.value)
        || operator.derived.iter().any(|d| d.0.value == name.value);
    !operator.partial && !declared && misspells(operator, &name.value).is_none()
}

/// The dim to which a name is close, if the name is not a dim or param.
fn misspells<'o>(operator: &'o Operator, name: &str) -> Option<&'o str> {
    let dims = || operator.dims.iter().map(Text::as_str);
    let is_param = operator.params.iter().any(|p| p.name.value == name);
    closest(name, dims()).filter(|_| !is_param && !dims().any(|dim| dim == name))
}

/// An error for a key in a tolerance by dtype or tensor that is neither.
pub(super) fn unknown_tolerance_key<'a>(key: &Text, written: impl Iterator<Item = &'a str>) -> Option<Diagnostic> {
    let known: Vec<&str> = written.chain(DType::ALL.iter().map(|d| d.name())).collect();
    (!known.contains(&key.as_str())).then(|| {
        let error = key.place.error("manifest.unknown-key", format!("`{key}` is neither a dtype nor a written tensor"));
        suggest_dtype(error.expected(format!("one of {}", list(&known))), &key.value, known)
    })
}

impl Reader<'_> {
    /// A tolerance (none for `auto`), and its keys if it is by dtype or tensor.
    pub(super) fn tolerance(&mut self, value: &Spanned<DeValue<'_>>) -> (Option<ToleranceDecl>, Vec<Text>) {
        let Some(table) = value.get_ref().as_table() else { return (None, vec![]) };
        if !is_by_key(table) {
            return (Some(ToleranceDecl::All(self.terms(table))), vec![]);
        }
        let (mut by, mut keys) = (BTreeMap::new(), vec![]);
        for (key, value) in self.keys(table) {
            if let Some(inner) = value.get_ref().as_table() {
                by.insert(key.value.clone(), self.terms(inner));
                keys.push(key);
            }
        }
        (Some(ToleranceDecl::By(by)), keys)
    }

    fn terms(&mut self, table: &DeTable<'_>) -> Tolerance {
        let mut out = Tolerance::default();
        for (key, slot) in
            [("atol", &mut out.atol), ("rtol", &mut out.rtol), ("ulp", &mut out.ulp), ("scaled", &mut out.scaled)]
        {
            if let Some(value) = self.term(table, key, f64::INFINITY) {
                *slot = value;
            }
        }
        if let Some(value) = self.term(table, "matched", 1.0) {
            out.matched = value;
        }
        out.max_error = self.term(table, "max_error", f64::INFINITY);
        if let Some(text) = self.text(table, "acc")
            && let Some(dtype) = self.dtype(&text)
        {
            if dtype.is_float() {
                out.acc = dtype;
            } else {
                self.wrong("manifest.dtype", format!("`{dtype}` has no epsilon"), text.place.span, "a float dtype");
            }
        }
        out.nonfinite = match self.text(table, "nonfinite").as_ref().map(Text::as_str) {
            Some("any") => Nonfinite::Any,
            Some("forbid") => Nonfinite::Forbid,
            _ => Nonfinite::Same,
        };
        out
    }

    fn term(&mut self, table: &DeTable<'_>, key: &str, most: f64) -> Option<f64> {
        let (value, span) = self.number(table, key)?;
        if value < 0.0 || value > most {
            let expected = if most.is_finite() { "a share from 0 to 1" } else { "a finite number, 0 or more" };
            self.wrong("manifest.tolerance", format!("`{key}` cannot be {value}"), span, expected);
            return None;
        }
        Some(value)
    }

    /// The tensors of a shape that are in files.
    fn stored_tensors(&mut self, shape: &DeTable<'_>) -> Vec<(Text, StoredTensor)> {
        let mut out = vec![];
        for (name, value) in self.named(shape, "init") {
            let Some(table) = value.get_ref().as_table() else { continue };
            let (Some(file), Some(key)) = (self.text(table, "safetensors"), self.text(table, "key")) else { continue };
            self.inside(&file);
            out.push((name, StoredTensor { file, key: key.value }));
        }
        out
    }

    pub(super) fn raw_shapes(&mut self, table: &DeTable<'_>) -> Vec<RawShape> {
        let mut out = vec![];
        for (name, value) in self.named(table, "shapes") {
            self.plain_name(&name);
            let Some(inner) = value.get_ref().as_table() else { continue };
            let role = match self.text(inner, "role").as_ref().map(Text::as_str) {
                Some("bench") => ShapeRole::Bench,
                Some("holdout") => ShapeRole::Holdout,
                _ => ShapeRole::Verify,
            };
            let stated = inner.get("tolerance").map(|v| self.tolerance(v));
            let (tolerance, tolerance_keys) = stated.map_or((None, vec![]), |(t, keys)| (Some(t), keys));
            let stored = self.stored_tensors(inner);
            let (mut values, mut unread) = (vec![], vec![]);
            for (key, value) in self.keys(inner) {
                if matches!(key.as_str(), "role" | "tolerance" | "init") {
                    continue;
                }
                match self.scalar_or_constant(value) {
                    Some(scalar) => values.push((key, scalar, self.place(value.span()))),
                    None => unread.push(key.value),
                }
            }
            out.push(RawShape { name, role, values, tolerance, tolerance_keys, stored, unread });
        }
        out
    }
}
