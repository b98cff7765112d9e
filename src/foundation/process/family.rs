//! The descendants of a process, and how to kill them. Knows process ids and `/proc`; does not start anything.
//!
//! A child leads its own group, so that one signal ends the child and everything it started. A descendant that left the group (for its own session or group) is
//! found through its ancestors: [`adopt_orphans`] makes this process the parent of orphaned descendants, so that no descendant is lost.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, kill_process_group, set_child_subreaper,
    set_parent_process_death_signal,
};

/// Makes orphaned descendants children of this process, so that [`descendants`] finds them.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Makes the system kill this process when the *thread* that started it ends. Only for children whose parent waits for them in the same thread. `parent` is the
/// process id of the parent. Returns an error if the parent has already ended.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the call above.
    match getppid() {
        Some(pid) if pid.as_raw_nonzero().get().unsigned_abs() == parent => Ok(()),
        _ => Err(io::Error::other("the process that started this one has ended")),
    }
}

/// Every living descendant of a process, parents before children.
pub fn descendants(of: u32) -> Vec<u32> {
    descendants_but(of, &[])
}

/// The same without `spared` and everything below them. The children of a spared process are never listed, so one that starts meanwhile is not found either.
pub fn descendants_but(of: u32, spared: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> = vec![];
    let mut next = 0;
    let mut parent = Some(of);
    while let Some(pid) = parent {
        let more = children(pid).into_iter().filter(|pid| !spared.contains(pid) && !found.contains(pid));
        found.extend(more.collect::<Vec<_>>());
        parent = found.get(next).copied();
        next += 1;
    }
    found
}

/// The children of a process. Reads the kernel's list of children or, if that list is not compiled in, the parent of every process.
fn children(of: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{of}/task")) else { return vec![] };
    let mut found = vec![];
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(text) => found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            Err(e) if e.kind() == io::ErrorKind::NotFound && task.path().exists() => return children_by_parent(of),
            Err(_) => {}
        }
    }
    found
}

fn children_by_parent(of: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return vec![] };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, parent, _)| parent == of)).collect()
}

/// State letter, parent and group of a process.
fn stat(pid: u32) -> Option<(char, u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself hold spaces and parentheses.
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Whether a process exists and has not ended. A zombie has ended once all its threads have ended.
pub fn is_alive(pid: u32) -> bool {
    match stat(pid) {
        Some(('Z' | 'X', ..)) => fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1),
        Some(_) => true,
        None => false,
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Kills every member of the group that `leader` leads.
pub fn kill_group(leader: u32) {
    if let Some(pid) = as_pid(leader) {
        // Fails only if no process is left.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Kills every descendant of a process, but not the process itself.
pub fn kill_descendants(of: u32) {
    kill_below(of, &[], |_| true);
}

/// Like [`kill_descendants`], but spares these descendants and everything below them.
pub fn kill_descendants_but(of: u32, spared: &[u32]) {
    kill_below(of, spared, |_| true);
}

/// Kills a child that leads a group, its group, and its descendants in all other groups. Kills the descendants outside the group first, while they can still be
/// found through their ancestors. The system kills a group at once, so the members of the group have no time to start further processes.
pub fn kill_family(leader: u32) {
    kill_below(leader, &[], |group| group != leader);
    kill_group(leader);
}

/// Kills every descendant of a process whose group `wanted` accepts, except `spared` and its descendants. Repeats until no descendant is left, because a
/// descendant may be starting another process. Stops after 100 passes, because a process that cannot be killed (stuck in the kernel) must not block kforge.
fn kill_below(of: u32, spared: &[u32], wanted: impl Fn(u32) -> bool) {
    for _ in 0..100 {
        let all = descendants_but(of, spared);
        let living: Vec<(u32, u32)> = all
            .iter()
            .filter(|pid| is_alive(**pid))
            .filter_map(|pid| stat(*pid).map(|(_, _, group)| (*pid, group)))
            .filter(|(_, group)| wanted(*group))
            .collect();
        if living.is_empty() {
            return;
        }
        // A group that a descendant leads holds only descendants. A group that a descendant joined may hold other processes.
        let led: BTreeSet<u32> = living.iter().map(|(_, group)| *group).filter(|group| all.contains(group)).collect();
        led.into_iter().for_each(kill_group);
        for pid in living.into_iter().filter_map(|(pid, _)| as_pid(pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Reaps every child of this process that has ended. Only for processes in which no other code waits for a child.
pub fn reap() {
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
}
