//! compile and inspect steps for the emulator. Translates between tasks and the emulator's functions; compiles nothing itself. Steps of kernels in Triton and
//! PyTorch go to [`super::interpreted`].

use super::interpreted;
use kforge_emulator::compile::{self as emulator, EmulatorCompile};
use kforge_emulator::inspect as read;
use kforge_emulator::messages::messages;
use kforge_emulator::unincluded::unincluded;
use kforge_foundation::base::{Severity, count, plain};
use kforge_harness::compilers::{Bounds, ToolSandbox, confined, remembered};
use kforge_harness::message::Response;
use kforge_harness::system::{asks_only_of_toolchain, only_of_toolchain};
use kforge_harness::task::{Task, done, failed, refused};
use kforge_harness::trees;
use kforge_types::record::Note;
use kforge_types::record::params::{CompileParams, Compiler, InspectParams};

/// Executes a compile step on `cpu`. In addition to the usual outputs it writes `lines`, which resolves places in findings.
pub(super) fn compile(task: &Task) -> Response {
    match task.params::<CompileParams>() {
        Ok(CompileParams { compiler: Compiler::TritonInterpreter, .. }) => interpreted::compile(task),
        Ok(CompileParams { compiler: Compiler::Torch, .. }) => interpreted::compile_torch(task),
        _ => confined(task, |bounds| compiled(task, bounds)).unwrap_or_else(|response| response),
    }
}

fn compiled(task: &Task, bounds: &Bounds) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    let what = EmulatorCompile {
        cxx: task.tool("c++")?,
        source: &task.required("tree:source")?,
        headers: &task.required("tree:emulator")?,
        main: &params.main,
        entries: &params.entries,
        defines: &params.defines,
        include: &params.include,
        flags: &params.flags,
        std: &params.std,
        check: params.compiler == Compiler::EmulatorCheck,
        candidate: params.candidate,
        // The toolchain of a source that includes cub has it.
        toolkit: task.tool("cub-include").ok(),
        within: ToolSandbox::of(task, bounds),
    };
    let warning =
        |text: &str| Note::new(Severity::Warning, "compile.log", text.trim().to_string()).of_parts(messages(text));
    match emulator::compile(&what, &task.output) {
        Err(why) => {
            let message = format!("cannot compile `{}`", plain(&params.main));
            let response = refused(&params, message, &why.log, messages(&why.log));
            Err(remembered(response, why.ended, &why.log))
        }
        Ok(made) => {
            let tracked = only_of_toolchain(task, "toolchain", &params.main, &made.system)
                .and_then(|()| asks_only_of_toolchain(task, "toolchain", &params.main, &made.asked));
            tracked.map_err(|why| match why {
                Response::Failed { message, .. } => refused(&params, message, "", vec![]),
                other => other,
            })?;
            task.write_document("facts", &made.facts)?;
            task.write("log", made.log.as_bytes())?;
            let warned = (!made.log.trim().is_empty()).then(|| warning(&made.log));
            let left_out = made.left_out.map(|text| Note::new(Severity::Note, "compile.left-out", text));
            let cannot = |e: std::io::Error| failed(format!("cannot read the sources: {e}"));
            let texts = trees::texts(what.source).map_err(cannot)?;
            let unincluded = unincluded(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
            let unincluded =
                unincluded.iter().map(|found| Note::new(Severity::Warning, "compile.unincluded", found.to_string()));
            let notes = warned.into_iter().chain(left_out).chain(unincluded).collect();
            Ok(done(format!("{} for the emulator", count(params.entries.len(), "entry")), notes))
        }
    }
}

/// Executes an inspect step on `cpu`.
pub(super) fn inspect(task: &Task) -> Response {
    inspected(task).unwrap_or_else(|response| response)
}

fn inspected(task: &Task) -> Result<Response, Response> {
    let binary = task.read("binary")?;
    if interpreted::is_interpretable(&binary) {
        return Ok(interpreted::inspect(task));
    }
    let params: InspectParams = task.params()?;
    let facts = read(&binary, &params.entries).map_err(|e| failed(format!("cannot inspect the binary: {e}")))?;
    task.write_document("inspection", &facts)?;
    Ok(done(count(facts.functions.len(), "entry"), vec![]))
}
