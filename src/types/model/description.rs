//! A variant's launches as a program that has neither kforge nor the manifest can make them: expressions as texts over the operator's dims, with types and
//! tunables filled in. Knows declarations; binds no shape. Artifacts hold this, and loaders are generated from it.
//!
//! The texts are expressions of the manifest's language ([`super::expr`]). The names in them are dims, derived dims and params of the operator, tunables (their
//! values are stated), types (their values are names of dtypes), `iteration` within a repeated launch, and `sm_count` and `occupancy` in grids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bind::unbound;
use super::bound::{Constant, Fill};
use super::expr::{Expr, Scope, Value};
use super::kernel::{ArgDecl, ITERATION, Kernel, LaunchAction, LaunchDecl};
use super::operator::{Operator, TypeChoice, TypeRef};
use super::tensor_map::MapDecl;
use super::variant::{TuneValue, Variant};
use super::{DType, Problem, Role};
use kforge_foundation::base::Diagnostic;

/// The operator's arguments, as a caller passes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// The dims, in declared order. The extents of tensors give their values.
    pub dims: Vec<String>,
    /// Derived dims, in declared order. Each may use the dims before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<DerivedDim>,
    /// The dtype of each type name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, DType>,
    /// Inputs, then inouts, then outputs, each in declared order.
    pub tensors: Vec<TensorDescription>,
    /// Params in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ParamDescription>,
}

/// A dim that follows from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DerivedDim {
    /// Its name.
    pub name: String,
    /// Its value, an integer.
    pub value: String,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorDescription {
    /// Its name.
    pub name: String,
    /// What the kernel does with it.
    pub role: Role,
    /// Its element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<String>,
    /// Elements between neighbours along each axis; none if it is contiguous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<String>>,
    /// Its address is a multiple of this many bytes.
    pub align: u64,
}

/// A scalar parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamDescription {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Its default value; none if the caller must pass one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The launches of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchSequence {
    /// The tunables.
    pub tunables: BTreeMap<String, TuneValue>,
    /// What must be true for a shape that the variant serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// Buffers that the caller provides beside the tensors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<WorkspaceDescription>,
    /// `__constant__` symbols to fill before the launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
    /// The launches in order.
    pub launches: Vec<LaunchDescription>,
}

/// A workspace buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceDescription {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Extents. Their product is the number of elements.
    pub shape: Vec<String>,
    /// What it holds before the first launch.
    pub fill: Fill,
}

/// One launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchDescription {
    /// The launch is left out if this is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How often it runs in a row. `iteration` counts from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// What it does.
    pub action: ActionDescription,
}

/// What a launch does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ActionDescription {
    /// Runs a kernel.
    Kernel {
        /// The entry as C++ spells it, types and tunables filled in.
        entry: String,
        /// Blocks along x, y, z.
        grid: Vec<String>,
        /// Threads of a block along x, y, z.
        block: Vec<String>,
        /// Bytes of dynamic shared memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared: Option<String>,
        /// Arguments in order.
        args: Vec<ArgDescription>,
        /// Whether all blocks must be resident.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cooperative: bool,
        /// Blocks of a cluster along x, y, z; empty without clusters.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cluster: Vec<String>,
        /// Whether it may begin before the preceding kernel of the sequence has ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pdl: bool,
        /// What the machine code takes for granted. Each must be true wherever the launch is made; in Triton, machine code is specialised for such values.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        assumes: Vec<String>,
    },
    /// Fills a buffer with a byte.
    Memset {
        /// The tensor or workspace.
        buffer: String,
        /// The byte.
        value: u8,
    },
}

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArgDescription {
    /// The address of a tensor or workspace.
    Pointer {
        /// Its name.
        buffer: String,
        /// Elements past its start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<String>,
    },
    /// A scalar by value.
    Scalar(ScalarDescription),
    /// A struct by value, laid out as C lays it out.
    Struct(Vec<FieldDescription>),
    /// The address of a device array that holds the addresses of these buffers.
    Pointers(Vec<String>),
    /// A null pointer.
    Null,
    /// A tensor map by value.
    TensorMap {
        /// The tensor or workspace.
        buffer: String,
        /// Elements that one copy moves, innermost first.
        #[serde(rename = "box")]
        tile: Vec<String>,
        /// Bytes over which rows are swizzled in shared memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        swizzle: Option<String>,
        /// Whether elements outside the tensor read as NaN rather than zero.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nan: bool,
        /// Bytes to which fetches are widened in the L2 cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        l2_promotion: Option<String>,
    },
    /// A descriptor of Triton. What the binary takes replaces it, so no artifact has one ([`crate::record::contract_description`]).
    #[serde(skip)]
    Descriptor {
        /// The tensor or workspace.
        buffer: String,
        /// Whether elements outside the tensor read as NaN rather than zero.
        nan: bool,
    },
}

