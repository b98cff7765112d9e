//! Compile and inspect steps for `sm_*` targets, as rows of a worker's table. Ties the compilers to inputs and outputs; knows neither.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{CudaCompileError, CudaCompiled, compile as compile_source, inspect as inspect_binary};
use crate::base::Severity;
use crate::process::{Command, Talker};
use crate::record::params::{CompileFacts, CompileParams, InspectParams};
use crate::record::{Inspection, Note};
use crate::worker::message::{Request, Response};
use crate::worker::task::{Task, done, failed};

/// How the answer of a compile step begins that only nvcc can do and that was given no nvcc: a coordinator that can install one does so and asks again.
pub const NEEDS_NVCC: &str = "nvcc is needed: ";

/// A compile step for a device.
pub fn compile(task: &Task) -> Response {
    try_compile(task).unwrap_or_else(|response| response)
}

fn try_compile(task: &Task) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    let source = task.required("tree:source")?;
    let shim = task.path("tree:shim");
    match compile_source(&params, &source, shim.as_deref(), &task.places.tools, &task.output) {
        Ok(CudaCompiled { cubin, facts, log, notes }) => {
            task.write("binary", &cubin)?;
            task.write_document("facts", &facts)?;
            task.write("log", log.as_bytes())?;
            Ok(done(format!("{} bytes, by {}", cubin.len(), facts.compiler), notes))
        }
        Err(CudaCompileError::NeedsFreshProcess { why }) => Ok(in_fresh_process(task, &why)),
        Err(error) => Err(answer(error)),
    }
}

fn answer(error: CudaCompileError) -> Response {
    match error {
        CudaCompileError::Failed { message, log } => {
            let note = Note { severity: Severity::Error, code: "compile.failed".into(), message: log };
            Response::Failed { message, notes: if note.message.trim().is_empty() { vec![] } else { vec![note] } }
        }
        CudaCompileError::NeedsNvcc { why, .. } => Response::Unavailable { why: format!("{NEEDS_NVCC}{why}") },
        CudaCompileError::NeedsFreshProcess { why } => failed(why),
        CudaCompileError::Unavailable { why } => Response::Unavailable { why },
    }
}

/// Has a worker of its own do the step: a process holds one NVRTC, and packages of one workspace may pin two. The new worker has loaded none, so it does not
/// come here again.
fn in_fresh_process(task: &Task, why: &str) -> Response {
    let request = Request {
        spec: task.spec.clone(),
        input: task.input.clone(),
        output: task.output.clone(),
        places: task.places.clone(),
        time_limit_s: task.left().as_secs(),
        memory_limit: task.memory_limit,
    };
    let cannot = |e: &dyn std::fmt::Display| failed(format!("{why}, but no fresh worker does it: {e}"));
    let line = match serde_json::to_string(&request) {
        Ok(line) => line,
        Err(e) => return cannot(&e),
    };
    let talker = match Talker::start(&Command::own().arg("worker")) {
        Ok(talker) => talker,
        Err(e) => return cannot(&e),
    };
    match talker.exchange(&line, task.left(), &AtomicBool::new(false)) {
        Ok(Ok((talker, answer))) => {
            // It ends when its input does; that it does so late changes nothing.
            drop(talker.dismiss(Duration::from_secs(1)));
            serde_json::from_str(&answer).unwrap_or_else(|e| cannot(&e))
        }
        Ok(Err(died)) => cannot(&died.end),
        Err(e) => cannot(&e),
    }
}

/// An inspect step for a device.
pub fn inspect(task: &Task) -> Response {
    try_inspect(task).unwrap_or_else(|response| response)
}

fn try_inspect(task: &Task) -> Result<Response, Response> {
    let params: InspectParams = task.params()?;
    let facts: CompileFacts = task.document("facts")?;
    let cubin = task.read("binary")?;
    let nvdisasm = if params.disassemble { Some(task.tool("nvdisasm")?) } else { None };
    let seen = inspect_binary(&params, &cubin, &facts, nvdisasm).map_err(failed)?;
    task.write_document("inspection", &seen)?;
    Ok(done(summary(&seen), vec![]))
}

/// `row: 42 registers, 0 spills, 1024 bytes shared; ...`, the entry with the most registers first; three at most.
fn summary(seen: &Inspection) -> String {
    let mut functions: Vec<_> = seen.functions.iter().collect();
    functions.sort_by_key(|f| std::cmp::Reverse(f.registers));
    let one = |f: &&crate::record::FunctionFacts| {
        let registers = f.registers.map_or("unknown registers".into(), |n| format!("{n} registers"));
        let spills = f.spill_stores.map_or("unknown spills".into(), |n| format!("{n} bytes spilt"));
        format!("{}: {registers}, {spills}, {} bytes shared", f.entry, f.shared.unwrap_or(0))
    };
    let mut parts: Vec<String> = functions.iter().take(3).map(one).collect();
    if functions.len() > parts.len() {
        parts.push(format!("and {} more", functions.len() - parts.len()));
    }
    parts.join("; ")
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
