//! Kernels as declared: one implementation of an operator, what may vary in it and what it launches. Variants are in `variant`, bound launches in `launch`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::agent::Rounds;
use super::bound::{Constant, Fill};
use super::expr::Expr;
use super::generate::Generate;
use super::method::Method;
use super::operator::TypeRef;
use super::search::Search;
use super::tensor_map::MapDecl;
use super::policy::Policy;
use super::torch::{TorchCall, TorchDecl};
use super::triton::{Specialize, TritonDecl};
use super::variant::TuneValue;
use super::{Place, Text};

/// What a kernel is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// CUDA C++.
    #[default]
    Cuda,
    /// Triton.
    Triton,
    /// Python that calls PyTorch.
    Torch,
}

impl Language {
    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Language::Cuda => "CUDA C++",
            Language::Triton => "Triton",
            Language::Torch => "PyTorch",
        }
    }

    /// How names of its source files end.
    pub fn ending(self) -> &'static str {
        match self {
            Language::Cuda => "cu",
            Language::Triton | Language::Torch => "py",
        }
    }

    /// What a comment begins with.
    pub fn comment(self) -> &'static str {
        match self {
            Language::Cuda => "//",
            Language::Triton | Language::Torch => "#",
        }
    }

    /// Whether it is the default one, which documents leave out.
    pub fn is_default(&self) -> bool {
        *self == Language::default()
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::Cuda => "cuda",
            Language::Triton => "triton",
            Language::Torch => "torch",
        })
    }
}

/// The compiler that produces machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// NVRTC, or nvcc if NVRTC says that nvcc is needed.
    #[default]
    Auto,
    /// NVRTC only.
    Nvrtc,
    /// nvcc only.
    Nvcc,
}

/// What Compute Sanitizer checks while a kernel runs on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sanitizer {
    /// Accesses out of bounds or misaligned.
    Memcheck,
    /// Races on shared memory.
    Racecheck,
    /// Reads of global memory that nothing wrote.
    Initcheck,
    /// Invalid use of barriers.
    Synccheck,
}

impl Sanitizer {
    /// All sanitizers, in the order in which they run.
    pub const ALL: [Sanitizer; 4] =
        [Sanitizer::Memcheck, Sanitizer::Racecheck, Sanitizer::Initcheck, Sanitizer::Synccheck];

    /// The name in manifests, which is the name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Memcheck => "memcheck",
            Sanitizer::Racecheck => "racecheck",
            Sanitizer::Initcheck => "initcheck",
            Sanitizer::Synccheck => "synccheck",
        }
    }
}

/// The timing that selects champions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// With flushed caches.
    #[default]
    Cold,
    /// With warm caches.
    Hot,
}

/// Which shapes share a champion.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Per {
    /// All shapes.
    #[default]
    All,
    /// Each shape has its own.
    Shape,
    /// Shapes with the same value of an expression over dims.
    Value(Expr),
}

/// How many classes of shapes a kernel has on a target at most, unless the manifest says otherwise.
pub const MOST_CLASSES: u32 = 4;

/// How champions are selected.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Which shapes share a champion.
    pub per: Per,
    /// The timing that decides.
    pub metric: Metric,
    /// The most classes that there may be once classes have split at shapes at which another variant is faster; with one, none splits.
    pub classes: u32,
}

impl Default for Select {
    fn default() -> Self {
        Select { per: Per::All, metric: Metric::Cold, classes: MOST_CLASSES }
    }
}

/// The value of a declared macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefineValue {
    /// A number or truth value.
    Plain(TuneValue),
    /// A text in which tunables and types are replaced.
    Text(String),
}

/// A workspace buffer, before dims become numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferDecl {
    /// Its name.
    pub name: Text,
    /// Its element type.
    pub dtype: TypeRef,
    /// Extents.
    pub shape: Vec<Expr>,
    /// What it holds before the first launch.
    pub fill: Fill,
}

/// An argument, before names become values.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgDecl {
    /// A tensor, workspace or param by name. Any other expression is a scalar: `bool` for a truth value, otherwise i32.
    Plain(Expr),
    /// A scalar of a stated dtype.
    Value {
        /// Its value.
        value: Expr,
        /// Its type.
        dtype: TypeRef,
    },
    /// The address of a tensor or workspace.
    Ptr {
        /// Its name.
        buffer: Text,
        /// Elements past its start.
        offset: Option<Expr>,
    },
    /// A struct by value: its members in order, of any form but that of a tensor map.
    Struct(Vec<ArgDecl>),
    /// A device array of addresses.
    Pointers(Vec<Text>),
    /// A null pointer.
    Null,
    /// A tensor map by value.
    TensorMap(MapDecl),
}

/// What a launch asks of the device besides its grid and blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes {
    /// Whether all blocks must be resident, for grid synchronisation.
    pub cooperative: bool,
    /// Blocks of a cluster along x, y, z; empty without clusters.
    pub cluster: Vec<Expr>,
    /// Where it says that it may begin before the preceding kernel has ended, if it says so.
    pub pdl: Option<Place>,
}

