//! Reads the manifest as a whole: its package, workspace, toolchain, dependencies and targets. `decode_operator` and `decode_kernel` read operators and
//! kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{Check, strange};
use super::fields::MANIFEST;
use super::read::{Reader, sub};
use super::unclosed;
use crate::model::Text;
use crate::model::package::{Extension, Inheritable, Manifest, UNNAMED, numbers, sort};
use crate::model::target::{Arch, CudaSpec, Dependency, Target};
use crate::model::validate;
use crate::model::workspace::{PackageTable, WorkspaceTable};
use kforge_foundation::base::{Diagnostic, Severity, SourceFile};

/// Reads a manifest. Reports all errors at once, sorted by place.
///
/// If the file is TOML, returns the manifest as far as it could be read. The manifest must not be used if a diagnostic is an error, except to look for more
/// errors with [`inherit`](crate::model::inherit).
pub fn parse(file: &Arc<SourceFile>) -> (Option<Manifest>, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(&file.text);
    if !errors.is_empty() {
        let mut found: Vec<Diagnostic> = errors.iter().map(|e| syntax(file, e)).collect();
        sort(&mut found);
        if let Some(open) = unclosed::first(file) {
            // The parser misreads everything after this place, so its messages about the rest mean nothing.
            found.retain(|d| d.labels.iter().any(|l| l.span.end <= open.labels[0].span.start));
            found.push(open);
            return (None, found);
        }
        // Other structural errors may disappear when the syntax is fixed. Unknown keys are reported, because their names were read completely.
        let mut check = Check { file, found: vec![] };
        check.table(&MANIFEST, root.get_ref(), "", &(0..0));
        found.extend(check.found.into_iter().filter(|d| d.code == "manifest.unknown-key"));
        sort(&mut found);
        return (None, found);
    }
    let mut check = Check { file, found: vec![] };
    check.table(&MANIFEST, root.get_ref(), "", &(0..0));
    let mut reader = Reader { file, found: check.found };
    let mut manifest = reader.manifest(root.get_ref());
    let mut found = reader.found;
    for operator in &mut manifest.operators {
        let wrong = validate::operator(operator);
        // The check that kernels serve the operator would only repeat these errors for some shape.
        operator.broken |= wrong.iter().any(|d| d.severity == Severity::Error);
        found.extend(wrong);
    }
    sort(&mut found);
    (Some(manifest), found)
}

pub(super) fn syntax(file: &Arc<SourceFile>, error: &toml::de::Error) -> Diagnostic {
    let end = file.text.len();
    let span = error.span().map_or(0..0, |s| s.start.min(end)..s.end.min(end));
    let (what, expected) = error.message().split_once(", expected ").unwrap_or((error.message(), ""));
    let diagnostic = Diagnostic::error("manifest.syntax", what).at(file, span, "");
    if expected.is_empty() { diagnostic } else { diagnostic.expected(expected) }
}

