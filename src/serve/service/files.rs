//! The files of a workspace in which a candidate is evaluated. Decides which of a client's texts may become files; writes them. Runs nothing.
//!
//! | decision | because |
//! |---|---|
//! | paths of files are relative, without `..`, hidden names or links | whatever a client sends lies in the workspace |
//! | no text of a manifest begins with `/` or `~`, or has a part `..` | a manifest can name folders, and a compiler's error quotes what it read there |
//! | no bundles of evidence | they would answer in place of an evaluation |
//! | the server's `kforge.lock`, unless the package has one | resolving toolchains needs the network and seconds |

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

use serde_json::{Map, Value};

use super::invalid::{FileFault, Invalid, MOST_FILES};
use crate::api::{Candidate, EvaluationRequest, Language, Measure, OperatorCandidate, PackageCandidate};
use kforge_project::workspace::select::SelectionArgs;

/// The longest path of a file.
const LONGEST_PATH: usize = 200;

/// The name of the kernel of a candidate of an operator, and of its package.
pub(super) const CANDIDATE: &str = "candidate";

/// The name of its operator.
const OPERATOR: &str = "operator";

/// The manifest of a workspace.
const MANIFEST: &str = "kernel.toml";

/// The lockfile of a workspace.
pub(super) const LOCKFILE: &str = "kforge.lock";

/// Keys of a `kernel` table that the request states elsewhere, or that make another kernel than that of the source.
const NOT_IN_KERNEL: [&str; 7] = ["operator", "language", "source", "launch", "targets", "generate", "host"];

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
        Ok(files)
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
    if let Some(key) = candidate.kernel.keys().find(|key| NOT_IN_KERNEL.contains(&key.as_str())) {
        return Err(Invalid::KernelKey(key.clone()));
    }
    let mut kernel = candidate.kernel.clone();
    kernel.insert("operator".into(), OPERATOR.into());
    let language = match candidate.language {
        Language::Cuda => "cuda",
        Language::Triton => "triton",
        Language::Torch => "torch",
    };
    kernel.insert("language".into(), language.into());
    if candidate.language == Language::Torch {
        if !candidate.launch.is_empty() {
            return Err(Invalid::LaunchInTorch);
        }
        let entry = candidate.entry.as_deref().ok_or(Invalid::NoEntry)?;
        kernel.insert("source".into(), format!("{source}::{entry}").into());
    } else {
        kernel.insert("source".into(), source.into());
        let launch = |launch: &Map<String, Value>| {
            let mut launch = launch.clone();
            if let Some(entry) = candidate.entry.as_ref().filter(|_| !launch.contains_key("memset")) {
                launch.entry("entry").or_insert_with(|| entry.clone().into());
            }
            Value::Object(launch)
        };
        kernel.insert("launch".into(), candidate.launch.iter().map(launch).collect());
    }
    let arch = request.target.as_deref().unwrap_or("cpu");
    let mut target = Map::new();
    if arch != "cpu" {
        target.insert("arch".into(), arch.into());
        target.extend(request.device.as_ref().map(|device| ("device".to_string(), Value::from(device.clone()))));
    } else if request.device.is_some() {
        return Err(Invalid::DeviceOfCpu);
    }
    let mut all = Map::new();
    let table =
        |name: &str, value: Value| -> Value { [(name.to_string(), value)].into_iter().collect::<Map<_, _>>().into() };
    all.insert("package".into(), table("name", CANDIDATE.into()));
    all.insert("targets".into(), table(if arch == "cpu" { "cpu" } else { "device" }, target.into()));
    if !candidate.toolchain.is_empty() {
        all.insert("toolchain".into(), candidate.toolchain.clone().into());
    }
    all.insert("operator".into(), table(OPERATOR, candidate.operator.clone().into()));
    all.insert("kernel".into(), table(CANDIDATE, kernel.into()));
    let all = toml::Table::try_from(all).map_err(Invalid::Table)?;
    check_texts(&all)?;
    let manifest = toml::to_string(&all).map_err(Invalid::Table)?;
    let mut others = candidate.files.clone();
    if others.insert(source.into(), candidate.source.clone()).is_some() {
        return Err(Invalid::SourceTwice(source));
    }
    Ok(Files { manifest, others, words: SelectionArgs::default() })
}

fn of_package(package: &PackageCandidate, request: &EvaluationRequest) -> Result<Files, Invalid> {
    let all: toml::Table = toml::from_str(&package.manifest).map_err(Invalid::Manifest)?;
    check_texts(&all)?;
    if request.device.is_some() {
        return Err(Invalid::DeviceOfPackage);
    }
    let words = SelectionArgs {
        workspace: true,
        kernels: package.kernels.clone(),
        targets: request.target.iter().cloned().collect(),
        ..SelectionArgs::default()
    };
    Ok(Files { manifest: package.manifest.clone(), others: package.files.clone(), words })
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
    use serde_json::json;

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
        assert!(refusal(wrong).contains("none of `kernel.toml`"));
        let mut wrong = request;
        wrong["candidate"]["operator"]["language"] = "torch".into();
        assert!(refusal(wrong).contains("no `launch`"));
    }
}
