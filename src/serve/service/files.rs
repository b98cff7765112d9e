//! The files of a workspace in which a candidate is evaluated. Decides which of a client's texts may become files; writes them. Runs nothing.
//!
//! | decision | because |
//! |---|---|
//! | paths of files are relative, without `..`, hidden names or links | whatever a client sends lies in the workspace |
//! | no text of a manifest begins with `/` or `~`, or has a part `..` | a manifest can name folders, and a compiler's error quotes what it read there |
//! | no bundles of evidence | they would answer in place of an evaluation |
//! | the server's `kforge.lock`, unless the package has one | resolving toolchains needs the network and seconds |
//! | each workspace has its own table `workspace` | otherwise a workspace above the server's folder could have it as a member |

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

use super::invalid::{FileFault, Invalid, MOST_FILES};
use crate::api::{
    Candidate, EvaluationRequest, Language, Measure, OperatorCandidate, PackageCandidate, Table, TableValue,
};
use kforge_project::workspace::select::SelectionArgs;

/// The longest path of a file.
const LONGEST_PATH: usize = 200;

/// The name of the kernel of a candidate of an operator, and of its package.
pub(super) const CANDIDATE: &str = "candidate";

/// The name of its operator.
pub(super) const OPERATOR: &str = "operator";

/// The manifest of a workspace.
pub(super) const MANIFEST: &str = "kernel.toml";

/// The lockfile of a workspace.
pub(super) const LOCKFILE: &str = "kforge.lock";

/// Keys of a `kernel` table that the request states elsewhere, or that make another kernel than that of the source.
const NOT_IN_KERNEL: [&str; 7] = ["operator", "language", "source", "launch", "targets", "generate", "host"];

/// Keys of `tune` that are no tunables.
const NO_TUNABLES: [&str; 3] = ["where", "hints", "strategy"];

/// The files of a workspace, and what is selected in it.
pub(super) struct Files {
    manifest: String,
    others: BTreeMap<String, String>,
    pub(super) words: SelectionArgs,
}

impl Files {
    /// The files of a request.
    ///
    /// # Errors
    /// The request cannot be evaluated.
    pub(super) fn of(request: &EvaluationRequest) -> Result<Files, Invalid> {
        let files = match &request.candidate {
            Candidate::Operator(candidate) => of_operator(candidate, request)?,
            Candidate::Package(package) => of_package(package, request)?,
        };
        check_paths(&files.others)?;
        for (_, text) in files.manifests() {
            check_texts(&toml::from_str(text).map_err(Invalid::Manifest)?)?;
        }
        Ok(files)
    }

    /// The greatest number of steps of one kind that a plan could have: variants times shapes, for each target.
    pub(super) fn steps(&self) -> usize {
        let tables = self.manifests().filter_map(|(_, text)| toml::from_str(text).ok());
        let tables: Vec<toml::Table> = tables.collect();
        // A member's kernel can name an operator of another member, and a target of the root.
        let all = |key: &'static str| tables.iter().filter_map(move |table| table.get(key)?.as_table());
        let each = |key: &'static str| all(key).flat_map(toml::Table::values).filter_map(toml::Value::as_table);
        let shapes = each("operator").map(|operator| {
            let shapes = operator.get("shapes").and_then(toml::Value::as_table).map_or(1, toml::Table::len);
            shapes.max(1).saturating_mul(choices(operator.get("types")))
        });
        let shapes = shapes.max().unwrap_or(1);
        let variants = each("kernel").map(|kernel| choices(kernel.get("tune"))).fold(0, usize::saturating_add);
        let targets = all("targets").map(toml::Table::len).fold(0, usize::saturating_add);
        variants.saturating_mul(shapes).saturating_mul(targets.max(1))
    }

