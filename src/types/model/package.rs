//! A manifest as parsed, and the package that it becomes when the values inherited from its workspace are filled in. Knows inheritance; does not validate
//! kernels (`validate` does).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agent::Agent;
use super::baseline::Baseline;
use super::expr::list;
use super::kernel::Kernel;
use super::manifest::RawShape;
use super::operator::Operator;
use super::target::{CudaSpec, Dependency, Target, ToolchainSpec, TorchSpec};
use super::validate;
use super::workspace::{PackageTable, WorkspaceTable};
use super::{Place, Text};
use kforge_foundation::base::{Diagnostic, SourceFile};

/// The placeholder name for a package without a name. A missing name is an error.
pub const UNNAMED: &str = "unnamed";

/// A value, or a reference to the workspace's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Inheritable<T> {
    /// This value.
    Value(T),
    /// `x.workspace = true`, and its place.
    Workspace(Place),
}

/// One `kernel.toml` as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The file.
    pub file: Arc<SourceFile>,
    /// `[package]`.
    pub package: Option<PackageTable>,
    /// `[workspace]`.
    pub workspace: Option<WorkspaceTable>,
    /// `toolchain.cuda`.
    pub cuda: Option<Inheritable<CudaSpec>>,
    /// `toolchain.triton`.
    pub triton: Option<Inheritable<Text>>,
    /// `toolchain.torch`.
    pub torch: Option<Inheritable<TorchSpec>>,
    /// Whether it inherits the whole of `[toolchain]`.
    pub(crate) whole_toolchain: bool,
    /// `[dependencies]` in declared order.
    pub dependencies: Vec<(Text, Inheritable<Dependency>)>,
    /// `[targets]` in declared order.
    pub targets: Vec<(Text, Inheritable<Target>)>,
    /// The agents that kernels may name, in declared order.
    pub agents: Vec<Agent>,
    /// Baselines in declared order.
    pub baselines: Vec<Baseline>,
    /// Operators in declared order.
    pub operators: Vec<Operator>,
    /// Shapes or seeds for operators that are declared elsewhere. For overlays.
    pub(crate) extensions: Vec<Extension>,
    /// Kernels in declared order.
    pub kernels: Vec<Kernel>,
    /// Whether it has unknown keys, which may be misspelt required keys.
    pub(crate) partial: bool,
}

/// What an overlay adds to an operator that is declared elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extension {
    pub(crate) name: Text,
    pub(crate) shapes: Vec<RawShape>,
    pub(crate) seeds: Vec<u64>,
}

/// A package, including everything that it inherits from its workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its license.
    pub license: Option<String>,
    /// The oldest kforge that can build it.
    pub kforge: Option<String>,
    /// The compilers it asks for.
    pub toolchain: ToolchainSpec,
    /// Header libraries.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The names of what came from the workspace's root and may contain paths relative to the root: dependencies by name, and `toolchain.cuda`.
    pub from_root: BTreeSet<String>,
    /// Its targets; only `cpu` if it declares none.
    pub targets: BTreeMap<String, Target>,
    /// The agents that its kernels may name, in declared order.
    pub agents: Vec<Agent>,
    /// What its champions are compared with, in declared order.
    pub baselines: Vec<Baseline>,
    /// Its operators in declared order.
    pub operators: Vec<Operator>,
    /// Its kernels in declared order.
    pub kernels: Vec<Kernel>,
    /// Its manifest.
    pub file: Arc<SourceFile>,
}

impl Package {
    /// The operator of that name.
    pub fn operator(&self, name: &str) -> Option<&Operator> {
        self.operators.iter().find(|o| o.name == name)
    }

    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|a| a.name == name)
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

/// Looks values up in the workspace and collects errors about missing ones.
struct Root<'a> {
    table: Option<&'a WorkspaceTable>,
    found: Vec<Diagnostic>,
}

impl Root<'_> {
    /// The value itself or the workspace's value. The flag says whether it came from the workspace.
    fn resolve<T: Clone>(
        &mut self,
        value: &Inheritable<T>,
        what: &str,
        find: impl Fn(&WorkspaceTable) -> Option<T>,
    ) -> Option<(T, bool)> {
        let place = match value {
            Inheritable::Value(value) => return Some((value.clone(), false)),
            Inheritable::Workspace(place) => place,
        };
        let error = match self.table {
            None => place
                .error(
                    "manifest.no-workspace",
                    format!("`{what}` is inherited from the workspace, but there is no workspace"),
                )
                .expected("a `[workspace]` in a manifest above")
                .hint(format!("give `{what}` its own value")),
            Some(table) => match find(table) {
                Some(found) => return Some((found, true)),
                None => place
                    .error("manifest.not-inherited", format!("the workspace has no `{what}` to inherit"))
                    .expected(format!("`workspace.{what}` in the root manifest"))
                    .hint(format!("add it there, or give `{what}` its own value")),
            },
        };
        self.found.push(error);
        None
    }

    fn text(&mut self, value: Option<&Inheritable<Text>>, key: &'static str) -> Option<Text> {
        self.resolve(value?, &format!("package.{key}"), |w| w.package.get(key).cloned()).map(|r| r.0)
    }
}

