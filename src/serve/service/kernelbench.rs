//! Modules in KernelBench's form as packages: a reference is described in a confined process, as `kforge import kernelbench` does it. Knows the import; decides
//! nothing about requests.

use std::path::Path;

use super::Service;
use kforge_ops::Error;
use kforge_ops::import::ImportError;
use kforge_ops::import::tasks::{ImportedTasks, TaskOutcome, TasksRequest, kernelbench};
use kforge_project::workspace::lockfile::{FILE_NAME, Lockfile};

/// The file of a reference in its package.
const FILE: &str = "task.py";

/// The beginning of the names under which lockfiles hold PyTorch.
const TORCH: &str = "torch ";

/// A reference as a package without kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencePackage {
    /// The text of its manifest, to which kernels can be added.
    pub manifest: String,
    /// The name of its operator.
    pub operator: String,
    /// The path of the reference.
    pub file: &'static str,
    /// The text of the server's lockfile, if that is where its PyTorch is from.
    pub lockfile: Option<String>,
}

/// Why a reference cannot be described, or a source cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReference {
    /// The module is none that can be a reference. The word is that of the import: `syntax`, `import`, `form`, `random`.
    Refused {
        /// The word.
        kind: String,
        /// What the module does.
        message: String,
    },
    /// The server cannot describe any: it has no Python or no PyTorch.
    Unavailable(String),
}

impl Service {
    /// Describes a module with `Model`, `get_inputs` and `get_init_inputs`. Takes seconds.
    ///
    /// # Errors
    /// It is none, or the server has no PyTorch.
    pub fn reference(&self, text: &str) -> Result<ReferencePackage, NoReference> {
        let session = self.session.again();
        let cannot = |why: &dyn std::fmt::Display| NoReference::Unavailable(why.to_string());
        let lockfile = std::fs::read_to_string(session.cwd.join(FILE_NAME)).ok();
        let locked = Lockfile::read(&session.cwd).map_err(|e| cannot(&e))?;
        let release = locked.wheels.keys().filter_map(|name| name.strip_prefix(TORCH)).max_by_key(|name| release(name));
        let lockfile = lockfile.filter(|_| release.is_some());
        let imported = self.imported(text, release)?;
        let task = imported.tasks.into_iter().find_map(|task| match task.outcome {
            TaskOutcome::Imported(task, ..) => Some(task),
            TaskOutcome::Refused(_) | TaskOutcome::Exists => None,
        });
        let task = task.ok_or_else(|| cannot(&"BUG: a reference was neither imported nor refused"))?;
        Ok(ReferencePackage { manifest: task.text, operator: task.operator, file: FILE, lockfile })
    }

    /// Why a source is no Python; none if it is, or if nothing can say it.
    pub fn not_python(&self, text: &str) -> Option<String> {
        match self.imported(text, None) {
            Err(NoReference::Refused { kind, message }) if kind == "syntax" => Some(message),
            _ => None,
        }
    }

    /// The architecture and the product of the first device; none without devices.
    pub fn first_device(&self) -> Option<(String, String)> {
        let device = self.evaluator.shared.devices().0.first()?;
        Some((device.class.arch.clone(), device.class.product.clone()))
    }

    fn imported(&self, text: &str, release: Option<&str>) -> Result<ImportedTasks, NoReference> {
        let cannot = |why: &dyn std::fmt::Display| NoReference::Unavailable(why.to_string());
        let folder = tempfile::Builder::new().prefix("reference-").tempdir_in(self.work()).map_err(|e| cannot(&e))?;
        let path = folder.path().join(FILE);
        std::fs::write(&path, text).map_err(|e| cannot(&e))?;
        let request = TasksRequest {
            path,
            output: Some(folder.path().join("packages")),
            torch: release.map(String::from),
            candidates: None,
            dry_run: true,
        };
        match kernelbench(&self.session.again(), &request, &mut |_| ()) {
            Ok(imported) => Ok(imported),
            Err(Error::Import(error)) => match error {
                ImportError::NoTasks { tasks, form, .. } => Err(refused(tasks, form)),
                error => Err(cannot(&error)),
            },
            Err(error) => Err(cannot(&error)),
        }
    }

    fn work(&self) -> &Path {
        &self.config.folder
    }
}

/// Why the only task was refused.
fn refused(tasks: Vec<kforge_ops::import::tasks::TaskResult>, form: &str) -> NoReference {
    let refusal = tasks.into_iter().find_map(|task| match task.outcome {
        TaskOutcome::Refused(refusal) => Some(refusal),
        TaskOutcome::Imported(..) | TaskOutcome::Exists => None,
    });
    match refusal {
        Some(refusal) => NoReference::Refused { message: refusal.to_string(), kind: refusal.kind },
        None => NoReference::Refused { kind: "form".into(), message: form.into() },
    }
}

/// A release as numbers, so that `2.15` comes after `2.9`.
fn release(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|part| part.parse().ok()).collect()
}