/// A member of a struct argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum FieldDescription {
    /// A scalar.
    Scalar(ScalarDescription),
    /// An address, or a struct in the struct.
    Member(ArgDescription),
}

/// A scalar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScalarDescription {
    /// Its type.
    pub dtype: DType,
    /// Its value.
    pub value: String,
}

impl Operator {
    /// The arguments of the operator for a choice of types. Fails if a tensor has a type that the choice does not bind.
    pub fn interface(&self, choice: &TypeChoice) -> Result<Interface, Diagnostic> {
        let tensor = |t: &super::operator::TensorDecl| {
            Ok(TensorDescription {
                name: t.name.value.clone(),
                role: t.role,
                dtype: t.dtype.under(choice).ok_or_else(|| unbound(&t.name.place))?,
                shape: texts(&t.shape),
                strides: t.strides.as_deref().map(texts),
                align: t.align,
            })
        };
        let param = |p: &super::operator::ParamDecl| {
            Ok(ParamDescription {
                name: p.name.value.clone(),
                dtype: p.dtype.under(choice).ok_or_else(|| unbound(&p.name.place))?,
                value: p.value.as_ref().map(text),
            })
        };
        Ok(Interface {
            dims: self.dims.iter().map(|dim| dim.value.clone()).collect(),
            derived: self
                .derived
                .iter()
                .map(|(name, value)| DerivedDim { name: name.value.clone(), value: text(value) })
                .collect(),
            types: choice.types.clone(),
            tensors: self.tensors.iter().map(tensor).collect::<Result<_, Diagnostic>>()?,
            params: self.params.iter().map(param).collect::<Result<_, Diagnostic>>()?,
        })
    }
}

impl Kernel {
    /// The launches of a variant, without a shape. `example` is the problem at a shape that the variant serves: whether an argument without a stated type is a
    /// truth value is known only with values. Fails if an expression fails there.
    pub fn sequence(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        example: &Problem,
    ) -> Result<LaunchSequence, Diagnostic> {
        let mut scope: Scope = example.dims.iter().map(|(name, value)| (name.clone(), Value::Int(*value))).collect();
        scope.extend(example.params.iter().map(|p| (p.name.clone(), p.value.to_value())));
        self.tunables(variant, choice, &mut scope);
        scope.insert(ITERATION.into(), Value::Int(0));
        let workspace = |decl: &super::kernel::BufferDecl| {
            Ok(WorkspaceDescription {
                name: decl.name.value.clone(),
                dtype: decl.dtype.under(choice).ok_or_else(|| unbound(&decl.name.place))?,
                shape: texts(&decl.shape),
                fill: decl.fill,
            })
        };
        let describe = Describe { kernel: self, variant, choice, example, scope };
        Ok(LaunchSequence {
            tunables: variant.values.clone(),
            requires: texts(&self.requires),
            workspaces: self.workspace.iter().map(workspace).collect::<Result<_, Diagnostic>>()?,
            constants: self.constants(),
            launches: self.launches.iter().map(|decl| describe.launch(decl)).collect::<Result<_, _>>()?,
        })
    }
}

/// What the descriptions of launches need.
struct Describe<'a> {
    kernel: &'a Kernel,
    variant: &'a Variant,
    choice: &'a TypeChoice,
    example: &'a Problem,
    scope: Scope,
}

