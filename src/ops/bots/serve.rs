//! Holds a device, describes the machine, and lets `kforge-remote` serve.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::advertised::properties;
use super::{BotsError, BotsRequest, BotsSaid};
use crate::Session;
use crate::session::devices::Devices;
use kforge_engine::home::Home;
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_foundation::config::{Environment, ServerUrl};
use kforge_foundation::process::{Command, Finished, Limits, run};
use kforge_remote::{Access, BotEvent, BotOptions, serve_bots};
use kforge_types::record::Device;

/// How much of what a step prints is kept: its answer is on standard output.
const CAPTURE: usize = 8 << 20;

/// How often the server hears of the worker while a step is executed, and the worker of a step that nobody wants.
const BEAT: Duration = Duration::from_secs(1);

/// Variables of this process that the process of a step has as well. The home is named apart.
const HANDED: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "KFORGE_SANDBOX_REQUIRED"];

/// A device that this worker holds.
struct Held {
    device: Device,
    /// The file that tells a step of it.
    file: std::path::PathBuf,
    _lock: Lock,
}

impl Session {
    pub(super) fn as_bot(&self, asked: &BotsRequest, say: Box<dyn Fn(BotsSaid)>) -> Result<(), BotsError> {
        let wrong = |why: String| BotsError::Url { url: asked.url.clone(), why };
        let url = asked.url.parse::<ServerUrl>().map_err(|e| wrong(e.to_string()))?;
        let shown = url.to_string();
        let home = self.home().map_err(Box::new)?;
        let held = if asked.without_device { None } else { self.held(&home)? };
        let scratch = home.steps();
        let unwritten = |why| BotsError::Unwritten { path: scratch.clone(), why };
        std::fs::create_dir_all(&scratch).map_err(unwritten)?;
        let settings = self.settings.word("remote.properties").unwrap_or_default();
        let device = held.as_ref().map(|held| &held.device.class);
        let properties = properties(&self.described(&home), device, settings);
        let name = asked.name.clone().unwrap_or_else(own_name);
        say(BotsSaid::Serves { url: shown.clone(), name: name.clone(), properties: properties.clone() });
        let access = self.remote_access(url);
        let instance = asked.instance.clone().unwrap_or_else(|| access.instance.clone());
        let step = self.step_command(&home, held.as_ref());
        let execute = move |folder: &Path, limit: Duration, stop: &AtomicBool| -> std::io::Result<Finished> {
            run(&step.clone().dir(folder), Some(limit), stop)
        };
        let served = serve_bots(BotOptions {
            access: Access { instance, ..access },
            name,
            properties,
            scratch,
            beat: BEAT,
            interrupted: self.interrupted.clone(),
            execute: Arc::new(execute),
            report: Box::new(move |event| say(said(event))),
        });
        served.map_err(|why| BotsError::Fails { url: shown, why: why.to_string() })
    }

    /// The command that executes the step in its working folder.
    fn step_command(&self, home: &Home, held: Option<&Held>) -> Command {
        let words = "worker --once spec.json in out --places places.json".split(' ');
        let limits = Limits { die_with: Some(std::process::id()), ..Limits::default() };
        let mut command = Command::own().args(words).limits(limits).capture(CAPTURE).env("KFORGE_HOME", home.root());
        for name in HANDED {
            if let Some(value) = self.environment.get(name) {
                command = command.env(name, value);
            }
        }
        match held {
            Some(held) => command.arg("--devices").arg(&held.file).env("CUDA_VISIBLE_DEVICES", &held.device.uuid),
            // A step must not find a device that this worker does not hold.
            None => command.env("CUDA_VISIBLE_DEVICES", ""),
        }
    }

    /// The first device that no other process holds; none if the machine has none.
    fn held(&self, home: &Home) -> Result<Option<Held>, BotsError> {
        let found = Devices::find(&self.environment, self.worker.program(), &self.settings).map_err(Box::new)?;
        let mut busy = vec![];
        for device in found.present.0 {
            let lock = match home.lock_device(&device.uuid, Mode::Exclusive, Wait::No) {
                Ok(lock) => lock,
                Err(LockError::Busy(_)) => {
                    busy.push(device.uuid);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let alone = self.environment.all().clone().into_iter();
            let alone = alone.chain([("CUDA_VISIBLE_DEVICES".to_string(), device.uuid.clone())]);
            let seen = Devices::find(&Environment::of(alone), self.worker.program(), &self.settings);
            let seen = seen.map_err(Box::new)?;
            let text = serde_json::to_vec(&seen.tools).unwrap_or_default();
            let path = home.root().join("devices").join(format!("{}.tools.json", Digest::of(&text).hex()));
            let unwritten = |why| BotsError::Unwritten { path: path.clone(), why };
            write_if_changed(&path, &text).map_err(unwritten)?;
            return Ok(Some(Held { device, file: path, _lock: lock }));
        }
        if busy.is_empty() { Ok(None) } else { Err(BotsError::Busy(busy)) }
    }
}

/// The name of this machine, and the number of this process.
fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "kforge" } else { name.trim() };
    format!("{name}-{}", std::process::id())
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
