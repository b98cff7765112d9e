//! References that other interfaces send, as packages: modules in KernelBench's form are described in a confined process, as `kforge import kernelbench` does
//! it, and definitions of FlashInfer-Trace are read as `kforge import flashinfer-trace` does it. Knows these imports; decides nothing about requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::{Client, Refusal, Service};
use kforge_ops::Error;
use kforge_ops::import::ImportError;
use kforge_ops::import::tasks::{ImportedTasks, TaskOutcome, TasksRequest, kernelbench, not_python};
use kforge_ops::import::traces::flashinfer_trace;
use kforge_project::source::import::tasks::{FindingKind, ImportedTask};
use kforge_project::workspace::find::MANIFEST;
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
    /// Its files: text by path. The server's lockfile is among them, if that is where its PyTorch is from.
    pub files: BTreeMap<String, String>,
    /// What is said of workloads that were left out.
    pub left_out: Vec<String>,
}

/// Why a reference cannot be described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReference {
    /// The module cannot be a reference. The word is that of the import: `syntax`, `import`, `form`, `random`.
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
    /// The module cannot be a reference, or the server has no PyTorch.
    pub fn reference(&self, text: &str) -> Result<ReferencePackage, NoReference> {
        let torch = self.torch()?;
        let imported = self.imported(text, torch.release.as_deref())?;
        let task = imported_of(imported)?;
        let files = [(FILE.to_string(), text.to_string())].into_iter().chain(torch.lockfile).collect();
        Ok(ReferencePackage { manifest: task.text, operator: task.operator, files, left_out: vec![] })
    }

    /// Describes a definition of FlashInfer-Trace with some of its workloads: the text of its file, and lines of JSON.
    ///
    /// # Errors
    /// A manifest cannot state it, or the server has no Python.
    pub fn definition(&self, definition: &str, workloads: &str) -> Result<ReferencePackage, NoReference> {
        let torch = self.torch()?;
        let folder = self.scratch()?;
        let place = |name: &str, text: &str| {
            let path = folder.path().join("set").join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            std::fs::write(path, text)
        };
        place("definitions/own/definition.json", definition).map_err(|e| cannot(&e))?;
        place("workloads/own/definition.jsonl", workloads).map_err(|e| cannot(&e))?;
        let request = TasksRequest {
            path: folder.path().join("set"),
            output: Some(folder.path().join("packages")),
            torch: torch.release.clone(),
            candidates: None,
            dry_run: false,
        };
        let imported = flashinfer_trace(&self.session.again(), &request, &mut |_| ()).map_err(refusal)?;
        let places: Vec<_> = imported.tasks.iter().map(|task| task.folder.clone()).collect();
        let task = imported_of(imported)?;
        let mut files: BTreeMap<String, String> = torch.lockfile.into_iter().collect();
        for place in places {
            for entry in std::fs::read_dir(place).map_err(|e| cannot(&e))?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_file() && name != MANIFEST {
                    files.insert(name, std::fs::read_to_string(entry.path()).map_err(|e| cannot(&e))?);
                }
            }
        }
        let left_out = task.findings.iter().filter(|finding| finding.kind == FindingKind::Workload);
        let left_out = left_out.map(|finding| finding.message.clone()).collect();
        Ok(ReferencePackage { manifest: task.text, operator: task.operator, files, left_out })
    }

    /// Why a source is not Python; none if it is, or if nothing can say it. It is only parsed.
    pub fn not_python(&self, text: &str) -> Option<String> {
        let found = not_python(&self.session.again(), text).ok().flatten();
        found.map(|refusal| refusal.to_string())
    }

    /// Whether a client may have another task.
    ///
    /// # Errors
    /// The queue is full, the client has as many tasks as it may have, or the server is about to end.
    pub fn admits(&self, client: &Client) -> Result<(), Refusal> {
        if self.draining.load(Ordering::SeqCst) {
            return Err(Refusal::Draining);
        }
        self.within_limits(&self.lock().state, &client.0, 0)
    }

    /// The architecture and the product of the first device; none without devices.
    pub fn first_device(&self) -> Option<(String, String)> {
        let device = self.evaluator.shared.devices().0.first()?;
        Some((device.class.arch.clone(), device.class.product.clone()))
    }

    fn imported(&self, text: &str, release: Option<&str>) -> Result<ImportedTasks, NoReference> {
        let folder = self.scratch()?;
        let path = folder.path().join(FILE);
        std::fs::write(&path, text).map_err(|e| cannot(&e))?;
        let request = TasksRequest {
            path,
            output: Some(folder.path().join("packages")),
            torch: release.map(String::from),
            candidates: None,
            dry_run: true,
        };
        kernelbench(&self.session.again(), &request, &mut |_| ()).map_err(refusal)
    }

    /// A folder for files of an import.
    fn scratch(&self) -> Result<tempfile::TempDir, NoReference> {
        tempfile::Builder::new().prefix("reference-").tempdir_in(&self.config.folder).map_err(|e| cannot(&e))
    }

    /// The PyTorch of the server: the newest release of the lockfile in the folder in which it was started, or that of the system.
    fn torch(&self) -> Result<TorchOfServer, NoReference> {
        let folder: &Path = &self.session.cwd;
        let locked = Lockfile::read(folder).map_err(|e| cannot(&e))?;
        let releases = locked.wheels.keys().filter_map(|name| name.strip_prefix(TORCH));
        let release = releases.max_by_key(|name| release(name)).map(String::from);
        let text = std::fs::read_to_string(folder.join(FILE_NAME)).ok();
        let lockfile = text.filter(|_| release.is_some()).map(|text| (FILE_NAME.to_string(), text));
        Ok(TorchOfServer { release, lockfile })
    }
}

/// The PyTorch of a server.
struct TorchOfServer {
    /// The release; none for that of the system.
    release: Option<String>,
    /// The name and the text of the lockfile that holds it.
    lockfile: Option<(String, String)>,
}

fn cannot(why: &dyn std::fmt::Display) -> NoReference {
    NoReference::Unavailable(why.to_string())
}

/// The only task of an import.
fn imported_of(imported: ImportedTasks) -> Result<ImportedTask, NoReference> {
    let found = imported.tasks.into_iter().find_map(|task| match task.outcome {
        TaskOutcome::Imported(task, ..) => Some(*task),
        TaskOutcome::Refused(_) | TaskOutcome::Exists => None,
    });
    found.ok_or_else(|| cannot(&"BUG: a reference was neither imported nor refused"))
}

/// Why an import gave nothing.
fn refusal(error: Error) -> NoReference {
    match error {
        Error::Import(ImportError::NoTasks { tasks, form, .. }) => refused(tasks, form),
        error => cannot(&error),
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
