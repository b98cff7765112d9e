//! The compile and inspect steps of machine code in a worker: from a staged tree to a cubin and the facts that it states. The compilers are in `cuda`.

use kforge_cuda::CudaCompileError;
use kforge_cuda::triton::TRITON;
use kforge_foundation::base::Severity;
use kforge_harness::compilers::{Bounds, ToolSandbox, confined, remembered};
use kforge_harness::message::Response;
use kforge_harness::task::{self, Task};
use kforge_types::record::contract::complete;
use kforge_types::record::params::{CompileFacts, CompileParams, InspectParams, PTX};
use kforge_types::record::{Finding, FindingKind, Note, Verdict};

/// The name of nvcc in a task's tools.
pub const NVCC: &str = "nvcc";

/// Compiles machine code.
pub fn compile(task: &Task) -> Response {
    // Here, because it would inherit the confinement of the step.
    if let Err(e) = kforge_cuda::prepare(&task.places.tools) {
        return task::failed(format!("cannot start NVRTC's process: {e}"));
    }
    confined(task, |bounds| compile_for_device(task, bounds)).unwrap_or_else(|r| r)
}

fn compile_for_device(task: &Task, bounds: &Bounds) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    let source = task.required("tree:source")?;
    // A compile step for nvcc has no shim: nvcc's own headers are complete.
    let shim = task.path("tree:shim").unwrap_or_else(|| source.clone());
    let scratch = tempfile::Builder::new().prefix(".compile-").tempdir_in(&task.output);
    let scratch = scratch.map_err(|e| task::failed(format!("cannot make a working folder: {e}")))?;
    let within = ToolSandbox { scratch: scratch.path(), ..ToolSandbox::of(task, bounds) };
    let compiled = kforge_cuda::compile_within(&params, &source, &shim, &task.places.tools, &within);
    let lined = match (&compiled, params.lined) {
        (Ok(_), true) => kforge_cuda::compile_lined(&params, &source, &shim, &task.places.tools, &within),
        _ => Ok(None),
    };
    drop(scratch);
    let compiled = lined.and_then(|lined| Ok((compiled?, lined)));
    match compiled {
        Ok((compiled, lined)) => {
            if let Some(lined) = lined {
                task.write("lined", &lined)?;
            }
            if let Some(ptx) = &compiled.ptx {
                task.write(PTX, ptx)?;
            }
            task.write("binary", &compiled.cubin)?;
            task.write_document("facts", &compiled.facts)?;
            task.write("log", compiled.log.as_bytes())?;
            let summary = match compiled.facts.compiler.as_str() {
                "nvcc" => "by nvcc",
                TRITON => "by Triton",
                _ => "",
            };
            Ok(task::done(summary, compiled.notes))
        }
        Err(CudaCompileError::Failed { message, log, ended }) => {
            let refused = task::refused(&params, message.as_str(), &log, kforge_cuda::tool_messages(&log));
            Ok(remembered(refused, ended, &format!("{message} {log}")))
        }
        Err(CudaCompileError::NeedsNvcc { why, .. }) => Ok(Response::NeedsTool { tool: NVCC.into(), why }),
        Err(CudaCompileError::NeedsFreshProcess { why } | CudaCompileError::Unavailable { why }) => {
            Ok(Response::Unavailable { why })
        }
    }
}

/// Inspects machine code.
pub fn inspect(task: &Task) -> Response {
    let run = |bounds: &Bounds| {
        let params: InspectParams = task.params()?;
        let facts: CompileFacts = task.document("facts")?;
        let nvdisasm = if params.disassemble || params.listing { Some(task.tool("nvdisasm")?) } else { None };
        let (binary, within) = (task.read("binary")?, ToolSandbox::of(task, bounds));
        if let Some(nvdisasm) = nvdisasm.filter(|_| params.listing) {
            let listing = kforge_cuda::listing_within(&params, &binary, nvdisasm, &within);
            task.write("listing", &listing.map_err(task::failed)?)?;
        }
        let found = kforge_cuda::inspect_within(&params, &binary, &facts, nvdisasm, &within);
        let mut found = found.map_err(task::failed)?;
        let registers: Vec<String> =
            found.functions.iter().filter_map(|f| f.registers).map(|r| format!("{r} registers")).collect();
        let mut launches = params.launches;
        let refused = match complete(&mut launches, &mut vec![], &params.entries, &facts) {
            Ok(()) => kforge_cuda::args::check(&launches, &found),
            Err(why) => {
                vec![Finding::new(FindingKind::LaunchRefused, format!("`{}`: {why}", params.entries.join("`, `")))]
            }
        };
        found.refused = refused.iter().map(|f| f.message.clone()).collect();
        task.write_document("inspection", &found)?;
        let notes = refused
            .iter()
            .map(|f| Note::new(Severity::Error, "inspect.arguments", f.message.clone()).about(f.launch.clone()))
            .collect();
        let verdict = refused.first().map(|f| Verdict::Fail(f.message.clone()));
        Ok(Response::Done { verdict, notes, summary: registers.join(", "), forget: false })
    };
    confined(task, run).unwrap_or_else(|r: Response| r)
}
