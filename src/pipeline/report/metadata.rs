//! The workspace as a document for other programs. Knows manifests and the lockfile; runs nothing, and queries no toolchain.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::optimize::kind::Kind;
use kforge_project::workspace::lockfile::{LockedDependency, Lockfile, Pin, Seat};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::{
    Arch, Axis, CudaSpec, Dependency, Kernel, Operator, Origin, Package, Pattern, Reference, Role, Scalar, ShapeRole,
    TuneValue,
};

/// What `kforge metadata` prints.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Metadata {
    /// Version of this format.
    pub format_version: u32,
    /// Version of kforge.
    pub kforge: String,
    /// The folder of the root manifest.
    pub workspace_root: String,
    /// The folder to which builds of this workspace write.
    pub target_directory: String,
    /// The names of all packages, in order of their folders.
    pub workspace_members: Vec<String>,
    /// The names of the packages on which commands in the root act.
    pub workspace_default_members: Vec<String>,
    /// The packages.
    pub packages: Vec<PackageEntry>,
    /// The lockfile.
    pub lockfile: LockEntry,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PackageEntry {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its license.
    pub license: Option<String>,
    /// The oldest version of kforge that builds it.
    pub kforge: Option<String>,
    /// Its manifest.
    pub manifest_path: String,
    /// The CUDA toolchain that it requests.
    pub toolchain: ToolchainEntry,
    /// Its header libraries by name.
    pub dependencies: BTreeMap<String, DependencyEntry>,
    /// Its targets by name.
    pub targets: BTreeMap<String, TargetEntry>,
    /// Its operators in declared order.
    pub operators: Vec<OperatorEntry>,
    /// Its kernels in declared order.
    pub kernels: Vec<KernelEntry>,
}

/// A CUDA toolchain.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ToolchainEntry {
    /// Wheels of a release.
    Wheels {
        /// The release: `13.0`.
        release: String,
        /// Whether the lockfile has them.
        locked: bool,
    },
    /// A folder.
    Path {
        /// As the manifest states it.
        path: String,
    },
    /// The installed toolchain.
    System,
}

/// A header library.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DependencyEntry {
    /// A wheel.
    Pypi {
        /// Name and version.
        requirement: String,
        /// The include folder in the wheel.
        include: String,
        /// Whether the lockfile has it.
        locked: bool,
    },
    /// A folder.
    Path {
        /// As the manifest states it.
        path: String,
        /// The include folder in the folder.
        include: String,
    },
}

/// A target.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TargetEntry {
    /// `cpu`, or an architecture: `sm_90a`.
    pub arch: Arch,
    /// The product whose evidence counts.
    pub device: Option<String>,
}

/// An operator.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OperatorEntry {
    /// Its name.
    pub name: String,
    /// Its reference: `builtin:rms_norm`, or a file and function.
    pub reference: String,
    /// The kind of work; none if neither manifest nor contract determines it.
    pub pattern: Option<Pattern>,
    /// How hard it is, from 0 to 5; none if neither manifest nor contract determines it.
    pub level: Option<u8>,
    /// The problem set that it is from, if the manifest states one.
    pub origin: Option<Origin>,
    /// The dims that shapes bind.
    pub dims: Vec<String>,
    /// The possible dtypes of each of its types.
    pub types: BTreeMap<String, Vec<String>>,
    /// Inputs, inouts and outputs in declared order.
    pub tensors: Vec<TensorEntry>,
    /// Its params.
    pub params: Vec<String>,
    /// Its shapes in declared order.
    pub shapes: Vec<ShapeEntry>,
}

/// A tensor of an operator.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// What a kernel may do with it.
    pub role: Role,
    /// Its element type under each choice of types, in the order of the choices, each once.
    pub dtypes: Vec<String>,
    /// The number of its axes.
    pub rank: usize,
}

