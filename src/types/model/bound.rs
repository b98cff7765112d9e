//! An operator bound to one shape and one choice of types, and a variant's launches for it: numbers only, with nothing left to look up. Step specs contain
//! these values as they are, so everything in them is part of a key. Knows no manifest syntax.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DType;
use super::grid::OpenGrid;
use super::tensor_map::TensorMap;
use super::torch::TorchCall;
use super::triton::TritonCall;

/// What a kernel may do with a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read only; checked to be unchanged.
    Input,
    /// Read and written; restored before every launch that is checked or timed.
    Inout,
    /// Written only; poisoned before the launches.
    Output,
}

/// A number as the manifest states it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scalar {
    /// An integer.
    Int(i64),
    /// A float, finite or not.
    Float(
        #[serde(with = "super::real")]
        #[schemars(with = "super::real::RealSchema")]
        f64,
    ),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// As a float: truth values are 0 and 1.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
            Scalar::Bool(b) => f64::from(u8::from(b)),
        }
    }

    /// As an integer, if it is one.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Scalar::Int(i) => Some(i),
            Scalar::Bool(b) => Some(i64::from(b)),
            Scalar::Float(_) => None,
        }
    }
}

/// How a tensor's values are drawn (manifest, "init").
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Several distributions over the trials.
    #[default]
    Auto,
    /// Uniform in [-1, 1); integers over a small symmetric range.
    Uniform,
    /// Standard normal.
    Normal,
    /// Uniform in (0, 1].
    Positive,
    /// Uniform in [a, b) for floats, [a, b] for integers.
    Range(f64, f64),
    /// One 1 along the last axis, 0 elsewhere.
    OneHot,
    /// A permutation of 0..n, repeated to fill the tensor, as in page tables.
    Permutation(i64),
    /// A non-decreasing list from 0 to the total, as in offsets of ragged batches.
    Offsets(i64),
    /// One value everywhere. Float tensors may have one that is not finite.
    Constant(
        #[serde(with = "super::real")]
        #[schemars(with = "super::real::RealSchema")]
        f64,
    ),
    /// The tensor of a file in safetensors format, the same in every trial. The input `tree:inputs` holds the file.
    Safetensors {
        /// The file, relative to the package.
        file: String,
        /// The tensor in it.
        key: String,
    },
}

/// A tensor of the operator with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tensor {
    /// Its name in the operator.
    pub name: String,
    /// What a kernel may do with it.
    pub role: Role,
    /// Its element type.
    pub dtype: DType,
    /// Extents, outermost first. Empty for a single value.
    pub shape: Vec<u64>,
    /// Elements between neighbors along each axis. Contiguous and row-major unless declared.
    pub strides: Vec<u64>,
    /// Alignment of its first byte, in bytes.
    pub align: u64,
    /// How its values are drawn; outputs do not use it.
    pub init: Init,
}

impl Tensor {
    /// A tensor without gaps, with default alignment and default distribution.
    pub fn dense(name: &str, role: Role, dtype: DType, shape: &[u64]) -> Self {
        let (name, strides) = (name.to_string(), contiguous(shape));
        Tensor { name, role, dtype, shape: shape.to_vec(), strides, align: 256, init: Init::Auto }
    }

    /// How many elements the operator sees.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// How many stored elements its buffer spans, gaps between strides included; 0 if any extent is 0.
    pub fn span(&self) -> u64 {
        if self.elements() == 0 {
            return 0;
        }
        1 + self.shape.iter().zip(&self.strides).map(|(extent, stride)| (extent - 1) * stride).sum::<u64>()
    }

    /// Bytes of its buffer.
    pub fn bytes(&self) -> u64 {
        self.span() * self.dtype.bytes()
    }

    /// Whether elements follow each other without gaps, where the last axis varies fastest.
    pub fn is_contiguous(&self) -> bool {
        self.strides == contiguous(&self.shape)
    }

    /// Extent and stride of each axis.
    pub fn axes(&self) -> Vec<(u64, u64)> {
        self.shape.iter().copied().zip(self.strides.iter().copied()).collect()
    }

