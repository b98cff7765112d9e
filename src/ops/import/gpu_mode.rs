//! Imports tasks of gpu-mode: finds `task.yml` files, describes their references with PyTorch in confined processes, and writes a package for each. A task that
//! cannot be imported does not stop the others. Never overwrites a file, and leaves nothing half written.

mod files;
mod submissions;

use std::collections::BTreeMap;
use std::path::Path;

use super::ImportError;
use super::python::parsed;
use super::tasks::files::package_name;
use super::tasks::torch::TorchHere;
use super::tasks::{
    CHUNK, CandidateKernel, Described, ImportedTasks, Origin, TaskOutcome, TaskResult, TasksRequest, answered,
    described, reference_limit, write,
};
use crate::{Error, Session};
use files::{Found, TaskFiles};
use kforge_harness::problem_sets::{TaskForm, TaskText};
use kforge_project::source::import::gpu_mode::{
    ADAPTER, Arguments, GpuModeAnswer, GpuModeRequest, GpuModeSource, ImportedGpuMode, KERNEL, SUBMISSION, arguments,
    kernel_tables, write_gpu_mode,
};
use kforge_project::source::import::tasks::{ImportedTask, Refusal};
use kforge_project::workspace::find::{MANIFEST, tidy};

/// `ast` of the interpreter; see its head.
const READER: &str = include_str!("gpu_mode_reader.py");
/// The file of a reference.
const REFERENCE: &str = "reference.py";
/// The name of the problem set.
pub const SET: &str = "gpu-mode";

/// A task whose files were read, and that PyTorch describes.
struct Pending {
    result: TaskResult,
    files: TaskFiles,
    source: GpuModeSource,
    arguments: Arguments,
}

/// Writes a package for each `task.yml` of gpu-mode, unless the request is a dry run. `told` hears of each task as soon as it is done.
///
/// # Errors
/// [`ImportError`], there is no Python or PyTorch, or a file cannot be written.
pub fn gpu_mode(
    session: &Session,
    request: &TasksRequest,
    told: &mut dyn FnMut(&TaskResult),
) -> Result<ImportedTasks, Error> {
    let absolute = |path: &Path| {
        let path = session.cwd.join(path);
        tidy(&std::path::absolute(&path).unwrap_or(path))
    };
    let output = absolute(request.output.as_deref().unwrap_or(Path::new(SET)));
    let Found { tasks, mut skipped } = files::find(&absolute(&request.path), &request.path)?;
    let submissions = match &request.candidates {
        Some(path) => {
            let (found, more) = submissions::find(&absolute(path), path, tasks.len())?;
            skipped.extend(more);
            found
        }
        None => vec![],
    };
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    let strangers = submissions::strangers(&submissions, &names);
    let sources = sources(session, &tasks)?;
    let mut results: Vec<TaskResult> = vec![];
    let mut pending: Vec<Pending> = vec![];
    for task in tasks {
        let mut result = place(&task, &output);
        let is_pending = pending.iter().any(|other| other.result.folder == result.folder);
        // Also a link that leads nowhere.
        if !is_pending && result.folder.symlink_metadata().is_err() {
            match readable(task, &sources) {
                Ok((files, source, arguments)) => {
                    pending.push(Pending { result, files, source, arguments });
                    continue;
                }
                Err(refusal) => result.outcome = TaskOutcome::Refused(refusal),
            }
        }
        told(&result);
        results.push(result);
    }
    let mut workspace = None;
    if !pending.is_empty() {
        let torch = TorchHere::find(session, request.torch.as_deref(), &output)?;
        let limit = reference_limit(session);
        let mut rest = pending.into_iter().peekable();
        while rest.peek().is_some() {
            let chunk: Vec<Pending> = rest.by_ref().take(CHUNK).collect();
            let texts: Vec<TaskText> = chunk.iter().map(text).collect();
            let answers: Vec<Described<GpuModeAnswer>> = described(session, &torch, TaskForm::GpuMode, &texts)?;
            for (Pending { mut result, files, source, arguments }, answer) in chunk.into_iter().zip(answers) {
                let facts = answered(answer).and_then(|answer| match answer {
                    GpuModeAnswer::Found(facts) => Ok(facts),
                    GpuModeAnswer::Refused(refused) => Err(in_reference(refused)),
                });
                let written = facts.and_then(|facts| {
                    write_gpu_mode(&GpuModeRequest {
                        package: &result.package,
                        torch: request.torch.as_deref(),
                        origin: &result.origin,
                        task: &files.yaml,
                        source: &source,
                        arguments: &arguments,
                        facts: &facts,
                        limit,
                    })
                });
                result.outcome = match written {
                    Ok(done) => {
                        if workspace.is_none() && !request.dry_run {
                            workspace = write::root(&output, &result.folder)?;
                        }
                        let kernels = submissions::of_task(&submissions, &files.name);
                        packed(request, &result, &files, done, kernels)?
                    }
                    Err(refusal) => TaskOutcome::Refused(refusal),
                };
                told(&result);
                results.push(result);
            }
        }
    }
    let none = results.iter().all(|result| matches!(result.outcome, TaskOutcome::Refused(_)));
    if none {
        let (path, form) = (request.path.clone(), "there is no `task.yml`");
        return Err(ImportError::NoTasks { path, form, tasks: results, skipped, others: 0 }.into());
    }
    results.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(ImportedTasks { set: SET, folder: output, tasks: results, skipped, others: 0, workspace, strangers })
}

