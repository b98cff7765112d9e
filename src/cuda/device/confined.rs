//! The confinement of a process that holds a device, and why a driver does not start in it. Knows what such a process needs; `kforge_harness::confine` applies it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::examine::{self, Findings};
use super::facts::{DeviceFacts, Probed};
use kforge_foundation::process::Limits;
use kforge_harness::confine::{Confinement, driver};

/// The confinement of a process that loads the driver and keeps these descriptors. Address space has no limit, because the driver reserves as much as all
/// devices have.
pub(super) fn confinement(probed: &Probed, keep: Vec<i32>, limits: Limits) -> Confinement {
    let folders = probed.library_path.iter().flat_map(|path| path.split(':')).filter(|path| !path.is_empty());
    let library = probed.libcuda.iter().filter_map(|library| library.parent());
    let mut devices = driver::device_files();
    devices.extend(probed.device_files.iter().cloned());
    devices.sort();
    devices.dedup();
    Confinement {
        scratch: None,
        read: folders.map(PathBuf::from).chain(library.map(PathBuf::from)).collect(),
        devices,
        programs: false,
        keep,
        limits,
    }
}

/// Why a driver that starts in a process of this user does not start in a confined one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfinedDriverError {
    /// The driver's error, or how its process ended.
    error: String,
    /// What was refused, in words.
    refused: Vec<String>,
}

impl fmt::Display for ConfinedDriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfinedDriverError { error, refused } = self;
        write!(f, "the driver starts, but not in a confined process ({error})")?;
        match &refused[..] {
            [] => write!(f, "; no call and no file that was refused is known"),
            refused => write!(f, "; refused: {}", refused.join(", ")),
        }
    }
}

impl std::error::Error for ConfinedDriverError {}

impl ConfinedDriverError {
    /// Starts the driver again, in processes of its own: once unconfined, and once confined and watched. None if the driver does not start unconfined either,
    /// or if it now starts confined, so that the confinement does not explain the failure `error`.
    pub(super) fn of(probed: &Probed, facts: &DeviceFacts, error: &str, left: Duration) -> Option<Self> {
        let (free, confined) = examine::both(probed, facts, left);
        free.error.is_none().then_some(())?;
        confined.error.as_ref()?;
        Some(ConfinedDriverError { error: error.to_string(), refused: words(&confined) })
    }

    /// Says how to use the device nevertheless.
    pub(super) fn refusal(&self) -> String {
        format!(
            "kernels do not run unconfined, and {self} (--allow-unconfined, or the setting `sandbox.required`, permits it; `kforge worker --examine-driver` lists what the driver uses)"
        )
    }
}

/// What was refused in an examination.
fn words(found: &Findings) -> Vec<String> {
    let calls = found.calls.iter().filter(|call| call.refused).map(|call| call.attempt.clone());
    let files = found.files.iter().filter(|file| file.refused).map(|file| {
        let how = if file.writes { "write" } else { "read" };
        format!("{how} {}", file.path)
    });
    calls.chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_harness::confine::examined::{SeenCall, SeenFile};

    #[test]
    fn an_error_names_what_was_refused_and_nothing_else() {
        let call = |attempt: &str, refused| SeenCall {
            call: 1,
            attempt: attempt.into(),
            count: 1,
            refused,
            arguments: [0; 6],
        };
        let file =
            |path: &str, writes, refused| SeenFile { path: path.into(), writes, creates: false, count: 1, refused };
        let found = Findings {
            error: Some("no".into()),
            calls: vec![call("open a socket (socket)", true), call("share memory (memfd_create)", false)],
            files: vec![file("/proc/x", false, true), file("/dev/y", true, true), file("/proc/z", false, false)],
            ..Findings::default()
        };
        assert_eq!(words(&found), ["open a socket (socket)", "read /proc/x", "write /dev/y"]);
        let error = ConfinedDriverError { error: "CUDA_ERROR_OPERATING_SYSTEM (304)".into(), refused: words(&found) };
        assert_eq!(
            error.to_string(),
            "the driver starts, but not in a confined process (CUDA_ERROR_OPERATING_SYSTEM (304)); refused: open a socket (socket), read /proc/x, write /dev/y"
        );
        assert!(error.refusal().contains("--allow-unconfined"));
    }

    #[test]
    fn the_folders_of_libraries_are_read_and_device_files_are_controlled() {
        let probed = Probed {
            libcuda: Some("/opt/driver/libcuda.so.1".into()),
            library_path: Some("/a::/b".into()),
            device_files: vec!["/x/device".into()],
            ..Probed::default()
        };
        let keep = confinement(&probed, vec![7], Limits::default());
        assert_eq!(keep.read, ["/a", "/b", "/opt/driver"].map(PathBuf::from));
        assert!(keep.devices.contains(&"/x/device".into()) && keep.devices.contains(&"/dev/nvidiactl".into()));
        assert!(!keep.programs && keep.scratch.is_none() && keep.keep == [7] && keep.limits.address_space.is_none());
    }
}