    /// Writes the workspace into a folder that does not exist. `lock` is the lockfile if the candidate has none.
    pub(super) fn write(&self, folder: &Path, lock: Option<&[u8]>) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(MANIFEST), &self.manifest)?;
        if let Some(lock) = lock.filter(|_| !self.has_lockfile()) {
            std::fs::write(folder.join(LOCKFILE), lock)?;
        }
        for (path, text) in &self.others {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, text)?;
        }
        Ok(())
    }

    /// Writes the manifests again without their holdout shapes. Returns whether there was one.
    pub(super) fn write_without_holdout(&self, folder: &Path) -> io::Result<bool> {
        let mut found = false;
        for (path, text) in self.manifests() {
            if let Some(text) = without_holdout(text) {
                found = true;
                std::fs::write(folder.join(path), text)?;
            }
        }
        Ok(found)
    }

    /// Whether a manifest has a holdout shape.
    pub(super) fn has_holdout(&self) -> bool {
        self.manifests().any(|(_, text)| without_holdout(text).is_some())
    }

    /// The manifest of the workspace.
    #[cfg(test)]
    pub(super) fn manifest(&self) -> &str {
        &self.manifest
    }

    /// The manifests of the workspace and its members.
    fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_manifest = |path: &str| path.rsplit('/').next() == Some(MANIFEST);
        let members = self.others.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        [(MANIFEST, self.manifest.as_str())].into_iter().chain(members.filter(move |(path, _)| is_manifest(path)))
    }

    /// Whether the candidate has a lockfile of its own.
    pub(super) fn has_lockfile(&self) -> bool {
        self.others.contains_key(LOCKFILE)
    }
}

fn of_operator(candidate: &OperatorCandidate, request: &EvaluationRequest) -> Result<Files, Invalid> {
    let source = match candidate.language {
        Language::Cuda => "candidate.cu",
        Language::Triton | Language::Torch => "candidate.py",
    };
    if let Some(key) = candidate.kernel.keys().find(|key| NOT_IN_KERNEL.contains(key)) {
        return Err(Invalid::KernelKey(key.into()));
    }
    let mut kernel = candidate.kernel.clone();
    kernel.set("operator", OPERATOR);
    let language = match candidate.language {
        Language::Cuda => "cuda",
        Language::Triton => "triton",
        Language::Torch => "torch",
    };
    kernel.set("language", language);
    if candidate.language == Language::Torch {
        if !candidate.launch.is_empty() {
            return Err(Invalid::LaunchInTorch);
        }
        let entry = candidate.entry.as_deref().ok_or(Invalid::NoEntry)?;
        kernel.set("source", format!("{source}::{entry}"));
    } else {
        kernel.set("source", source);
        let launch = |launch: &Table| {
            let mut launch = launch.clone();
            if let Some(entry) = &candidate.entry
                && launch.get("memset").is_none()
                && launch.get("entry").is_none()
            {
                launch.set("entry", entry.as_str());
            }
            TableValue::Table(launch)
        };
        kernel.set("launch", candidate.launch.iter().map(launch).collect::<Vec<_>>());
    }
    let arch = request.target.as_deref().unwrap_or("cpu");
    let mut target = Table::default();
    if arch != "cpu" {
        target.set("arch", arch);
        if let Some(device) = &request.device {
            target.set("device", device.as_str());
        }
    } else if request.device.is_some() {
        return Err(Invalid::DeviceOfCpu);
    }
    let one = |name: &str, value: TableValue| {
        let mut table = Table::default();
        table.set(name, value);
        table
    };
    let mut all = Table::default();
    all.set("package", one("name", CANDIDATE.into()));
    all.set("workspace", Table::default());
    all.set("targets", one(if arch == "cpu" { "cpu" } else { "device" }, target.into()));
    if !candidate.toolchain.is_empty() {
        all.set("toolchain", candidate.toolchain.clone());
    }
    all.set("operator", one(OPERATOR, candidate.operator.clone().into()));
    all.set("kernel", one(CANDIDATE, kernel.into()));
    let mut others = candidate.files.clone();
    if others.insert(source.into(), candidate.source.clone()).is_some() {
        return Err(Invalid::SourceTwice(source));
    }
    Ok(Files { manifest: all.to_toml(), others, words: SelectionArgs::default() })
}