/// What a launch does.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a kernel declares a handful of launches, and most launch an entry")]
pub enum LaunchAction {
    /// Runs an entry.
    Kernel {
        /// A function, or an instance of a template with tunables and types.
        entry: Text,
        /// Blocks along x, y, z.
        grid: Vec<Expr>,
        /// Threads along x, y, z.
        block: Vec<Expr>,
        /// Bytes of dynamic shared memory.
        shared: Option<Expr>,
        /// Arguments in order.
        args: Vec<ArgDecl>,
        /// Further requests to the device.
        attributes: Attributes,
        /// What a launch in Triton states; none in other languages.
        triton: Option<Box<TritonDecl>>,
    },
    /// Fills a buffer with a byte.
    Memset {
        /// Its name.
        buffer: Text,
        /// The byte.
        value: u8,
    },
}

/// One `[[launch]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchDecl {
    /// Where it is declared.
    pub place: Place,
    /// The launch is left out if this is false.
    pub when: Option<Expr>,
    /// How often it runs in a row. In its expressions, the name `iteration` counts from 0.
    pub repeat: Option<Expr>,
    /// Where its arguments are declared; none if it declares none.
    pub args_place: Option<Place>,
    /// Where the threads of a block are declared; none if they are not.
    pub block_place: Option<Place>,
    /// Where each argument is declared, in order.
    pub arg_places: Vec<Place>,
    /// What it does.
    pub action: LaunchAction,
}

/// `host`: a host function of the kernel does the launches, in place of `[[launch]]`. The file with this function is the source of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDecl {
    /// The `extern "C"` function.
    pub function: String,
    /// Where it is declared.
    pub place: Place,
}

/// What a kernel in PyTorch states in place of launches: a module or function of its source is called.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchKernel {
    /// The class of a module, a module, or a function, in the source.
    pub function: String,
    /// How it is called, if the kernel says so; otherwise as the reference in PyTorch is, or by names alone.
    pub call: Option<(TorchCall, TorchDecl)>,
    /// What it may call, if the kernel states a policy.
    pub policy: Option<Policy>,
}

/// The name that counts the iterations of `repeat`.
pub const ITERATION: &str = "iteration";

/// One implementation of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub place: Place,
    /// The operator it implements.
    pub operator: String,
    /// Where it says so.
    pub operator_place: Place,
    /// What it is written in.
    pub language: Language,
    /// Which arguments its compilations depend on, if it is written in Triton.
    pub specialize: Specialize,
    /// What is called, if it is written in PyTorch.
    pub torch: Option<TorchKernel>,
    /// Its source file, relative to the package.
    pub source: String,
    /// Where it says so, for errors about the file.
    pub source_place: Place,
    /// What generates its source, if the source is not a file of the package.
    pub generate: Option<Generate>,
    /// What it asks of agents over its rounds; none if it has no rounds.
    pub rounds: Option<Rounds>,
    /// Its targets in declared order. If it names none, all targets of the package.
    pub targets: Vec<String>,
    /// Where it names them, in the same order; empty if it names none.
    pub(crate) target_places: Vec<Place>,
    /// Which shapes a variant serves.
    pub requires: Vec<Expr>,
    /// Tunables and their values in declared order.
    pub tune: Vec<(Text, Vec<TuneValue>)>,
    /// `where`: which variants exist.
    pub conditions: Vec<Expr>,
    /// How the space of its tunables is searched.
    pub search: Search,
    /// Values of tunables that a search visits first, in order. A variant that has all values of an entry is meant.
    pub hints: Vec<BTreeMap<String, TuneValue>>,
    /// Its launches in order; empty if `host` launches, and in PyTorch.
    pub launches: Vec<LaunchDecl>,
    /// The function that launches instead, if the kernel has its own launcher.
    pub host: Option<HostDecl>,
    /// Its methods in declared order.
    pub methods: Vec<Method>,
    /// How champions are selected.
    pub select: Select,
    /// The sanitizers to run on a device, in order, each once.
    pub sanitize: Vec<Sanitizer>,
    /// Which compiler makes machine code.
    pub compiler: Compiler,
    /// The language standard: `c++20`.
    pub std: Option<String>,
    /// Include folders, relative to the package.
    pub include: Vec<String>,
    /// Flags, before tunables are replaced.
    pub(crate) flags: Vec<String>,
    /// Declared macros.
    pub(crate) defines: Vec<(String, DefineValue)>,
    /// Workspace buffers.
    pub workspace: Vec<BufferDecl>,
    /// `__constant__` symbols and the inputs that fill them.
    pub(crate) constants: Vec<(Text, Text)>,
    /// Names that refer to types of the operator.
    pub(crate) type_uses: Vec<Text>,
    /// Whether a typo may hide some of its names. Unknown names are then not reported.
    pub partial: bool,
    /// Whether an error in it has already been reported. Checks that depend on it would only repeat the error.
    pub broken: bool,
}

impl Kernel {
    /// The `__constant__` symbols and the inputs that fill them.
    pub fn constants(&self) -> Vec<Constant> {
        self.constants
            .iter()
            .map(|(symbol, buffer)| Constant { symbol: symbol.value.clone(), buffer: buffer.value.clone() })
            .collect()
    }
}
