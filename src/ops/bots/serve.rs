//! Holds a device, describes the machine, and lets `kforge-remote` serve.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::advertised::{Described, properties};
use super::{BotsError, BotsRequest, BotsSaid};
use crate::Session;
use crate::elsewhere::{StepLimits, WorkerTools};
use crate::session::devices::Devices;
use crate::worker_key::WorkerKey;
use kforge_cuda::device;
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_foundation::config::{Environment, ServerUrl};
use kforge_foundation::process::{Command, Finished, Limits, run};
use kforge_project::toolchain::cuda;
use kforge_remote::{Access, BotEvent, BotOptions, serve_bots};
use kforge_types::record::Device;

/// How much of what a step prints is kept: its answer is on standard output.
const CAPTURE: usize = 8 << 20;

/// How often the server hears of the worker while a step is executed, and the worker of a step that nobody wants.
const BEAT: Duration = Duration::from_secs(1);

/// The longest time of a step. Its own limit is shorter.
const LONGEST: Duration = Duration::from_secs(4 * 3600);

/// Variables of this process that the process of a step has as well, and what separates the folders in their values. The home is named apart.
const HANDED: [(&str, &[char]); 2] = [("PATH", &[':']), ("LD_LIBRARY_PATH", &[':', ';'])];

/// A device that this worker holds.
struct Held {
    device: Device,
    /// What a step that observes it gets.
    tools: BTreeMap<String, PathBuf>,
    _lock: Lock,
}

impl Session {
    pub(super) fn as_bot(&self, asked: &BotsRequest, say: Box<dyn Fn(BotsSaid)>) -> Result<(), BotsError> {
        let wrong = |why: String| BotsError::Url { url: asked.url.clone(), why };
        let url = asked.url.parse::<ServerUrl>().map_err(|e| wrong(e.to_string()))?;
        let shown = url.to_string();
        let home = self.home().map_err(Box::new)?;
        let unwritten = |path: &Path| {
            let path = path.to_path_buf();
            move |why| BotsError::Unwritten { path, why }
        };
        // A step has another working folder.
        let root = std::path::absolute(home.root()).map_err(unwritten(home.root()))?;
        let held = if asked.without_device { None } else { self.held(&root)? };
        let key = self.settings.path("remote.worker-key").map(|path| self.cwd.join(path)).filter(|_| held.is_some());
        key.as_deref().map(WorkerKey::read).transpose()?;
        let scratch = std::path::absolute(home.steps()).map_err(unwritten(&home.steps()))?;
        std::fs::create_dir_all(&scratch).map_err(unwritten(&scratch))?;
        let settings = self.settings.word("remote.properties").unwrap_or_default();
        let described = self.described(&home);
        let properties = properties(&described, held.as_ref().map(|held| &held.device.class), settings);
        let name = asked.name.clone().unwrap_or_else(own_name);
        say(BotsSaid::Serves { url: shown.clone(), name: name.clone(), properties: properties.clone() });
        for (what, why) in &described.lacking {
            say(BotsSaid::Lacks { what, why: why.clone() });
        }
        let access = self.remote_access(url);
        let instance = asked.instance.clone().unwrap_or_else(|| access.instance.clone());
        let own = self.written_tools(&root, described, held.as_ref(), key)?;
        let step = self.step_command(&root, held.as_ref());
        let execute = move |folder: &Path, limit: Duration, stop: &AtomicBool| -> std::io::Result<Finished> {
            run(&in_folder(step.clone(), folder, &own)?, Some(limit), stop)
        };
        let served = serve_bots(BotOptions {
            access: Access { instance, ..access },
            name,
            properties,
            scratch,
            beat: BEAT,
            longest: LONGEST,
            interrupted: self.interrupted.clone(),
            execute: Arc::new(execute),
            report: Box::new(move |event| say(said(event))),
        });
        drop(held);
        served.map_err(|why| BotsError::Fails { url: shown, why: why.to_string() })
    }

