//! References of the package in C++: compiled by the host compiler into a program that makes one call, and run confined. The head of `reference.h` documents
//! what such a function may use.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{self, Call, InFile, below, heard, said, said_as};
use super::source::Named;
use crate::compilers::{Bounds, ToolSandbox, advice, confined, ended};
use crate::message::Response;
use crate::system::{assembler_reads, files_read, only_of_toolchain};
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_numerics::reference::float;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_project::toolchain::cxx::search_path;
use kforge_project::workspace::find::tidy;
use kforge_types::model::{Problem, Scalar};

const HEADER: &str = include_str!("reference.h");

/// Computes expected values with a function.
pub(super) fn expected(
    task: &Task,
    problem: &Problem,
    inputs: &Named,
    file: &str,
    function: &str,
    scale: bool,
) -> Result<OracleOutput, Response> {
    if !function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(failed(format!("`{function}` is not a valid name of an `extern \"C\"` function")));
    }
    let call = Call::new(task)?;
    let compiled = program(task, file, function)?;
    call.write("reference", &compiled)?;
    std::fs::set_permissions(call.path("reference"), std::fs::Permissions::from_mode(0o700))
        .map_err(|e| failed(format!("cannot make the reference executable: {e}")))?;
    let mut lines = String::new();
    for (name, value) in &problem.dims {
        let _ = writeln!(lines, "dim {name} {value}");
    }
    for param in &problem.params {
        let value = match param.value {
            Scalar::Float(f) => float::round_to(param.dtype, f),
            other => other.as_f64(),
        };
        let _ = writeln!(lines, "param {} {value:e}", param.name);
    }
    for (name, place) in call.give("in", problem, inputs)? {
        describe(&mut lines, "in", &name, &place);
    }
    for (at, tensor) in problem.written().enumerate() {
        describe(&mut lines, "out", &tensor.name, &InFile::of(tensor, format!("out{at}")));
    }
    call.write("call.txt", lines.as_bytes())?;
    let program = call.path("reference");
    let finished = call.run(task, &program, &["call.txt"], &[], &[])?;
    if !finished.end.success() {
        return Err(said(format!("`{file}::{function}` {}", call::ended(task, finished.end)), &finished));
    }
    let mut output = OracleOutput::default();
    for (at, tensor) in problem.written().enumerate() {
        output.outputs.insert(tensor.name.clone(), call.take(tensor, &format!("out{at}"))?);
        if scale && let Some(scale) = call.take_scale(tensor, &format!("out{at}.scale"))? {
            output.scales.insert(tensor.name.clone(), scale);
        }
    }
    Ok(output)
}

fn describe(lines: &mut String, what: &str, name: &str, place: &InFile) {
    let kind = if place.kind == "float64" { 'f' } else { 'i' };
    let _ = writeln!(lines, "{what} {name} {} {kind} {}", place.file, place.len());
}

/// What a compiled reference depends on: the package's files, the compiler, the file and the function.
type Key = (Option<Digest>, PathBuf, String, String);

/// The last [`KEPT`] programs that this worker compiled: one reference serves many shapes, trials and null candidates.
static COMPILED: Mutex<Vec<(Key, Arc<Vec<u8>>)>> = Mutex::new(Vec::new());
const KEPT: usize = 16;

/// The program of a reference. Compiles it unless this worker has done so.
fn program(task: &Task, file: &str, function: &str) -> Result<Arc<Vec<u8>>, Response> {
    let tree = task.spec.inputs.get("tree:reference").and_then(|input| input.digest);
    let key = (tree, task.tool("c++")?.to_path_buf(), file.to_string(), function.to_string());
    let find = |all: &Vec<(Key, Arc<Vec<u8>>)>| all.iter().find(|(k, _)| *k == key).map(|(_, made)| Arc::clone(made));
    if let Some(made) = find(&COMPILED.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(made);
    }
    let made = Arc::new(confined(task, |bounds| compile(task, bounds, file, function))?);
    let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= KEPT {
        all.remove(0);
    }
    all.push((key, Arc::clone(&made)));
    Ok(made)
}

