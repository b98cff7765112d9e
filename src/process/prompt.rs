//! Threads that have much to answer and little to do for each answer. Does not know whom they answer.
#![expect(
    unsafe_code,
    reason = "the attributes of a thread's scheduling are a structure that a system call reads and writes"
)]

use std::io;
use std::time::Duration;

/// How long such a thread runs at a time. Of threads that wait for a processor, and of those that have one, who asks for the shorter turn goes first.
const TURN: Duration = Duration::from_micros(100);

/// Has this thread, and those that it starts from now on, run soon after they wake though others load every processor: compilers run for milliseconds at a time. Where the
/// system knows no turns of a thread's own (Linux before 6.12) or refuses, nothing changes.
pub fn prompt() {
    let _ = ask(TURN);
}

fn ask(turn: Duration) -> io::Result<()> {
    let mut now = attributes()?;
    now.sched_runtime = turn.as_nanos() as u64;
    // SAFETY: zero is the calling thread, and the structure states its own size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &now, 0) })
}

/// How the calling thread is scheduled.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: the structure is of numbers, for which zero is a value.
    let mut now: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of_val(&now);
    // SAFETY: zero is the calling thread, and the structure has as many bytes as is said.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut now, size, 0) })?;
    Ok(now)
}

fn check(code: libc::c_long) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_thread_asks_for_short_turns_and_is_otherwise_what_it_was() {
        let of = |a: &libc::sched_attr| (a.sched_policy, a.sched_nice, a.sched_priority);
        std::thread::spawn(move || {
            let before = attributes().unwrap();
            ask(TURN).unwrap();
            let after = attributes().unwrap();
            assert_eq!(of(&after), of(&before));
            // Systems that know none say nothing of it.
            assert!([0, TURN.as_nanos() as u64].contains(&after.sched_runtime), "{}", after.sched_runtime);
        })
        .join()
        .unwrap();
    }
}
