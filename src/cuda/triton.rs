//! Compiles Triton functions to cubins: lays out the job of each, runs `triton/driver.py` with Python in a confined process, and reads its answer.
//! Knows the contract of each release; launches nothing.
//!
//! | decision | reason |
//! |---|---|
//! | one process and one folder for each function | nothing that a source did at import reaches another compilation |
//! | that process is a copy of one that only imported Triton | importing takes longer than most compilations ([`python_server`](kforge_harness::python_server)) |
//! | the cubins of several functions are one archive | the compiler makes a cubin for each, and two may have one symbol |
//! | the environment is empty but for the variables below | Triton reads some forty variables; several change the machine code silently |
//! | the driver sets home, cache and temporary files to places in the working folder | the cache of a user would answer for other sources, and is written by others |
//! | no line tables | a comment would change the binary |
//! | answers are files | Triton prints PTX to standard output, and sources print, too |
//! | the binary must have the parameters that the signature and the release imply | a launch with others would read memory behind them |

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compile::{CudaCompileError, CudaCompiled};
use super::{elf, log};
use kforge_foundation::process::{End, Finished};
use kforge_harness::compilers::{NICE, ToolSandbox, ended};
use kforge_harness::python_server::PythonServer;
use kforge_harness::triton::{JITTED, JITTED_NAME};
use kforge_types::model::target::capability;
use kforge_types::model::tensor_map;
use kforge_types::model::triton::{DESCRIPTOR, TritonCompile, TritonOptions, TritonParam, TritonParamKind};
use kforge_types::record::contract::TritonFacts;
use kforge_types::record::machine_code;
use kforge_types::record::params::{CompileFacts, CompileParams};

/// The name of the folder of the wheel in a task's tools.
pub const TRITON: &str = "triton";
/// The name of the interpreter in a task's tools.
pub const PYTHON: &str = "python";

const DRIVER: &str = include_str!("triton/driver.py");
const DRIVER_NAME: &str = "driver.py";
/// What the process imports that is copied for compilations. It begins with [`JITTED`].
const IMPORTS: &str = include_str!("triton/imports.py");
/// Neither variables, nor the working folder, nor installed packages add modules.
const PYTHON_OPTIONS: [&str; 3] = ["-I", "-S", "-B"];
/// The environment of the compiler. The driver adds where its folders are.
const VARIABLES: [(&str, &str); 4] = [
    ("PATH", "/usr/bin:/bin"),
    ("PYTHONHASHSEED", "0"),
    ("TRITON_DISABLE_LINE_INFO", "1"),
    // The log reports registers and spills.
    ("TRITON_DUMP_PTXAS_LOG", "1"),
];
/// What a job reads and writes, in the working folder.
const JOB: &str = "job.json";
const OUT: &str = "out";

/// A job, as the driver reads it.
#[derive(Serialize)]
struct TritonJob<'a> {
    /// The working folder.
    folder: &'a Path,
    /// The folder of the sources.
    tree: &'a Path,
    /// The folder of the wheel.
    triton: &'a Path,
    main: &'a str,
    function: &'a str,
    capability: u32,
    params: &'a [TritonParam],
    options: TritonOptions,
}

/// The answer of a driver whose source does not compile.
#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// A function that was compiled.
struct CompiledFunction {
    cubin: Vec<u8>,
    facts: TritonFacts,
    log: String,
}

