//! A call of a function of the package, by files in a scratch folder: values in, values out, eight bytes each. Knows names, shapes and kinds of numbers; does
//! not know the language.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use super::source::Named;
use crate::compilers::permitted;
use crate::confine::Confinement;
use crate::message::Response;
use crate::python_server::PythonServer;
use crate::task::{Task, failed};
use kforge_foundation::base::{Severity, count};
use kforge_foundation::process::{Command, End, Finished, Limits, run};
use kforge_numerics::reference::{Values, logical_len, logical_shape};
use kforge_types::model::{Problem, Tensor};
use kforge_types::record::Note;

/// A tensor in a file.
#[derive(Debug, Clone, Serialize)]
pub(super) struct InFile {
    /// The file, in the folder of the call.
    pub(super) file: String,
    /// `float64` or `int64`.
    pub(super) kind: &'static str,
    /// The shape as the operator sees it.
    pub(super) shape: Vec<usize>,
}

/// The folder of one call, removed with this value.
pub(crate) struct Call {
    pub(crate) dir: TempDir,
}

impl InFile {
    pub(super) fn of(tensor: &Tensor, file: String) -> Self {
        let kind = if tensor.dtype.is_float() { "float64" } else { "int64" };
        InFile { file, kind, shape: logical_shape(tensor) }
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Call {
    /// Creates a folder in the output folder, which is removed before outputs are collected.
    pub(crate) fn new(task: &Task) -> Result<Self, Response> {
        let dir = tempfile::Builder::new().prefix(".reference-").tempdir_in(&task.output);
        Ok(Call { dir: dir.map_err(|e| failed(format!("cannot make a folder for the reference: {e}")))? })
    }

    pub(crate) fn path(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, bytes: &[u8]) -> Result<(), Response> {
        fs::write(self.path(file), bytes).map_err(|e| failed(format!("cannot write what the reference reads: {e}")))
    }

    /// Writes the values of tensors. `prefix` separates several sets.
    pub(super) fn give(
        &self,
        prefix: &str,
        problem: &Problem,
        values: &Named,
    ) -> Result<Vec<(String, InFile)>, Response> {
        let mut given = vec![];
        for (at, tensor) in problem.tensors.iter().enumerate() {
            let Some(values) = values.get(&tensor.name) else { continue };
            let file = format!("{prefix}{at}");
            self.write(&file, &values.to_le_bytes())?;
            given.push((tensor.name.clone(), InFile::of(tensor, file)));
        }
        Ok(given)
    }

    /// The values in a file that the reference wrote.
    pub(super) fn take(&self, tensor: &Tensor, file: &str) -> Result<Values, Response> {
        let bytes = fs::read(self.path(file))
            .map_err(|_| failed(format!("the reference returned no values for `{}`", tensor.name)))?;
        let want = logical_len(tensor);
        if bytes.len() != want * 8 {
            let got = bytes.len() / 8;
            return Err(failed(format!(
                "the reference returned {} for `{}`, expected {want}",
                count(got, "value"),
                tensor.name
            )));
        }
        Ok(Values::from_le_bytes(tensor.dtype, &bytes))
    }

    /// The scale in a file, if the reference wrote one.
    pub(super) fn take_scale(&self, tensor: &Tensor, file: &str) -> Result<Option<Vec<f64>>, Response> {
        if !self.path(file).exists() {
            return Ok(None);
        }
        match self.take(tensor, file)? {
            Values::Float(values) => Ok(Some(values)),
            Values::Int(_) => Ok(None),
        }
    }

    /// Runs a confined program: it reads `read` and its folder, and writes only in its folder. Its time limit is that of one run of a candidate; [`ended`]
    /// names the setting if it took longer.
    pub(super) fn run(
        &self,
        task: &Task,
        program: &Path,
        args: &[&str],
        read: &[&Path],
        env: &[(&str, &str)],
    ) -> Result<Finished, Response> {
        permitted(task, "references")?;
        let mut keep = self.confinement(task, read);
        keep.limits.die_with = Some(std::process::id());
        let keep = serde_json::to_string(&keep).map_err(|e| failed(format!("cannot confine the reference: {e}")))?;
        let mut command =
            Command::own().args(["worker", "--confined", &keep]).arg(program).args(args).dir(self.dir.path());
        for (name, value) in env {
            command = command.env(name, value);
        }
        // The coordinator ends a worker that is interrupted, and this program with it.
        run(&command, Some(time(task)), &AtomicBool::new(false)).map_err(cannot_run)
    }

    /// The same for a program in Python, by its file in this folder and its arguments. A copy of the server's process runs it, if that Python can serve.
    pub(super) fn run_by(
        &self,
        task: &Task,
        server: &PythonServer,
        (file, args): (&str, &[&str]),
        read: &[&Path],
    ) -> Result<Finished, Response> {
        permitted(task, "references")?;
        let keep = self.confinement(task, read);
        if let Some(finished) = server.run((self.dir.path(), file, args), &keep, time(task)).map_err(cannot_run)? {
            return Ok(finished);
        }
        let (python, options, variables) = server.interpreter();
        self.run(task, python, &[&options[..], &[file], args].concat(), read, &variables)
    }

    fn confinement(&self, task: &Task, read: &[&Path]) -> Confinement {
        let limits = Limits {
            address_space: Some(task.memory_limit.saturating_mul(2).max(8 << 30)),
            cpu_s: Some(time(task).as_secs().saturating_mul(8).max(8)),
            open_files: Some(512),
            ..Limits::default()
        };
        Confinement {
            devices: vec![],
            scratch: Some(self.dir.path().to_path_buf()),
            read: read.iter().map(|path| path.to_path_buf()).collect(),
            programs: true,
            keep: vec![],
            limits,
        }
    }
}

/// The time that one run of a program may take.
fn time(task: &Task) -> Duration {
    task.left().min(task.run_limit).max(Duration::from_millis(1))
}

fn cannot_run(e: std::io::Error) -> Response {
    failed(format!("cannot run the reference: {e}"))
}

/// How a program of [`Call::run`] ended, with the setting that ended it, if one did.
pub(super) fn ended(task: &Task, end: End) -> String {
    match end {
        End::TimedOut(limit) if limit == task.run_limit => format!("{end} (setting `build.time-limit`)"),
        _ => end.to_string(),
    }
}

/// A failed step, with the output of the reference as a note.
pub(super) fn said(message: String, finished: &Finished) -> Response {
    said_as(message, heard(finished))
}

/// The same, with paths below `root` shown as the package names them.
pub(super) fn said_below(root: &Path, message: String, finished: &Finished) -> Response {
    said_as(message, below(root, &heard(finished)))
}

/// The same, with the output as text.
pub(super) fn said_as(message: String, text: String) -> Response {
    let note = || Note::new(Severity::Error, "oracle.reference", text.trim().to_string());
    Response::Failed { message, notes: (!text.trim().is_empty()).then(note).into_iter().collect() }
}

/// Replaces paths below `root` by relative ones.
pub(super) fn below(root: &Path, text: &str) -> String {
    text.replace(&format!("{}/", root.display()), "")
}

/// The whole output of a program.
pub(super) fn heard(finished: &Finished) -> String {
    format!("{}{}", finished.stdout.text(), finished.stderr.text())
}
