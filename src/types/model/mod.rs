//! `kernel.toml` as typed values: the manifest, and the values that result when names are bound to numbers. Pure: knows no files, clock or environment.

pub mod agent;
pub mod baseline;
pub mod bound;
pub mod coordinates;
pub mod description;
pub mod dtype;
pub mod entry;
pub mod expr;
pub mod generate;
pub mod grid;
pub mod kernel;
pub mod layout;
pub mod limits;
pub mod manifest;
pub mod method;
pub mod operator;
pub mod origin;
pub mod package;
pub mod pattern;
pub mod place;
pub mod policy;
pub mod real;
pub mod search;
pub mod specialise;
pub mod target;
pub mod tensor_map;
pub mod tolerance;
pub mod torch;
pub mod triton;
pub mod triton_description;
pub mod variant;
pub mod workspace;

mod bind;
mod launch;
mod validate;

pub use agent::{Agent, Rounds};
pub use baseline::Baseline;
pub use bound::{
    Arg, Buffer, Constant, Init, InputsFunction, KernelLaunch, Launch, Param, Problem, Reference, Role, Scalar,
    StructField, Tensor,
};
pub use dtype::DType;
pub use generate::{Generate, GeneratedKernel, TemplateText};
pub use kernel::{Compiler, Kernel, Language, Metric, Per, Sanitizer, Select};
pub use manifest::{parse, parse_template, schema};
pub use method::{Axis, Method, Off, SassPatterns, Signature, Trace};
pub use operator::{Operator, Shape, ShapeRole, TypeChoice};
pub use origin::Origin;
pub use package::UNNAMED;
pub use package::{Inheritable, Manifest, Package, inherit, overlay};
pub use pattern::Pattern;
pub use place::{Place, Text};
pub use policy::{Library, Policy};
pub use search::{Budget, Search, Strategy};
pub use target::{Arch, CudaSpec, Dependency, Target, ToolchainSpec, TorchSpec};
pub use tolerance::{Compare, Nonfinite, Precision, Tolerance};
pub use validate::{is_free_name, written as check_written};
pub use variant::{TuneValue, Variant};
pub use workspace::{PackageTable, WorkspaceTable};
