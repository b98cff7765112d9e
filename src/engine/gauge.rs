//! How far a build is, for a progress bar: the steps in all, those that have ended, and how long the others will take if each takes as long as it did before.
//! Knows durations of earlier runs and processor slots; schedules nothing.
//!
//! The time that is left is the longest of three: what the open steps need of processors, over the slots; what those at devices need, which take turns; and the
//! longest path among the steps that are ready or run. Steps that may use the same devices share these, so two classes of devices work side by side. An open
//! step may turn out to be fresh, so the time is an upper estimate, and falls when that is known. There is none without a basis: if more than a tenth of the
//! open steps have a kind that never ran in this workspace.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kforge_types::record::Uuids;

use super::{Graph, Index, Memory};

/// Stands for no time.
const UNKNOWN: u64 = u64::MAX;

/// How far a build is. The build writes it, and others read it meanwhile.
#[derive(Debug)]
pub struct Gauge {
    total: AtomicU64,
    ended: AtomicU64,
    /// The expected end, in milliseconds since `epoch`.
    due_ms: AtomicU64,
    epoch: Instant,
}

impl Default for Gauge {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Gauge { total: zero(), ended: zero(), due_ms: AtomicU64::new(UNKNOWN), epoch: Instant::now() }
    }
}

impl Gauge {
    /// The number of steps, which grows while results add steps.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The number of steps that have ended, fresh ones included.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// How long the others still take, by earlier runs; none if that would be a guess.
    pub fn left(&self) -> Option<Duration> {
        let ms = self.due_ms.load(Ordering::Relaxed);
        (ms != UNKNOWN).then(|| Duration::from_millis(ms).saturating_sub(self.epoch.elapsed()))
    }

    /// A build begins.
    pub(super) fn begin(&self) {
        self.ended.store(0, Ordering::Relaxed);
        self.set_left(None);
    }

    pub(super) fn plans(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    pub(super) fn end_one(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_left(&self, left: Option<Duration>) {
        let due = left.map(|left| self.epoch.elapsed() + left);
        let ms = due.map_or(UNKNOWN, |due| u64::try_from(due.as_millis()).unwrap_or(UNKNOWN));
        self.due_ms.store(ms, Ordering::Relaxed);
    }
}

/// What an open step is expected to need.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Nothing that counts: it has ended, no worker executes it, or it cannot run here.
    Nothing,
    /// An unknown time.
    Unknown,
    /// Milliseconds of a processor slot.
    Processor(u64),
    /// Milliseconds at one of the devices of a group.
    Device(usize, u64),
}

/// Devices that suit the same steps, and the open work of these steps.
#[derive(Debug)]
struct Group {
    devices: Uuids,
    ms: u64,
}

/// The work that is left.
#[derive(Debug, Default)]
pub(super) struct Left {
    of: Vec<Expected>,
    processor_ms: u64,
    groups: Vec<Group>,
    known: u64,
    unknown: u64,
}

impl Left {
    /// Adds the nodes that the graph has more than before; `is_open` says which of them have not ended.
    pub(super) fn update(&mut self, graph: &Graph, memory: &dyn Memory, is_open: impl Fn(Index) -> bool) {
        for index in self.of.len() as Index..graph.len() as Index {
            let node = graph.node(index);
            let runs = is_open(index) && node.kind.lane().is_some() && node.unavailable.is_none();
            let expected = match (memory.duration(&node.id, node.kind).filter(|_| runs), &node.resources.device) {
                _ if !runs => Expected::Nothing,
                (None, _) => Expected::Unknown,
                (Some(ms), Some(devices)) => Expected::Device(self.group(devices), ms),
                (Some(ms), None) => Expected::Processor(ms),
            };
            match expected {
                Expected::Nothing => {}
                Expected::Unknown => self.unknown += 1,
                Expected::Processor(ms) => (self.known, self.processor_ms) = (self.known + 1, self.processor_ms + ms),
                Expected::Device(group, ms) => {
                    self.known += 1;
                    self.groups[group].ms += ms;
                }
            }
            self.of.push(expected);
        }
    }

