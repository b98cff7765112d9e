//! The imports of problem sets: one line for each task, what must be known of it, and a summary.

use std::path::Path;

use super::super::{CommandResult, print_line};
use crate::cli::args::{ImportTorchArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::import::gpu_mode;
use kforge_ops::import::tasks::{FindingKind, ImportedTasks, TaskOutcome, TaskResult, TasksRequest, kernelbench};
use kforge_ops::import::traces::flashinfer_trace;
use kforge_pipeline::report::imported_tasks::{
    CandidateDocument, FindingDocument, ImportTasksDocument, RefusalDocument, TaskDocument, TaskShapeDocument,
    TaskStatus,
};
use kforge_types::record::FORMAT_VERSION;

/// A problem set.
#[derive(Debug, Clone, Copy)]
pub(super) enum Set {
    Kernelbench,
    FlashinferTrace,
    GpuMode,
}

/// Runs the command.
pub(super) fn run(
    context: &Context,
    set: Set,
    (path, output): (&Path, &Path),
    candidates: Option<&Path>,
    torch: &ImportTorchArgs,
) -> CommandResult {
    let request = TasksRequest {
        path: path.to_path_buf(),
        output: Some(output.to_path_buf()),
        torch: (torch.torch != "system").then(|| torch.torch.clone()),
        candidates: candidates.map(Path::to_path_buf),
        dry_run: torch.dry_run,
    };
    let verb = if torch.dry_run { "Importable" } else { "Imported" };
    let told = &mut |task: &TaskResult| say(context, task, verb);
    let done = match set {
        Set::Kernelbench => kernelbench(&context.session, &request, told)?,
        Set::FlashinferTrace => flashinfer_trace(&context.session, &request, told)?,
        Set::GpuMode => gpu_mode::gpu_mode(&context.session, &request, told)?,
    };
    for file in &done.skipped {
        context.console.warn(&format!("`{}` is not imported: {}", file.path.display(), file.why));
    }
    for path in &done.strangers {
        context.console.warn(&format!("`{path}` is left out: it is for none of the tasks"));
    }
    if torch.message_format == MessageFormat::Json {
        return print_line(context, "imported-tasks", &document(&done, torch.dry_run));
    }
    summary(context, &done, verb);
    if !context.console.quiet() {
        context.console.err(next(&done, torch.dry_run));
    }
    Ok(Exit::Done)
}

/// The line of a task, and what must be known of it.
fn say(context: &Context, task: &TaskResult, verb: &str) {
    let console = &context.console;
    let shown = |line: Option<u32>| line.map_or(String::new(), |line| format!(" ({}:{line})", task.path));
    match &task.outcome {
        TaskOutcome::Imported(imported, kernels, _) => {
            let shapes: Vec<&str> = imported.shapes.iter().map(|shape| shape.name.as_str()).collect();
            let mode = if imported.train == Some(false) { ", in evaluation mode" } else { "" };
            let with = match kernels.as_slice() {
                [] => String::new(),
                all => format!("; with {}", count(all.len() as u64, "candidate")),
            };
            console.status(
                verb,
                &format!("`{}` as {}: shapes {}{mode}{with}", task.path, task.package, shapes.join(", ")),
            );
            for finding in &imported.findings {
                console.warn(&format!("`{}`: {}{}", task.path, finding.message, shown(finding.line)));
            }
        }
        TaskOutcome::Refused(why) => {
            console.warn(&format!("`{}` is refused: {}{}", task.path, why.message, shown(why.line)))
        }
        TaskOutcome::Exists => {
            console.warn(&format!("`{}` is left as it is: `{}` exists already", task.path, task.folder.display()));
        }
    }
}

/// How many tasks became what.
fn summary(context: &Context, done: &ImportedTasks, verb: &str) {
    let console = &context.console;
    let imported = || {
        done.tasks.iter().filter_map(|task| match &task.outcome {
            TaskOutcome::Imported(imported, ..) => Some(imported),
            TaskOutcome::Refused(_) | TaskOutcome::Exists => None,
        })
    };
    let has =
        |kind: FindingKind| imported().filter(|task| task.findings.iter().any(|finding| finding.kind == kind)).count();
    let refused = done.tasks.iter().filter(|task| matches!(task.outcome, TaskOutcome::Refused(_))).count();
    let existing = done.tasks.iter().filter(|task| matches!(task.outcome, TaskOutcome::Exists)).count();
    let without =
        if done.set == gpu_mode::SET { "without some of their cases" } else { "without some of their workloads" };
    let parts = [
        (refused, "refused"),
        (existing, "left as they were"),
        (has(FindingKind::Random), "in evaluation mode"),
        (has(FindingKind::ConstantOutput), "with a constant result"),
        (has(FindingKind::BelowTolerance), "below the tolerance"),
        (has(FindingKind::TooLarge), "too large for a reference here at their own size"),
        (has(FindingKind::Workload), without),
    ];
    let rest = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {n} {what}")).collect::<String>();
    console.status(verb, &format!("{}{rest}", count(imported().count() as u64, "task")));
    if let Some(manifest) = &done.workspace {
        let shown = manifest.strip_prefix(&context.session.cwd).unwrap_or(manifest);
        console.status("Created", &format!("`{}`", shown.display()));
    }
}

/// What to do next.
fn next(done: &ImportedTasks, dry_run: bool) -> &'static str {
    let has_kernels =
        |task: &TaskResult| matches!(&task.outcome, TaskOutcome::Imported(_, kernels, _) if !kernels.is_empty());
    match (dry_run, done.tasks.iter().any(has_kernels)) {
        (true, _) => "help: nothing was written; the same command without `--dry-run` writes the packages\n",
        (false, true) => "help: verify the candidates with `kforge verify --target cpu --keep-going`\n",
        (false, false) => "help: add a kernel to a package, then verify it with `kforge build --target cpu`\n",
    }
}

