//! Clocks, temperature, power and limits of a device, from NVML. Knows NVML's library; decides nothing. Without NVML only these values are missing.

use std::ffi::OsStr;
use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

/// The state of a device at one moment. Values that NVML does not report are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Clock of the multiprocessors and of the memory, in MHz.
    pub(super) clocks_mhz: Option<(u32, u32)>,
    /// Degrees Celsius.
    pub(super) temperature_c: Option<u32>,
    /// Milliwatts.
    pub(super) power_mw: Option<u32>,
    /// NVML's bits of event reasons.
    pub(super) reasons: Option<u64>,
}

/// NVML's view of one device.
pub(super) struct Monitor {
    nvml: Option<&'static Nvml>,
    uuid: String,
}

/// The library, opened once per process, because opening it takes longer than a sample.
fn open() -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    // The name without a version needs a development package; the driver installs this one.
    NVML.get_or_init(|| Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init().ok()).as_ref()
}

/// Where the kernel module of the driver states its version. Reading it takes nothing beside starting NVML.
const MODULE: &str = "/proc/driver/nvidia/version";

/// The driver's full version: `580.159.04`.
pub(super) fn driver_version() -> Option<String> {
    let module = std::fs::read_to_string(MODULE).ok();
    module.and_then(|text| stated(&text)).or_else(|| open()?.sys_driver_version().ok())
}

/// The version in the first line of what the kernel module states: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...`.
fn stated(text: &str) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("NVRM version:")?;
    let is_version = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        matches!(parts.len(), 2 | 3)
            && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    line.split_whitespace().find(is_version).map(str::to_string)
}

impl Monitor {
    /// Creates a monitor of the device with this UUID.
    pub(super) fn new(uuid: &str) -> Self {
        Monitor { nvml: open(), uuid: uuid.to_string() }
    }

    /// The current state.
    pub(super) fn state(&self) -> State {
        let Some(device) = self.nvml.and_then(|nvml| nvml.device_by_uuid(self.uuid.as_str()).ok()) else {
            return State::default();
        };
        let clock = |of| device.clock_info(of).ok();
        State {
            clocks_mhz: clock(Clock::SM).zip(clock(Clock::Memory)),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_mw: device.power_usage().ok(),
            reasons: device.current_throttle_reasons().ok().map(|r| r.bits()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_either_kernel_module_states() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Nov  4 12:00:00 UTC 2025\nGCC version:  gcc version 13.2.0\n";
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.51.03  Release Build  (builder@host)\n";
        assert_eq!(stated(closed).as_deref(), Some("580.159.04"));
        assert_eq!(stated(open).as_deref(), Some("575.51.03"));
        assert_eq!(stated("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  x\n").as_deref(), Some("550.54"));
        for other in ["", "GCC version: 13.2.0\n", "NVRM version: unknown\n", "NVRM version: a 1.2.3.4 b\n"] {
            assert_eq!(stated(other), None, "{other}");
        }
    }
}
