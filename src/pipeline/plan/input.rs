//! The input of the plan: packages as values, what their sources can reach, the toolchains, and the request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use kforge_foundation::base::Digest;
use kforge_types::model::{Kernel, Operator, Package, Trace, TuneValue, TypeChoice};
use kforge_types::record::Devices;
use kforge_types::record::spec::Tree;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// Generate, compile, inspect.
    Check,
    /// And verify and judge.
    Verify,
    /// And time.
    Bench,
    /// And select, profile, match and attribute.
    Build,
}

/// What was selected on the command line; empty lists select everything.
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

/// A tool by content, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// The digest of the serialised [`kforge_types::record::params::Toolchain`].
    Known(Digest),
    /// There is none; why, for people.
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

/// What runs steps, by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchains {
    /// The host's C++ compiler.
    pub cxx: Tool,
    /// NVRTC, and nvcc, to which `auto` may turn.
    pub auto: Tool,
    /// Only NVRTC.
    pub nvrtc: Tool,
    /// Only nvcc.
    pub nvcc: Tool,
    /// The disassembler.
    pub disassembler: Tool,
    /// Python with numpy.
    pub python: Tool,
    /// What a program that the C++ compiler makes runs with: the C library and its kin, and what of the processor they choose by.
    pub runtime: Tool,
    /// What of the processor numeric libraries choose by.
    pub processor: Digest,
    /// The emulator's headers, a tree.
    pub emulator: Digest,
    /// Stand-ins for the standard headers that NVRTC lacks, a tree.
    pub shim: Digest,
}

/// One package.
#[derive(Debug, Clone)]
pub struct PackageInput<'a> {
    /// The package.
    pub package: &'a Package,
    /// By source file of its kernels: what the source can reach.
    pub sources: BTreeMap<String, SourceReach>,
    /// By file of its own references, generators of inputs and checks: that file and its kin.
    pub references: BTreeMap<String, Tree>,
    /// Include folders by their names in the tree.
    pub include: Vec<String>,
    /// What its toolchain is.
    pub toolchains: Toolchains,
    /// What was answered in the rounds of its kernels, in order: by kernel, types and target.
    pub tried: BTreeMap<(String, String, String), Vec<Attempt>>,
    /// Champions pinned in the lockfile: (kernel, types, target, class) to identity. A pin without types holds for every choice that has none of its own.
    pub pins: BTreeMap<(String, String, String, String), String>,
    /// Kernels whose pins, by types and target, are the only variants that are built: neither search nor rounds go on.
    pub accepted: BTreeSet<(String, String, String)>,
}

/// One recorded attempt at a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The round, from 1.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The methods that were to be tried.
    pub methods: Vec<String>,
    /// The kernel that was written; none if other variants of the declared one are tried.
    pub written: Option<Kernel>,
    /// The tunables of each variant to try; those it does not name have their first value.
    pub branches: Vec<BTreeMap<String, TuneValue>>,
}

/// What one source can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceReach {
    /// Files by name in the tree.
    pub files: BTreeMap<String, Digest>,
    /// Which of the kernel's macro names the source can see.
    pub seen: BTreeSet<String>,
    /// Which of them directives ask, and in which file.
    pub in_directives: BTreeMap<String, String>,
}

/// What the registry says of methods by id: their signature, or why machine code does not show them.
pub type KnownMethods = BTreeMap<String, Trace>;

/// Everything.
#[derive(Debug, Clone)]
pub struct PlanInput<'a> {
    /// The packages, in order.
    pub packages: Vec<PackageInput<'a>>,
    /// What was selected.
    pub selection: Selection,
    /// How far to go.
    pub goal: Goal,
    /// Scalar operations beyond which a shape is not emulated.
    pub emulator_limit: f64,
    /// Scalar operations beyond which expected values are not computed.
    pub oracle_limit: f64,
    /// Seconds after which one run of a candidate is ended.
    pub time_limit_s: u64,
    /// The devices of this machine.
    pub devices: Devices,
    /// The methods that are known beside what manifests say of them.
    pub methods: KnownMethods,
    /// What holds of an operator and a kernel and what does not, by the names that triggers and preconditions of methods use.
    pub facts: fn(&Operator, &TypeChoice, &Kernel) -> BTreeMap<String, bool>,
}
