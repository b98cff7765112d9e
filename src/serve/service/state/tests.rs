//! Random histories: what a restart reads is what there was, also after the journal was written again.

use std::path::Path;

use super::*;
use crate::api::Measure;
use crate::service::journal::{Journal, Kept, Replacement};
use serde_json::json;
use serde_json::value::RawValue;

/// Numbers that look random: a multiplicative generator modulo 2^31 - 1.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0 * 48271 % 0x7fff_ffff;
        self.0 % n
    }
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn content(number: u64) -> Digest {
    Digest::of(&number.to_le_bytes())
}

/// What is seen of a task: its number, its result, and whether it shared it.
type SeenTask = (TaskStatus, u64, Option<u64>, bool);

/// A service without threads.
struct Machine {
    state: State,
    journal: Journal,
    now: i64,
    running: Vec<Begun>,
    /// A file that is to replace that of the journal, while rows are added.
    replacing: Option<Replacement>,
}

fn moment(at: i64) -> Moment {
    Moment { wall: at, steady: at }
}

impl Machine {
    fn open(path: &Path) -> Machine {
        let mut state = State::default();
        let (journal, damaged) = Journal::open(path, |row, place| state.replay(row, place)).unwrap();
        assert_eq!(damaged, 0);
        state.started();
        Machine { state, journal, now: 1000, running: vec![], replacing: None }
    }

    fn submit(&mut self, chance: &mut Chance, id: u64) {
        let content = content(chance.below(12));
        let client: Arc<str> = format!("client-{}", chance.below(3)).into();
        let key = TaskKey { client: client.clone(), id: id.to_string().into() };
        if self.state.task(&key).is_some() {
            return;
        }
        let accepted = Accepted {
            client,
            id: id.to_string().into(),
            number: self.state.next_task(),
            content,
            measure: Measure::Verify,
            priority: Priority::ALL[chance.below(3) as usize],
            timeout_s: 10,
            at: self.now,
            known: self.state.known(&content),
            shared: false,
        };
        if accepted.known.is_none() && self.state.needs_request(&content) {
            let row = Row::Request { content, request: raw(&json!({})) };
            let (place, _) = self.journal.append(&row).unwrap();
            self.state.add_request(content, place);
        }
        let (_, rows) = self.journal.append(&Row::Accepted(accepted.clone())).unwrap();
        self.state.accept(accepted, moment(self.now), rows);
    }

    fn cancel(&mut self, chance: &mut Chance) {
        let keys: Vec<TaskKey> = self.state.tasks.keys().filter(|key| self.state.is_waiting(key)).cloned().collect();
        let Some(key) = keys.get(chance.below(keys.len().max(1) as u64) as usize).cloned() else { return };
        let row = Row::Cancelled { client: key.client.clone(), id: key.id.clone(), at: self.now };
        let (_, rows) = self.journal.append(&row).unwrap();
        self.state.cancel(&key, moment(self.now), rows);
    }

    fn end(&mut self, chance: &mut Chance) {
        if self.running.is_empty() {
            return;
        }
        let begun = self.running.remove(chance.below(self.running.len() as u64) as usize);
        if begun.stop.reason().is_some() && chance.below(2) == 0 {
            self.journal.append(&Row::Stopped { content: begun.content }).unwrap();
            self.state.put_back(begun.content);
            return;
        }
        assert!(matches!(begun.request.read::<Row>().unwrap(), Row::Request { .. }));
        let (number, keeps) = (self.state.take_result(), chance.below(4) > 0);
        let (content, at, verdict) = (begun.content, self.now, VerdictWord::Pass);
        let row = Row::Finished { content, result: number, keeps, at, verdict, value: raw(&json!(number)) };
        let (place, rows) = self.journal.append(&row).unwrap();
        self.state.finish(content, number, verdict, keeps, (moment(at), rows), place);
    }

    fn begin(&mut self) {
        if let Some(begun) = self.state.begin() {
            self.journal.append(&Row::Began { content: begun.content }).unwrap();
            self.running.push(begun);
        }
    }

    /// Forgets what ended before a time, as the service does.
    fn forget(&mut self, until: i64) {
        self.state.forget(until, usize::MAX, 0);
        self.state.forget_unused();
    }

    /// Begins to write the journal again, or ends it.
    fn rewrite(&mut self) {
        match self.replacing.take() {
            Some(new) => {
                let moved = self.journal.replace(new).unwrap();
                self.state.moved(&moved);
            }
            None => {
                let rows = self.state.rows();
                let rows = rows.iter().map(|row| match row {
                    Snapshot::Row(row) => Kept::New(row),
                    Snapshot::Copy(place) => Kept::Copy(place),
                });
                self.replacing = Some(Replacement::write(self.journal.end(), rows).unwrap());
            }
        }
    }