/// The package of a member manifest. Resolves inheritance and checks everything that involves several tables. `root` is the workspace's root manifest, which
/// may be the member itself. Returns a package if there are no errors, or if it can be built despite the errors.
pub fn inherit(member: &Manifest, root: Option<&Manifest>) -> (Option<Package>, Vec<Diagnostic>) {
    let own = member.workspace.as_ref();
    let mut root = Root { table: root.and_then(|r| r.workspace.as_ref()).or(own), found: vec![] };
    let Some(table) = &member.package else {
        let start = Place::new(&member.file, 0..0);
        let error = start
            .error("manifest.no-package", "this manifest has no `[package]`")
            .expected("a `[package]` with a `name`");
        return (None, vec![error]);
    };
    let version = root.text(table.version.as_ref(), "version");
    let license = root.text(table.license.as_ref(), "license");
    let kforge = root.text(table.kforge.as_ref(), "kforge");
    if let Some(oldest) = &kforge
        && newer(&oldest.value, env!("CARGO_PKG_VERSION"))
    {
        let error = oldest.place.error("manifest.kforge", format!("`{}` needs kforge {oldest} or later", table.name));
        root.found.push(
            error
                .expected(format!("at most {}, the version of this kforge", env!("CARGO_PKG_VERSION")))
                .hint("update kforge"),
        );
    }
    let mut from_root = BTreeSet::new();
    let of_root = root.table.filter(|_| member.whole_toolchain);
    // A workspace may state some of them only.
    let without_cuda = of_root.is_some_and(|w| w.cuda.is_none() && (w.triton.is_some() || w.torch.is_some()));
    let cuda = member.cuda.as_ref().filter(|_| !without_cuda);
    let cuda = cuda.and_then(|c| root.resolve(c, "toolchain.cuda", |w| w.cuda.clone()));
    let triton = match &member.triton {
        Some(own) => root.resolve(own, "toolchain.triton", |w| w.triton.clone()).map(|t| t.0),
        None => of_root.and_then(|w| w.triton.clone()),
    };
    let torch = match &member.torch {
        Some(own) => root.resolve(own, "toolchain.torch", |w| w.torch.clone()).map(|t| t.0),
        None => of_root.and_then(|w| w.torch.clone()),
    };
    if cuda.as_ref().is_some_and(|c| c.1) {
        from_root.insert("toolchain.cuda".into());
    }
    let mut dependencies = BTreeMap::new();
    for (name, value) in &member.dependencies {
        let found = root.resolve(value, &format!("dependencies.{name}"), |w| w.dependencies.get(&name.value).cloned());
        if let Some((dependency, inherited)) = found {
            if inherited {
                from_root.insert(name.value.clone());
            }
            dependencies.insert(name.value.clone(), dependency);
        }
    }
    let mut targets = BTreeMap::new();
    for (name, value) in &member.targets {
        let found = root.resolve(value, &format!("targets.{name}"), |w| w.targets.get(&name.value).cloned());
        // A target that was not found has been reported. Its name stays known.
        let target = found.map_or_else(|| Target::of_cpu(name.value.clone()), |f| f.0);
        targets.insert(name.value.clone(), target);
    }
    if targets.is_empty() {
        targets.insert("cpu".into(), Target::of_cpu("cpu".into()));
    }
    let mut package = Package {
        name: table.name.value.clone(),
        version: version.map_or_else(|| "0.0.0".into(), |v| v.value),
        license: license.map(|l| l.value),
        kforge: kforge.map(|k| k.value),
        toolchain: ToolchainSpec { cuda: cuda.map(|c| c.0), triton: triton.map(|t| t.value), torch },
        dependencies,
        from_root,
        targets,
        agents: member.agents.clone(),
        baselines: member.baselines.clone(),
        operators: member.operators.clone(),
        kernels: member.kernels.clone(),
        file: Arc::clone(&member.file),
    };
    for kernel in package.kernels.iter_mut().filter(|k| k.targets.is_empty()) {
        kernel.targets = package.targets.keys().cloned().collect();
    }
    let mut found = root.found;
    for operator in member.operators.iter().filter(|operator| !operator.seeds.is_empty()) {
        let message = format!("operator `{}` states seeds in a manifest that everybody can read", operator.name);
        let error = operator.place.error("manifest.overlay", message);
        found.push(
            error
                .expected("`seeds` in an overlay only")
                .hint("without `seeds`, kforge derives the seeds from the operator"),
        );
    }
    for Extension { name, .. } in member.extensions.iter().filter(|_| !member.partial) {
        let error = name.place.error("manifest.missing-key", format!("`operator.{name}` lacks `reference`"));
        found.push(
            error
                .expected("`reference`: where expected values come from")
                .hint("only an overlay may add shapes or seeds without declaring the operator"),
        );
    }
    let elsewhere: Vec<&str> = member.extensions.iter().map(|e| e.name.as_str()).collect();
    found.extend(validate::package(&package, member.partial, &elsewhere));
    sort(&mut found);
    (Some(package), found)
}