/// Compiles the functions of the source tree at `source` as `params` specify, each by itself.
///
/// # Errors
/// The source is wrong, a tool is missing, or a binary is not what the signature implies.
pub fn compile_triton(
    params: &CompileParams,
    source: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<CudaCompiled, CudaCompileError> {
    if params.entries.len() != params.triton.len() {
        let (entries, functions) = (params.entries.len(), params.triton.len());
        return Err(CudaCompileError::failed(format!("BUG: {functions} signatures for {entries} entries")));
    }
    let (mut cubins, mut log) = (vec![], String::new());
    let mut facts = CompileFacts { compiler: TRITON.into(), ..CompileFacts::default() };
    for (at, (entry, compile)) in params.entries.iter().zip(&params.triton).enumerate() {
        let made = compile_function(params, (at, compile), source, tools, within)?;
        // Two functions of a binary may have one symbol.
        let spills = log::spills(&made.log).into_iter();
        facts.spills.extend(spills.map(|(symbol, bytes)| match symbol == made.facts.name {
            true => (entry.clone(), bytes),
            false => (symbol, bytes),
        }));
        facts.symbols.push(made.facts.name.clone());
        facts.triton.push(made.facts);
        cubins.push(made.cubin);
        log += &made.log;
    }
    Ok(CudaCompiled { cubin: machine_code::joined(cubins), ptx: None, facts, log, notes: vec![] })
}

/// Compiles one function, whose place among those of the source is `at`.
fn compile_function(
    params: &CompileParams,
    (at, compile): (usize, &TritonCompile),
    source: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<CompiledFunction, CudaCompileError> {
    let (capability, _) = capability(&params.arch).map_err(|unknown| CudaCompileError::failed(unknown.to_string()))?;
    let function = compile.function.as_str();
    let missing = |what: &str| CudaCompileError::Unavailable { why: format!("the toolchain has no {what} here") };
    let (python, wheel) = (tools.get(PYTHON), tools.get(TRITON));
    let (python, wheel) = (python.ok_or_else(|| missing(PYTHON))?, wheel.ok_or_else(|| missing(TRITON))?);
    let io = |e: io::Error| CudaCompileError::Unavailable { why: format!("could not run Triton: {e}") };
    // What a source leaves behind in a working folder must not reach the next compilation.
    let folder = within.scratch.join(format!("{TRITON}-{at}"));
    for name in [OUT, "home", "tmp"] {
        fs::create_dir_all(folder.join(name)).map_err(io)?;
    }
    let job = TritonJob {
        folder: &folder,
        tree: source,
        triton: wheel,
        main: &params.main,
        function,
        capability,
        params: &compile.params,
        options: compile.options,
    };
    let job = serde_json::to_vec(&job).map_err(|e| io(e.into()))?;
    fs::write(folder.join(JOB), job).map_err(io)?;
    fs::write(folder.join(DRIVER_NAME), DRIVER).map_err(io)?;
    fs::write(folder.join(JITTED_NAME), JITTED).map_err(io)?;
    let finished = run_driver(&folder, (python, wheel), within).map_err(io)?;
    let text = finished.stdout.text() + &finished.stderr.text();
    let hide = |text: &str| hidden(text, &[&folder, source, wheel]);
    let text = log::timeless(&hide(&text));
    if let End::TimedOut(_) | End::Misbehaved(_) | End::Signalled(_) = finished.end {
        let message = ended("Triton", finished.end);
        return Err(CudaCompileError::Failed { message, log: text, ended: Some(finished.end) });
    }
    let out = folder.join(OUT);
    if let Ok(bytes) = fs::read(out.join("error.json")) {
        let refusal: Refusal = serde_json::from_slice(&bytes).map_err(|_| unanswered(params, &text))?;
        return Err(CudaCompileError::Failed { message: hide(&refusal.message), log: text, ended: None });
    }
    let cubin = fs::read(out.join("cubin")).map_err(|_| unanswered(params, &text))?;
    let launch = fs::read(out.join("launch.json")).map_err(|_| unanswered(params, &text))?;
    let facts: TritonFacts = serde_json::from_slice(&launch).map_err(|_| unanswered(params, &text))?;
    checked(compile, &cubin, &facts).map_err(|message| CudaCompileError::Failed {
        message: format!("`{function}`: {message}"),
        log: text.clone(),
        ended: None,
    })?;
    Ok(CompiledFunction { cubin, facts, log: text })
}

/// Runs the driver in its folder: in a copy of a process that has imported Triton, or in a process of its own if the step's tools are not confined or this
/// Python cannot serve.
fn run_driver(folder: &Path, (python, wheel): (&Path, &Path), within: &ToolSandbox<'_>) -> io::Result<Finished> {
    let arguments = [JOB, OUT];
    if let Some(bounds) = within.bounds {
        let call = serde_json::json!({ "triton": wheel, "nice": NICE });
        let server = PythonServer::new(python, &PYTHON_OPTIONS, &VARIABLES).with_imports(
            &format!("{JITTED}\n\n{IMPORTS}"),
            call,
            vec![],
        );
        let (folder, keep, room) = (folder.to_path_buf(), bounds.of_program(folder), bounds.room(folder));
        let left = within.left();
        let run = move || server.run_in(Some(&room), (&folder, DRIVER_NAME, &arguments), &keep, left);
        if let Some(finished) = bounds.outside().run(run).flatten()? {
            return Ok(finished);
        }
    }
    let command = within.command(python, folder)?.args(PYTHON_OPTIONS).arg(DRIVER_NAME).args(arguments);
    within.run(&VARIABLES.into_iter().fold(command, |command, (name, value)| command.env(name, value)))
}

/// The text without paths of this machine.
fn hidden(text: &str, paths: &[&Path]) -> String {
    let mut text = text.to_string();
    for path in paths {
        let path = path.to_string_lossy();
        text = text.replace(&format!("{path}/"), "").replace(&*path, ".");
    }
    text
}

fn unanswered(params: &CompileParams, log: &str) -> CudaCompileError {
    let last = log.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gave no answer");
    CudaCompileError::Failed {
        message: format!("Triton could not compile `{}`: {last}", params.main),
        log: log.into(),
        ended: None,
    }
}

/// The bytes of each parameter that an argument of that type becomes.
fn sizes_of(ty: &str, facts: &TritonFacts) -> Option<Vec<u32>> {
    let Some(of) = ty.strip_prefix(DESCRIPTOR) else { return bytes_of(ty).map(|bytes| vec![bytes]) };
    let axes = of.split(',').count();
    let parts = [vec![4; axes], vec![8; axes]].concat();
    let first = match facts.maps.is_empty() {
        false => vec![tensor_map::BYTES as u32],
        true => {
            let truths = if facts.passes_rounding() { 2 } else { 1 };
            [vec![8; 1 + 2 * axes], vec![1; truths]].concat()
        }
    };
    Some([first, parts].concat())
}

/// The bytes of a parameter of that type.
fn bytes_of(ty: &str) -> Option<u32> {
    Some(match ty {
        _ if ty.starts_with('*') => 8,
        "i64" | "u64" | "fp64" => 8,
        "i32" | "u32" | "fp32" => 4,
        "i16" | "u16" | "fp16" | "bf16" => 2,
        "i1" | "u1" | "i8" | "u8" | "fp8e4nv" | "fp8e5" => 1,
        _ => return None,
    })
}

/// Hidden parameters behind those of the source: the addresses of global scratch and of profile scratch, in every release that is known.
fn hidden_of(version: [u32; 2]) -> Option<u32> {
    matches!(version, [3, 5..=9]).then_some(2)
}

/// Compares the parameters that the signature and the release imply with those of the binary.
fn checked(compile: &TritonCompile, cubin: &[u8], facts: &TritonFacts) -> Result<(), String> {
    let [major, minor] = facts.version;
    let hidden = hidden_of(facts.version)
        .ok_or_else(|| format!("Triton {major}.{minor} made it, and kforge knows the launches of 3.5 to 3.9"))?;
    let mut expected = vec![];
    for param in &compile.params {
        if let TritonParamKind::Typed { ty, .. } = &param.kind {
            let sizes = sizes_of(ty, facts);
            expected.extend(sizes.ok_or_else(|| format!("`{ty}` is not a type of a parameter"))?);
        }
    }
    expected.extend((0..hidden).map(|_| 8));
    let takes = elf::parameters(cubin, &facts.name).map_err(|e| e.to_string())?;
    let takes = takes.ok_or_else(|| format!("the binary has no function `{}`", facts.name))?;
    if takes != expected {
        let shown = |sizes: &[u32]| sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the binary takes parameters of {} bytes, and Triton {major}.{minor} passes {} bytes: kforge does not launch it",
            shown(&takes),
            shown(&expected)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::contract::MapFacts;

    #[test]
    fn only_releases_whose_launches_are_known_have_hidden_parameters() {
        assert_eq!([4, 5, 9, 10].map(|minor| hidden_of([3, minor])), [None, Some(2), Some(2), None]);
        assert_eq!(hidden_of([4, 5]), None);
    }

    #[test]
    fn a_descriptor_is_a_map_or_its_parts_and_extents_and_strides() {
        let facts = |version, maps| TritonFacts {
            version,
            name: "k".into(),
            num_warps: 4,
            num_ctas: 1,
            shared: 0,
            global_scratch_size: 0,
            global_scratch_align: 1,
            profile_scratch_size: 0,
            profile_scratch_align: 1,
            cooperative: false,
            pdl: false,
            descriptors: maps as u32,
            maps: vec![MapFacts { tile: vec![64, 64], swizzle: 128 }; maps],
        };
        let matrix = |version, maps| sizes_of("tensordesc<fp16[128, 64]>", &facts(version, maps)).unwrap();
        assert_eq!(matrix([3, 9], 1), [128, 4, 4, 8, 8]);
        assert_eq!(matrix([3, 6], 0), [8, 8, 8, 8, 8, 1, 4, 4, 8, 8]);
        assert_eq!(matrix([3, 7], 0), [8, 8, 8, 8, 8, 1, 1, 4, 4, 8, 8]);
        assert_eq!(sizes_of("tensordesc<fp32[16]>", &facts([3, 5], 0)).unwrap(), [8, 8, 8, 1, 4, 8]);
        assert_eq!(sizes_of("*fp16", &facts([3, 9], 0)), Some(vec![8]));
        assert_eq!(sizes_of("string", &facts([3, 9], 0)), None);
    }

    #[test]
    fn paths_of_the_machine_are_hidden() {
        let paths = [Path::new("/tmp/w"), Path::new("/home/me/tree")];
        assert_eq!(hidden("/tmp/w/x.ptx: /home/me/tree/k.py:3 in /tmp/w", &paths), "x.ptx: k.py:3 in .");
    }
}