impl Describe<'_> {
    fn launch(&self, decl: &LaunchDecl) -> Result<LaunchDescription, Diagnostic> {
        let action = match &decl.action {
            LaunchAction::Memset { buffer, value } => {
                ActionDescription::Memset { buffer: buffer.value.clone(), value: *value }
            }
            LaunchAction::Kernel { entry, grid, block, shared, args, attributes, triton: _ } => {
                ActionDescription::Kernel {
                    entry: self.kernel.substitute(&entry.value, self.variant, self.choice),
                    grid: texts(grid),
                    block: texts(block),
                    shared: shared.as_ref().map(text),
                    args: args.iter().map(|arg| self.arg(arg)).collect::<Result<_, _>>()?,
                    cooperative: attributes.cooperative,
                    cluster: texts(&attributes.cluster),
                    pdl: attributes.pdl.is_some(),
                    assumes: vec![],
                }
            }
        };
        Ok(LaunchDescription { when: decl.when.as_ref().map(text), repeat: decl.repeat.as_ref().map(text), action })
    }

    fn arg(&self, arg: &ArgDecl) -> Result<ArgDescription, Diagnostic> {
        Ok(match arg {
            ArgDecl::Plain(expr) => match expr.as_name() {
                Some(name) if self.is_buffer(name) => ArgDescription::Pointer { buffer: name.into(), offset: None },
                _ => ArgDescription::Scalar(self.scalar(expr, None)?),
            },
            ArgDecl::Value { value, dtype } => ArgDescription::Scalar(self.scalar(value, Some(dtype))?),
            ArgDecl::Ptr { buffer, offset } => {
                ArgDescription::Pointer { buffer: buffer.value.clone(), offset: offset.as_ref().map(text) }
            }
            ArgDecl::Struct(members) => {
                let member = |decl: &ArgDecl| {
                    self.arg(decl).map(|arg| match arg {
                        ArgDescription::Scalar(scalar) => FieldDescription::Scalar(scalar),
                        other => FieldDescription::Member(other),
                    })
                };
                ArgDescription::Struct(members.iter().map(member).collect::<Result<_, _>>()?)
            }
            ArgDecl::Pointers(buffers) => {
                ArgDescription::Pointers(buffers.iter().map(|buffer| buffer.value.clone()).collect())
            }
            ArgDecl::Null => ArgDescription::Null,
            ArgDecl::TensorMap(MapDecl { buffer, nan, descriptor: true, .. }) => {
                ArgDescription::Descriptor { buffer: buffer.value.clone(), nan: nan.is_some() }
            }
            ArgDecl::TensorMap(MapDecl { buffer, tile, swizzle, nan, l2_promotion, .. }) => ArgDescription::TensorMap {
                buffer: buffer.value.clone(),
                tile: texts(tile),
                swizzle: swizzle.as_ref().map(text),
                nan: nan.is_some(),
                l2_promotion: l2_promotion.as_ref().map(text),
            },
        })
    }

    fn is_buffer(&self, name: &str) -> bool {
        self.example.tensor(name).is_some() || self.kernel.workspace.iter().any(|buffer| buffer.name.value == name)
    }

    /// The stated dtype, else that of the param, else `bool` for truth values, else i32: the rule of bound launches.
    fn scalar(&self, expr: &Expr, stated: Option<&TypeRef>) -> Result<ScalarDescription, Diagnostic> {
        let param = expr.as_name().and_then(|name| self.example.param(name));
        let dtype = match (stated, param) {
            (Some(stated), _) => stated.under(self.choice).ok_or_else(|| unbound(expr.place()))?,
            (None, Some(param)) => param.dtype,
            (None, None) if matches!(expr.value(&self.scope)?, Value::Bool(_)) => DType::Bool,
            (None, None) => DType::I32,
        };
        Ok(ScalarDescription { dtype, value: text(expr) })
    }
}

fn text(expr: &Expr) -> String {
    expr.text().to_string()
}

fn texts(exprs: &[Expr]) -> Vec<String> {
    exprs.iter().map(text).collect()
}