    /// Writes what steps get in place of the paths that they come with. Returns the path of the file.
    fn written_tools(
        &self,
        root: &Path,
        described: Described,
        held: Option<&Held>,
        key: Option<PathBuf>,
    ) -> Result<PathBuf, BotsError> {
        let limits = StepLimits {
            time_s: LONGEST.as_secs(),
            run_s: self.settings.number("build.time-limit"),
            memory: self.settings.number("build.memory-limit"),
            compiler_memory: self.settings.number("build.compiler-memory-limit"),
        };
        let tools = WorkerTools {
            cxx: described.cxx,
            python: described.python,
            cuda: cuda::find_root(self.environment.all()).ok(),
            device: held.map(|held| held.tools.clone()).unwrap_or_default(),
            key,
            limits,
        };
        let folder = root.join("bots");
        let unwritten = |why| BotsError::Unwritten { path: folder.clone(), why };
        let text = serde_json::to_vec(&tools).map_err(|e| unwritten(e.into()))?;
        let path = folder.join(format!("{}.json", Digest::of(&text).hex()));
        std::fs::create_dir_all(&folder).and_then(|()| write_if_changed(&path, &text).map(drop)).map_err(unwritten)?;
        Ok(path)
    }

    /// The command that executes a step, without the words that name its files.
    fn step_command(&self, root: &Path, held: Option<&Held>) -> Command {
        let limits = Limits { die_with: Some(std::process::id()), ..Limits::default() };
        let mut command = Command::own().limits(limits).capture(CAPTURE).dir("/").env("KFORGE_HOME", root);
        for (name, separators) in HANDED {
            let value = absolute_parts(self.environment.get(name).unwrap_or_default(), separators);
            if !value.is_empty() {
                command = command.env(name, value);
            }
        }
        if let Some(value) = self.environment.get("KFORGE_SANDBOX_REQUIRED") {
            command = command.env("KFORGE_SANDBOX_REQUIRED", value);
        }
        // A step must not find a device that this worker does not hold.
        command.env("CUDA_VISIBLE_DEVICES", held.map_or("", |held| &held.device.uuid))
    }

    /// The first device that no other process holds; none if the machine has none. `root` is the home.
    fn held(&self, root: &Path) -> Result<Option<Held>, BotsError> {
        let found = Devices::find(&self.environment, self.worker.program(), &self.settings).map_err(Box::new)?;
        let folder = found.tools.get(device::TOOL).and_then(|list| list.parent());
        let folder = folder.map_or_else(|| root.join("devices"), Path::to_path_buf);
        let mut busy = vec![];
        for device in found.present.0 {
            let path = device::lock_path(&folder, &device.uuid);
            let lock = match Lock::acquire(&path, Mode::Exclusive, Wait::No) {
                Ok(lock) if lock.is_held() => lock,
                Ok(_) => return Err(BotsError::NoLocks { device: device.uuid, path }),
                Err(LockError::Busy(_)) => {
                    busy.push(device.uuid);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let alone = self.environment.all().clone().into_iter();
            let alone = alone.chain([("CUDA_VISIBLE_DEVICES".to_string(), device.uuid.clone())]);
            let seen = Devices::find(&Environment::of(alone), self.worker.program(), &self.settings);
            let own = folder.join(format!("of-worker-{}", device.uuid));
            let tools = apart(seen.map_err(Box::new)?.tools, &own);
            let tools = tools.map_err(|why| BotsError::Unwritten { path: own, why })?;
            return Ok(Some(Held { device, tools, _lock: lock }));
        }
        if busy.is_empty() { Ok(None) } else { Err(BotsError::Busy(busy)) }
    }
}

/// The tools with a list of devices in a folder of this worker: a step takes its locks beside the list, and this worker holds those beside the list of builds.
fn apart(mut tools: BTreeMap<String, PathBuf>, folder: &Path) -> std::io::Result<BTreeMap<String, PathBuf>> {
    if let Some(list) = tools.get_mut(device::TOOL) {
        let own = folder.join(list.file_name().unwrap_or_default());
        std::fs::create_dir_all(folder)?;
        write_if_changed(&own, &std::fs::read(&*list)?)?;
        *list = own;
    }
    Ok(tools)
}

/// The command with the words that name the files of a step, which are in a folder.
fn in_folder(step: Command, folder: &Path, own: &Path) -> std::io::Result<Command> {
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary)?;
    let words = ["worker", "--once"].map(OsString::from);
    let files = ["spec.json", "in", "out"].map(|name| folder.join(name).into_os_string());
    let step = step.args(words).args(files).arg("--places").arg(folder.join("places.json"));
    Ok(step.arg("--own").arg(own).env("TMPDIR", temporary))
}

/// The parts of a list of folders that are absolute: others lead to the working folder.
fn absolute_parts(value: &str, separators: &[char]) -> String {
    value.split(separators).filter(|part| part.starts_with('/')).collect::<Vec<_>>().join(":")
}

/// The name of this machine, the number of this process, and a random number: containers have the same numbers of processes.
fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "kforge" } else { name.trim() };
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
    format!("{name}-{}-{:08x}", std::process::id(), random >> 32)
}