impl Reader<'_> {
    fn manifest(&mut self, root: &DeTable<'_>) -> Manifest {
        let (mut operators, mut extensions) = (vec![], vec![]);
        for (name, value) in self.named(root, "operator") {
            let Some(table) = value.get_ref().as_table() else { continue };
            self.plain_name(&name);
            if !table.is_empty() && table.keys().all(|key| matches!(key.get_ref().as_ref(), "shapes" | "seeds")) {
                // A table with only shapes or seeds extends an operator that is declared elsewhere. Whoever uses the manifest decides whether that is allowed.
                self.found.retain(|d| {
                    !(d.code == "manifest.missing-key" && d.labels.iter().any(|l| l.span == name.place.span))
                });
                let shapes = self.raw_shapes(table);
                let seeds = self.seeds(table);
                extensions.push(Extension { name, shapes, seeds });
            } else {
                operators.push(self.operator(name, table));
            }
        }
        let mut kernels = vec![];
        for (name, value) in self.named(root, "kernel") {
            if let Some(table) = value.get_ref().as_table() {
                self.plain_name(&name);
                kernels.push(self.kernel(name, table));
            }
        }
        Manifest {
            file: Arc::clone(self.file),
            package: sub(root, "package").map(|t| self.package(t, root)),
            workspace: sub(root, "workspace").map(|t| self.workspace(t)),
            cuda: sub(root, "toolchain").and_then(|t| self.inheritable_cuda(t)),
            triton: sub(root, "toolchain").and_then(|t| self.inheritable_triton(t)),
            torch: sub(root, "toolchain").and_then(|t| self.inheritable_torch(t)),
            whole_toolchain: sub(root, "toolchain").is_some_and(|t| t.contains_key("workspace")),
            dependencies: self.dependencies(root),
            targets: self.targets(root),
            agents: self.agents(root),
            baselines: self.baselines(root),
            operators,
            extensions,
            kernels,
            partial: strange(&MANIFEST, root),
        }
    }

    fn package(&mut self, table: &DeTable<'_>, root: &DeTable<'_>) -> PackageTable {
        let span = root.get_key_value("package").map_or(0..0, |(k, _)| k.span());
        let name = self.text(table, "name").unwrap_or(Text { value: UNNAMED.into(), place: self.place(span) });
        self.plain_name(&name);
        let version = self.inheritable_text(table, "version");
        let kforge = self.inheritable_text(table, "kforge");
        if let Some(Inheritable::Value(version)) = &version {
            self.version(version, 3);
        }
        if let Some(Inheritable::Value(kforge)) = &kforge {
            self.version(kforge, 2);
        }
        PackageTable { name, version, license: self.inheritable_text(table, "license"), kforge }
    }

    fn version(&mut self, version: &Text, least: usize) {
        if numbers(&version.value).is_none_or(|n| n.len() < least || n.len() > 3) {
            let form = if least == 3 { "a version such as `1.2.3`" } else { "a version such as `0.1` or `0.1.2`" };
            self.wrong("manifest.version", format!("`{version}` is not a version"), version.place.span.clone(), form);
        }
    }

    fn inheritable_text(&self, table: &DeTable<'_>, key: &str) -> Option<Inheritable<Text>> {
        let value = table.get(key)?;
        match self.inherited(value) {
            Some(inherited) => Some(inherited),
            None => self.string(value).map(Inheritable::Value),
        }
    }

    /// `{ workspace = true }`.
    fn inherited<T>(&self, value: &Spanned<DeValue<'_>>) -> Option<Inheritable<T>> {
        let table = value.get_ref().as_table()?;
        let (key, _) = table.get_key_value("workspace")?;
        Some(Inheritable::Workspace(self.place(key.span())))
    }

    /// Like `inherited`, but allows no key besides `workspace`.
    pub(super) fn only_inherited<T>(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Inheritable<T>> {
        let inherited = self.inherited(value)?;
        for (key, _) in value.get_ref().as_table().map(|t| self.keys(t)).unwrap_or_default() {
            if key.as_str() != "workspace" {
                self.wrong(
                    "manifest.conflict",
                    format!("`{name}` is inherited from the workspace and also states `{key}`"),
                    key.place.span.clone(),
                    "only `workspace = true`, or its own values",
                );
            }
        }
        Some(inherited)
    }

    fn workspace(&mut self, table: &DeTable<'_>) -> WorkspaceTable {
        let mut package = BTreeMap::new();
        for key in ["version", "license", "kforge"] {
            if let Some(text) = sub(table, "package").and_then(|t| self.text(t, key)) {
                match key {
                    "version" => self.version(&text, 3),
                    "kforge" => self.version(&text, 2),
                    _ => {}
                }
                package.insert(key, text);
            }
        }
        let own = |inheritable| if let Inheritable::Value(value) = inheritable { Some(value) } else { None };
        let cuda = sub(table, "toolchain").and_then(|t| self.inheritable_cuda(t)).and_then(own);
        let triton = sub(table, "toolchain").and_then(|t| self.inheritable_triton(t));
        let triton = triton.and_then(|t| if let Inheritable::Value(value) = t { Some(value) } else { None });
        let torch = sub(table, "toolchain").and_then(|t| self.inheritable_torch(t));
        let torch = torch.and_then(|t| if let Inheritable::Value(value) = t { Some(value) } else { None });
        let targets = self.targets(table).into_iter();
        let dependencies = self.dependencies(table).into_iter();
        WorkspaceTable {
            members: self.strings(table, "members"),
            exclude: self.strings(table, "exclude"),
            default_members: self.strings(table, "default-members"),
            package,
            targets: targets
                .filter_map(|(n, t)| if let Inheritable::Value(t) = t { Some((n.value, t)) } else { None })
                .collect(),
            cuda,
            triton,
            torch,
            dependencies: dependencies
                .filter_map(|(n, d)| if let Inheritable::Value(d) = d { Some((n.value, d)) } else { None })
                .collect(),
        }
    }

    fn inheritable_cuda(&mut self, table: &DeTable<'_>) -> Option<Inheritable<CudaSpec>> {
        if let Some((key, _)) = table.get_key_value("workspace") {
            if table.contains_key("cuda") {
                self.wrong(
                    "manifest.conflict",
                    "`toolchain` is inherited from the workspace and also states `cuda`".into(),
                    key.span(),
                    "one of them",
                );
            }
            return Some(Inheritable::Workspace(self.place(key.span())));
        }
        let value = table.get("cuda")?;
        if let Some(inherited) = self.only_inherited("toolchain.cuda", value) {
            return Some(inherited);
        }
        let spec = match value.get_ref().as_table() {
            Some(inner) => match self.text(inner, "path") {
                Some(path) => CudaSpec::Path(path.value),
                None => {
                    self.wrong(
                        "manifest.missing-key",
                        "`toolchain.cuda` lacks `path`".into(),
                        value.span(),
                        "`{ path = \"...\" }`, a version, or `system`",
                    );
                    return None;
                }
            },
            None => {
                let text = self.string(value)?;
                if text.value == "system" {
                    CudaSpec::System
                } else {
                    if numbers(&text.value).is_none_or(|n| n.len() < 2 || n.len() > 3) {
                        let error = text.place.error("manifest.version", format!("`{text}` is not a version of CUDA"));
                        self.found.push(
                            error
                                .expected("a version such as `13.0`, `system`, or `{ path = \"...\" }`")
                                .suggest(&text.value, ["system"]),
                        );
                    }
                    CudaSpec::Version(text.value)
                }
            }
        };
        Some(Inheritable::Value(spec))
    }

    fn dependencies(&mut self, root: &DeTable<'_>) -> Vec<(Text, Inheritable<Dependency>)> {
        let mut out = vec![];
        for (name, value) in self.named(root, "dependencies") {
            self.plain_name(&name);
            let Some(table) = value.get_ref().as_table() else { continue };
            if let Some(inherited) = self.only_inherited(&format!("dependencies.{name}"), value) {
                out.push((name, inherited));
                continue;
            }
            let include = self.text(table, "include").map_or_else(|| ".".into(), |t| t.value);
            match (self.text(table, "pypi"), self.text(table, "path")) {
                (Some(requirement), None) => {
                    self.requirement(&requirement);
                    out.push((name, Inheritable::Value(Dependency::Pypi { requirement: requirement.value, include })));
                }
                (None, Some(path)) => {
                    out.push((name, Inheritable::Value(Dependency::Path { path: path.value, include })))
                }
                (Some(_), Some(path)) => self.wrong(
                    "manifest.conflict",
                    format!("`dependencies.{name}` states both `pypi` and `path`"),
                    path.place.span,
                    "one of them",
                ),
                (None, None) => self.wrong(
                    "manifest.missing-key",
                    format!("`dependencies.{name}` lacks `pypi` or `path`"),
                    name.place.span,
                    "`pypi = \"name==version\"` or `path = \"folder\"`",
                ),
            }
        }
        out
    }

    fn requirement(&mut self, text: &Text) {
        let word =
            |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !text.value.split_once("==").is_some_and(|(name, version)| word(name) && word(version)) {
            self.wrong(
                "manifest.requirement",
                format!("`{text}` does not pin one version"),
                text.place.span.clone(),
                "`name==version`",
            );
        }
    }

    fn targets(&mut self, root: &DeTable<'_>) -> Vec<(Text, Inheritable<Target>)> {
        let mut out = vec![];
        for (name, value) in self.named(root, "targets") {
            self.plain_name(&name);
            let Some(table) = value.get_ref().as_table() else { continue };
            if let Some(inherited) = self.only_inherited(&format!("targets.{name}"), value) {
                out.push((name, inherited));
                continue;
            }
            let stated = self.text(table, "arch");
            let arch = match &stated {
                Some(text) => Arch::parse(&text.value).unwrap_or_else(|unknown| {
                    let error = text.place.error("manifest.arch", format!("`{text}` is not an architecture"));
                    let error = error.expected(unknown.expected());
                    self.found.push(error.suggest(
                        &text.value,
                        ["cpu", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"],
                    ));
                    Arch::Cpu
                }),
                None => Arch::Cpu,
            };
            if name.value == "cpu" && arch != Arch::Cpu {
                let span = stated.map_or(name.place.span.clone(), |s| s.place.span);
                self.wrong(
                    "manifest.arch",
                    format!("target `cpu` cannot be `{arch}`"),
                    span,
                    "no `arch`, or another name for the target",
                );
            } else if name.value != "cpu" && !table.contains_key("arch") {
                self.wrong(
                    "manifest.missing-key",
                    format!("`targets.{name}` lacks `arch`"),
                    name.place.span.clone(),
                    "`arch = \"sm_...\"`; only `cpu` needs none",
                );
            }
            let device = self.text(table, "device").map(|d| d.value);
            let mut asks = |key: &'static str, code: &'static str, what: &str| {
                let stated = table.get(key);
                let asks = stated.and_then(|value| value.get_ref().as_bool()).unwrap_or(false);
                if let Some(stated) = stated.filter(|_| asks && arch == Arch::Cpu) {
                    self.wrong(
                        code,
                        format!("target `{name}` has no {what}: it is emulated"),
                        stated.span(),
                        &format!("`{key}` only where `arch` is that of a GPU"),
                    );
                }
                asks
            };
            let ptx = asks("ptx", "manifest.ptx", "PTX");
            let fatbin = asks("fatbin", "manifest.fatbin", "fatbin");
            out.push((name.clone(), Inheritable::Value(Target { name: name.value, arch, device, ptx, fatbin })));
        }
        out
    }

    /// The number of errors so far. Comparing it later shows whether more were found.
    pub(super) fn errors(&self) -> usize {
        self.found.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Whether the structural check found something in this table.
    pub(super) fn touched(&self, table: &DeTable<'_>) -> bool {
        fn holds(value: &DeValue<'_>, at: usize) -> bool {
            match value {
                DeValue::Table(table) => table_holds(table, at),
                DeValue::Array(array) => array.iter().any(|v| v.span().contains(&at) || holds(v.get_ref(), at)),
                _ => false,
            }
        }
        fn table_holds(table: &DeTable<'_>, at: usize) -> bool {
            table.iter().any(|(k, v)| k.span().contains(&at) || v.span().contains(&at) || holds(v.get_ref(), at))
        }
        self.found.iter().flat_map(|d| &d.labels).any(|l| table_holds(table, l.span.start))
    }
}
