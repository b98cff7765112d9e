//! The properties of a device, and what follows from them: its class and its theoretical peaks. Values only; calls no driver.

use serde::{Deserialize, Serialize};

use kforge_numerics::measure::floor::Peaks;
use kforge_numerics::measure::units;
use kforge_types::record::{Device, DeviceClass, Devices, profile};

/// A device as the probe found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// As in [`DeviceClass`].
    pub product: String,
    /// As in [`DeviceClass`].
    pub arch: String,
    /// The driver's full version; `0` if NVML is missing.
    pub driver: String,
    /// As in [`DeviceClass`].
    pub mig: Option<String>,
    /// The UUID in the form of `CUDA_VISIBLE_DEVICES`.
    pub uuid: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub processors: u32,
    /// Highest clock of the multiprocessors, in MHz.
    pub clock_mhz: u32,
    /// Highest clock of the memory, in MHz.
    pub memory_clock_mhz: u32,
    /// Width of the memory bus, in bits.
    pub bus_bits: u32,
    /// Bytes of the L2 cache.
    pub l2: u64,
    /// Whether device code can reach the ordinary memory of its process. If so, that memory must not contain secrets.
    pub reaches_host: bool,
}

impl DeviceFacts {
    /// The class for which its measurements are valid.
    pub fn class(&self) -> DeviceClass {
        let major = self.driver.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
        DeviceClass {
            product: self.product.clone(),
            arch: self.arch.clone(),
            driver_major: major,
            mig: self.mig.clone(),
        }
    }

    /// Its compute capability as one number, 90 for 9.0, which is how metrics are listed.
    pub fn capability(&self) -> u32 {
        let digits: String = self.arch.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// Its theoretical peaks. The memory moves two words per clock (double data rate). The L2 cache delivers at most 64 bytes per clock and direction to a
    /// multiprocessor, which is the width of the multiprocessor's port to the interconnect (Volta to Blackwell: CUDA C++ Best Practices and the whitepapers'
    /// tables of L2 read bandwidth).
    pub fn peaks(&self) -> Peaks {
        Peaks {
            memory_bytes_ns: f64::from(self.memory_clock_mhz) * 2.0 * f64::from(self.bus_bits) / 8.0 / 1e3,
            l2_bytes_ns: f64::from(self.processors) * 64.0 * f64::from(self.clock_mhz) / 1e3,
            l2_bytes: self.l2,
            ops_s: units::per_second(&self.arch, self.processors, self.clock_mhz),
        }
    }

    /// The peaks as records state them; none if the driver does not report the memory's clock.
    pub fn stated(&self) -> Option<profile::Peaks> {
        let Peaks { memory_bytes_ns, ops_s, .. } = self.peaks();
        (memory_bytes_ns > 0.0).then_some(profile::Peaks { dram_bytes_per_s: memory_bytes_ns * 1e9, ops_per_s: ops_s })
    }
}

/// The result of a probe: the driver's library and the devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The path of the library.
    pub libcuda: Option<std::path::PathBuf>,
    /// The loader's path at the time of the probe.
    pub library_path: Option<String>,
    /// The devices.
    pub devices: Vec<DeviceFacts>,
    /// Why there are no devices.
    pub why: Option<String>,
    /// Files through which the driver controls devices, besides those that every confined process with a driver may use. A runner may write to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_files: Vec<std::path::PathBuf>,
}

impl Probed {
    /// The devices by UUID and class.
    pub fn present(&self) -> Devices {
        Devices(self.devices.iter().map(|d| Device { uuid: d.uuid.clone(), class: d.class() }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::h200;

    #[test]
    fn class_and_peaks_follow_from_the_numbers() {
        let facts = h200();
        assert_eq!(facts.class().to_string(), "NVIDIA H200 (sm_90, driver 580)");
        let peaks = facts.peaks();
        // The data sheet says 4.8 TB/s, rounded down.
        assert!((peaks.memory_bytes_ns - 4916.7).abs() < 0.1, "{}", peaks.memory_bytes_ns);
        assert!((peaks.l2_bytes_ns - 16727.0).abs() < 1.0, "{}", peaks.l2_bytes_ns);
        let stated = facts.stated().unwrap();
        assert!((stated.dram_bytes_per_s / 4.9167e12 - 1.0).abs() < 1e-4, "{stated:?}");
        // The 989.4 TFLOP/s of the data sheet are at 1830 MHz.
        assert!((stated.ops_per_s["bf16"] * 1830.0 / 1980.0 / 989.4e12 - 1.0).abs() < 1e-3, "{stated:?}");
    }

    #[test]
    fn a_device_that_does_not_say_has_no_peaks() {
        assert_eq!(DeviceFacts { memory_clock_mhz: 0, ..h200() }.stated(), None);
        assert!(DeviceFacts { arch: "sm_999".into(), ..h200() }.stated().unwrap().ops_per_s.is_empty());
    }
}
