//! Chooses the next ready step. Knows durations and resources; does not know states or keys.
//!
//! Steps that lead to a step on a device come first, those with the fewest steps in between before the others, so that the device is not idle while everything
//! for it is being prepared. Among steps that use a device, requested ones come before those that serve only comparison. Next comes the step with the fewest
//! steps to an end: work that was started is finished before other work is started, because its results add steps that keep processors busy, and save long
//! measurements of other variants. Next comes the step with the longest path to an end, by past durations. Ties are resolved by the order of the plan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::resources::{Allocation, Need, Pool, Reservation};
use super::{Graph, Index, Memory};
use kforge_types::record::event::WaitReason;

/// The priority of a step among the ready ones. Fields are compared in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency {
    feeds_device: bool,
    /// The number of steps between this step and the steps on a device that it leads to, along the longest way: a device step waits for the longest way to it.
    before: Reverse<u32>,
    /// Whether it uses a device and does not serve only comparison.
    is_asked: bool,
    /// The number of steps between a device step and an end, along the longest way; 0 for all other steps.
    after: Reverse<u32>,
    /// The milliseconds of the longest path from its start to an end.
    pub(super) path_ms: u64,
}

/// The urgency of every node. Nodes that an expansion adds later are ranked among themselves, because the steps that they depend on have ended or are about to.
#[derive(Debug, Default)]
pub(super) struct Urgencies {
    all: Vec<Urgency>,
    /// The number of steps between each node and an end, along the longest way.
    left: Vec<u32>,
}

impl Urgencies {
    /// Computes the urgencies of new nodes.
    pub(super) fn update(&mut self, graph: &Graph, memory: &dyn Memory) {
        let fresh = self.all.len() as Index..graph.len() as Index;
        if fresh.is_empty() {
            return;
        }
        self.all.resize(graph.len(), Urgency::default());
        self.left.resize(graph.len(), 0);
        for index in backwards(graph, fresh) {
            let node = graph.node(index);
            let after = graph.dependents(index).map(|d| self.all[d as usize]);
            let best = after.fold(Urgency::default(), |a, b| Urgency {
                feeds_device: a.feeds_device | b.feeds_device,
                before: if b.feeds_device { a.before.min(b.before) } else { a.before },
                is_asked: false,
                after: Reverse(0),
                path_ms: a.path_ms.max(b.path_ms),
            });
            let own = memory.duration(&node.id, node.kind).unwrap_or(node.kind.descriptor().usual_ms).max(1);
            let device = node.resources.device.is_some() && node.unavailable.is_none();
            let left = graph.dependents(index).map(|d| self.left[d as usize].saturating_add(1)).max().unwrap_or(0);
            self.left[index as usize] = left;
            self.all[index as usize] = Urgency {
                feeds_device: best.feeds_device || device,
                before: if device { Reverse(0) } else { Reverse(best.before.0.saturating_add(1)) },
                is_asked: device && !node.advisory,
                after: Reverse(if device { left } else { 0 }),
                path_ms: best.path_ms.saturating_add(own),
            };
        }
    }

    pub(super) fn of(&self, index: Index) -> Urgency {
        self.all.get(index as usize).copied().unwrap_or_default()
    }
}

/// The nodes of a range, ordered so that each comes after all nodes that depend on it. A node outside the range never depends on a node inside it.
fn backwards(graph: &Graph, range: Range<Index>) -> Vec<Index> {
    let start = range.start as usize;
    let mut open: Vec<u32> = range.clone().map(|i| graph.dependents(i).count() as u32).collect();
    let mut order: Vec<Index> = range.clone().filter(|i| open[*i as usize - start] == 0).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        next += 1;
        for dep in graph.dependencies(index).filter(|d| range.contains(d)) {
            let left = &mut open[dep as usize - start];
            *left -= 1;
            if *left == 0 {
                order.push(dep);
            }
        }
    }
    order
}

type Entry = (Urgency, Reverse<Index>);

/// How long the steps of one need have waited for each reason, together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Waited([Duration; WaitReason::ALL.len()]);

impl Waited {
    /// What was waited since an earlier state, for each reason that was waited for.
    pub(super) fn since(&self, earlier: &Waited) -> impl Iterator<Item = (WaitReason, Duration)> {
        let spent = self.0.into_iter().zip(earlier.0).map(|(now, then)| now.saturating_sub(then));
        WaitReason::ALL.into_iter().zip(spent).filter(|(_, spent)| !spent.is_zero())
    }
}