/// Adds the contents of an overlay: operators, and shapes and seeds of existing operators. Entries with errors are left out.
pub fn overlay(package: &mut Package, overlay: &Manifest) -> Vec<Diagnostic> {
    let mut found = vec![];
    let start = Place::new(&overlay.file, 0..0);
    if overlay.package.is_some()
        || overlay.workspace.is_some()
        || !overlay.kernels.is_empty()
        || !overlay.targets.is_empty()
        || !overlay.dependencies.is_empty()
        || overlay.cuda.is_some()
        || !overlay.agents.is_empty()
        || !overlay.baselines.is_empty()
    {
        let place = overlay.kernels.first().map_or(&start, |k| &k.place);
        found.push(
            place
                .error("manifest.overlay", "an overlay holds more than operators, shapes and seeds")
                .expected("`[operator.*]` tables only"),
        );
    }
    for operator in &overlay.operators {
        match package.operator(&operator.name) {
            Some(there) => found.push(
                operator
                    .place
                    .error("manifest.duplicate-name", format!("operator `{}` already exists", operator.name))
                    .see(&there.place.file, there.place.span.clone(), "declared here")
                    .expected("an operator of another name, or only its `shapes`"),
            ),
            None => package.operators.push(operator.clone()),
        }
    }
    for Extension { name, shapes, seeds } in &overlay.extensions {
        let names: Vec<String> = package.operators.iter().map(|o| o.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Some(operator) = package.operators.iter_mut().find(|o| o.name == name.value) else {
            let error = name.place.error("manifest.unknown-operator", format!("unknown operator `{name}`"));
            found.push(error.expected(format!("one of {}", list(&names))).suggest(&name.value, names.iter().copied()));
            continue;
        };
        operator.seeds.extend(seeds);
        for raw in shapes {
            if let Some(there) = operator.shape(&raw.name.value) {
                let error =
                    raw.name.place.error("manifest.duplicate-name", format!("shape `{}` already exists", raw.name));
                found.push(
                    error
                        .see(&there.place.file, there.place.span.clone(), "declared here")
                        .expected("a shape of another name"),
                );
                continue;
            }
            let (shape, wrong) = raw.resolve(operator);
            if wrong.is_empty() {
                operator.shapes.push(shape);
            }
            found.extend(wrong);
        }
    }
    if found.is_empty() {
        found.extend(validate::package(package, false, &[]));
    }
    sort(&mut found);
    found
}

/// Sorts by place and removes duplicates.
pub(crate) fn sort(found: &mut Vec<Diagnostic>) {
    let key = |d: &Diagnostic| {
        let place = d.labels.iter().find(|l| l.primary).map(|l| (l.file.name.clone(), l.span.start, l.span.end));
        (place, d.code, d.message.clone())
    };
    found.sort_by_cached_key(key);
    found.dedup_by(|a, b| key(a) == key(b));
}

/// The numbers of a version such as `0.1` or `1.2.3`; none if it is not a version.
pub(crate) fn numbers(version: &str) -> Option<Vec<u64>> {
    let core = version.split(['-', '+']).next()?;
    core.split('.').map(|part| part.parse().ok()).collect()
}

fn newer(version: &str, than: &str) -> bool {
    match (numbers(version), numbers(than)) {
        (Some(a), Some(b)) => a > b,
        _ => false,
    }
}