    /// The place of the group of these devices.
    fn group(&mut self, devices: &Uuids) -> usize {
        self.groups.iter().position(|group| group.devices == *devices).unwrap_or_else(|| {
            self.groups.push(Group { devices: devices.clone(), ms: 0 });
            self.groups.len() - 1
        })
    }

    /// A node has ended, or another one runs in its place.
    pub(super) fn ends(&mut self, index: Index) {
        let Some(expected) = self.of.get_mut(index as usize) else { return };
        match std::mem::replace(expected, Expected::Nothing) {
            Expected::Nothing => {}
            Expected::Unknown => self.unknown -= 1,
            Expected::Processor(ms) => (self.known, self.processor_ms) = (self.known - 1, self.processor_ms - ms),
            Expected::Device(group, ms) => {
                self.known -= 1;
                self.groups[group].ms -= ms;
            }
        }
    }

    /// The milliseconds of a processor or device that an open node is expected to need in all.
    fn expected_ms(&self, index: Index) -> u64 {
        match self.of.get(index as usize) {
            Some(Expected::Processor(ms) | Expected::Device(_, ms)) => *ms,
            _ => 0,
        }
    }

    /// The time that is left. `running` are the nodes that run with the time since their start, and `path_ms` is the longest path from a node that is ready or
    /// runs to an end.
    pub(super) fn time(
        &self,
        slots: u32,
        running: impl Iterator<Item = (Index, Duration)>,
        path_ms: u64,
    ) -> Option<Duration> {
        let open = self.known + self.unknown;
        if open == 0 || self.unknown * 10 > open {
            return None;
        }
        let mut processor_ms = self.processor_ms;
        let mut at_devices: Vec<u64> = self.groups.iter().map(|group| group.ms).collect();
        for (index, since) in running {
            let done = self.expected_ms(index).min(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
            match self.of.get(index as usize) {
                Some(Expected::Device(group, _)) => at_devices[*group] -= done,
                Some(Expected::Processor(_)) => processor_ms -= done,
                _ => {}
            }
        }
        let ms = (processor_ms / u64::from(slots.max(1))).max(self.device_ms(&at_devices)).max(path_ms);
        Some(Duration::from_millis(ms))
    }

    /// The milliseconds until the devices have done the work of each group: no less than what its own devices need for it, and no less than what all devices
    /// need for all of it, because groups may share devices.
    fn device_ms(&self, at_devices: &[u64]) -> u64 {
        let shared = |ms: u64, devices: usize| ms / (devices.max(1) as u64);
        let all: BTreeSet<&String> = self.groups.iter().flat_map(|group| group.devices.iter()).collect();
        let longest = self.groups.iter().zip(at_devices).map(|(group, ms)| shared(*ms, group.devices.len())).max();
        longest.unwrap_or(0).max(shared(at_devices.iter().sum(), all.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeMemory;
    use crate::{Node, Rank, Resources};
    use kforge_types::record::StepKind;
    use kforge_types::record::event::Labels;

    /// A node that may use one of some devices, or that uses none.
    fn node(id: &str, kind: StepKind, devices: &[&str]) -> Node {
        let devices: Uuids = devices.iter().map(|uuid| (*uuid).to_string()).collect();
        Node {
            id: id.into(),
            labels: Labels::default(),
            rank: Rank { round: 0, phase: 0, wave: 0, kind },
            kind,
            params: serde_json::Value::Null,
            inputs: [].into(),
            after: vec![],
            resources: Resources { device: Some(devices).filter(|of| !of.is_empty()), ..Resources::default() },
            product: None,
            time_limit_s: 1,
            unavailable: None,
            expands: false,
            advisory: false,
        }
    }

    fn graph(missing: bool) -> Graph {
        let mut lacking = node("elsewhere", StepKind::Bench, &["h"]);
        lacking.unavailable = Some("no device".into());
        let mut nodes = vec![
            node("a", StepKind::Compile, &[]),
            node("b", StepKind::Compile, &[]),
            node("c", StepKind::Bench, &["h"]),
            node("pure", StepKind::Judge, &[]),
            lacking,
        ];
        if missing {
            nodes.push(node("d", StepKind::Oracle, &[]));
        }
        Graph::new(nodes).unwrap()
    }

    fn seconds(of: &[(&str, u64)]) -> FakeMemory {
        let memory = FakeMemory::default();
        memory.durations.borrow_mut().extend(of.iter().map(|(id, s)| ((*id).to_string(), s * 1000)));
        memory
    }

    #[test]
    fn processors_share_the_work_and_a_device_takes_its_turns() {
        let memory = seconds(&[("a", 8), ("b", 4), ("c", 3)]);
        let graph = graph(false);
        let mut left = Left::default();
        left.update(&graph, &memory, |_| true);
        let of = |left: &Left, slots| left.time(slots, std::iter::empty(), 0).unwrap().as_secs();
        assert_eq!((of(&left, 1), of(&left, 2), of(&left, 4)), (12, 6, 3));
        assert_eq!(left.time(4, std::iter::empty(), 9000).unwrap().as_secs(), 9, "a path is not shared");
        let a = graph.find("a").unwrap();
        assert_eq!(left.time(1, [(a, Duration::from_secs(5))].into_iter(), 0).unwrap().as_secs(), 7);
        assert_eq!(left.time(1, [(a, Duration::from_secs(50))].into_iter(), 0).unwrap().as_secs(), 4);
        left.ends(a);
        left.ends(a);
        assert_eq!(of(&left, 1), 4);
    }

    #[test]
    fn devices_of_two_classes_work_side_by_side() {
        let of = |steps: &[(&'static str, &[&str], u64)]| {
            let nodes = steps.iter().map(|(id, devices, _)| node(id, StepKind::Bench, devices)).collect();
            let memory = seconds(&steps.iter().map(|(id, _, s)| (*id, *s)).collect::<Vec<_>>());
            let graph = Graph::new(nodes).unwrap();
            let mut left = Left::default();
            left.update(&graph, &memory, |_| true);
            (left, graph)
        };
        let took = |left: &Left| left.time(1, std::iter::empty(), 0).unwrap().as_secs();
        let (mut left, graph) = of(&[("a", &["h"], 8), ("b", &["h"], 4), ("c", &["b"], 10), ("d", &["b"], 1)]);
        assert_eq!(took(&left), 12, "the other class takes 11 s meanwhile");
        let running = [(graph.find("a").unwrap(), Duration::from_secs(5))];
        assert_eq!(left.time(1, running.into_iter(), 0).unwrap().as_secs(), 11, "7 s of one class are left");
        left.ends(graph.find("c").unwrap());
        assert_eq!(took(&left), 12);
        left.ends(graph.find("a").unwrap());
        assert_eq!(took(&left), 4);
        let (left, _) = of(&[("a", &["x", "y"], 8), ("b", &["x", "y"], 4)]);
        assert_eq!(took(&left), 6, "two devices of one class share the work");
        let (left, _) = of(&[("a", &["x", "y"], 8), ("b", &["x"], 6)]);
        assert_eq!(took(&left), 7, "the devices of both groups have 14 s of work");
    }

    #[test]
    fn there_is_no_time_without_a_basis() {
        let mut left = Left::default();
        left.update(&graph(true), &seconds(&[("a", 8), ("b", 4), ("c", 3)]), |_| true);
        assert_eq!(left.time(1, std::iter::empty(), 0), None, "one of four steps was never seen");
        let mut none = Left::default();
        none.update(&graph(false), &seconds(&[("a", 8)]), |_| false);
        assert_eq!(none.time(1, std::iter::empty(), 0), None, "nothing is open");
        let gauge = Gauge::default();
        assert_eq!((gauge.total(), gauge.ended(), gauge.left()), (0, 0, None));
        gauge.set_left(Some(Duration::from_secs(60)));
        assert!(gauge.left().is_some_and(|left| left <= Duration::from_secs(60) && left > Duration::from_secs(50)));
        gauge.set_left(Some(Duration::ZERO));
        assert_eq!(gauge.left(), Some(Duration::ZERO));
    }
}