fn document(done: &ImportedTasks, dry_run: bool) -> ImportTasksDocument {
    let task = |task: &TaskResult| {
        let (imported, refused, status) = match &task.outcome {
            TaskOutcome::Imported(imported, ..) => (Some(imported), None, TaskStatus::Imported),
            TaskOutcome::Refused(why) => (None, Some(why), TaskStatus::Refused),
            TaskOutcome::Exists => (None, None, TaskStatus::Exists),
        };
        let kernels = match &task.outcome {
            TaskOutcome::Imported(_, kernels, _) => kernels.as_slice(),
            TaskOutcome::Refused(_) | TaskOutcome::Exists => &[],
        };
        let kernels =
            kernels.iter().map(|one| CandidateDocument { path: one.path.clone(), kernel: one.kernel.clone() });
        let shapes = imported
            .iter()
            .flat_map(|imported| &imported.shapes)
            .map(|shape| TaskShapeDocument { name: shape.name.clone(), dims: shape.dims.iter().cloned().collect() });
        let findings = imported.iter().flat_map(|imported| &imported.findings).map(|finding| FindingDocument {
            kind: finding.kind.word().to_string(),
            message: finding.message.clone(),
            line: finding.line,
        });
        TaskDocument {
            path: task.path.clone(),
            status,
            package: task.package.clone(),
            folder: task.folder.display().to_string(),
            level: task.origin.level,
            number: task.origin.number,
            name: task.origin.name.clone(),
            operator: imported.map(|imported| imported.operator.clone()),
            mode: imported.and_then(|imported| imported.train).map(|train| if train { "train" } else { "eval" }.into()),
            reference_bytes: imported.and_then(|imported| imported.reference_bytes),
            shapes: shapes.collect(),
            candidates: kernels.collect(),
            findings: findings.collect(),
            refused: refused.map(|why| RefusalDocument {
                kind: why.kind.clone(),
                message: why.message.clone(),
                line: why.line,
            }),
        }
    };
    ImportTasksDocument {
        format_version: FORMAT_VERSION,
        set: done.set.into(),
        folder: done.folder.display().to_string(),
        tasks: done.tasks.iter().map(task).collect(),
        strangers: done.strangers.clone(),
        dry_run,
    }
}
