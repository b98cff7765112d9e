//! What a reader says of a Python source: jitted functions, what `@triton.autotune` and `@triton.heuristics` state, and launches. Values only; the reader is
//! Python's own parser, which runs nothing of a source.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct PythonFile {
    /// Its jitted functions that are kernels, in order.
    pub functions: Vec<PythonKernel>,
    /// Launches of them, in order.
    pub launches: Vec<PythonLaunch>,
    /// What the parser says, if it cannot read the file.
    #[serde(default)]
    pub error: Option<String>,
}

/// A jitted function.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PythonKernel {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: u32,
    /// Its parameters in order.
    pub params: Vec<PythonParam>,
    /// What `@triton.autotune` tries.
    pub configs: Vec<PythonConfig>,
    /// The first configuration that is no literal, as the source spells it; empty if there is none.
    pub unread: String,
    /// What `@triton.heuristics` computes, by name of the constant.
    pub heuristics: BTreeMap<String, Heuristic>,
    /// What the body does with the memory behind parameters: `read`, `written`, `both` or `atomic`.
    pub access: BTreeMap<String, String>,
    /// The functions that the body calls.
    pub calls: Vec<String>,
    /// Parameters that are used beside floats.
    pub floats: Vec<String>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PythonParam {
    /// Its name.
    pub name: String,
    /// Whether it is a `tl.constexpr`.
    pub constexpr: bool,
    /// Its default, if that is a number, a truth value or a string.
    pub default: Option<Value>,
}

/// A configuration of `@triton.autotune`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PythonConfig {
    /// Values of constants.
    pub constants: BTreeMap<String, Value>,
    /// `num_warps`, `num_stages`, `num_ctas`, `maxnreg`.
    pub options: BTreeMap<String, Value>,
}

/// A constant that `@triton.heuristics` computes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Heuristic {
    /// How the source spells it.
    pub source: String,
    /// Its value in a manifest, if it has such a form.
    pub text: Option<String>,
    /// The expression whose next power of two it is.
    pub next_pow2: Option<String>,
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PythonLaunch {
    /// The function.
    pub kernel: String,
    /// The line.
    pub line: u32,
    /// Programs along each axis.
    pub grid: Vec<Value>,
    /// Arguments that are no addresses, by name.
    pub arguments: BTreeMap<String, Value>,
    /// Constants by name: `{"value": ...}`, or `{"of": ...}` with an expression.
    pub constants: BTreeMap<String, Value>,
    /// `num_warps` and its like.
    pub options: BTreeMap<String, Option<Value>>,
    /// Parameters that are tensor descriptors of the host.
    #[serde(default)]
    pub descriptors: BTreeMap<String, PythonDescriptor>,
    /// Parameters that are `None`.
    pub nulls: Vec<String>,
    /// Whether it passes more than can be read.
    pub starred: bool,
}

/// A tensor descriptor of the host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PythonDescriptor {
    /// The extents of its block, the outermost first.
    pub block: Vec<Value>,
    /// Whether elements outside the tensor read as NaN.
    pub nan: bool,
}