fn said(event: &BotEvent<'_>) -> BotsSaid {
    match event {
        BotEvent::Registered => BotsSaid::Registered,
        BotEvent::Gone(why) => BotsSaid::Gone(why.to_string()),
        BotEvent::Began { lease } => BotsSaid::Began((*lease).to_string()),
        BotEvent::Ended { lease, how: Ok(code), took } => {
            BotsSaid::Ended { lease: (*lease).to_string(), code: *code, took: *took }
        }
        BotEvent::Ended { lease, how: Err(why), .. } => {
            BotsSaid::NoResult { lease: (*lease).to_string(), why: why.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_does_not_wait_for_the_lock_that_the_worker_holds_against_builds() {
        let home = tempfile::tempdir().unwrap();
        let list = home.path().join("devices/list.json");
        std::fs::create_dir_all(list.parent().unwrap()).unwrap();
        std::fs::write(&list, "{}").unwrap();
        let lock =
            |list: &Path| Lock::acquire(&device::lock_path(list.parent().unwrap(), "GPU-1"), Mode::Exclusive, Wait::No);
        let _held = lock(&list).unwrap();
        assert!(matches!(lock(&list), Err(LockError::Busy(_))), "a build waits");
        let beside = ("ncu".to_string(), PathBuf::from("/opt/ncu"));
        let tools = BTreeMap::from([(device::TOOL.to_string(), list), beside.clone()]);
        let tools = apart(tools, &home.path().join("devices/of-worker-GPU-1")).unwrap();
        lock(&tools[device::TOOL]).unwrap();
        assert_eq!(std::fs::read(&tools[device::TOOL]).unwrap(), b"{}");
        assert_eq!(tools[&beside.0], beside.1);
    }

    #[test]
    fn a_step_searches_no_program_or_library_in_its_working_folder() {
        assert_eq!(absolute_parts("/a::.:b:/c d:", &[':']), "/a:/c d");
        assert_eq!(absolute_parts("/a;lib:/b;", &[':', ';']), "/a:/b");
        assert_eq!(absolute_parts("", &[':']), "");
        // Every path is absolute, and temporary files go with the lease.
        let folder = tempfile::tempdir().unwrap();
        let command = in_folder(Command::new("/bin/sh").dir("/"), folder.path(), Path::new("/own")).unwrap();
        let words = format!("{command:?}");
        let at = |name: &str| format!("{:?}", folder.path().join(name));
        for name in ["spec.json", "in", "out", "places.json", "tmp"] {
            assert!(words.contains(&at(name)), "{name}: {words}");
        }
        assert!(folder.path().join("tmp").is_dir());
    }

    #[test]
    fn two_workers_of_one_machine_have_two_names() {
        assert_ne!(own_name(), own_name());
    }
}
