//! Operators as declared: a contract of named dims, typed tensors and params, a reference, a tolerance and shapes. `bind` binds them to numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::expr::Expr;
use super::torch::TorchDecl;
use super::{Compare, DType, Init, InputsFunction, Place, Precision, Reference, Role, Scalar, Text, Tolerance};
use kforge_foundation::base::Diagnostic;

/// A dtype, or a type of the operator that can be one of several dtypes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    /// This dtype.
    Fixed(DType),
    /// The dtype that the choice of types gives this name.
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

/// How values are drawn, before dims become numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum InitDecl {
    /// A distribution without expressions.
    Fixed(Init),
    /// Uniform between two expressions.
    Range(Expr, Expr),
    /// A permutation of 0..n, repeated.
    Permutation(Expr),
    /// Non-decreasing from 0 to the total.
    Offsets(Expr),
}

/// A tensor, before dims become numbers.
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
    /// Elements between neighbors, if declared.
    pub strides: Option<Vec<Expr>>,
    /// Alignment in bytes.
    pub align: u64,
    /// How its values are drawn.
    pub init: InitDecl,
}

/// A param, before dims become numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamDecl {
    /// Its name.
    pub name: Text,
    /// Its type when passed to a kernel.
    pub dtype: TypeRef,
    /// Its value; none if every shape binds it.
    pub value: Option<Expr>,
}

/// A stated tolerance. `auto` is the absence of one.
#[derive(Debug, Clone, PartialEq)]
pub enum ToleranceDecl {
    /// For every floating-point output.
    All(Tolerance),
    /// By dtype or written tensor. The name of a tensor takes precedence.
    By(BTreeMap<String, Tolerance>),
}

/// The declared precision of the operator's kernels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrecisionDecl {
    /// The type of accumulators.
    pub accumulate: Option<TypeRef>,
    /// The types of roundings in between.
    pub intermediates: Vec<TypeRef>,
}

/// What a shape is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeRole {
    /// Verified.
    Verify,
    /// Timed as well as verified.
    Bench,
    /// Verified, and never shown to whoever writes kernels.
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
    /// Values of params that replace the operator's.
    pub params: BTreeMap<String, Scalar>,
    /// A tolerance that replaces the operator's. None if it states no tolerance, `Some(None)` for `auto`.
    pub tolerance: Option<Option<ToleranceDecl>>,
    /// The tensors that the kernel reads whose values are in a file.
    pub stored: BTreeMap<String, StoredTensor>,
}

/// A tensor of a file in safetensors format.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTensor {
    /// The file, relative to the package.
    pub file: Text,
    /// Its name in the file.
    pub key: String,
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
    /// Derived dims, in declared order. Each may use the dims before it.
    pub derived: Vec<(Text, Expr)>,
    /// Its types and their possible dtypes, in declared order.
    pub types: Vec<(Text, Vec<DType>)>,
    /// Inputs, then inouts, then outputs, each in declared order.
    pub tensors: Vec<TensorDecl>,
    /// Params in declared order. Each value may use dims and the params before it.
    pub params: Vec<ParamDecl>,
    /// Where expected values come from.
    pub reference: Reference,
    /// What a reference in PyTorch states of each shape.
    pub torch: Option<Box<TorchDecl>>,
    /// Where the reference is stated, for errors from code that knows the reference.
    pub reference_place: Place,
    /// The function that makes inputs that depend on each other.
    pub generate_inputs: Option<InputsFunction>,
    /// The tolerance; none for `auto`.
    pub tolerance: Option<ToleranceDecl>,
    /// How precisely its kernels may compute, for a derived tolerance.
    pub(crate) precision: PrecisionDecl,
    /// Where the tolerance is stated.
    pub(crate) tolerance_place: Place,
    /// Whether an operator whose tolerance cannot tell correct from wrong is an error: `verify.decisive = "require"`.
    pub must_decide: bool,
    /// The written tensors that no tolerance can decide, as the manifest declares: `verify.undecidable`.
    pub undecidable: Vec<Text>,
    /// How written tensors are compared, if declared.
    pub(crate) compare: BTreeMap<String, Compare>,
    /// The kind of work that the manifest states; none if it states none.
    pub pattern: Option<super::Pattern>,
    /// The difficulty that the manifest states, from 0 to 5; none if it states none.
    pub level: Option<u8>,
    /// The problem set that it is from, if the manifest states one.
    pub origin: Option<super::Origin>,
    /// Floating-point operations, for reports.
    pub(crate) flops: Option<Expr>,
    /// The fewest operations that any implementation needs.
    pub(crate) flops_min: Option<Expr>,
    /// Compulsory traffic, if it is not every tensor once.
    pub(crate) bytes: Option<Expr>,
    /// The shapes in declared order.
    pub shapes: Vec<Shape>,
    /// Secret numbers from overlays. Each adds a trial to every shape.
    pub seeds: Vec<u64>,
    /// Whether a typo may hide some of its names. Unknown names are then not reported.
    pub partial: bool,
    /// Whether an error in it has already been reported. Checks that depend on it would only repeat the error.
    pub broken: bool,
}

impl Operator {
    /// The error that the reference does not fit the operator at a shape; `wrong` says why.
    pub fn misfit(&self, shape: &str, wrong: Vec<String>) -> Diagnostic {
        let mut wrong = wrong.into_iter();
        let first = wrong.next().unwrap_or_else(|| "it does not fit".to_string());
        let message = format!("the reference of operator `{}`, at shape `{shape}`: {first}", self.name);
        let mut error = self.reference_place.error("reference.mismatch", message);
        error.notes = wrong.collect();
        error.hint("docs/references.md says what each built-in takes")
    }

    /// Every choice of types in declared order, where the last type varies fastest. Without types there is one empty choice.
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

    /// Where its tolerance is stated, or its own place if it states none.
    pub fn tolerance_place(&self) -> &Place {
        &self.tolerance_place
    }

    /// How each written tensor is compared.
    pub fn compare(&self) -> BTreeMap<String, Compare> {
        self.written()
            .map(|t| (t.name.value.clone(), self.compare.get(&t.name.value).cloned().unwrap_or_default()))
            .collect()
    }

    /// The tensors that a kernel writes.
    pub fn written(&self) -> impl Iterator<Item = &TensorDecl> {
        self.tensors.iter().filter(|t| t.role != Role::Input)
    }

    /// The tolerance of every written tensor for a choice of types and a shape. None for `auto`. Integers are exact.
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

    /// How precisely its kernels may compute under a choice of types. A type of the operator that is an integer type in this choice adds nothing.
    pub fn precision(&self, choice: &TypeChoice) -> Precision {
        let float = |of: &TypeRef| of.under(choice).filter(|dtype| dtype.is_float());
        Precision {
            accumulate: self.precision.accumulate.as_ref().and_then(float),
            intermediates: self.precision.intermediates.iter().filter_map(float).collect(),
        }
    }

    /// Names that expressions over this operator may use: dims, derived dims, params and types. The value of a type is the name of its dtype.
    pub(crate) fn names(&self) -> Vec<&str> {
        let dims = self.dims.iter().map(Text::as_str).chain(self.derived.iter().map(|d| d.0.as_str()));
        dims.chain(self.params.iter().map(|p| p.name.as_str())).chain(self.types.iter().map(|t| t.0.as_str())).collect()
    }
}
