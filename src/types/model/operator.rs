//! Operators as declared: a contract of named dims, typed tensors and params, a reference, a tolerance and shapes. Binding them to numbers is `bind`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::expr::Expr;
use super::{Compare, DType, Init, Place, Reference, Role, Scalar, Text, Tolerance};
use kforge_foundation::base::Diagnostic;

/// A dtype, or a type of the operator that stands for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    /// This one.
    Fixed(DType),
    /// What the type choice says.
    Named(String),
}

impl TypeRef {
    /// The dtype under a choice of types. Names are checked when the manifest is read.
    pub fn under(&self, choice: &TypeChoice) -> Option<DType> {
        match self {
            TypeRef::Fixed(dtype) => Some(*dtype),
            TypeRef::Named(name) => choice.types.get(name).copied(),
        }
    }
}

/// How values are drawn, before dims are numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum InitDecl {
    /// Needs no numbers.
    Fixed(Init),
    /// Uniform between two expressions.
    Range(Expr, Expr),
    /// A permutation of 0..n, repeated.
    Permutation(Expr),
    /// Non-decreasing from 0 to the total.
    Offsets(Expr),
}

/// A tensor before dims are numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorDecl {
    /// Its name.
    pub name: Text,
    /// What a kernel may do with it.
    pub role: Role,
    /// Its element type.
    pub dtype: TypeRef,
    /// Extents, outermost first.
    pub shape: Vec<Expr>,
    /// Elements between neighbours, where declared.
    pub strides: Option<Vec<Expr>>,
    /// Alignment in bytes.
    pub align: u64,
    /// How its values are drawn.
    pub init: InitDecl,
}

/// A param before dims are numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamDecl {
    /// Its name.
    pub name: Text,
    /// Its type when passed to a kernel.
    pub dtype: TypeRef,
    /// Its value; none where every shape binds it.
    pub value: Option<Expr>,
}

/// A stated tolerance; `auto` is the lack of one.
#[derive(Debug, Clone, PartialEq)]
pub enum ToleranceDecl {
    /// For every floating-point output.
    All(Tolerance),
    /// By dtype or written tensor; the tensor's name wins.
    By(BTreeMap<String, Tolerance>),
}

/// What a shape is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeRole {
    /// Verified.
    Verify,
    /// Benched, and verified.
    Bench,
    /// Verified, and never shown to a generator.
    Holdout,
}

/// One binding of the dims.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub place: Place,
    /// What it is for.
    pub role: ShapeRole,
    /// The dims.
    pub dims: BTreeMap<String, i64>,
    /// Params it binds in place of the operator's values.
    pub params: BTreeMap<String, Scalar>,
    /// A tolerance in place of the operator's: none where it states none, `Some(None)` for `auto`.
    pub tolerance: Option<Option<ToleranceDecl>>,
}

/// One choice of an operator's types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeChoice {
    /// `T=f16`, comma-separated in declared order; empty for an operator without types.
    pub label: String,
    /// The dtype of each type.
    pub types: BTreeMap<String, DType>,
}

/// A contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub place: Place,
    /// The dims that shapes bind, in declared order.
    pub dims: Vec<Text>,
    /// Computed dims, in declared order; each may use those before it.
    pub derived: Vec<(Text, Expr)>,
    /// Its types and what they may be, in declared order.
    pub types: Vec<(Text, Vec<DType>)>,
    /// Inputs, then inouts, then outputs, each in declared order.
    pub tensors: Vec<TensorDecl>,
    /// Params in declared order; each value may use dims and the params before it.
    pub params: Vec<ParamDecl>,
    /// Where expected values come from.
    pub reference: Reference,
    /// Where it is stated, for errors of what is known about references elsewhere.
    pub reference_place: Place,
    /// The function that makes inputs, where they depend on each other: file and function.
    pub generate_inputs: Option<(String, String)>,
    /// The function that returns how much work the data require: file and function.
    pub cost: Option<(String, String)>,
    /// The tolerance; none for `auto`.
    pub tolerance: Option<ToleranceDecl>,
    /// Where it is stated.
    pub(crate) tolerance_place: Place,
    /// How written tensors are compared, where it was declared.
    pub(crate) compare: BTreeMap<String, Compare>,
    /// The kind of work that the manifest states; none if it states none.
    pub pattern: Option<super::Pattern>,
    /// The difficulty that the manifest states, from 0 to 5; none if it states none.
    pub level: Option<u8>,
    /// Work, for reporting.
    pub(crate) flops: Option<Expr>,
    /// The least arithmetic any implementation needs.
    pub(crate) flops_min: Option<Expr>,
    /// Compulsory traffic, where it is not every tensor once.
    pub(crate) bytes: Option<Expr>,
    /// The shapes in declared order.
    pub shapes: Vec<Shape>,
    /// Secret numbers, each of which adds a trial to every shape: from overlays only.
    pub seeds: Vec<u64>,
    /// Whether a typo may hide some of its names, so that unknown names are not reported.
    pub partial: bool,
    /// Whether something in it is wrong already, so that checks that build on it would only repeat it.
    pub broken: bool,
}