    /// The position of logical element `index` (row-major) in the buffer, in elements.
    pub fn offset_of(&self, index: u64) -> u64 {
        let mut rest = index;
        let mut offset = 0;
        for (extent, stride) in self.shape.iter().zip(&self.strides).rev() {
            offset += rest % extent * stride;
            rest /= extent;
        }
        offset
    }
}

/// Row-major strides of a shape, in elements.
pub fn contiguous(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// A scalar parameter of the operator with its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Param {
    /// Its name in the operator.
    pub name: String,
    /// Its type when passed to a kernel.
    pub dtype: DType,
    /// Its value.
    pub value: Scalar,
}

/// Where expected values come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// An operator of `kforge::reference`.
    Builtin {
        /// Its name: `rms_norm`.
        name: String,
        /// Its attributes: `{"transpose_b": true}`.
        attributes: BTreeMap<String, serde_json::Value>,
        /// Maps a name of the built-in to the tensor or param of the operator, where the two names differ.
        names: BTreeMap<String, String>,
    },
    /// A function in a Python file of the package. The input `tree:reference` holds the file and the files of the package that it imports.
    Python {
        /// The file, relative to the package.
        file: String,
        /// The function in it.
        function: String,
    },
    /// A module or function of PyTorch in a Python file of the package. The input `tree:reference` holds its files, as for Python.
    Torch {
        /// The file, relative to the package.
        file: String,
        /// The class, module or function in it.
        function: String,
        /// How it is called.
        call: Box<TorchCall>,
    },
    /// An `extern "C"` function in a C++ file of the package. The input `tree:reference` holds its files, as for Python.
    Cpp {
        /// The file, relative to the package.
        file: String,
        /// The function in it.
        function: String,
    },
}

/// The attribute of every built-in with which its results are added to what its outputs held before.
pub const ACCUMULATE: &str = "accumulate";

impl Reference {
    /// Whether the results of a built-in are added to what its outputs held before.
    pub fn accumulates(&self) -> bool {
        let Reference::Builtin { attributes, .. } = self else { return false };
        attributes.get(ACCUMULATE).and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// A built-in whose names are the names of the operator.
    pub fn builtin(name: &str, attributes: &[(&str, serde_json::Value)]) -> Self {
        let attributes = attributes.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        Reference::Builtin { name: name.into(), attributes, names: BTreeMap::new() }
    }
}

/// One operator, one shape, one choice of types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// The dims, derived ones included.
    pub dims: BTreeMap<String, i64>,
    /// Every tensor in declared order: inputs, then inouts, then outputs.
    pub tensors: Vec<Tensor>,
    /// Every param in declared order.
    pub params: Vec<Param>,
    /// Where expected values come from.
    pub reference: Reference,
    /// The function that makes inputs that depend on each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_inputs: Option<InputsFunction>,
}

/// A function of the package that makes inputs that depend on each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum InputsFunction {
    /// A file and a function in it, which makes arrays of numpy from a seed.
    Python(String, String),
    /// One that makes tensors of PyTorch, whose generator of random numbers is seeded.
    Torch {
        /// A file and a function in it.
        torch: (String, String),
    },
}

impl InputsFunction {
    /// The file.
    pub fn file(&self) -> &String {
        match self {
            InputsFunction::Python(file, _) | InputsFunction::Torch { torch: (file, _) } => file,
        }
    }

    /// The function.
    pub fn function(&self) -> &String {
        match self {
            InputsFunction::Python(_, function) | InputsFunction::Torch { torch: (_, function) } => function,
        }
    }

    /// Whether it needs PyTorch.
    pub fn needs_torch(&self) -> bool {
        matches!(self, InputsFunction::Torch { .. })
    }
}

impl Problem {
    /// A problem that consists only of these tensors. It has no dims and params, and its inputs are drawn.
    pub fn of(tensors: Vec<Tensor>, reference: Reference) -> Self {
        Problem { dims: BTreeMap::new(), tensors, params: vec![], reference, generate_inputs: None }
    }

    /// The tensors whose values are in a file, each with the file and the name there.
    pub fn stored(&self) -> impl Iterator<Item = (&Tensor, &str, &str)> {
        self.read().filter_map(|tensor| match &tensor.init {
            Init::Safetensors { file, key } => Some((tensor, file.as_str(), key.as_str())),
            _ => None,
        })
    }

