//! Describes a virtual device and how launches behave on it, as a TOML file. Knows the format; draws no random numbers.
//!
//! Like the state of a real machine, a scenario is not part of any key: what is observed under it is evidence. A scenario without a `[[device]]` is a machine
//! that has only the stand-in compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use kforge_harness::task::Task;
use kforge_types::model::bound::Launch;
use kforge_types::model::grid;
use kforge_types::record::peaks::PeaksObserved;
use kforge_types::record::profile::Peaks;
use kforge_types::record::{self, DeviceClass, FindingKind};

use super::TOOL;
use super::patterns::compiled;

/// A scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// The time of all measurements, as RFC 3339.
    #[serde(default = "first_day")]
    pub now: String,
    /// Seed of noise and drift.
    #[serde(default)]
    pub seed: u64,
    /// Relative standard deviation of one sample.
    #[serde(default)]
    pub noise: f64,
    /// Relative range of the factor that all samples of a step, or of a block of pairs, share. It simulates the clock rate of that moment.
    #[serde(default)]
    pub drift: f64,
    /// Seconds for which a bench with all samples holds the device; with fewer samples, proportionally less.
    #[serde(default = "one_second")]
    pub bench_s: f64,
    /// Whether the machine's own compilers and disassemblers run, not their stand-ins.
    #[serde(default)]
    pub compilers: bool,
    /// The devices; empty for a machine without a device.
    #[serde(default, rename = "device")]
    pub devices: Vec<Device>,
    /// Whether kernels in PyTorch are called: on the processor, in a process that keeps its tensors apart as one with a device does. Otherwise rules say how they
    /// behave.
    #[serde(default)]
    pub torch: bool,
    /// How launches behave; the first rule that matches applies.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// How baselines behave; the first rule that matches applies.
    #[serde(default, rename = "baseline")]
    pub baselines: Vec<BaselineRule>,
}

fn first_day() -> String {
    "2026-01-01T00:00:00Z".into()
}

fn one_second() -> f64 {
    1.0
}

fn exited() -> FindingKind {
    FindingKind::Exited
}

fn unchanged() -> f64 {
    1.0
}

/// A virtual device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its UUID; by default one made from its index.
    pub uuid: Option<String>,
    /// As in [`DeviceClass`].
    pub product: String,
    /// As in [`DeviceClass`].
    pub arch: String,
    /// The full driver version: `580.1`.
    pub driver: String,
    /// The peaks that the device reports; none if it reports none.
    pub peaks: Option<Peaks>,
    /// The measured peaks; empty if not given.
    pub measured: Option<PeaksObserved>,
    /// Why its counters cannot be read; none if they can.
    pub refused: Option<String>,
}

impl Device {
    /// The class for which its measurements are valid.
    pub fn class(&self) -> DeviceClass {
        let major = self.driver.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
        DeviceClass { product: self.product.clone(), arch: self.arch.clone(), driver_major: major, mig: None }
    }
}

/// A fault of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The device reports an illegal access.
    Crash,
    /// The launch never ends.
    TimeOut,
    /// The device does not start the launch, and says nothing of the kernel.
    NotLaunched,
    /// The kernel skips its work when it is timed, which a bench with few samples does not detect.
    Evades,
}