/// The package of a task, before anything is known about it.
fn place(task: &TaskFiles, output: &Path) -> TaskResult {
    let package = package_name(&task.below.join(&task.name).to_string_lossy().replace('/', "_"));
    let origin = Origin { set: SET.into(), level: None, number: None, name: task.name.clone() };
    let folder = output.join(&task.below).join(&task.name);
    TaskResult { path: task.path.clone(), package, folder, origin, outcome: TaskOutcome::Exists }
}

/// What the files of a task say, or why it cannot be imported.
fn readable(
    mut task: TaskFiles,
    sources: &BTreeMap<String, GpuModeSource>,
) -> Result<(TaskFiles, GpuModeSource, Arguments), Refusal> {
    let refusal = |kind: &str, message: &str| Refusal { kind: kind.into(), message: message.into(), line: None };
    if task.yaml.lang.as_deref().is_some_and(|lang| lang != "py") {
        let message =
            "is in CUDA C++: its reference and its inputs are host code. `kforge import cuda` reads its kernels";
        return Err(refusal("unsupported", message));
    }
    if task.yaml.multi_gpu == Some(true) {
        return Err(refusal("unsupported", "needs several devices"));
    }
    if let Some(refused) = task.refused.take() {
        return Err(refused);
    }
    let text = task.texts.get(REFERENCE);
    let text = text.ok_or_else(|| refusal("form", "names no file `reference.py`"))?;
    let source = sources.get(text).cloned().unwrap_or_default();
    let arguments = arguments(&task.yaml, &source).map_err(in_reference)?;
    Ok((task, source, arguments))
}

/// A refusal whose line is one of the reference: results name the path of `task.yml`.
fn in_reference(refusal: Refusal) -> Refusal {
    let place = refusal.line.map_or(String::new(), |line| format!(" ({REFERENCE}:{line})"));
    Refusal { message: refusal.message + &place, line: None, ..refusal }
}

/// A task as the program that describes it reads it.
fn text(pending: &Pending) -> TaskText {
    let files = pending.files.texts.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
    let asked = [("cases".to_string(), pending.arguments.asked())].into_iter().collect();
    TaskText { files, main: REFERENCE, asked }
}

