//! `kforge import`: writes a manifest for kernels that somebody has, and packages for tasks.

mod tasks;
mod tuner;

use super::{CommandResult, print_line};
use crate::cli::args::{ImportCommand, ImportWrittenArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::import::{ImportOutput, ImportRequest, Imported, cuda, left_out, triton};
use kforge_ops::new::Surroundings;
use kforge_pipeline::report::imported::{ImportDocument, ImportedKernelDocument, SkippedFileDocument};
use kforge_project::workspace::join::Joined;
use kforge_types::record::FORMAT_VERSION;

/// Runs the command.
pub fn run(context: &Context, command: &ImportCommand) -> CommandResult {
    let (path, args) = match command {
        ImportCommand::Cuda(of) => (&of.path, &of.written),
        ImportCommand::Triton(of) => (&of.path, &of.written),
        ImportCommand::Kernelbench(of) => {
            return tasks::run(
                context,
                tasks::Set::Kernelbench,
                (&of.path, &of.output),
                of.candidates.as_deref(),
                &of.torch,
            );
        }
        ImportCommand::GpuMode(of) => {
            return tasks::run(
                context,
                tasks::Set::GpuMode,
                (&of.path, &of.output),
                of.candidates.as_deref(),
                &of.torch,
            );
        }
        ImportCommand::KernelTuner(of) => return tuner::run(context, of),
        ImportCommand::FlashinferTrace(of) => {
            return tasks::run(context, tasks::Set::FlashinferTrace, (&of.path, &of.output), None, &of.torch);
        }
    };
    let output = match (&args.output, args.stdout) {
        (_, true) => ImportOutput::Nowhere,
        (Some(file), _) => ImportOutput::File(file.clone()),
        (None, _) => ImportOutput::Beside,
    };
    let request = ImportRequest { path: path.clone(), name: args.name.clone(), output };
    let done = match command {
        ImportCommand::Triton(_) => triton(&context.session, &request)?,
        _ => cuda(&context.session, &request)?,
    };
    for (path, reason) in skipped(&done) {
        context.console.warn(&format!("`{path}` is not imported: {reason}"));
    }
    for kernel in &done.manifest.kernels {
        if let Some(why) = &kernel.refused {
            context.console.warn(&format!("`{}` ({}) is a comment in the manifest: {why}", kernel.name, kernel.place));
        }
    }
    if args.message_format == MessageFormat::Json {
        return print_line(context, "imported", &document(&done));
    }
    if args.stdout {
        context.console.out(&done.manifest.text);
    }
    say(context, command, args, &done);
    Ok(Exit::Done)
}

/// Files that were left out, with the reasons.
fn skipped(done: &Imported) -> Vec<(String, String)> {
    let unread = done.skipped.iter().map(|file| {
        (file.path.strip_prefix(&done.folder).unwrap_or(&file.path).display().to_string(), file.why.to_string())
    });
    unread.chain(left_out(&done.manifest)).collect()
}

fn document(done: &Imported) -> ImportDocument {
    let kernels = done.manifest.kernels.iter().map(|kernel| ImportedKernelDocument {
        name: kernel.name.clone(),
        source: kernel.place.file.clone(),
        line: kernel.place.line,
        entry: kernel.entry.clone(),
        operator: kernel.operator.clone(),
        known_operator: kernel.known,
        launched_at: kernel.launched.as_ref().map(ToString::to_string),
        checks: kernel.checks,
    });
    ImportDocument {
        format_version: FORMAT_VERSION,
        package: done.package.clone(),
        manifest_path: done.file.as_ref().map(|file| file.display().to_string()),
        sources: done.sources,
        operators: done.manifest.operators,
        known_operators: done.manifest.known,
        checks: done.manifest.checks,
        kernels: kernels.collect(),
        skipped: skipped(done).into_iter().map(|(path, reason)| SkippedFileDocument { path, reason }).collect(),
    }
}

/// The summary: what was found, what to check, the next command.
fn say(context: &Context, command: &ImportCommand, args: &ImportWrittenArgs, done: &Imported) {
    let (console, manifest) = (&context.console, &done.manifest);
    let cwd = &context.session.cwd;
    if let Some(Surroundings { manifest, joined: Joined::Added(path) }) = &done.around {
        console.status("Adding", &format!("`{path}` to the members in {}", manifest.display()));
    }
    let number = |n: usize, what: &str| count(n as u64, what);
    let found = format!(
        "{} of {}, {}, in {}",
        number(manifest.kernels.len(), "kernel"),
        number(manifest.operators, "operator"),
        number(manifest.checks, "line") + " to check",
        number(done.sources, "source")
    );
    console.status("Imported", &found);
    if let Some(file) = &done.file {
        console.status("Created", &format!("`{}`", file.strip_prefix(cwd).unwrap_or(file).display()));
    }
    if console.quiet() {
        return;
    }
    let unknown = manifest.kernels.iter().filter(|kernel| !kernel.known);
    let unknown: Vec<String> = unknown.map(|kernel| format!("`{}` ({})", kernel.operator, kernel.place)).collect();
    if !unknown.is_empty() {
        let all = unknown.join(", ");
        console.err(&format!(
            "help: state a `reference` for each operator that could not be guessed, and remove the `# ` in front of its lines: {all}\n"
        ));
    }
    let unlaunched = manifest.kernels.iter().filter(|kernel| kernel.launched.is_none()).count();
    if unlaunched > 0 {
        let kernels = number(unlaunched, "kernel");
        let extents = match command {
            ImportCommand::Triton(_) => "`grid`",
            _ => "`grid` and `block`",
        };
        console.err(&format!("help: state {extents} of {kernels} without a launch\n"));
    }
    console.err("help: confirm the lines that end in `# check: ...`\n");
    if !args.stdout {
        let there = done.folder.strip_prefix(cwd).unwrap_or(&done.folder);
        let change = if there.as_os_str().is_empty() { String::new() } else { format!("cd {} && ", there.display()) };
        // Where all kernels are comments, there is nothing to build before.
        let verify = if manifest.known == 0 { "then verify" } else { "verify" };
        console.err(&match command {
            ImportCommand::Triton(_) => format!(
                "help: {verify} them with `{change}kforge build --target cpu`, which needs numpy; compile them for GPUs with `kforge check`\n"
            ),
            _ => format!("help: {verify} them with `{change}kforge build --target cpu`\n"),
        });
    }
}