fn of_package(package: &PackageCandidate, request: &EvaluationRequest) -> Result<Files, Invalid> {
    let all: toml::Table = toml::from_str(&package.manifest).map_err(Invalid::Manifest)?;
    if request.device.is_some() {
        return Err(Invalid::DeviceOfPackage);
    }
    let words = SelectionArgs {
        workspace: true,
        kernels: package.kernels.clone(),
        targets: request.target.iter().cloned().collect(),
        ..SelectionArgs::default()
    };
    let mut manifest = package.manifest.clone();
    if !all.contains_key("workspace") {
        // At its end, so that the lines of diagnostics are those of the client's text.
        manifest.push_str("\n[workspace]\n");
    }
    Ok(Files { manifest, others: package.files.clone(), words })
}

/// How many choices lists of a table make together. Keys that are no choices, such as conditions, have lists as well, which makes it an upper bound.
fn choices(of: Option<&toml::Value>) -> usize {
    let lists = of.and_then(toml::Value::as_table).into_iter().flatten();
    let lists = lists.filter(|(key, _)| !NO_TUNABLES.contains(&key.as_str())).filter_map(|(_, list)| list.as_array());
    lists.fold(1, |n, list| n.saturating_mul(list.len().max(1)))
}

/// A manifest without its holdout shapes; none if it has none.
fn without_holdout(text: &str) -> Option<String> {
    let mut all: toml_edit::DocumentMut = text.parse().ok()?;
    let mut found = false;
    let operators = all.get_mut("operator").and_then(toml_edit::Item::as_table_like_mut)?;
    for (_, operator) in operators.iter_mut() {
        let shapes = operator.as_table_like_mut().and_then(|of| of.get_mut("shapes"));
        let Some(shapes) = shapes.and_then(toml_edit::Item::as_table_like_mut) else { continue };
        let is_held = |shape: &toml_edit::Item| {
            let role = shape.as_table_like().and_then(|shape| shape.get("role"));
            role.and_then(toml_edit::Item::as_str) == Some("holdout")
        };
        let held: Vec<String> =
            shapes.iter().filter(|(_, shape)| is_held(shape)).map(|(name, _)| name.into()).collect();
        found |= !held.is_empty();
        for name in held {
            shapes.remove(&name);
        }
    }
    found.then(|| all.to_string())
}

/// How a request is measured.
pub(super) fn goal(measure: Measure) -> kforge_pipeline::plan::Goal {
    match measure {
        Measure::Verify => kforge_pipeline::plan::Goal::Verify,
        Measure::Bench => kforge_pipeline::plan::Goal::Bench,
        Measure::Build => kforge_pipeline::plan::Goal::Build,
    }
}

/// Refuses texts of a manifest that lead out of its folder.
fn check_texts(table: &toml::Table) -> Result<(), Invalid> {
    fn leads_out(text: &str) -> bool {
        text.starts_with(['/', '~']) || text.split('/').any(|part| part.trim() == "..")
    }
    fn walk(value: &toml::Value) -> Option<&str> {
        match value {
            toml::Value::String(text) => Some(text.as_str()).filter(|text| leads_out(text)),
            toml::Value::Array(all) => all.iter().find_map(walk),
            toml::Value::Table(table) => table.values().find_map(walk),
            _ => None,
        }
    }
    match table.values().find_map(walk) {
        Some(text) => Err(Invalid::LeadsOut(text.into())),
        None => Ok(()),
    }
}

/// Refuses paths that are not those of plain files in the workspace.
fn check_paths(files: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if files.len() > MOST_FILES {
        return Err(Invalid::ManyFiles(files.len()));
    }
    for name in files.keys() {
        if let Some(why) = unusable(name) {
            return Err(Invalid::File { name: name.clone(), why });
        }
        let folders = Path::new(name).ancestors().skip(1).filter_map(Path::to_str);
        if let Some(file) = folders.into_iter().find(|folder| files.contains_key(*folder)) {
            return Err(Invalid::FileAndFolder { file: file.into(), name: name.clone() });
        }
    }
    Ok(())
}

