//! What a measurement is valid for, and where it comes from.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A device class: what a measurement is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceClass {
    /// The product's name as the driver reports it: `NVIDIA H200`.
    pub product: String,
    /// Its architecture: `sm_90`.
    pub arch: String,
    /// The driver's major version. Timings are valid for one major version.
    pub driver_major: u32,
    /// The MIG profile, if the device is a MIG instance: `1g.18gb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<String>,
}

impl DeviceClass {
    /// Whether a device of this class runs machine code for an architecture. Code for `sm_90a` runs only on exactly that architecture. Code for `sm_100f` and
    /// code without a suffix run on devices with the same major version and the same or a higher minor version.
    pub fn runs(&self, arch: &str) -> bool {
        let number = |text: &str| {
            let digits = text.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
            digits.parse::<u32>().ok()
        };
        let (Some(code), Some(device)) = (number(arch), number(&self.arch)) else { return false };
        match arch.ends_with('a') {
            true => code == device,
            false => code / 10 == device / 10 && code <= device,
        }
    }
}

impl fmt::Display for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, driver {})", self.product, self.arch, self.driver_major)?;
        match &self.mig {
            Some(mig) => write!(f, " MIG {mig}"),
            None => Ok(()),
        }
    }
}

/// The provenance of an observation, which turns it into evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Provenance {
    /// The device class that it is valid for.
    pub device: DeviceClass,
    /// The full driver version: `580.159.04`.
    pub driver: String,
    /// The version of kforge that made it.
    pub kforge: String,
    /// The version of the protocol under which it was made.
    pub protocol: u32,
    /// The time, as RFC 3339 in UTC.
    pub measured_at: String,
    /// SM clock and memory clock at that time, in MHz, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_mhz: Option<(u32, u32)>,
    /// Temperature in degrees Celsius, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// NVML's clock event reasons, by name.
    #[serde(default)]
    pub throttle: Vec<String>,
    /// Microseconds that the step spent on each of its activities, as far as it counted them: the `whole` time in its worker; within it, `wait` for its turn at
    /// the device and `device` from then on; within `device`, the requests to the device's runner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent_us: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_its_own_major_and_on_no_lower_minor() {
        let device = |arch: &str| DeviceClass { product: "X".into(), arch: arch.into(), driver_major: 1, mig: None };
        for (code, on) in [("sm_80", "sm_86"), ("sm_90a", "sm_90"), ("sm_100f", "sm_103"), ("sm_90", "sm_90")] {
            assert!(device(on).runs(code), "{code} on {on}");
        }
        for (code, on) in
            [("sm_86", "sm_80"), ("sm_100a", "sm_103"), ("sm_80", "sm_90"), ("cpu", "sm_90"), ("sm_90", "x")]
        {
            assert!(!device(on).runs(code), "{code} on {on}");
        }
    }
}
