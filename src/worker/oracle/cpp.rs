//! References of the package in C++: compiled by the host's compiler into a program of one call, run confined. What such a function may use is written at
//! the head of `reference.h`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{Call, InFile, said};
use super::source::Named;
use crate::base::Digest;
use crate::model::{Problem, Scalar};
use crate::process::{Command, run};
use crate::reference::float;
use crate::reference::oracle::OracleOutput;
use crate::worker::emulator::build::files_read;
use crate::worker::message::Response;
use crate::worker::task::{Task, failed};
use crate::workspace::find::tidy;

const HEADER: &str = include_str!("reference.h");

/// Expected values by a function.
pub(super) fn expected(
    task: &Task,
    problem: &Problem,
    inputs: &Named,
    file: &str,
    function: &str,
    scale: bool,
) -> Result<OracleOutput, Response> {
    if !function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(failed(format!("`{function}` is no name of an `extern \"C\"` function")));
    }
    let call = Call::new(task)?;
    let compiled = program(task, file, function)?;
    call.write("reference", &compiled)?;
    std::fs::set_permissions(call.path("reference"), std::fs::Permissions::from_mode(0o700))
        .map_err(|e| failed(format!("cannot make the reference a program: {e}")))?;
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
        return Err(said(format!("`{file}::{function}` {}", finished.end), &finished));
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

/// What a compiled reference depends on: the package's files, the compiler, and which function it is.
type Key = (Option<Digest>, PathBuf, String, String);

/// Programs that this worker compiled, the last [`KEPT`]: one reference serves many shapes, trials and null candidates.
static COMPILED: Mutex<Vec<(Key, Arc<Vec<u8>>)>> = Mutex::new(Vec::new());
const KEPT: usize = 16;

/// The program of a reference, compiled if this worker has not done so.
fn program(task: &Task, file: &str, function: &str) -> Result<Arc<Vec<u8>>, Response> {
    let tree = task.spec.inputs.get("tree:reference").and_then(|input| input.digest);
    let key = (tree, task.tool("c++")?.to_path_buf(), file.to_string(), function.to_string());
    let find = |all: &Vec<(Key, Arc<Vec<u8>>)>| all.iter().find(|(k, _)| *k == key).map(|(_, made)| Arc::clone(made));
    if let Some(made) = find(&COMPILED.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(made);
    }
    let made = Arc::new(compile(task, file, function)?);
    let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= KEPT {
        all.remove(0);
    }
    all.push((key, Arc::clone(&made)));
    Ok(made)
}

/// Compiles the reference and a `main` that calls it. The compiler itself is trusted as it is for every other build: a tool of the user's.
fn compile(task: &Task, file: &str, function: &str) -> Result<Vec<u8>, Response> {
    let call = Call::new(task)?;
    let root = task.required("tree:reference")?;
    let main = format!(
        "extern \"C\" void {function}(const kforge::Call&);\n\
         int main(int, char** words) {{ kforge::Call call(words[1]); {function}(call); call.finish(); }}\n"
    );
    call.write("kforge_reference.h", HEADER.as_bytes())?;
    call.write("main.cpp", main.as_bytes())?;
    // No contraction of a * b + c: the same values on machines with and without fused multiply-add.
    let flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-include", "kforge_reference.h", "-I.", "-I"];
    let cxx = task.tool("c++")?;
    let compile = |args: &[&Path]| {
        let command = Command::new(cxx)
            .args(flags)
            .arg(&root)
            .args(args)
            .dir(call.dir.path())
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", call.dir.path());
        let finished = run(&command, Some(task.left()), &std::sync::atomic::AtomicBool::new(false))
            .map_err(|e| failed(format!("cannot compile the reference: {e}")))?;
        match finished.end.success() {
            true => Ok(()),
            false => {
                Err(said(format!("cannot compile the reference `{file}`: the compiler {}", finished.end), &finished))
            }
        }
    };
    compile(&["-c", "main.cpp", "-o", "main.o", "-MD", "-MF", "known"].map(Path::new))?;
    let source = root.join(file);
    let main = ["main.o", "-o", "reference", "-MD", "-MF", "reads"].map(Path::new);
    compile(&[&[source.as_path()], main.as_slice()].concat())?;
    let list = |name: &str| {
        let text = std::fs::read(call.path(name));
        let text = text.map_err(|e| failed(format!("cannot read which headers the reference reads: {e}")))?;
        Ok(files_read(&String::from_utf8_lossy(&text)).into_iter().map(PathBuf::from).collect::<Vec<_>>())
    };
    if let Some(header) = elsewhere(&list("reads")?, &list("known")?, &root, call.dir.path()) {
        return Err(failed(format!(
            "the reference `{file}` reads `{}`, of which kforge would not know that it changed: a reference can include headers of its package beside it and below, \
             and those of the C++ standard library and the system",
            header.display()
        )));
    }
    std::fs::read(call.path("reference")).map_err(|e| failed(format!("cannot read the compiled reference: {e}")))
}

/// Folders of the standard library's and the system's headers that lie below others of theirs. Libraries that were installed beside them have folders of other names.
const FOLDERS: [&str; 19] = [
    "arpa",
    "asm",
    "asm-generic",
    "backward",
    "bits",
    "debug",
    "decimal",
    "experimental",
    "ext",
    "gnu",
    "linux",
    "net",
    "netinet",
    "parallel",
    "pstl",
    "rpc",
    "sys",
    "tr1",
    "tr2",
];

/// The first of the files read that is neither in the tree `root` nor in the folder of the call, nor in a folder of the system's headers: one that holds a file in
/// `known`, which is what our own header brings.
fn elsewhere(reads: &[PathBuf], known: &[PathBuf], root: &Path, folder: &Path) -> Option<PathBuf> {
    let ours = |file: &Path| {
        let whole = tidy(&folder.join(file));
        whole.starts_with(tidy(root)) || whole.starts_with(tidy(folder))
    };
    // Where the file is, whatever the compiler's way to it.
    let real = |file: &Path| file.canonicalize().unwrap_or_else(|_| tidy(file));
    let below = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        // Those of libc++ all begin so.
        name.starts_with("__") || FOLDERS.contains(&&*name)
    };
    let system: BTreeSet<PathBuf> = known
        .iter()
        .filter(|file| !ours(file))
        .filter_map(|file| {
            let file = real(file);
            file.ancestors().skip(1).find(|folder| !below(folder)).map(Path::to_path_buf)
        })
        .collect();
    let standard = |file: &Path| {
        let file = real(file);
        file.ancestors().skip(1).find(|folder| !below(folder)).is_some_and(|folder| system.contains(folder))
    };
    reads.iter().find(|file| !ours(file) && !standard(file)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_other_libraries_are_elsewhere() {
        let known = ["/no/c++/12/cstdint", "/no/c++/12/bits/stl_map.h", "/no/include/stdio.h", "kforge_reference.h"];
        let known = known.map(PathBuf::from);
        let of = |file: &str| elsewhere(&[PathBuf::from(file)], &known, Path::new("/tree"), Path::new("/call"));
        for file in [
            "/tree/ref.cpp",
            "/tree/sub/../a.h",
            "kforge_reference.h",
            "/no/c++/12/ext/x.h",
            "/no/include/sys/socket.h",
            "/no/include/x.h",
        ] {
            assert_eq!(of(file), None, "{file}");
        }
        for file in ["/tree/../a.h", "/no/include/eigen3/Eigen/Core", "/no/local/include/x.h", "../a.h", "/no/x.h"] {
            assert_eq!(of(file), Some(PathBuf::from(file)), "{file}");
        }
    }
}