/// Why a path is not that of a plain file in the workspace.
fn unusable(name: &str) -> Option<FileFault> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Path::new(name);
    let is_lexical = path.components().all(plain) && path.components().count() == name.split('/').count();
    if name.is_empty() || !is_lexical {
        return Some(FileFault::Outside);
    }
    if name.len() > LONGEST_PATH {
        return Some(FileFault::Long);
    }
    if name.chars().any(char::is_control) {
        return Some(FileFault::Control);
    }
    if name.split('/').any(|part| part.starts_with('.')) {
        return Some(FileFault::Hidden);
    }
    if name == MANIFEST {
        return Some(FileFault::Manifest);
    }
    if name == "target" || name.starts_with("target/") {
        return Some(FileFault::Output);
    }
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("kfe")) {
        return Some(FileFault::Evidence);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refusal(request: Value) -> String {
        let request: EvaluationRequest = serde_json::from_value(request).unwrap();
        match Files::of(&request) {
            Err(why) => why.to_string(),
            Ok(files) => panic!("accepted: {}", files.manifest),
        }
    }

    fn with_file(name: &str) -> Value {
        json!({ "candidate": { "package": { "manifest": "[package]\nname = \"p\"\n", "files": { name: "" } } } })
    }

    #[test]
    fn files_lie_in_the_workspace_and_are_plain() {
        for (name, why) in [
            ("", "no path"),
            ("/etc/passwd", "no path"),
            ("../x", "no path"),
            ("a/../../x", "no path"),
            ("a/./b", "no path"),
            ("a//b", "no path"),
            ("a/", "no path"),
            (".kforge/config.toml", "hidden"),
            ("a/.git/config", "hidden"),
            ("kernel.toml", "manifest"),
            ("target/kforge/journal", "outputs"),
            ("evidence/x.KFE", "evidence"),
            ("a\nb", "control"),
            (&"a/".repeat(150), "no path"),
            (&"a".repeat(201), "too long"),
        ] {
            let said = refusal(with_file(name));
            assert!(said.contains(why), "{name}: {said}");
        }
        let both = json!({ "candidate": { "package": {
            "manifest": "[package]\nname = \"p\"\n", "files": { "a": "", "a/b/c": "" } } } });
        assert!(refusal(both).contains("`a` is a file"));
        for name in ["a.cu", "sub/folder/a.cuh", "target.cu", "kforge.lock"] {
            assert!(Files::of(&serde_json::from_value(with_file(name)).unwrap()).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_text_of_a_manifest_leads_out_of_the_package() {
        let of = |line: &str| {
            let manifest = format!("[package]\nname = \"p\"\n{line}\n");
            json!({ "candidate": { "package": { "manifest": manifest } } })
        };
        for line in [
            "[dependencies]\nx = { path = \"/srv\" }",
            "[dependencies]\nx = { path = \"a/../../b\" }",
            "[kernel.k]\nsource = \"../k.cu\"",
            "[kernel.k]\ninclude = [\"ok\", \"..\"]",
            "[toolchain]\ncuda = { path = \"~/cuda\" }",
            "[[kernel.k.launch]]\nargs = [{ value = \"/x\" }]",
        ] {
            assert!(refusal(of(line)).contains("leads out"), "{line}");
        }
        let plain = of("[kernel.k]\nsource = \"src/k.cu\"\ngrid = [\"(n + 3) / 4\"]");
        assert!(Files::of(&serde_json::from_value(plain).unwrap()).is_ok());
    }

    #[test]
    fn the_order_of_inputs_outputs_and_tunables_is_kept() {
        let text = r#"{ "candidate": { "operator": { "operator": {
            "inputs": { "x": { "dtype": "f32", "shape": ["n"] }, "a": { "dtype": "f32", "shape": ["n"] } } },
            "source": "", "kernel": { "tune": { "B": [1], "A": [2] } } } } }"#;
        let request: EvaluationRequest = serde_json::from_str(text).unwrap();
        // As it is read from the journal.
        let again: EvaluationRequest = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        for request in [request, again] {
            let manifest: toml_edit::DocumentMut = Files::of(&request).unwrap().manifest.parse().unwrap();
            let keys = |of: &toml_edit::Item| -> Vec<String> {
                of.as_table_like().unwrap().iter().map(|(key, _)| key.to_string()).collect()
            };
            assert_eq!(keys(&manifest["operator"]["operator"]["inputs"]), ["x", "a"]);
            assert_eq!(keys(&manifest["kernel"]["candidate"]["tune"]), ["B", "A"]);
        }
    }

    #[test]
    fn variants_times_shapes_are_counted_for_each_target() {
        let steps = |text: &str| {
            let manifest = format!("[package]\nname = \"p\"\n{text}");
            let request = json!({ "candidate": { "package": { "manifest": manifest } } });
            Files::of(&serde_json::from_value(request).unwrap()).unwrap().steps()
        };
        assert_eq!((steps("[kernel.a]\n"), steps("")), (1, 0));
        let tables = "[targets]\ncpu = {}\ndevice = {}\n[operator.o]\nshapes = { a = { n = 1 }, b = { n = 2 } }\ntypes.T = [\"f32\", \"f16\"]\n\
                      [kernel.k.tune]\nA = [1, 2, 3]\nB = [1, 2]\nwhere = [\"A > B\", \"A > 0\"]\nstrategy = \"random\"\n";
        assert_eq!(steps(tables), 6 * 4 * 2);
        let huge = format!("[kernel.k.tune]\n{}", (0..70).map(|n| format!("T{n} = [1, 2]\n")).collect::<String>());
        assert_eq!(steps(&huge), usize::MAX, "it does not overflow");
    }

    #[test]
    fn holdout_shapes_are_removed_however_they_are_written() {
        let forms = [
            "[operator.o]\nshapes.a = { n = 1 }\nshapes.b = { n = 7919, role = \"holdout\" }\n",
            "[operator.o.shapes.a]\nn = 1\n[operator.o.shapes.b]\nn = 7919\nrole = \"holdout\"\n",
            "operator = { o = { shapes = { a = { n = 1 }, b = { n = 7919, role = \"holdout\" } } } }\n",
            "operator.o.shapes.a.n = 1\noperator.o.shapes.b.n = 7919\noperator.o.shapes.b.role = \"holdout\"\n",
        ];
        for form in forms {
            let without = without_holdout(form).unwrap();
            assert!(!without.contains("7919"), "{without}");
            let read: toml::Table = toml::from_str(&without).unwrap();
            assert_eq!(read["operator"]["o"]["shapes"]["a"]["n"].as_integer(), Some(1), "{without}");
        }
        assert_eq!(without_holdout("[operator.o.shapes]\na = { n = 1, role = \"bench\" }\n"), None);
    }

    #[test]
    fn a_candidate_of_an_operator_becomes_a_package() {
        let request = json!({
            "candidate": { "operator": {
                "operator": { "dims": ["n"], "inputs": { "x": { "dtype": "f32", "shape": ["n"] } } },
                "source": "text", "entry": "k", "launch": [{ "grid": ["n"], "args": ["x"] }, { "memset": "x" }],
                "kernel": { "std": "c++20" },
            } },
            "target": "sm_90a", "device": "NVIDIA H200",
        });
        let files = Files::of(&serde_json::from_value(request.clone()).unwrap()).unwrap();
        let manifest: toml::Table = toml::from_str(&files.manifest).unwrap();
        assert_eq!(manifest["targets"]["device"]["device"].as_str(), Some("NVIDIA H200"));
        let kernel = &manifest["kernel"]["candidate"];
        assert_eq!((kernel["std"].as_str(), kernel["source"].as_str()), (Some("c++20"), Some("candidate.cu")));
        assert_eq!(kernel["launch"][0]["entry"].as_str(), Some("k"));
        assert!(kernel["launch"][1].get("entry").is_none(), "a memset has no entry");
        assert_eq!(files.others["candidate.cu"], "text");
        let mut wrong = request.clone();
        wrong["candidate"]["operator"]["kernel"]["targets"] = json!(["cpu"]);
        assert!(refusal(wrong).contains("`targets`"));
        let mut wrong = request.clone();
        wrong["candidate"]["operator"]["operator"]["inputs"] = Value::Null;
        assert!(serde_json::from_value::<EvaluationRequest>(wrong).is_err(), "TOML has no null");
        let mut wrong = request;
        wrong["candidate"]["operator"]["language"] = "torch".into();
        assert!(refusal(wrong).contains("no `launch`"));
    }
}