/// A shape of an operator.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShapeEntry {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: ShapeRole,
    /// The dims.
    pub dims: BTreeMap<String, i64>,
    /// The params that it binds.
    pub params: BTreeMap<String, Scalar>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct KernelEntry {
    /// Its name.
    pub name: String,
    /// The operator that it implements.
    pub operator: String,
    /// The language of its source.
    pub language: String,
    /// Its source, relative to the package.
    pub source: String,
    /// Its targets.
    pub targets: Vec<String>,
    /// The number of its variants, by target and choice of types (`h200`, or `h200 [T=f16]`); none if `where` cannot be evaluated.
    pub variants: BTreeMap<String, Option<usize>>,
    /// Its tunables and their values in declared order.
    pub tunables: Vec<(String, Vec<TuneValue>)>,
    /// Its methods in declared order.
    pub methods: Vec<MethodEntry>,
}

/// A method of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodEntry {
    /// Its id.
    pub id: String,
    /// The resource it relieves.
    pub axis: Axis,
}

/// The state of the lockfile.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LockEntry {
    /// Its path.
    pub path: String,
    /// Whether it has no entries.
    pub empty: bool,
    /// Wheels by the toolchain for which they were resolved: names and versions.
    pub wheels: BTreeMap<String, Vec<String>>,
    /// Header libraries, as `PACKAGE/NAME`: wheel and version, or folder.
    pub dependencies: BTreeMap<String, String>,
    /// Pinned champions, as `PACKAGE/KERNEL/TARGET/CLASS`: the variant's identity.
    pub champions: BTreeMap<String, String>,
}

/// The document of a workspace whose builds write to `target`. Packages that request no CUDA are built with `default_cuda`.
pub fn metadata(workspace: &Workspace, target: &Path, default_cuda: &str) -> Metadata {
    let name = |i: &usize| workspace.members.get(*i).map(|m| m.package.name.clone());
    Metadata {
        format_version: kforge_types::record::FORMAT_VERSION,
        kforge: env!("CARGO_PKG_VERSION").into(),
        workspace_root: workspace.root.display().to_string(),
        target_directory: target.display().to_string(),
        workspace_members: workspace.members.iter().map(|m| m.package.name.clone()).collect(),
        workspace_default_members: workspace.default.iter().filter_map(name).collect(),
        packages: workspace.members.iter().map(|m| package(m, &workspace.lock, default_cuda)).collect(),
        lockfile: lockfile(workspace),
    }
}

fn package(member: &Member, lock: &Lockfile, default_cuda: &str) -> PackageEntry {
    let package = &member.package;
    let wheels = |release: &str| ToolchainEntry::Wheels {
        release: release.into(),
        locked: lock.wheels.contains_key(&format!("cuda {release}")),
    };
    PackageEntry {
        name: package.name.clone(),
        version: package.version.clone(),
        license: package.license.clone(),
        kforge: package.kforge.clone(),
        manifest_path: member.folder.join(kforge_project::workspace::find::MANIFEST).display().to_string(),
        toolchain: match &package.toolchain.cuda {
            None => wheels(default_cuda),
            Some(CudaSpec::Version(release)) => wheels(release),
            Some(CudaSpec::Path(path)) => ToolchainEntry::Path { path: path.clone() },
            Some(CudaSpec::System) => ToolchainEntry::System,
        },
        dependencies: package.dependencies.iter().map(|(n, d)| (n.clone(), dependency(package, n, d, lock))).collect(),
        targets: package
            .targets
            .iter()
            .map(|(n, t)| (n.clone(), TargetEntry { arch: t.arch.clone(), device: t.device.clone() }))
            .collect(),
        operators: package.operators.iter().map(operator).collect(),
        kernels: package.kernels.iter().map(|k| kernel(package, k)).collect(),
    }
}

fn dependency(package: &Package, name: &str, dependency: &Dependency, lock: &Lockfile) -> DependencyEntry {
    match dependency {
        Dependency::Pypi { requirement, include } => DependencyEntry::Pypi {
            requirement: requirement.clone(),
            include: include.clone(),
            locked: lock.dependencies.contains_key(&(package.name.clone(), name.to_string())),
        },
        Dependency::Path { path, include } => DependencyEntry::Path { path: path.clone(), include: include.clone() },
    }
}

