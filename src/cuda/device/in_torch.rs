//! A device for processes with PyTorch: what such a process needs there, and whose turn it is. Knows files, variables and locks; starts no process.

use super::client::{self, Client};
use super::confined::confinement;
use super::facts::{DeviceFacts, Probed};
use super::rig;
use kforge_engine::lock::{Lock, Mode};
use kforge_foundation::process::Limits;
use kforge_harness::machine::Machine;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_types::record::Provenance;

/// The device on which a step runs a kernel in PyTorch.
pub struct TorchDevice {
    probed: Probed,
    facts: DeviceFacts,
}

impl TorchDevice {
    /// The device that a task names.
    ///
    /// # Errors
    /// It is no longer on this machine, or none runs the architecture.
    pub fn find(task: &Task, arch: &str) -> Result<Self, Response> {
        let (probed, facts) = Client::find(task, arch)?;
        Ok(TorchDevice { probed, facts })
    }

    /// All devices, among which it was found.
    pub(super) fn probed(&self) -> &Probed {
        &self.probed
    }

    /// What is known of it.
    pub(super) fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// What a process with PyTorch needs there, confined or not.
    pub fn machine(&self, confined: bool) -> Machine {
        machine(&self.probed, &self.facts.uuid, confined)
    }

    /// Waits until no step measures on the device. Steps that measure wait until what is returned is dropped.
    ///
    /// # Errors
    /// The lock cannot be taken.
    pub fn turn(&self, task: &Task) -> Result<Option<Lock>, Response> {
        self.locked(task, Mode::Shared)
    }

    /// Waits until no other step uses the device. All others wait until what is returned is dropped.
    ///
    /// # Errors
    /// The lock cannot be taken.
    pub fn alone(&self, task: &Task) -> Result<Option<Lock>, Response> {
        self.locked(task, Mode::Exclusive)
    }

    fn locked(&self, task: &Task, mode: Mode) -> Result<Option<Lock>, Response> {
        let path = client::lock_file(task, &self.facts);
        path.map(|path| rig::turn(task, &path, mode)).transpose()
    }

    /// The provenance of what is observed there.
    pub fn provenance(&self, protocol: u32) -> Provenance {
        rig::provenance(&self.facts, protocol)
    }
}

/// What a process with PyTorch needs on a device.
pub(super) fn machine(probed: &Probed, uuid: &str, confined: bool) -> Machine {
    let keep = confinement(probed, vec![], Limits::default());
    let mut env = vec![
        ("CUDA_VISIBLE_DEVICES", uuid.to_string()),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_string()),
        ("CUDA_CACHE_DISABLE", "1".to_string()),
        // PyTorch has thousands of kernels.
        ("CUDA_MODULE_LOADING", "LAZY".to_string()),
    ];
    env.extend(probed.library_path.clone().map(|path| ("LD_LIBRARY_PATH", path)));
    // A PyTorch that was built for this machine may use the libraries of an installed toolkit.
    let local = std::fs::read_dir("/usr/local").into_iter().flatten().flatten();
    let toolkits = local.filter(|entry| entry.file_name().to_string_lossy().starts_with("cuda"));
    let read = keep.read.into_iter().chain(toolkits.map(|entry| entry.path())).collect();
    Machine { device: "cuda", devices: keep.devices, read, env, confined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_one_device_and_controls_its_files() {
        let probed = Probed { library_path: Some("/driver".into()), ..Probed::default() };
        let machine = machine(&probed, "GPU-7", true);
        let of = |name: &str| machine.env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!((of("CUDA_VISIBLE_DEVICES"), of("LD_LIBRARY_PATH")), (Some("GPU-7"), Some("/driver")));
        assert!(machine.read.contains(&"/driver".into()) && machine.devices.contains(&"/dev/nvidiactl".into()));
        assert!(machine.confined && machine.device == "cuda");
    }
}
