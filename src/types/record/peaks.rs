//! The parameters and the observation of a peaks step: how fast a device moved bytes and did arithmetic. Values only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// peaks. No inputs: the question is of the device alone. Output `observation`: a [`PeaksObserved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeaksParams {
    /// The architecture that is compiled for: code for it runs on the device.
    pub arch: String,
    /// Version of the protocol.
    pub protocol: u32,
}

/// A rate that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rate {
    /// Bytes or operations a second, of samples of about a millisecond: what the fastest tenth of them reached.
    pub per_s: f64,
    /// The median of the later half of the samples, when the device has warmed up and its power may limit it.
    pub sustained_per_s: f64,
    /// By what: the instruction, or what was done.
    pub with: String,
}

/// What a peaks step saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PeaksObserved {
    /// Bytes a second between memory and L2 cache: of reading (`read`), of copying, both directions together (`copy`), and, since protocol 2, of writing
    /// (`write`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dram_bytes_per_s: BTreeMap<String, Rate>,
    /// Operations a second by unit as in [`super::profile::Peaks`], on random operands, a fused multiply-add counted as two.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ops_per_s: BTreeMap<String, Rate>,
    /// What could not be measured (`dram`, or a unit), and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
}

impl PeaksObserved {
    /// Bytes a second of the memory, by what moved most; none where that was not measured.
    pub fn dram(&self) -> Option<f64> {
        self.dram_bytes_per_s.values().map(|rate| rate.per_s).reduce(f64::max)
    }

    /// Operations a second of a unit.
    pub fn ops(&self, unit: &str) -> Option<f64> {
        self.ops_per_s.get(unit).map(|rate| rate.per_s)
    }

    /// In a line: `copy 4.19 TB/s, read 4.69 TB/s, bf16 925.4 T/s, f32 66.1 T/s`.
    pub fn summary(&self) -> String {
        let memory = self.dram_bytes_per_s.iter().map(|(what, rate)| format!("{what} {:.2} TB/s", rate.per_s / 1e12));
        let units = self.ops_per_s.iter().map(|(unit, rate)| format!("{unit} {:.1} T/s", rate.per_s / 1e12));
        let all: Vec<String> = memory.chain(units).collect();
        if all.is_empty() { "nothing could be measured".into() } else { all.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_reached_and_nothing_that_was_not() {
        let rate = |per_s| Rate { per_s, sustained_per_s: per_s / 2.0, with: "x".into() };
        let mut seen = PeaksObserved::default();
        assert_eq!((seen.summary().as_str(), seen.dram(), seen.ops("f32")), ("nothing could be measured", None, None));
        seen.dram_bytes_per_s = [("copy".to_string(), rate(4.19e12)), ("read".to_string(), rate(4.69e12))].into();
        seen.ops_per_s = [("f32".to_string(), rate(66.1e12))].into();
        assert_eq!(seen.summary(), "copy 4.19 TB/s, read 4.69 TB/s, f32 66.1 T/s");
    }
}
