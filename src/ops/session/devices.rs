//! The devices of this machine, and what a worker needs to be told of them. Knows who asks them, in a child; does not ask
//! them itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::Error;
use kforge_cuda::device;
use kforge_cuda::device::facts::Probed;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_foundation::config::{Environment, Settings};
use kforge_project::toolchain::Nsight;
use kforge_types::record;

/// Variables that say which devices a process sees, and where the driver's libraries are.
const MATTERS: [&str; 4] = ["LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"];

/// Whether the system has an NVIDIA driver loaded at all. Without one nothing is started, so that a build costs nothing more for being able to use devices.
pub fn driver_is_there() -> bool {
    ["/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists())
}

/// What a child of the worker program says of the devices here. It is ended once `interrupted` is set.
pub fn ask(environment: &Environment, worker: &Path, interrupted: &AtomicBool) -> Probed {
    let set: Vec<(&str, &str)> =
        MATTERS.iter().filter_map(|name| Some((*name, environment.even_empty(name)?))).collect();
    device::probe(worker, &set, interrupted)
}

/// A child that asks the driver while other things are done: a driver takes a tenth of a second to start. It is ended where nobody waits for what it says.
pub struct Asking {
    environment: Environment,
    nobody_waits: Arc<AtomicBool>,
    /// None where nobody has to be asked.
    asked: Option<JoinHandle<Probed>>,
}

impl Asking {
    /// Starts the child, if there is a driver to ask.
    pub fn begin(environment: &Environment, worker: &Path) -> Self {
        let (of, worker) = (environment.clone(), worker.to_path_buf());
        let asks = driver_is_there() && !is_virtual(environment);
        Self::with(environment, asks.then_some(move |ended: &AtomicBool| ask(&of, &worker, ended)))
    }

    fn with(environment: &Environment, ask: Option<impl FnOnce(&AtomicBool) -> Probed + Send + 'static>) -> Self {
        let nobody_waits = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&nobody_waits);
        let asked = ask.map(|ask| std::thread::spawn(move || ask(&ended)));
        Asking { environment: environment.clone(), nobody_waits, asked }
    }

    /// Waits for what it says.
    ///
    /// # Errors
    /// As [`Devices::find`].
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
    /// Does not wait for the end: a driver that is stuck keeps its child from ending.
    fn drop(&mut self) {
        self.nobody_waits.store(true, Ordering::Relaxed);
    }
}

/// The scenario of the test-only device, which a released program does not have.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn scenario(environment: &Environment) -> Option<PathBuf> {
    environment.get("KFORGE_VIRTUAL_DEVICE").map(PathBuf::from)
}

/// Whether a scenario stands in a driver's place.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn is_virtual(environment: &Environment) -> bool {
    scenario(environment).is_some()
}

#[cfg(not(any(debug_assertions, feature = "virtual-device")))]
fn is_virtual(_: &Environment) -> bool {
    false
}

/// The devices of this machine.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    /// What they are.
    pub present: record::Devices,
    /// What workers are told beside their tools, by name.
    pub tools: BTreeMap<String, PathBuf>,
}

impl Devices {
    /// The devices that this version of kforge can use. What was found is written into the home of the `settings`, for workers, who are told of the tools that
    /// run a candidate under them as well.
    ///
    /// # Errors
    /// It cannot be written; in a build for tests: the scenario cannot be read.
    pub fn find(environment: &Environment, worker: &Path, settings: &Settings) -> Result<Self, Error> {
        Asking::begin(environment, worker).end(settings)
    }

    /// Whether there are none, and no stand-in for one.
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
            // Where there is none, the step that needs it says so.
            let found = tool.find(settings.path(tool.setting()).as_deref(), environment.path());
            tools.extend(found.ok().map(|found| (tool.program().to_string(), found)));
        }
        Ok(Devices { present: probed.present(), tools })
    }
}

/// Why workers cannot be told of the devices of this machine.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// What the driver says of them cannot be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What the driver says of them is no JSON: a bug.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The scenario of a test cannot be read.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    #[error(transparent)]
    Scenario(#[from] kforge_worker::virtual_device::ScenarioError),
}

/// Writes what a probe found into the home, for workers, and says where. Two builds that see different devices have a file each.
fn kept(home: &Path, probed: &Probed) -> Result<PathBuf, DevicesError> {
    let text = serde_json::to_vec_pretty(probed)?;
    let path = home.join("devices").join(format!("{}.json", Digest::of(&text).hex()));
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