    /// Every task as its client sees it after a restart: what runs waits again.
    fn seen(&self) -> BTreeMap<(String, String), SeenTask> {
        let of = |(key, task): (&TaskKey, &TaskState)| {
            let status = match self.state.status(task) {
                TaskStatus::Running => TaskStatus::Queued,
                other => other,
            };
            let value = match task.phase {
                TaskPhase::Done { result, .. } => match self.state.result(result).unwrap().place.read::<Row>().unwrap()
                {
                    Row::Finished { value, .. } => Some(value.get().parse().unwrap()),
                    other => panic!("{other:?}"),
                },
                _ => None,
            };
            ((key.client.to_string(), key.id.to_string()), (status, task.number, value, task.shared))
        };
        self.state.tasks.iter().map(of).collect()
    }
}

#[test]
fn a_restart_reads_what_there_was() {
    for seed in 1..40 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut chance, mut machine) = (Chance(seed), Machine::open(&path));
        let (mut forgotten, mut ran) = (0, 0);
        for step in 0..300 {
            machine.now += 1;
            match chance.below(11) {
                // Ids come again, also those of tasks that were forgotten.
                0..=4 => {
                    let id = chance.below(20);
                    machine.submit(&mut chance, id);
                }
                10 => {
                    forgotten = forgotten.max(machine.now - chance.below(20) as i64);
                    machine.forget(forgotten);
                }
                5 => machine.cancel(&mut chance),
                6 => machine.begin(),
                7 | 8 => machine.end(&mut chance),
                _ if chance.below(4) > 0 => machine.rewrite(),
                _ => {
                    let (before, requests) = (machine.seen(), machine.state.requests());
                    let suspects = machine.running.len();
                    drop(machine.journal);
                    let now = machine.now;
                    machine = Machine { now, ..Machine::open(&path) };
                    machine.forget(forgotten);
                    assert_eq!(machine.seen(), before, "seed {seed}, step {step}");
                    assert!(machine.state.requests() <= requests);
                    let count = machine.state.entries.values().filter(|entry| entry.is_suspect).count();
                    assert!(count <= suspects + ran, "seed {seed}, step {step}");
                    ran = count;
                }
            }
        }
        // Everything that waits is evaluated, each content once at a time.
        while let Some(begun) = machine.state.begin() {
            machine.running.push(begun);
            let suspects = machine.running.iter().filter(|begun| machine.state.entries[&begun.content].is_suspect);
            assert!(suspects.count() <= 1, "seed {seed}");
            let mut contents: Vec<Digest> = machine.running.iter().map(|begun| begun.content).collect();
            contents.sort_unstable();
            contents.dedup();
            assert_eq!(contents.len(), machine.running.len(), "seed {seed}");
        }
        let mut never = Chance(1);
        while !machine.running.is_empty() {
            machine.end(&mut never);
            machine.running.extend(machine.state.begin());
        }
        assert!(machine.seen().values().all(|(status, ..)| matches!(status, TaskStatus::Done | TaskStatus::Cancelled)));
        assert_eq!((machine.state.unfinished(), machine.state.entries.len()), (0, 0), "seed {seed}");
        assert_eq!((machine.state.running(), machine.state.requests()), (0, 0), "seed {seed}");
        assert!(machine.state.requests_of.is_empty());
    }
}

#[test]
fn a_request_whose_task_was_not_written_any_more_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut machine = Machine::open(&path);
    machine.journal.append(&Row::Request { content: content(1), request: raw(&json!({})) }).unwrap();
    drop(machine.journal);
    let mut machine = Machine::open(&path);
    machine.state.forget_unused();
    assert!(machine.state.entries.is_empty() && machine.state.begin().is_none());
    assert_eq!(machine.state.live(), 0);
}

#[test]
fn what_is_forgotten_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (mut chance, mut machine) = (Chance(5), Machine::open(&dir.path().join("journal")));
    for id in 0..200 {
        machine.now += 1;
        machine.submit(&mut chance, id);
        machine.running.extend(machine.state.begin());
        machine.end(&mut chance);
    }
    while let Some(begun) = machine.state.begin() {
        machine.running.push(begun);
        machine.end(&mut chance);
    }
    let ended = machine.state.tasks();
    assert_eq!(
        machine.state.forget(0, 10, i64::MAX),
        ended - 30,
        "the oldest of more than 10 of each of three clients"
    );
    assert_eq!(machine.state.forget(i64::MAX, 10, i64::MAX), 30, "all are old");
    machine.state.forget_unused();
    let State { tasks, clients, known, results, ended, .. } = &machine.state;
    assert_eq!([tasks.len(), clients.len(), known.len(), results.len(), ended.len()], [0; 5]);
    assert_eq!(machine.state.live(), 0);
}

#[test]
fn what_is_accepted_and_cancelled_does_not_fill_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let (mut chance, mut machine) = (Chance(3), Machine::open(&dir.path().join("journal")));
    for id in 0..2000 {
        machine.now += 1;
        machine.submit(&mut chance, id);
        machine.cancel(&mut chance);
    }
    assert_eq!((machine.state.tasks(), machine.state.entries.len()), (2000, 0));
    assert!(machine.state.queue.len() < 100, "{}", machine.state.queue.len());
    assert!(machine.state.begin().is_none());
}