fn operator(operator: &Operator) -> OperatorEntry {
    let choices = operator.choices();
    let reference = match &operator.reference {
        Reference::Builtin { name, .. } => format!("builtin:{name}"),
        Reference::Python { file, function }
        | Reference::Cpp { file, function }
        | Reference::Torch { file, function, .. } => format!("{file}::{function}"),
    };
    let tensors = operator.tensors.iter().map(|tensor| {
        let mut dtypes: Vec<String> = Vec::new();
        for dtype in choices.iter().filter_map(|c| tensor.dtype.under(c)) {
            if !dtypes.iter().any(|d| d == dtype.name()) {
                dtypes.push(dtype.name().into());
            }
        }
        TensorEntry { name: tensor.name.value.clone(), role: tensor.role, dtypes, rank: tensor.shape.len() }
    });
    let kind = Kind::of(operator);
    OperatorEntry {
        name: operator.name.clone(),
        reference,
        pattern: kind.pattern,
        level: kind.level,
        origin: operator.origin.clone(),
        dims: operator.dims.iter().map(|d| d.value.clone()).collect(),
        types: operator
            .types
            .iter()
            .map(|(name, dtypes)| (name.value.clone(), dtypes.iter().map(|d| d.name().to_string()).collect()))
            .collect(),
        tensors: tensors.collect(),
        params: operator.params.iter().map(|p| p.name.value.clone()).collect(),
        shapes: operator
            .shapes
            .iter()
            .map(|s| ShapeEntry { name: s.name.clone(), role: s.role, dims: s.dims.clone(), params: s.params.clone() })
            .collect(),
    }
}

fn kernel(package: &Package, kernel: &Kernel) -> KernelEntry {
    let choices = package.operator(&kernel.operator).map(Operator::choices).unwrap_or_default();
    let mut variants = BTreeMap::new();
    for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
        for choice in &choices {
            let place = if choice.label.is_empty() {
                target.name.clone()
            } else {
                format!("{} [{}]", target.name, choice.label)
            };
            variants.insert(place, kernel.variants(target, choice).ok().map(|v| v.len()));
        }
    }
    KernelEntry {
        name: kernel.name.clone(),
        operator: kernel.operator.clone(),
        language: kernel.language.to_string(),
        source: kernel.source.clone(),
        targets: kernel.targets.clone(),
        variants,
        tunables: kernel.tune.iter().map(|(name, values)| (name.value.clone(), values.clone())).collect(),
        methods: kernel.methods.iter().map(|m| MethodEntry { id: m.id.clone(), axis: m.axis }).collect(),
    }
}

fn lockfile(workspace: &Workspace) -> LockEntry {
    let lock = &workspace.lock;
    LockEntry {
        path: workspace.root.join(kforge_project::workspace::lockfile::FILE_NAME).display().to_string(),
        empty: *lock == Lockfile::default(),
        wheels: lock
            .wheels
            .iter()
            .map(|(of, wheels)| (of.clone(), wheels.iter().map(|w| format!("{} {}", w.name, w.version)).collect()))
            .collect(),
        dependencies: lock
            .dependencies
            .iter()
            .map(|((package, name), dependency)| {
                let text = match dependency {
                    LockedDependency::Wheel(w) => format!("{} {}", w.name, w.version),
                    LockedDependency::Path { path, .. } => path.clone(),
                };
                (format!("{package}/{name}"), text)
            })
            .collect(),
        champions: lock
            .champions
            .iter()
            .map(|(Seat { package, kernel, types, target, class }, pin)| {
                let parts = [package, kernel, types, target, class].map(String::as_str);
                let seat = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/");
                let variant = match pin {
                    Pin::Variant(name) | Pin::Identity(name) | Pin::Accepted(name) => name.clone(),
                };
                (seat, variant)
            })
            .collect(),
    }
}
