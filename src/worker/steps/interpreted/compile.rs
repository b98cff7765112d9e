//! The compile and inspect steps of kernels in Triton on `cpu`: from sources to what the interpreter runs. Runs nothing of the sources.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Interpretable, InterpretableFunction};
use kforge_emulator::SourceLines;
use kforge_foundation::base::{count, plain};
use kforge_foundation::process::End;
use kforge_harness::compilers::{Bounds, ToolSandbox, confined, ended, remembered};
use kforge_harness::message::Response;
use kforge_harness::task::{Task, done, failed, refused};
use kforge_types::record::observation::INTERPRETED;
use kforge_types::record::params::{CompileFacts, CompileParams, INTERPRETER_PYTHON, InspectParams};
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

/// Executes a compile step of a kernel in Triton on `cpu`.
pub(in crate::steps) fn compile(task: &Task) -> Response {
    confined(task, |bounds| compiled(task, bounds)).unwrap_or_else(|response| response)
}

fn compiled(task: &Task, bounds: &Bounds) -> Result<Response, Response> {
    let params: CompileParams = task.params()?;
    if params.triton.is_empty() || params.triton.len() != params.entries.len() {
        return Err(failed(format!("no launch names a function of `{}`", plain(&params.main))));
    }
    let io = |e: io::Error| failed(format!("cannot prepare the sources for Triton's interpreter: {e}"));
    let scratch = tempfile::Builder::new().prefix(".compile-").tempdir_in(&task.output).map_err(io)?;
    let within = ToolSandbox { scratch: scratch.path(), ..ToolSandbox::of(task, bounds) };
    let job = serde_json::to_vec(&Job { tree: &task.required("tree:source")? }).map_err(|e| io(e.into()))?;
    fs::write(scratch.path().join(JOB), job).map_err(io)?;
    fs::write(scratch.path().join("normalise.py"), PROGRAM).map_err(io)?;
    let command = within.command(task.tool(INTERPRETER_PYTHON)?, scratch.path()).map_err(io)?;
    let command = command.args(["-I", "-S", "-B", "normalise.py", JOB, OUT]).env("PYTHONHASHSEED", "0");
    let finished = within.run(&command).map_err(io)?;
    if finished.end != End::Exited(0) {
        let log = finished.stdout.text() + &finished.stderr.text();
        let response = refused(&params, ended("Python", finished.end), &log, vec![]);
        return Err(remembered(response, Some(finished.end), &log));
    }
    let answer = fs::read(scratch.path().join(OUT)).map_err(io)?;
    let files = match serde_json::from_slice(&answer).map_err(|e| io(e.into()))? {
        Answer::Files(files) => files,
        Answer::Refused(message) => return Err(refused(&params, plain(&message), "", vec![])),
    };
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
    task.write_document("binary", &binary)?;
    task.write_document("facts", &facts)?;
    task.write("lines", lines.to_text().as_bytes())?;
    task.write("log", b"")?;
    Ok(done(format!("{} for Triton's interpreter", count(binary.files.len(), "file")), vec![]))
}

/// Whether a binary for `cpu` is of a kernel in Triton.
pub(in crate::steps) fn is_interpretable(binary: &[u8]) -> bool {
    binary.starts_with(b"{")
}

/// Executes an inspect step of a kernel in Triton on `cpu`: what the sources alone say.
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
