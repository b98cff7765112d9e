//! The devices of this machine, and what a worker needs to know of them. A child process queries the driver; this process does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::known_devices;
use crate::Error;
use kforge_cuda::device;
use kforge_cuda::device::facts::Probed;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_foundation::config::{Environment, Settings};
use kforge_project::toolchain::Nsight;
use kforge_types::record;

/// Variables that determine which devices a process sees, and where the driver's libraries are.
const MATTERS: [&str; 4] = ["LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"];

/// Whether the system has an NVIDIA driver loaded. Without one no process is started, so that the support for devices costs a build nothing.
pub fn driver_is_there() -> bool {
    ["/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists())
}

/// Queries the devices in a child process that runs the worker program. The child is ended once `interrupted` is set.
pub fn ask(environment: &Environment, worker: &Path, interrupted: &AtomicBool) -> Probed {
    device::probe(worker, &matters(environment), interrupted)
}

fn matters(environment: &Environment) -> Vec<(&str, &str)> {
    MATTERS.iter().filter_map(|name| Some((*name, environment.even_empty(name)?))).collect()
}

/// The devices of this machine as an earlier build of this home listed them, or else a child process that queries the driver in the background. It is ended if
/// nothing waits for its answer.
pub struct Asking {
    environment: Environment,
    nobody_waits: Arc<AtomicBool>,
    /// None if there is nothing to query.
    asked: Option<JoinHandle<Probed>>,
}

impl Asking {
    /// Reads the list, or starts the child process, if there is a driver.
    pub fn begin(environment: &Environment, worker: &Path, settings: &Settings) -> Self {
        let (of, worker, folder) = (environment.clone(), worker.to_path_buf(), folder(&settings.home));
        let list = move |ended: &AtomicBool| {
            known_devices::known_or(Path::new("/"), &folder, &matters(&of), || ask(&of, &worker, ended))
        };
        Self::with(environment, has_driver(environment).then_some(list))
    }

    fn with(environment: &Environment, ask: Option<impl FnOnce(&AtomicBool) -> Probed + Send + 'static>) -> Self {
        let nobody_waits = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&nobody_waits);
        let asked = ask.map(|ask| std::thread::spawn(move || ask(&ended)));
        Asking { environment: environment.clone(), nobody_waits, asked }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Same as [`Devices::find`].
    pub fn end(mut self, settings: &Settings) -> Result<Devices, Error> {
        let probed = match self.asked.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(probed)) => Some(probed),
            None => None,
        };
        Devices::of(&self.environment, probed, settings).map_err(Error::Devices)
    }
}

impl Drop for Asking {
    /// Does not wait for the child to end, because a stuck driver keeps the child from ending.
    fn drop(&mut self) {
        self.nobody_waits.store(true, Ordering::Relaxed);
    }
}

/// The folder of the lists of devices in a home.
pub(crate) fn folder(home: &Path) -> PathBuf {
    home.join("devices")
}

/// The scenario of the virtual device for tests, which a released program does not have.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn scenario(environment: &Environment) -> Option<PathBuf> {
    environment.get("KFORGE_VIRTUAL_DEVICE").map(PathBuf::from)
}

/// Whether a scenario takes the driver's place.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn is_virtual(environment: &Environment) -> bool {
    scenario(environment).is_some()
}

#[cfg(not(any(debug_assertions, feature = "virtual-device")))]
fn is_virtual(_: &Environment) -> bool {
    false
}

/// Whether there is a driver to query.
fn has_driver(environment: &Environment) -> bool {
    driver_is_there() && !is_virtual(environment)
}

/// The devices of this machine.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    /// The devices.
    pub present: record::Devices,
    /// What workers get in addition to their tools, by name.
    pub tools: BTreeMap<String, PathBuf>,
}

impl Devices {
    /// The devices that the driver lists now and that this version of kforge can use. Writes them to a file for workers in the home of the `settings`. Also adds the tools that run a
    /// candidate under their control.
    ///
    /// # Errors
    /// The file cannot be written; or, in a build for tests, the scenario cannot be read.
    pub fn find(environment: &Environment, worker: &Path, settings: &Settings) -> Result<Self, Error> {
        let probed = has_driver(environment).then(|| ask(environment, worker, &AtomicBool::new(false)));
        Self::of(environment, probed, settings).map_err(Error::Devices)
    }

    /// Whether there are no devices, not even virtual ones.
    pub fn is_none(&self) -> bool {
        self.present.is_empty() && self.tools.is_empty()
    }

    fn of(environment: &Environment, probed: Option<Probed>, settings: &Settings) -> Result<Self, DevicesError> {
        #[cfg(any(debug_assertions, feature = "virtual-device"))]
        if let Some(path) = scenario(environment) {
            use kforge_worker::virtual_device::{Scenario, TOOL};
            let present = Scenario::read(&path)?.present();
            return Ok(Devices { present, tools: [(TOOL.to_string(), path)].into() });
        }
        let Some(probed) = probed.filter(|probed| !probed.devices.is_empty()) else { return Ok(Devices::default()) };
        let path = kept(&settings.home, &probed)?;
        let mut tools: BTreeMap<String, PathBuf> = [(device::TOOL.to_string(), path)].into();
        for tool in [Nsight::Compute, Nsight::Sanitizer] {
            // A missing tool is reported by the step that needs it.
            let found = tool.find(settings.path(tool.setting()).as_deref(), environment.path());
            tools.extend(found.ok().map(|found| (tool.program().to_string(), found)));
        }
        Ok(Devices { present: probed.present(), tools })
    }
}

/// Why the devices of this machine cannot be described to workers.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// The file with the driver's answer cannot be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The driver's answer cannot be written as JSON: a bug.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The scenario of a test cannot be read.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    #[error(transparent)]
    Scenario(#[from] kforge_worker::virtual_device::ScenarioError),
}

/// Writes the result of a probe to a file for workers in the home, and returns its path. Two builds that see different devices use different files.
fn kept(home: &Path, probed: &Probed) -> Result<PathBuf, DevicesError> {
    let text = serde_json::to_vec_pretty(probed)?;
    let path = folder(home).join(format!("{}.json", Digest::of(&text).hex()));
    write_if_changed(&path, &text).map_err(|source| DevicesError::NotWritten { path: path.clone(), source })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_ended_where_nobody_waits_for_the_answer() {
        let (tell, told) = std::sync::mpsc::channel();
        let ask = move |ended: &AtomicBool| {
            while !ended.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            tell.send(()).unwrap();
            Probed::default()
        };
        drop(Asking::with(&Environment::default(), Some(ask)));
        assert_eq!(told.recv_timeout(std::time::Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn builds_that_see_different_devices_do_not_write_over_each_other() {
        let home = tempfile::tempdir().unwrap();
        let seen = |path: &str| Probed { library_path: Some(path.into()), ..Probed::default() };
        let (one, other) = (kept(home.path(), &seen("/a")).unwrap(), kept(home.path(), &seen("/b")).unwrap());
        assert_ne!(one, other);
        let read = |path: &Path| serde_json::from_slice::<Probed>(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!((read(&one), read(&other)), (seen("/a"), seen("/b")));
        assert_eq!(kept(home.path(), &seen("/a")).unwrap(), one);
    }
}
