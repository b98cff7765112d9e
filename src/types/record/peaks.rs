//! The parameters and the observation of a peaks step: how fast a device moved bytes and did arithmetic. Values only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// peaks. No inputs, because the question is only about the device. Output `observation`: a [`PeaksObserved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeaksParams {
    /// The architecture to compile for. Code for it runs on the device.
    pub arch: String,
    /// Version of the protocol.
    pub protocol: u32,
}

/// A rate that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rate {
    /// Bytes or operations per second that the fastest tenth of the samples reached. A sample takes about a millisecond.
    pub per_s: f64,
    /// The median of the later half of the samples, when the device has warmed up and its power limit may slow it down.
    pub sustained_per_s: f64,
    /// How the rate was reached: the instruction, or the kind of transfer.
    pub with: String,
}

/// What a peaks step saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PeaksObserved {
    /// Bytes per second between memory and L2 cache: of reading (`read`), of copying, both directions together (`copy`), and, since protocol 2, of writing
    /// (`write`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dram_bytes_per_s: BTreeMap<String, Rate>,
    /// Operations per second by unit as in [`super::profile::Peaks`], on random operands. A fused multiply-add counts as two operations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ops_per_s: BTreeMap<String, Rate>,
    /// What could not be measured (`dram`, or a unit), and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
}

impl PeaksObserved {
    /// Bytes per second of the memory, from the kind of transfer that moved most. None if it was not measured.
    pub fn dram(&self) -> Option<f64> {
        self.dram_bytes_per_s.values().map(|rate| rate.per_s).reduce(f64::max)
    }

    /// Operations per second of a unit.
    pub fn ops(&self, unit: &str) -> Option<f64> {
        self.ops_per_s.get(unit).map(|rate| rate.per_s)
    }

    /// A summary in one line: `copy 4.19 TB/s, read 4.69 TB/s, bf16 925.4 T/s, f32 66.1 T/s`.
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
