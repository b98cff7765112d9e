//! The order in which evaluations begin. Pure: knows contents, clients and priorities; holds nothing else.
//!
//! Of each seven evaluations that begin while all priorities wait, four are high, two normal and one low, so that no priority waits for ever. Within a priority,
//! clients take turns, so that a client with many tasks does not keep others waiting.

use std::collections::{HashMap, VecDeque};
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
    fn pop(&mut self) -> Option<Digest> {
        let client = self.turns.pop_front()?;
        let line = self.by_client.get_mut(&client)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.by_client.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        first
    }
}

/// The queue. A content may be in it several times, after its priority was raised or its tasks were cancelled: whoever takes it out knows whether it still waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    classes: [Class; 3],
}

impl Queue {
    /// Adds a content.
    pub(super) fn push(&mut self, content: Digest, client: &Arc<str>, priority: Priority) {
        let class = &mut self.classes[priority as usize];
        let line = class.by_client.entry(client.clone()).or_default();
        if line.is_empty() {
            class.turns.push_back(client.clone());
        }
        line.push_back(content);
    }

    /// Takes the next one that `waits`; drops those before it that do not.
    pub(super) fn pop(&mut self, mut waits: impl FnMut(&Digest) -> bool) -> Option<Digest> {
        while let Some(next) = self.next() {
            if waits(&next) {
                return Some(next);
            }
        }
        None
    }

    fn next(&mut self) -> Option<Digest> {
        let has = |class: &Class| !class.turns.is_empty();
        if !self.classes.iter().any(has) {
            return None;
        }
        if !self.classes.iter().any(|class| has(class) && class.credit > 0) {
            for priority in Priority::ALL {
                self.classes[priority as usize].credit = weight(priority);
            }
        }
        let class = Priority::ALL.into_iter().find(|priority| {
            let class = &self.classes[*priority as usize];
            has(class) && class.credit > 0
        })?;
        let class = &mut self.classes[class as usize];
        class.credit -= 1;
        class.pop()
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
}