/// Ready steps with the same need.
#[derive(Debug)]
struct Class {
    need: Need,
    heap: BinaryHeap<Entry>,
    waited: Waited,
    /// What they wait for, and until when that is in `waited`.
    lacks: Option<(WaitReason, Instant)>,
}

impl Class {
    /// Counts the time until now.
    fn count(&mut self, now: Instant) {
        if let Some((reason, since)) = &mut self.lacks {
            self.waited.0[*reason as usize] += now.saturating_duration_since(*since);
            *since = now;
        }
    }
}

/// A step that starts.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) index: Index,
    /// The resources that it took.
    pub(super) taken: Allocation,
    /// What steps of its need have waited so far.
    pub(super) waited: Waited,
    /// What they waited for last.
    pub(super) lacked: Option<WaitReason>,
}

/// Ready steps, with one heap for each distinct need, so that ten thousand steps that wait for a slot cost nothing when one becomes free.
#[derive(Debug, Default)]
pub(super) struct Ready {
    classes: Vec<Class>,
}

impl Ready {
    /// Adds a step. Returns what steps of its need have waited so far, which it did not wait for.
    pub(super) fn push(&mut self, need: Need, urgency: Urgency, index: Index, now: Instant) -> Waited {
        let entry = (urgency, Reverse(index));
        match self.classes.iter_mut().find(|class| class.need == need) {
            Some(class) => {
                class.count(now);
                class.heap.push(entry);
                class.waited
            }
            None => {
                let (heap, waited) = (BinaryHeap::from([entry]), Waited::default());
                self.classes.push(Class { need, heap, waited, lacks: None });
                waited
            }
        }
    }

    /// The most urgent step whose need is free.
    pub(super) fn next(&mut self, pool: &mut Pool, now: Instant) -> Option<Started> {
        self.classes.retain(|class| !class.heap.is_empty());
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.sort_by(|a, b| self.classes[*b].heap.peek().cmp(&self.classes[*a].heap.peek()));
        let mut wanted = Reservation::default();
        for class in order {
            let class = &mut self.classes[class];
            class.count(now);
            match pool.try_take(&class.need, &mut wanted) {
                Err(reason) => class.lacks = Some((reason, now)),
                Ok(taken) => {
                    let lacked = class.lacks.take().map(|(reason, _)| reason);
                    let Reverse(index) = class.heap.pop()?.1;
                    return Some(Started { index, taken, waited: class.waited, lacked });
                }
            }
        }
        None
    }

    /// Removes the steps for which `which` holds and returns them, for each need the most urgent first.
    pub(super) fn drain(&mut self, which: impl Fn(Index) -> bool) -> Vec<Index> {
        let mut out = vec![];
        for class in &mut self.classes {
            let (go, stay) =
                std::mem::take(&mut class.heap).into_sorted_vec().into_iter().rev().partition(|e: &Entry| which(e.1.0));
            class.heap = Vec::into(stay);
            out.extend(Vec::into_iter(go).map(|e: Entry| e.1.0));
        }
        out
    }