/// The behavior of launches whose text matches.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// A regular expression over the launch's text: `entry<4> grid 8,1,1 block 128,1,1 on Virtual H`, or `ModelNew BLOCK=2 in PyTorch on Virtual H`.
    pub matches: String,
    /// Nanoseconds of a launch.
    #[serde(default)]
    pub ns: f64,
    /// Factors for the nanoseconds, by group of the expression and by the text that the group matched: `{ 1 = { "4" = 1.5 } }`. The factor is 1 for texts that
    /// are not listed.
    #[serde(default)]
    pub factors: BTreeMap<String, BTreeMap<String, f64>>,
    /// Additional nanoseconds per thread.
    #[serde(default)]
    pub ns_per_thread: f64,
    /// The error of the first element of every output.
    #[serde(default)]
    pub error: f64,
    /// The same in fresh trials only: the kernel knows the inputs of the others.
    #[serde(default)]
    pub fresh_error: f64,
    /// The same when a timed launch has inputs of a stress class: the kernel is careful only while it is verified.
    #[serde(default)]
    pub stress_error: f64,
    /// The same beside a baseline: the kernel is careful only while it is timed by itself.
    #[serde(default)]
    pub beside_error: f64,
    /// The same in a runner that ran no other candidate: elsewhere another candidate has planted its answers.
    #[serde(default)]
    pub isolated_error: f64,
    /// Whether the device is gone when a verification wants a process of its own.
    #[serde(default)]
    pub isolated_gone: bool,
    /// Nanoseconds of a launch on inputs of a stress class; those of other inputs if not given.
    pub stress_ns: Option<f64>,
    /// Whether the device is observed by a kforge that runs no fresh trials.
    #[serde(default)]
    pub no_fresh: bool,
    /// Share of the samples that are dropped because of thermal limits.
    #[serde(default)]
    pub throttled: f64,
    /// Nanoseconds of a hot launch; those of a cold one if not given.
    pub hot_ns: Option<f64>,
    /// A factor for the nanoseconds in those blocks of pairs in which the launch comes first.
    #[serde(default = "unchanged")]
    pub when_first: f64,
    /// Nanoseconds of the first launch on each set of fresh inputs of a bench with all samples, in order. Sets beyond the list take as long as other inputs.
    #[serde(default)]
    pub fresh_ns: Vec<f64>,
    /// The floors of a cold and of a hot launch in nanoseconds; none if nothing is known.
    pub floor_ns: Option<[f64; 2]>,
    /// Nanoseconds that a second clock measures of a hot launch; those of a hot launch if not given.
    pub clock_ns: Option<f64>,
    /// The metrics of a profile. A metric that is not listed has no counter.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// Nanoseconds of the kernels of the device that a call of a kernel in PyTorch launches, by name. Nothing is recorded without one.
    #[serde(default)]
    pub launched: BTreeMap<String, f64>,
    /// The fault of the launch.
    pub fault: Option<Fault>,
    /// What a verification finds of it. Its outputs are then compared with nothing.
    pub finds: Option<FindingKind>,
}

/// The behavior of baselines whose text matches.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaselineRule {
    /// A regular expression over the baseline's text: `compile max-autotune fast.py::softmax on Virtual H`.
    pub matches: String,
    /// Nanoseconds of device time.
    #[serde(default)]
    pub ns: f64,
    /// Nanoseconds of host time of a call until the device has done its work.
    #[serde(default)]
    pub call_ns: f64,
    /// Nanoseconds of device time beside a champion in PyTorch, where `ns` is that of a call; none is taken if not given.
    pub device_ns: Option<f64>,
    /// Factors for the nanoseconds of device time, by the UUID of the device; 1 for devices that are not listed.
    #[serde(default)]
    pub on: BTreeMap<String, f64>,
    /// Whether champions are wrong beside it on a second device.
    #[serde(default)]
    pub spoils_second: bool,
    /// The error of the first element of every output.
    #[serde(default)]
    pub error: f64,
    /// Whether it waits for the device, so that device times hold time of the host.
    #[serde(default)]
    pub waits: bool,
    /// The error that it raises.
    pub raises: Option<String>,
    /// The kind of finding that the error is.
    #[serde(default = "exited")]
    pub finds: FindingKind,
    /// Outputs that it gives in another type, with that type.
    #[serde(default)]
    pub converted: BTreeMap<String, String>,
}

/// The result of a sequence of launches.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Behaviour {
    pub(super) ns: f64,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) error: f64,
    pub(super) fresh_error: f64,
    pub(super) stress_error: f64,
    pub(super) beside_error: f64,
    pub(super) isolated_error: f64,
    pub(super) isolated_gone: bool,
    pub(super) stress_ns: f64,
    pub(super) no_fresh: bool,
    pub(super) throttled: f64,
    pub(super) hot_ns: f64,
    pub(super) when_first: f64,
    pub(super) fresh_ns: Vec<f64>,
    pub(super) floor_ns: [f64; 2],
    pub(super) clock_ns: f64,
    pub(super) launched: BTreeMap<String, f64>,
    pub(super) fault: Option<Fault>,
    pub(super) finds: Option<FindingKind>,
}

/// Why a file is not a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the virtual device's scenario `{}`: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file has another format.
    #[error("`{}` is not a scenario of a virtual device: {error}", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        error: toml::de::Error,
    },
}