/// Writes the package of a task, with its submissions.
fn packed(
    request: &TasksRequest,
    result: &TaskResult,
    files: &TaskFiles,
    done: ImportedGpuMode,
    kernels: Vec<CandidateKernel>,
) -> Result<TaskOutcome, Error> {
    let manifest = done.text.clone() + &kernel_tables(&done.operator, kernels.iter().map(|kernel| &kernel.kernel));
    let mut all: Vec<(String, &str)> = vec![(ADAPTER.into(), &done.adapter), (files.file.clone(), &files.text)];
    all.extend(files.texts.iter().map(|(name, text)| (name.clone(), text.as_str())));
    // Each submission is in a folder of its own, beside what it may import: not the reference.
    for CandidateKernel { kernel, text, .. } in &kernels {
        let helpers = files.texts.iter().filter(|(name, _)| name.as_str() != REFERENCE);
        all.extend(helpers.map(|(name, text)| (format!("{kernel}/{name}"), text.as_str())));
        all.push((format!("{kernel}/{KERNEL}"), &done.kernel));
        all.push((format!("{kernel}/{SUBMISSION}"), text));
    }
    all.push((MANIFEST.into(), &manifest));
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let around = match request.dry_run {
        true => None,
        false => write::package(&result.folder, &all, &[])?,
    };
    let task = ImportedTask {
        text: manifest,
        operator: done.operator,
        shapes: done.shapes,
        train: None,
        findings: done.findings,
        reference_bytes: None,
    };
    Ok(TaskOutcome::Imported(Box::new(task), kernels, around))
}

/// What Python's parser says of references, by their texts.
fn sources(session: &Session, tasks: &[TaskFiles]) -> Result<BTreeMap<String, GpuModeSource>, Error> {
    let texts: BTreeMap<&String, &String> =
        tasks.iter().filter_map(|task| task.texts.get(REFERENCE)).map(|text| (text, text)).collect();
    if texts.is_empty() { Ok(BTreeMap::new()) } else { parsed(session, READER, &texts) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::process::{Command, run};
    use kforge_project::source::import::gpu_mode::Check;
    use std::sync::atomic::AtomicBool;

    const HEAD: &str = "CLOSE = 1e-3\n\n\ndef generate_input(size: int, seed: int = 1):\n    return 1\n\n\n\
        def ref_kernel(data):\n    with torch.no_grad():\n        a, b = data\n    return a\n\n\n";

    /// What the reader says of a reference that ends so; none, with a message, if there is no Python.
    fn read(check: &str) -> Option<GpuModeSource> {
        let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].iter().map(Path::new).find(|p| p.exists())
        else {
            kforge_foundation::base::testing::skipped("there is no Python");
            return None;
        };
        let texts = serde_json::to_vec(&BTreeMap::from([("x", format!("{HEAD}{check}"))])).unwrap();
        let command = Command::new(python).args(["-I", "-S", "-B", "-c", READER]).stdin(texts);
        let finished = run(&command, None, &AtomicBool::new(false)).unwrap();
        let mut all: BTreeMap<String, GpuModeSource> = serde_json::from_str(&finished.stdout.text()).unwrap();
        all.remove("x")
    }

    #[test]
    fn the_functions_and_the_tolerance_of_a_reference_are_read() {
        let of = |check: &str| read(check).map(|source| source.check);
        let Some(found) = read("check_implementation = make_match_reference(ref_kernel, rtol=2e-2, atol=CLOSE)\n")
        else {
            return;
        };
        assert_eq!(found.functions["generate_input"], Some(vec!["size".into(), "seed".into()]));
        assert_eq!(found.names, Some(vec!["a".into(), "b".into()]));
        assert_eq!(found.check, Check::Close { rtol: 2e-2, atol: 1e-3 });
        let usual = Check::Close { rtol: 1e-5, atol: 1e-8 };
        assert_eq!(of("check_implementation = make_match_reference(ref_kernel)\n"), Some(usual));
        let by = |body: &str| of(&format!("def check_implementation(data, output):\n    {body}\n"));
        assert_eq!(by("return match_reference(data, output, reference=ref_kernel)"), Some(usual));
        assert_eq!(by("return verbose_allequal(output, ref_kernel(data))"), Some(Check::Equal));
        for own in [
            "n = data.numel()\n    return match_reference(data, output, reference=ref_kernel, rtol=1e-5 * n)",
            "return verbose_allclose(output, data, **{})",
            "return verbose_allclose(output[0], data) + verbose_allclose(output[1], data)",
            "return ''",
        ] {
            assert_eq!(by(own), Some(Check::Own), "{own}");
        }
    }

    #[test]
    fn a_text_that_is_no_python_is_refused_with_its_line() {
        let Some(found) = read("def (:\n") else { return };
        let refused = found.refused.unwrap();
        assert_eq!((refused.kind.as_str(), refused.line), ("syntax", Some(14)));
        assert!(refused.message.starts_with("is not Python: "), "{}", refused.message);
    }
}