    pub(super) fn is_empty(&self) -> bool {
        self.classes.iter().all(|class| class.heap.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::resources::Capacity;
    use crate::testing::{FakeMemory, node, output};
    use kforge_types::record::StepKind;

    /// The compilations `e`, `c`, `b`, `a`, planned in this order. `b` leads to a bench; the tests make `c` take long.
    fn graph() -> Graph {
        let compile = |id: &str| node(id, StepKind::Compile, &[]);
        let mut bench = node("bench", StepKind::Bench, &[("binary", output("b", true))]);
        bench.resources.device = Some(["h200".into()].into());
        Graph::new(vec![compile("e"), bench, compile("c"), compile("b"), compile("a")]).unwrap()
    }

    #[test]
    fn what_feeds_a_device_comes_first_then_the_longest_way_then_what_was_planned_first() {
        let graph = graph();
        let memory = FakeMemory::default();
        memory.durations.borrow_mut().insert("c".into(), 1_000_000);
        let mut urgencies = Urgencies::default();
        urgencies.update(&graph, &memory);
        let mut pool = Pool::new(&Capacity::default());
        let mut ready = Ready::default();
        for id in ["a", "c", "e", "b"] {
            let index = graph.find(id).unwrap();
            ready.push(pool.need(graph.node(index)), urgencies.of(index), index, Instant::now());
        }
        let mut order = vec![];
        while let Some(Started { index, taken, .. }) = ready.next(&mut pool, Instant::now()) {
            order.push(graph.node(index).id.clone());
            assert!(ready.next(&mut pool, Instant::now()).is_none(), "one slot");
            pool.release(&taken);
        }
        assert_eq!(order, ["b", "c", "e", "a"]);
        assert!(ready.is_empty());
    }

    #[test]
    fn what_is_nearest_to_a_device_comes_first() {
        let inspect = |id: &str, of: &str| node(id, StepKind::Inspect, &[("binary", output(of, true))]);
        let reads = [("inspection", output("i", true)), ("binary", output("c", true))];
        let mut bench = node("bench", StepKind::Bench, &reads);
        bench.resources.device = Some(["h200".into()].into());
        let nodes = vec![
            node("c", StepKind::Compile, &[]),
            inspect("i", "c"),
            bench,
            node("d", StepKind::Compile, &[]),
            inspect("j", "d"),
        ];
        let graph = Graph::new(nodes).unwrap();
        let mut urgencies = Urgencies::default();
        urgencies.update(&graph, &FakeMemory::default());
        let of = |id: &str| urgencies.of(graph.find(id).unwrap());
        assert!(of("bench") > of("i") && of("i") > of("c"), "though the way from `c` is longer");
        assert!(of("c") > of("d") && of("d") > of("j"), "where no device is, the longest way comes first");
    }

    #[test]
    fn at_a_device_what_is_nearest_to_an_end_comes_first() {
        let at_device = |id: &str, kind, reads: &[_]| {
            let mut node = node(id, kind, reads);
            node.resources.device = Some(["h200".into()].into());
            node
        };
        let begun = [("verify", output("v", true))];
        let nodes = vec![
            at_device("v", StepKind::Verify, &[]),
            at_device("b", StepKind::Bench, &begun),
            at_device("w", StepKind::Verify, &[]),
            at_device("c", StepKind::Bench, &[("verify", output("w", true))]),
            Node { advisory: true, ..at_device("p", StepKind::Profile, &[]) },
        ];
        let graph = Graph::new(nodes).unwrap();
        let memory = FakeMemory::default();
        memory.durations.borrow_mut().insert("w".into(), 1_000_000);
        let mut urgencies = Urgencies::default();
        urgencies.update(&graph, &memory);
        let of = |id: &str| urgencies.of(graph.find(id).unwrap());
        assert!(of("b") > of("w") && of("c") > of("w"), "though the way from `w` is longer");
        assert!(of("w") > of("v"), "as far from an end, and longer");
        assert!(of("v") > of("p"), "though it is an end, of what is made for comparison");
    }

    #[test]
    fn drained_steps_are_gone_and_the_others_stay() {
        let graph = graph();
        let mut pool = Pool::new(&Capacity::default());
        let mut ready = Ready::default();
        for (i, node) in graph.nodes().enumerate() {
            ready.push(pool.need(node), Urgency::default(), i as Index, Instant::now());
        }
        let mut gone = ready.drain(|i| i < 3);
        gone.sort();
        assert_eq!(gone, [0, 1, 2]);
        assert_eq!(ready.next(&mut pool, Instant::now()).map(|n| n.index), graph.find("b"), "planned before `a`");
    }

    #[test]
    fn time_counts_for_what_a_step_lacked_and_not_for_steps_that_came_later() {
        let mut pool = Pool::new(&Capacity::default());
        let mut ready = Ready::default();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let compile = pool.need(&node("c", StepKind::Compile, &[]));
        let first = ready.push(compile.clone(), Urgency::default(), 0, at(0));
        let second = ready.push(compile.clone(), Urgency::default(), 1, at(0));
        let held = ready.next(&mut pool, at(0)).unwrap();
        assert_eq!((held.waited.since(&first).count(), held.lacked), (0, None));
        assert!(ready.next(&mut pool, at(0)).is_none());
        let third = ready.push(compile, Urgency::default(), 2, at(30));
        pool.release(&held.taken);
        let next = ready.next(&mut pool, at(40)).unwrap();
        let spent = |started: &Started, before: &Waited| started.waited.since(before).collect::<Vec<_>>();
        assert_eq!((next.index, next.lacked), (1, Some(WaitReason::Processor)));
        assert_eq!(spent(&next, &second), [(WaitReason::Processor, Duration::from_millis(40))]);
        assert!(ready.next(&mut pool, at(40)).is_none());
        pool.release(&next.taken);
        let last = ready.next(&mut pool, at(100)).unwrap();
        assert_eq!(spent(&last, &third), [(WaitReason::Processor, Duration::from_millis(70))]);
    }
}