/// Why a scenario gives no behavior for launches.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum NoBehaviour {
    /// A launch has no grid.
    #[error(transparent)]
    NotLaunched(#[from] grid::NotLaunched),
    /// No rule matches a launch.
    #[error("no rule of the scenario matches `{0}`")]
    NoRule(String),
    /// A rule is not a regular expression.
    #[error("`{matches}`: {error}")]
    Rule {
        /// The rule.
        matches: String,
        /// The error in the rule.
        error: regex::Error,
    },
}

impl Scenario {
    /// The devices of the scenario.
    pub fn present(&self) -> record::Devices {
        let of = |(at, device): (usize, &Device)| record::Device {
            uuid: device.uuid.clone().unwrap_or_else(|| format!("GPU-virtual-{at}")),
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

    /// The behavior of a baseline.
    pub(super) fn baseline(&self, text: &str) -> Result<&BaselineRule, NoBehaviour> {
        for rule in &self.baselines {
            let regex =
                compiled(&rule.matches).map_err(|error| NoBehaviour::Rule { matches: rule.matches.clone(), error })?;
            if regex.is_match(text) {
                return Ok(rule);
            }
        }
        Err(NoBehaviour::NoRule(text.to_string()))
    }

    /// Whether the scenario of a task has compilers of its own. A scenario that cannot be read has none.
    pub(crate) fn compiles(task: &Task) -> bool {
        task.tool(TOOL).is_ok_and(|path| Scenario::read(path).is_ok_and(|scenario| scenario.compilers))
    }

    /// The behavior of launches on a product: times and floors add up, the largest error, the
    /// first fault and the first list for fresh inputs apply, and metrics are those of the longest launch.
    pub(super) fn behaviour(&self, launches: &[Launch], product: &str) -> Result<Behaviour, NoBehaviour> {
        // A virtual device has the size of the emulator's device.
        self.of(grid::emulated(launches)?.iter().map(|launch| text(launch, product)))
    }

    /// The behavior of a kernel in PyTorch on a product, by what is called of it.
    pub(super) fn called(&self, function: &str, product: &str) -> Result<Behaviour, NoBehaviour> {
        self.of([(format!("{function} in PyTorch on {product}"), 0)].into_iter())
    }

    /// The behavior of launches by their texts and numbers of threads.
    fn of(&self, launches: impl Iterator<Item = (String, u64)>) -> Result<Behaviour, NoBehaviour> {
        let (mut all, mut longest) = (Behaviour { when_first: 1.0, ..Behaviour::default() }, 0.0);
        for (text, threads) in launches {
            let mut rules = self.rules.iter();
            let (rule, factor) = loop {
                let rule = rules.next().ok_or_else(|| NoBehaviour::NoRule(text.clone()))?;
                let regex = compiled(&rule.matches)
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
            let hot_ns = rule.hot_ns.unwrap_or(ns);
            all.ns += ns;
            all.hot_ns += hot_ns;
            all.when_first *= rule.when_first;
            all.clock_ns += rule.clock_ns.unwrap_or(hot_ns);
            if all.fresh_ns.is_empty() {
                all.fresh_ns.clone_from(&rule.fresh_ns);
            }
            all.floor_ns = [0, 1].map(|at| all.floor_ns[at] + rule.floor_ns.map_or(0.0, |floor| floor[at]));
            all.launched.extend(rule.launched.clone());
            all.error = all.error.max(rule.error);
            all.fresh_error = all.fresh_error.max(rule.fresh_error).max(rule.error);
            all.stress_error = all.stress_error.max(rule.stress_error).max(rule.error);
            all.beside_error = all.beside_error.max(rule.beside_error);
            all.isolated_error = all.isolated_error.max(rule.isolated_error);
            all.isolated_gone |= rule.isolated_gone;
            all.stress_ns += rule.stress_ns.unwrap_or(ns);
            all.no_fresh |= rule.no_fresh;
            all.throttled = all.throttled.max(rule.throttled);
            all.fault = all.fault.or(rule.fault);
            all.finds = all.finds.or(rule.finds);
        }
        Ok(all)
    }
}

/// A launch as text for rules, and its number of threads.
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
