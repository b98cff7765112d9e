//! The input of the plan: packages as values, what their sources can reach, the toolchains, and the request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use kforge_foundation::base::Digest;
use kforge_types::model::triton::JitParam;
use kforge_types::model::{Kernel, Language, Operator, Package, Trace, TuneValue, TypeChoice};
use kforge_types::record::Devices;
use kforge_types::record::spec::Tree;

/// How far a build goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// Generate, compile, inspect.
    Check,
    /// Also verify and judge.
    Verify,
    /// Also time.
    Bench,
    /// Also select, profile, match and attribute.
    Build,
}

impl Goal {
    /// Every goal, in order.
    pub const ALL: [Goal; 4] = [Goal::Check, Goal::Verify, Goal::Bench, Goal::Build];

    /// Its name, which is that of the command.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Check => "check",
            Goal::Verify => "verify",
            Goal::Bench => "bench",
            Goal::Build => "build",
        }
    }
}

/// The selection on the command line. An empty list selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Kernels by name.
    pub kernels: Vec<String>,
    /// Operators by name.
    pub operators: Vec<String>,
    /// Shapes by name.
    pub shapes: Vec<String>,
    /// Targets by name.
    pub targets: Vec<String>,
}

impl Selection {
    /// Whether a list selects a name.
    pub fn takes(list: &[String], name: &str) -> bool {
        list.is_empty() || list.iter().any(|n| n == name)
    }
}

/// A tool by content, or why it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// The digest of the serialized [`kforge_types::record::params::Toolchain`].
    Known(Digest),
    /// The tool is missing; why, as text.
    Missing(String),
}

impl<E: Display> From<Result<Digest, E>> for Tool {
    fn from(found: Result<Digest, E>) -> Self {
        match found {
            Ok(digest) => Tool::Known(digest),
            Err(why) => Tool::Missing(why.to_string()),
        }
    }
}

/// The tools that run steps, by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchains {
    /// The host's C++ compiler.
    pub cxx: Tool,
    /// The host's C++ compiler with the headers of cub. Missing if no source includes cub, or they cannot be had.
    pub cub: Tool,
    /// NVRTC, and nvcc, which `auto` may use instead.
    pub auto: Tool,
    /// Only NVRTC.
    pub nvrtc: Tool,
    /// Only nvcc.
    pub nvcc: Tool,
    /// Triton, and the Python that runs it.
    pub triton: Tool,
    /// The disassembler.
    pub disassembler: Tool,
    /// Triton, and the Python with numpy that runs its interpreter.
    pub triton_interpreter: Tool,
    /// The disassembler that comes with Triton: it knows what Triton's assembler writes.
    pub triton_disassembler: Tool,
    /// What packs machine code into fatbins.
    pub fatbinary: Tool,
    /// Python with numpy.
    pub python: Tool,
    /// The PyTorch of references.
    pub torch: Tool,
    /// The libraries of CUDA and the Triton beside the system's PyTorch, which baselines use.
    pub torch_cuda: Tool,
    /// What a program that the C++ compiler makes needs at run time: the C library and related libraries, and the processor features by which they choose code.
    pub runtime: Tool,
    /// The processor features by which numeric libraries choose code.
    pub processor: Digest,
    /// The emulator's headers, as a tree.
    pub emulator: Digest,
    /// Substitutes for the standard headers that NVRTC lacks, as a tree.
    pub shim: Digest,
}

/// One package.
#[derive(Debug, Clone)]
pub struct PackageInput<'a> {
    /// The package.
    pub package: &'a Package,
    /// By source file of its kernels: the files that the source can reach.
    pub sources: BTreeMap<String, SourceReach>,
    /// By file of its own references, input generators and checks: that file and the files that it needs.
    pub references: BTreeMap<String, Tree>,
    /// By file that holds values of inputs: its content.
    pub stored: BTreeMap<String, Digest>,
    /// Include folders by their names in the tree.
    pub include: Vec<String>,
    /// Its toolchains.
    pub toolchains: Toolchains,
    /// The recorded attempts at the rounds of its kernels, in order: by kernel, types and target.
    pub tried: BTreeMap<(String, String, String), Vec<Attempt>>,
    /// Champions pinned in the lockfile: (kernel, types, target, class) to identity. A pin without types applies to every choice that has no pin of its own.
    pub pins: BTreeMap<(String, String, String, String), String>,
    /// Kernels, by types and target, that build only their pinned variants: neither search nor rounds continue.
    pub accepted: BTreeSet<(String, String, String)>,
}

/// One recorded attempt at a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The round, from 1.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The methods to try.
    pub methods: Vec<String>,
    /// The written kernel; none if other variants of the declared kernel are tried.
    pub written: Option<Kernel>,
    /// The tunables of each variant to try. An omitted tunable has its first value.
    pub branches: Vec<BTreeMap<String, TuneValue>>,
}

/// The files and macros that a source can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceReach {
    /// Files by name in the tree.
    pub files: BTreeMap<String, Digest>,
    /// Which of the kernel's macro names the source can see.
    pub seen: BTreeSet<String>,
    /// Which of them preprocessor directives test, and in which file.
    pub in_directives: BTreeMap<String, String>,
    /// Whether it includes headers of cub that are no files of the package or of its dependencies.
    pub cub: bool,
    /// The functions of a source in Triton with their parameters.
    pub functions: BTreeMap<String, Vec<JitParam>>,
}

/// The registry's entry for each method by id: its signature, or why machine code does not show it.
pub type KnownMethods = BTreeMap<String, Trace>;

/// The input of the plan.
#[derive(Debug, Clone)]
pub struct PlanInput<'a> {
    /// The packages, in order.
    pub packages: Vec<PackageInput<'a>>,
    /// The selection.
    pub selection: Selection,
    /// How far the build goes.
    pub goal: Goal,
    /// Scalar operations beyond which a shape is not emulated.
    pub emulator_limit: f64,
    /// Scalar operations beyond which expected values are not computed.
    pub oracle_limit: f64,
    /// The time limit of one run of a candidate, in seconds.
    pub time_limit_s: u64,
    /// The devices of this machine, and then those of the workers of a server.
    pub devices: Devices,
    /// The methods of the registry, for what manifests do not declare.
    pub methods: KnownMethods,
    /// Whether a method of the registry has a form in a language.
    pub has_form: fn(&str, Language) -> bool,
    /// Whether each fact about an operator and a kernel holds, by the names that triggers and preconditions of methods use.
    pub facts: fn(&Operator, &TypeChoice, &Kernel) -> BTreeMap<String, bool>,
}