#[test]
fn the_age_of_a_task_does_not_follow_the_clock_of_the_system() {
    let dir = tempfile::tempdir().unwrap();
    let (mut chance, mut machine) = (Chance(3), Machine::open(&dir.path().join("journal")));
    machine.submit(&mut chance, 1);
    let key = machine.state.tasks.keys().next().cloned().unwrap();
    // The clock was set back by years, and the task ended now.
    machine.state.cancel(&key, Moment { wall: 5, steady: 2000 }, 1);
    assert_eq!(machine.state.forget(2000, 10, i64::MAX), 0);
    assert_eq!(machine.state.forget(2001, 10, i64::MAX), 1);
    assert_eq!(machine.state.tasks(), 0);
}

#[test]
fn a_client_with_many_tasks_pushes_out_its_own_and_no_young_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut machine = Machine::open(&dir.path().join("journal"));
    let mut ended = |client: &str, id: u64, at: i64| {
        let (client, id) = (Arc::from(client), Arc::from(id.to_string()));
        let number = machine.state.next_task();
        let accepted = Accepted {
            client,
            id,
            number,
            content: content(1),
            measure: Measure::Verify,
            priority: Priority::Low,
            timeout_s: 1,
            at,
            known: None,
            shared: false,
        };
        machine.state.add_ended(Ended { accepted, at, result: None, shared: false });
    };
    ended("few", 0, 10);
    (0..100).for_each(|id| ended("many", id, 20 + id as i64));
    assert_eq!(machine.state.forget(0, 5, 50), 30, "those that ended at 50 and later are young");
    let few = TaskKey { client: "few".into(), id: "0".into() };
    assert!(machine.state.task(&few).is_some());
    assert_eq!(machine.state.forget_of(&"many".into(), 5, i64::MAX), 65);
    assert_eq!(machine.state.tasks(), 6);
}

#[test]
fn what_runs_as_servers_end_is_tried_one_after_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut machine = Machine::open(&path);
    let submit = |machine: &mut Machine, number: u64| {
        let row = Row::Request { content: content(number), request: raw(&json!({})) };
        let (place, _) = machine.journal.append(&row).unwrap();
        machine.state.add_request(content(number), place);
        let (client, id) = (Arc::from("c"), Arc::from(number.to_string()));
        let accepted = Accepted {
            client,
            id,
            number,
            content: content(number),
            measure: Measure::Verify,
            priority: Priority::Low,
            timeout_s: 1,
            at: 1,
            known: None,
            shared: false,
        };
        machine.journal.append(&Row::Accepted(accepted.clone())).unwrap();
        machine.state.accept(accepted, moment(1), 0);
    };
    (0..3).for_each(|number| submit(&mut machine, number));
    (0..2).for_each(|_| machine.begin());
    let restarted = |machine: Machine| {
        drop(machine.journal);
        Machine::open(&path)
    };
    let mut machine = restarted(machine);
    (0..3).for_each(|_| machine.begin());
    let begun = |machine: &Machine| -> Vec<(Digest, u32)> {
        machine.running.iter().map(|begun| (begun.content, begun.attempts)).collect()
    };
    // The third one never ran, and one of the others does.
    assert_eq!(begun(&machine), [(content(0), 1), (content(2), 0)]);
    // It ends the server again; then the first that began is tried by itself, for the third time.
    let mut machine = restarted(machine);
    (0..3).for_each(|_| machine.begin());
    assert_eq!(begun(&machine), [(content(0), 2)]);
    // An evaluation that is stopped is not one that ended a server.
    machine.journal.append(&Row::Stopped { content: content(0) }).unwrap();
    machine.state.put_back(content(0));
    let mut machine = restarted(machine);
    machine.begin();
    assert_eq!(begun(&machine), [(content(0), 2)]);
}

#[test]
fn runs_that_a_killed_worker_ended_count_after_a_restart_and_the_one_that_is_stopped_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut chance, mut machine) = (Chance(5), Machine::open(&path));
    machine.submit(&mut chance, 0);
    machine.begin();
    let content = machine.running[0].content;
    for _ in 0..2 {
        machine.journal.append(&Row::Began { content }).unwrap();
        machine.state.began(content);
    }
    machine.journal.append(&Row::Stopped { content }).unwrap();
    machine.state.put_back(content);
    machine.begin();
    assert_eq!(machine.running[1].attempts, 2);
    machine.journal.append(&Row::Stopped { content }).unwrap();
    drop(machine.journal);
    let mut machine = Machine::open(&path);
    machine.begin();
    assert_eq!(machine.running[0].attempts, 2);
}

#[test]
fn results_of_an_earlier_process_answer_their_tasks_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut chance, mut machine) = (Chance(5), Machine::open(&path));
    for id in 0..40 {
        machine.submit(&mut chance, id);
        machine.begin();
        machine.end(&mut chance);
    }
    assert!(!machine.state.known.is_empty());
    let before = machine.seen();
    drop(machine.journal);
    let machine = Machine::open(&path);
    assert!(machine.state.known.is_empty());
    assert_eq!(machine.seen(), before);
}