impl Operator {
    /// The error that says why its reference does not fit it at a shape, from what is wrong there.
    pub fn misfit(&self, shape: &str, wrong: Vec<String>) -> Diagnostic {
        let mut wrong = wrong.into_iter();
        let first = wrong.next().unwrap_or_else(|| "it does not fit".to_string());
        let message = format!("the reference of operator `{}`, at shape `{shape}`: {first}", self.name);
        let mut error = self.reference_place.error("reference.mismatch", message);
        error.notes = wrong.collect();
        error.hint("docs/references.md says what each built-in takes")
    }

    /// Every choice of types in declared order, the last type fastest; one empty choice without types.
    pub fn choices(&self) -> Vec<TypeChoice> {
        let mut choices = vec![TypeChoice::default()];
        for (name, dtypes) in &self.types {
            choices = choices
                .iter()
                .flat_map(|before| {
                    dtypes.iter().map(move |dtype| {
                        let mut choice = before.clone();
                        let comma = if choice.label.is_empty() { "" } else { "," };
                        choice.label.push_str(&format!("{comma}{name}={dtype}"));
                        choice.types.insert(name.value.clone(), *dtype);
                        choice
                    })
                })
                .collect();
        }
        choices
    }

    /// The shape of that name.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.shapes.iter().find(|s| s.name == name)
    }

    /// Where its tolerance is stated; its own place where it is not.
    pub fn tolerance_place(&self) -> &Place {
        &self.tolerance_place
    }

    /// How each written tensor is compared.
    pub fn compare(&self) -> BTreeMap<String, Compare> {
        self.written()
            .map(|t| (t.name.value.clone(), self.compare.get(&t.name.value).cloned().unwrap_or_default()))
            .collect()
    }

    /// The tensors a kernel writes.
    pub fn written(&self) -> impl Iterator<Item = &TensorDecl> {
        self.tensors.iter().filter(|t| t.role != Role::Input)
    }

    /// The tolerance of every written tensor for a choice of types and a shape; none for `auto`. Integers are exact.
    pub fn tolerances(&self, choice: &TypeChoice, shape: &Shape) -> Option<BTreeMap<String, Tolerance>> {
        let stated = shape.tolerance.as_ref().map_or(self.tolerance.as_ref(), Option::as_ref)?;
        let of = |tensor: &TensorDecl| {
            let dtype = tensor.dtype.under(choice);
            let float = dtype.is_some_and(DType::is_float);
            match stated {
                ToleranceDecl::All(tolerance) if float => tolerance.clone(),
                ToleranceDecl::All(_) => Tolerance::default(),
                ToleranceDecl::By(by) => by
                    .get(&tensor.name.value)
                    .or_else(|| dtype.filter(|_| float).and_then(|d| by.get(d.name())))
                    .cloned()
                    .unwrap_or_default(),
            }
        };
        Some(self.written().map(|t| (t.name.value.clone(), of(t))).collect())
    }

    /// Names that expressions over this operator may use: dims, derived dims and params, and its types, which stand for their dtype's name.
    pub(crate) fn names(&self) -> Vec<&str> {
        let dims = self.dims.iter().map(Text::as_str).chain(self.derived.iter().map(|d| d.0.as_str()));
        dims.chain(self.params.iter().map(|p| p.name.as_str())).chain(self.types.iter().map(|t| t.0.as_str())).collect()
    }
}
