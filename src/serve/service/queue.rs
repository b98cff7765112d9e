//! The order in which evaluations begin. Pure: knows contents, clients and priorities; holds nothing else.
//!
//! Of each seven evaluations that begin while all priorities wait, four are high, two normal and one low, so that no priority waits for ever. Within a priority,
//! clients take turns, so that a client with many tasks does not keep others waiting.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::api::Priority;
use kforge_foundation::base::Digest;

/// How many of each seven evaluations a priority begins.
const fn weight(priority: Priority) -> u32 {
    match priority {
        Priority::High => 4,
        Priority::Normal => 2,
        Priority::Low => 1,
    }
}

/// Entries of one priority.
#[derive(Debug, Default)]
struct Class {
    /// The clients with entries, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    by_client: HashMap<Arc<str>, VecDeque<Digest>>,
    /// How many it may begin before the others are given theirs again.
    credit: u32,
}

impl Class {
    /// Takes the next one that `waits`; drops those before it that do not, which take no turn.
    fn pop(&mut self, waits: &mut impl FnMut(&Digest) -> bool) -> Option<Digest> {
        while let Some(client) = self.turns.pop_front() {
            let Some(line) = self.by_client.get_mut(&client) else { continue };
            let next = std::iter::from_fn(|| line.pop_front()).find(&mut *waits);
            if line.is_empty() {
                self.by_client.remove(&client);
            } else {
                self.turns.push_back(client);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn len(&self) -> usize {
        self.by_client.values().map(VecDeque::len).sum()
    }

    fn compact(&mut self, waits: &mut impl FnMut(&Digest) -> bool) {
        let mut seen = HashSet::new();
        for line in self.by_client.values_mut() {
            line.retain(|content| waits(content) && seen.insert(*content));
            line.shrink_to_fit();
        }
        self.by_client.retain(|_, line| !line.is_empty());
        self.turns.retain(|client| self.by_client.contains_key(client));
    }
}

/// The queue. A content may be in it several times, after its priority was raised or its tasks were cancelled: whoever takes it out knows whether it still waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    classes: [Class; 3],
    len: usize,
}

impl Queue {
    /// How many contents it holds, each as often as it is in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a content.
    pub(super) fn push(&mut self, content: Digest, client: &Arc<str>, priority: Priority) {
        let class = &mut self.classes[priority as usize];
        let line = class.by_client.entry(client.clone()).or_default();
        if line.is_empty() {
            class.turns.push_back(client.clone());
        }
        line.push_back(content);
        self.len += 1;
    }

    /// Takes the next one that `waits`; drops those before it that do not.
    pub(super) fn pop(&mut self, mut waits: impl FnMut(&Digest) -> bool) -> Option<Digest> {
        let next = self.next(&mut waits);
        self.count();
        next
    }

    /// Removes what does not wait, and contents that are in a priority already.
    pub(super) fn compact(&mut self, mut waits: impl FnMut(&Digest) -> bool) {
        self.classes.iter_mut().for_each(|class| class.compact(&mut waits));
        self.count();
    }

    fn count(&mut self) {
        self.len = self.classes.iter().map(Class::len).sum();
    }

    fn next(&mut self, waits: &mut impl FnMut(&Digest) -> bool) -> Option<Digest> {
        let has = |class: &Class| !class.turns.is_empty();
        while self.classes.iter().any(has) {
            if !self.classes.iter().any(|class| has(class) && class.credit > 0) {
                for priority in Priority::ALL {
                    self.classes[priority as usize].credit = weight(priority);
                }
            }
            let next = Priority::ALL.into_iter().find(|priority| {
                let class = &self.classes[*priority as usize];
                has(class) && class.credit > 0
            })?;
            let class = &mut self.classes[next as usize];
            if let Some(content) = class.pop(waits) {
                class.credit -= 1;
                return Some(content);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(n: u64) -> Digest {
        Digest::of(&n.to_le_bytes())
    }

    fn drain(queue: &mut Queue, most: usize) -> Vec<Digest> {
        std::iter::from_fn(|| queue.pop(|_| true)).take(most).collect()
    }

    #[test]
    fn priorities_share_and_none_starves() {
        let (mut queue, client) = (Queue::default(), Arc::from("c"));
        for n in 0..100 {
            for priority in Priority::ALL {
                queue.push(content(n * 3 + priority as u64), &client, priority);
            }
        }
        let of = |content: &Digest| (0..300).find(|n| self::content(*n) == *content).unwrap() % 3;
        let first: Vec<u64> = drain(&mut queue, 14).iter().map(of).collect();
        let count = |class: u64| first.iter().filter(|of| **of == class).count();
        assert_eq!([count(2), count(1), count(0)], [8, 4, 2], "{first:?}");
        assert_eq!(first[0], Priority::High as u64);
        assert_eq!(drain(&mut queue, 1000).len(), 286);
    }

    #[test]
    fn a_low_task_by_itself_does_not_wait() {
        let (mut queue, client) = (Queue::default(), Arc::from("c"));
        for n in 0..20 {
            queue.push(content(n), &client, Priority::Low);
            assert_eq!(queue.pop(|_| true), Some(content(n)));
        }
        assert_eq!(queue.pop(|_| true), None);
    }

    #[test]
    fn clients_take_turns_and_each_is_served_in_its_order() {
        let mut queue = Queue::default();
        let (many, few): (Arc<str>, Arc<str>) = ("many".into(), "few".into());
        (0..10).for_each(|n| queue.push(content(n), &many, Priority::Normal));
        (10..12).for_each(|n| queue.push(content(n), &few, Priority::Normal));
        let order: Vec<Digest> = drain(&mut queue, 5);
        assert_eq!(order, [0, 10, 1, 11, 2].map(content));
    }

    #[test]
    fn what_does_not_wait_is_dropped() {
        let (mut queue, client) = (Queue::default(), Arc::from("c"));
        (0..4).for_each(|n| queue.push(content(n), &client, Priority::Normal));
        assert_eq!(queue.pop(|next| *next == content(2)), Some(content(2)));
        assert_eq!(drain(&mut queue, 9), [content(3)]);
    }
    #[test]
    fn what_was_cancelled_takes_no_turn_from_others() {
        let (mut queue, client) = (Queue::default(), Arc::from("c"));
        for n in 0..10 {
            queue.push(content(n), &client, Priority::High);
        }
        queue.push(content(20), &client, Priority::Normal);
        let cancelled = [0, 1, 2, 3].map(content);
        // The first four would be all that high ones may begin before a normal one.
        let order: Vec<Digest> = std::iter::from_fn(|| queue.pop(|next| !cancelled.contains(next))).collect();
        assert_eq!(order, [4, 5, 6, 7, 20, 8, 9].map(content));
    }

    #[test]
    fn what_does_not_wait_is_removed_and_the_rest_keeps_its_order() {
        let mut queue = Queue::default();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        for n in 0..100 {
            queue.push(content(n), if n % 2 == 0 { &one } else { &other }, Priority::Normal);
        }
        (0..3).for_each(|_| queue.push(content(98), &one, Priority::Normal));
        assert_eq!(queue.len(), 103);
        queue.compact(|next| [96, 98].map(content).contains(next));
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue, 9), [96, 98].map(content));
        assert_eq!(queue.len(), 0);
    }
}
