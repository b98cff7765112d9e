//! Describes a virtual device and how launches behave on it: a file in TOML. Knows its format; draws no random numbers.
//!
//! A scenario is not part of any key, as the state of a real machine is not: what is observed under it is evidence. One without a `[[device]]` is a machine that has
//! only the stand-in compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use kforge_types::model::bound::Launch;
use kforge_types::model::grid;
use kforge_types::record::peaks::PeaksObserved;
use kforge_types::record::profile::Peaks;
use kforge_types::record::{self, DeviceClass};

/// A scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// When everything is measured, as RFC 3339.
    #[serde(default = "first_day")]
    pub now: String,
    /// Seed of noise and drift.
    #[serde(default)]
    pub seed: u64,
    /// Relative standard deviation of one sample.
    #[serde(default)]
    pub noise: f64,
    /// Relative range of what all samples of a step, or of a block of pairs, share: the clocks of that moment.
    #[serde(default)]
    pub drift: f64,
    /// Seconds that a bench of all samples holds the device; one of fewer, its share.
    #[serde(default = "one_second")]
    pub bench_s: f64,
    /// The devices; none for a machine without.
    #[serde(default, rename = "device")]
    pub devices: Vec<Device>,
    /// How launches behave; the first that matches counts.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

fn first_day() -> String {
    "2026-01-01T00:00:00Z".into()
}

fn one_second() -> f64 {
    1.0
}

/// A virtual device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As in [`DeviceClass`].
    pub product: String,
    /// As in [`DeviceClass`].
    pub arch: String,
    /// The full driver version: `580.1`.
    pub driver: String,
    /// What it can do at most; none if it does not say.
    pub peaks: Option<Peaks>,
    /// What is measured of that; nothing if it is not given.
    pub measured: Option<PeaksObserved>,
    /// Why its counters cannot be read, if they cannot.
    pub refused: Option<String>,
}

impl Device {
    /// What its measurements are valid for.
    pub fn class(&self) -> DeviceClass {
        let major = self.driver.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
        DeviceClass { product: self.product.clone(), arch: self.arch.clone(), driver_major: major, mig: None }
    }
}

/// What goes wrong with a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The device reports an illegal access.
    Crash,
    /// It never ends.
    TimeOut,
    /// It gives up its work when it is timed, which few samples do not show.
    Evades,
}

/// How launches behave whose text matches.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// A regular expression over the launch's text: `entry<4> grid 8,1,1 block 128,1,1 on Virtual H`.
    pub matches: String,
    /// Nanoseconds of a launch.
    #[serde(default)]
    pub ns: f64,
    /// By what the nanoseconds are multiplied for each group of the expression, by what the group matched: `{ 1 = { "4" = 1.5 } }`; by nothing where it is not listed.
    #[serde(default)]
    pub factors: BTreeMap<String, BTreeMap<String, f64>>,
    /// Nanoseconds beside, for each thread.
    #[serde(default)]
    pub ns_per_thread: f64,
    /// By how much the first element of every output is off.
    #[serde(default)]
    pub error: f64,
    /// Share of the samples that are dropped under thermal limits.
    #[serde(default)]
    pub throttled: f64,
    /// What a profile sees of it; what stands nowhere has no counter.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// The result of a sequence of launches.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Behaviour {
    pub(super) ns: f64,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) error: f64,
    pub(super) throttled: f64,
    pub(super) fault: Option<Fault>,
}

/// Why a file is not a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be read.
    #[error("cannot read the virtual device's scenario `{}`: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It has another form.
    #[error("`{}` is not a scenario of a virtual device: {error}", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: toml::de::Error,
    },
}

/// Why a scenario does not give the result of launches.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum NoBehaviour {
    /// One of them has no grid.
    #[error(transparent)]
    NotLaunched(#[from] grid::NotLaunched),
    /// No rule is about one of them.
    #[error("no rule of the scenario matches `{0}`")]
    NoRule(String),
    /// A rule is not a regular expression.
    #[error("`{matches}`: {error}")]
    Rule {
        /// The rule.
        matches: String,
        /// What is wrong with it.
        error: regex::Error,
    },
}

impl Scenario {
    /// Its devices, each under a UUID made of its place in the list.
    pub fn present(&self) -> record::Devices {
        let of = |(at, device): (usize, &Device)| record::Device {
            uuid: format!("GPU-virtual-{at}"),
            class: device.class(),
        };
        record::Devices(self.devices.iter().enumerate().map(of).collect())
    }

    /// Reads a scenario.
    ///
    /// # Errors
    /// The file cannot be read, or is not a scenario.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| ScenarioError::Form { path: path.to_owned(), error })
    }

    /// Of launches on a product: times add up, the largest error counts, the first fault ends it, metrics are those of the launch that takes longest.
    pub(super) fn behaviour(&self, launches: &[Launch], product: &str) -> Result<Behaviour, NoBehaviour> {
        let (mut all, mut longest) = (Behaviour::default(), 0.0);
        // A simulated device has the emulator's size.
        for launch in &grid::emulated(launches)? {
            let (text, threads) = text(launch, product);
            let mut rules = self.rules.iter();
            let (rule, factor) = loop {
                let rule = rules.next().ok_or_else(|| NoBehaviour::NoRule(text.clone()))?;
                let regex = regex::Regex::new(&rule.matches)
                    .map_err(|error| NoBehaviour::Rule { matches: rule.matches.clone(), error })?;
                if let Some(found) = regex.captures(&text) {
                    let of = |(group, by): (&String, &BTreeMap<String, f64>)| {
                        let text = found.get(group.parse().ok()?)?.as_str();
                        by.get(text).copied()
                    };
                    break (rule, rule.factors.iter().filter_map(of).product::<f64>());
                }
            };
            let ns = rule.ns * factor + rule.ns_per_thread * threads as f64;
            if ns > longest {
                (longest, all.metrics) = (ns, rule.metrics.clone());
            }
            all.ns += ns;
            all.error = all.error.max(rule.error);
            all.throttled = all.throttled.max(rule.throttled);
            all.fault = all.fault.or(rule.fault);
        }
        Ok(all)
    }
}

/// A launch as rules see it, and how many threads it has.
fn text(launch: &Launch, product: &str) -> (String, u64) {
    let dims = |d: &[u32; 3]| d.map(|n| n.to_string()).join(",");
    match launch {
        Launch::Kernel(k) => {
            let threads = k.grid.iter().chain(&k.block).map(|n| u64::from(*n)).product();
            (format!("{} grid {} block {} on {product}", k.entry, dims(&k.grid), dims(&k.block)), threads)
        }
        Launch::Memset { .. } => ("memset".into(), 0),
    }
}
