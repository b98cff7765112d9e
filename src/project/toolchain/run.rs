//! Queries a tool: runs it until it exits and captures its output. Knows child processes, but not which tools exist.
//!
//! Children get only an explicit environment, so that `CPATH`, `NVCC_APPEND_FLAGS` and the like never reach a compiler.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Error;
use kforge_foundation::process::when_not_busy;

/// The output of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolOutput {
    /// Whether the tool exited with 0.
    pub(crate) success: bool,
    /// The tool's standard output.
    pub(crate) out: String,
    /// The tool's standard error.
    pub(crate) err: String,
}

/// The environment of a compiler: the `PATH` of its sub-tools, and English messages.
pub(crate) fn compiler_environment(path_var: &str) -> BTreeMap<String, String> {
    [("PATH", path_var), ("LC_ALL", "C")].map(|(k, v)| (k.to_string(), v.to_string())).into()
}

/// Runs `program` with exactly this environment and `stdin` on its standard input, and waits for it.
pub(crate) fn ask(
    program: &Path,
    args: &[&str],
    environment: &BTreeMap<String, String>,
    stdin: &str,
) -> Result<ToolOutput, Error> {
    let cannot = |source| Error::Run { program: program.to_owned(), source };
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(environment);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = when_not_busy(|| command.spawn()).map_err(cannot)?;
    if let Some(mut pipe) = child.stdin.take() {
        // `stdin` is far smaller than a pipe's capacity. A child that does not read it closes the pipe, which is not an error here.
        drop(pipe.write_all(stdin.as_bytes()));
    }
    let output = child.wait_with_output().map_err(cannot)?;
    Ok(ToolOutput {
        success: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The first executable file of that name in the folders of a `PATH`, by absolute path.
pub fn on_path(name: &str, path_var: &str) -> Option<PathBuf> {
    path_var
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .find(|file| is_executable(file))
}

/// The paths at which [`find`] looks in vain before it finds an executable. An executable that appears at one of them changes the answer.
pub(crate) fn passed_over(explicit: Option<&Path>, names: &[&str], path_var: &str) -> Vec<PathBuf> {
    let named = explicit.map(|p| p.to_string_lossy());
    let names: Vec<&str> = match (explicit, &named) {
        (Some(path), Some(name)) if path.components().count() == 1 => vec![name],
        (Some(_), _) => return vec![],
        (None, _) => names.to_vec(),
    };
    let folders = || path_var.split(':').filter(|folder| folder.starts_with('/')).map(Path::new);
    let looked = names.iter().flat_map(|name| folders().map(move |folder| folder.join(name)));
    looked.take_while(|file| !is_executable(file)).collect()
}

/// Whether `file` is an executable file.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Finds an executable: the one that the user named (a path, or a name on `PATH`), else the first of `names` on `PATH`.
pub(crate) fn find(
    explicit: Option<&Path>,
    names: &[&str],
    path_var: &str,
    what: &'static str,
) -> Result<PathBuf, Error> {
    match explicit {
        Some(path) if path.components().count() == 1 => on_path(&path.to_string_lossy(), path_var)
            .ok_or_else(|| Error::NotOnPath { what, name: path.display().to_string() }),
        Some(path) if is_executable(path) => {
            std::path::absolute(path).map_err(|source| Error::Path { what, path: path.to_owned(), source })
        }
        Some(path) => Err(Error::NotExecutable { what, path: path.to_owned() }),
        None => names
            .iter()
            .find_map(|name| on_path(name, path_var))
            .ok_or_else(|| Error::NoneOnPath { what, names: names.iter().map(ToString::to_string).collect() }),
    }
}
