//! The compile and inspect steps of kernels in Triton on `cpu`, and of kernels in PyTorch: from sources to what the interpreter or Python runs. Runs nothing of
//! the sources.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Importable, Interpretable, InterpretableFunction};
use kforge_emulator::SourceLines;
use kforge_foundation::base::{count, plain};
use kforge_foundation::process::End;
use kforge_harness::compilers::{Bounds, ToolSandbox, confined, ended, remembered};
use kforge_harness::message::Response;
use kforge_harness::task::{Task, done, failed, refused};
use kforge_types::record::observation::INTERPRETED;
use kforge_types::record::params::{CompileFacts, CompileParams, INTERPRETER_PYTHON, InspectParams, PYTHON_PROGRAM};
use kforge_types::record::{FunctionFacts, Inspection};

/// The program in Python that does it.
const PROGRAM: &str = include_str!("normalise.py");
/// What the program reads and writes, in the working folder.
const JOB: &str = "job.json";
const OUT: &str = "out.json";

/// Where the sources are, as the program reads it.
#[derive(Serialize)]
struct Job<'a> {
    tree: &'a Path,
    /// Whether documentation strings stay, which a program can read.
    docs: bool,
}

/// The program's answer.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// Each file: its text, and the line of the file from which each line of the text came.
    Files(BTreeMap<String, (String, Vec<u32>)>),
    /// What is wrong with a file.
    Refused(String),
}

/// The texts of files by name, and the line of the file from which each line of a text came.
type Texts = BTreeMap<String, (String, Vec<u32>)>;

/// Executes a compile step of a kernel in Triton on `cpu`.
pub(in crate::steps) fn compile(task: &Task) -> Response {
    confined(task, |bounds| compiled(task, bounds)).unwrap_or_else(|response| response)
}

/// Executes a compile step of a kernel in PyTorch.
pub(in crate::steps) fn compile_torch(task: &Task) -> Response {
    confined(task, |bounds| importable(task, bounds)).unwrap_or_else(|response| response)
}

fn importable(task: &Task, bounds: &Bounds) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    let files = normalised(task, bounds, &params, (PYTHON_PROGRAM, true))?;
    let lines = SourceLines { triton: files.iter().map(|(name, (_, lines))| (name.clone(), lines.clone())).collect() };
    let files = files.into_iter().map(|(name, (text, _))| (name, text)).collect();
    let binary = Importable { main: params.main.clone(), files };
    let facts = CompileFacts { compiler: "torch".into(), symbols: params.entries.clone(), ..CompileFacts::default() };
    written(task, &binary, &facts, &lines)?;
    Ok(done(format!("{} for PyTorch", count(binary.files.len(), "file")), vec![]))
}

fn compiled(task: &Task, bounds: &Bounds) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    if params.triton.is_empty() || params.triton.len() != params.entries.len() {
        return Err(failed(format!("no launch names a function of `{}`", plain(&params.main))));
    }
    let files = normalised(task, bounds, &params, (INTERPRETER_PYTHON, false))?;
    let lines = SourceLines { triton: files.iter().map(|(name, (_, lines))| (name.clone(), lines.clone())).collect() };
    let functions = params
        .triton
        .iter()
        .map(|compile| InterpretableFunction { function: compile.function.clone(), params: compile.params.clone() });
    let binary = Interpretable {
        main: params.main.clone(),
        functions: params.entries.iter().cloned().zip(functions).collect(),
        files: files.into_iter().map(|(name, (text, _))| (name, text)).collect(),
    };
    let symbols = params.triton.iter().map(|compile| compile.function.clone()).collect();
    let facts = CompileFacts { compiler: INTERPRETED.into(), symbols, ..CompileFacts::default() };
    written(task, &binary, &facts, &lines)?;
    Ok(done(format!("{} for Triton's interpreter", count(binary.files.len(), "file")), vec![]))
}

fn written(task: &Task, binary: &impl Serialize, facts: &CompileFacts, lines: &SourceLines) -> Result<(), Response> {
    task.write_document("binary", binary)?;
    task.write_document("facts", facts)?;
    task.write("lines", lines.to_text().as_bytes())?;
    task.write("log", b"")
}

/// The texts of the sources without comments. `python` names the interpreter among the tools.
fn normalised(
    task: &Task,
    bounds: &Bounds,
    params: &CompileParams,
    (python, docs): (&str, bool),
) -> Result<Texts, Response> {
    let io = |e: io::Error| failed(format!("cannot prepare the sources for Python: {e}"));
    let scratch = tempfile::Builder::new().prefix(".compile-").tempdir_in(&task.output).map_err(io)?;
    let within = ToolSandbox { scratch: scratch.path(), ..ToolSandbox::of(task, bounds) };
    let job = serde_json::to_vec(&Job { tree: &task.required("tree:source")?, docs }).map_err(|e| io(e.into()))?;
    fs::write(scratch.path().join(JOB), job).map_err(io)?;
    fs::write(scratch.path().join("normalise.py"), PROGRAM).map_err(io)?;
    let command = within.command(task.tool(python)?, scratch.path()).map_err(io)?;
    let command = command.args(["-I", "-S", "-B", "normalise.py", JOB, OUT]).env("PYTHONHASHSEED", "0");
    let finished = within.run(&command).map_err(io)?;
    if finished.end != End::Exited(0) {
        let log = finished.stdout.text() + &finished.stderr.text();
        let response = refused(params, ended("Python", finished.end), &log, vec![]);
        return Err(remembered(response, Some(finished.end), &log));
    }
    let answer = fs::read(scratch.path().join(OUT)).map_err(io)?;
    match serde_json::from_slice(&answer).map_err(|e| io(e.into()))? {
        Answer::Files(files) => Ok(files),
        Answer::Refused(message) => Err(refused(params, plain(&message), "", vec![])),
    }
}

/// Whether a binary for `cpu` is of a kernel in Triton or in PyTorch.
pub(in crate::steps) fn is_interpretable(binary: &[u8]) -> bool {
    binary.starts_with(b"{")
}

/// Executes an inspect step of such a kernel: what the sources alone say.
pub(in crate::steps) fn inspect(task: &Task) -> Response {
    inspected(task).unwrap_or_else(|response| response)
}

fn inspected(task: &Task) -> Result<Response, Response> {
    let params: InspectParams = task.params()?;
    let of = |entry: &String| FunctionFacts { entry: entry.clone(), symbol: entry.clone(), ..FunctionFacts::default() };
    let facts = Inspection {
        architectures: vec!["cpu".into()],
        functions: params.entries.iter().map(of).collect(),
        disassembled: false,
        refused: vec![],
    };
    task.write_document("inspection", &facts)?;
    Ok(done(count(facts.functions.len(), "entry"), vec![]))
}