    /// Whether inputs depend on files of the package: it states a function that makes them, or files that hold them. What is made of them is not kept between
    /// steps under the name of the problem, because files may change.
    pub fn has_own_inputs(&self) -> bool {
        self.generate_inputs.is_some() || self.stored().next().is_some()
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// The param of that name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }

    /// Tensors a kernel reads.
    pub fn read(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|t| t.role != Role::Output)
    }

    /// Tensors that a kernel writes; all are compared.
    pub fn written(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|t| t.role != Role::Input)
    }
}

/// What a workspace buffer holds before the first launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// A poison pattern: the kernel must not read before it writes.
    Poison,
    /// Zeros before every sequence of launches.
    Zero,
    /// Zeros before the first sequence of launches. Every sequence must leave zeros behind.
    ZeroOnce,
}

/// A workspace buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Buffer {
    /// Its name in the kernel.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// How many elements.
    pub elements: u64,
    /// What it holds before the first launch.
    pub fill: Fill,
}

/// A member of a struct argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum StructField {
    /// A scalar.
    Scalar {
        /// Its type.
        dtype: DType,
        /// Its value.
        value: Scalar,
    },
    /// An address, or a struct in the struct.
    Member(Arg),
}

/// One argument of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arg {
    /// The address of a tensor or workspace.
    Pointer {
        /// Its name.
        buffer: String,
        /// Bytes past its start.
        offset: u64,
    },
    /// A scalar by value.
    Scalar {
        /// Its type.
        dtype: DType,
        /// Its value.
        value: Scalar,
    },
    /// A struct by value, laid out as C lays it out.
    Struct(Vec<StructField>),
    /// The address of a device array that holds the addresses of these buffers.
    Pointers(Vec<String>),
    /// A null pointer.
    Null,
    /// A tensor map by value.
    TensorMap(TensorMap),
}

/// A kernel launch. Fields that few launches state are left out of keys if they are not stated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelLaunch {
    /// The entry as C++ spells it, tunables and types filled in: `rms_norm<__half, 256, 4>`.
    pub entry: String,
    /// Blocks along x, y, z; 0 if `open_grid` gives them.
    pub grid: [u32; 3],
    /// The expressions of the grid, if it depends on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_grid: Option<OpenGrid>,
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u64,
    /// Arguments in order.
    pub args: Vec<Arg>,
    /// Whether all blocks must be resident, for grid synchronisation.
    #[serde(default)]
    pub cooperative: bool,
    /// Blocks of a cluster along x, y, z; none if the launch states no cluster, or clusters of one block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether it may begin before the preceding kernel has ended (programmatic dependent launch).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pdl: bool,
    /// What a launch in Triton states, until it is specialised; none in parameters of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triton: Option<Box<TritonCall>>,
}

impl KernelLaunch {
    /// Blocks of a cluster; 1 without clusters.
    pub fn cluster_blocks(&self) -> u64 {
        self.cluster.iter().flatten().map(|n| u64::from(*n)).product()
    }
}

/// One element of a variant's sequence of launches. Repeats are expanded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// Run a kernel.
    Kernel(KernelLaunch),
    /// Fill a buffer with a byte.
    Memset {
        /// The buffer's name.
        buffer: String,
        /// The byte.
        value: u8,
    },
}

/// A `__constant__` symbol filled from an input before the launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Constant {
    /// The symbol as C++ spells it.
    pub symbol: String,
    /// The input tensor whose bytes fill it.
    pub buffer: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_elements_lie_where_their_strides_say() {
        let tensor = Tensor { strides: vec![8, 2], ..Tensor::dense("x", Role::Input, DType::F16, &[2, 3]) };
        assert_eq!((0..6).map(|i| tensor.offset_of(i)).collect::<Vec<_>>(), [0, 2, 4, 8, 10, 12]);
        assert_eq!((tensor.span(), tensor.bytes(), tensor.is_contiguous()), (13, 26, false));
        assert_eq!(contiguous(&[4, 5, 6]), [30, 6, 1]);
    }

    #[test]
    fn an_empty_tensor_has_no_bytes() {
        assert_eq!(Tensor::dense("x", Role::Input, DType::F32, &[0, 3]).bytes(), 0);
    }
}