/// Compiles the reference and a `main` that calls it, in the environment in which the compiler's fingerprint was taken.
fn compile(task: &Task, bounds: &Bounds, file: &str, function: &str) -> Result<Vec<u8>, Response> {
    let call = Call::new(task)?;
    let root = task.required("tree:reference")?;
    let main = format!(
        "extern \"C\" void {function}(const kforge::Call&);\n\
         int main(int, char** words) {{ kforge::Call call(words[1]); {function}(call); call.finish(); }}\n"
    );
    call.write("kforge_reference.h", HEADER.as_bytes())?;
    call.write("main.cpp", main.as_bytes())?;
    // Without contraction of a * b + c, machines with and without fused multiply-add compute the same values.
    let flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-include", "kforge_reference.h", "-I.", "-I"];
    // A failed assertion names its file as the package does, wherever it was compiled.
    let named = format!("-ffile-prefix-map={}/=", root.display());
    let cxx = task.tool("c++")?;
    let within = ToolSandbox::of(task, bounds);
    let compile = |args: &[&Path]| {
        let cannot = |e: std::io::Error| failed(format!("cannot compile the reference: {e}"));
        let command = within.command(cxx, call.dir.path()).map_err(cannot)?;
        let command = command.args(flags).arg(&root).arg(&named).args(args);
        let command = command.env("PATH", search_path(cxx)).env("LC_ALL", "C").env("TMPDIR", call.dir.path());
        let finished = within.run(&command).map_err(cannot)?;
        match finished.end.success() {
            true => Ok(()),
            false => {
                let ended = ended("the compiler", finished.end);
                let text = heard(&finished);
                let message = format!("cannot compile the reference `{file}`: {ended}");
                Err(said_as(message, below(&root, &text) + advice(&text)))
            }
        }
    };
    let source = root.join(file);
    let assembly = ["-S", "-o", "reference.s", "-MD", "-MF", "reads"].map(Path::new);
    compile(&[&[source.as_path()], assembly.as_slice()].concat())?;
    let text = |name: &str| {
        let bytes = std::fs::read(call.path(name));
        let bytes =
            bytes.map_err(|e| failed(format!("cannot read the list of files that the reference includes: {e}")))?;
        Ok::<_, Response>(String::from_utf8_lossy(&bytes).into_owned())
    };
    only_of_toolchain(task, "toolchain:c++", file, &elsewhere(&text("reads")?, &root, call.dir.path()))?;
    if let Some(line) = assembler_reads(&text("reference.s")?) {
        return Err(failed(format!(
            "the reference `{file}` makes the assembler read a file that kforge does not track: `{line}`"
        )));
    }
    compile(&["reference.s", "-x", "c++", "main.cpp", "-o", "reference"].map(Path::new))?;
    std::fs::read(call.path("reference")).map_err(|e| failed(format!("cannot read the compiled reference: {e}")))
}

/// The files in the list that are neither in the tree `root` nor in the folder of the call.
fn elsewhere(list: &str, root: &Path, folder: &Path) -> Vec<PathBuf> {
    let ours = |file: &PathBuf| {
        let whole = tidy(&folder.join(file));
        whole.starts_with(tidy(root)) || whole.starts_with(tidy(folder))
    };
    files_read(list).into_iter().map(PathBuf::from).filter(|file| !ours(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_the_package_and_the_call_is_elsewhere() {
        let of = |file: &str| elsewhere(&format!("reference.s: {file}\n"), Path::new("/tree"), Path::new("/call"));
        for file in ["/tree/ref.cpp", "/tree/sub/../a.h", "kforge_reference.h"] {
            assert_eq!(of(file), [] as [PathBuf; 0], "{file}");
        }
        for file in ["/tree/../a.h", "/usr/include/stdio.h", "../a.h"] {
            assert_eq!(of(file), [PathBuf::from(file)], "{file}");
        }
    }
}
