//! The seal of a process with PyTorch before its calls are timed: a filter for all its threads, after which it starts no program, no process and no thread, and
//! creates no file. Knows calls; the process installs the filter itself, and the caller counts the filters of its threads from outside.

use std::fs;
use std::io;

use libc as c;
use seccompiler::{SeccompCmpOp, SeccompRule};

use super::calls::{self, Rules, condition};
use super::table;

/// Flags of `open` that create or empty files. Device files stay open for drivers, which open them again for each mapping of memory.
const CREATES: [i32; 2] = [c::O_CREAT, c::O_TRUNC];

/// The filter, as the bytes of its instructions in hexadecimal digits; none if the kernel has no filters.
///
/// # Errors
/// The filter cannot be made for this architecture.
pub fn seal() -> io::Result<Option<String>> {
    if !calls::missing_here().is_empty() {
        return Ok(None);
    }
    calls::program(rules()?, calls::fails()).map(|program| Some(calls::digits(&program)))
}

fn rules() -> io::Result<Rules> {
    let starts = [c::SYS_execve, c::SYS_execveat, c::SYS_fork, c::SYS_vfork, c::SYS_clone, c::SYS_clone3];
    let mut rules: Rules = starts.into_iter().map(|call| (call, vec![])).collect();
    rules.extend(table::numbers(table::FILES).map(|call| (call, vec![])));
    for (call, argument) in [(c::SYS_open, 1), (c::SYS_openat, 2)] {
        let with = CREATES.into_iter().map(|flag| {
            let flag = u64::from(flag.unsigned_abs());
            SeccompRule::new(vec![condition(argument, SeccompCmpOp::MaskedEq(flag), flag)?]).map_err(io::Error::other)
        });
        rules.insert(call, with.collect::<io::Result<_>>()?);
    }
    Ok(rules)
}

/// How many filters each thread of a process has; none if the kernel does not say (Linux before 5.9) or the process has ended.
pub fn filters(of: u32) -> Option<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).ok()?;
    let count = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
        line.trim().parse().ok()
    };
    let counts: Option<Vec<u32>> = tasks
        .flatten()
        // A thread that has just ended has no status.
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .map(|status| count(&status))
        .collect();
    counts.filter(|counts| !counts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_refuses_what_starts_something_and_what_creates_a_file() {
        let rules = rules().unwrap();
        for call in [c::SYS_execve, c::SYS_clone, c::SYS_clone3, c::SYS_unlink, c::SYS_mkdir] {
            assert!(rules[&call].is_empty(), "{call} is refused whatever its arguments are");
        }
        assert_eq!(rules[&c::SYS_openat].len(), 2);
        assert!(!rules.contains_key(&c::SYS_ioctl) && !rules.contains_key(&c::SYS_mmap));
        let text = seal().unwrap();
        assert!(text.is_none_or(|text| text.len() % 16 == 0 && text.len() > 16 * rules.len()));
    }

    #[test]
    fn the_filters_of_this_process_are_counted_for_each_thread() {
        if let Some(counts) = filters(std::process::id()) {
            assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        }
        assert_eq!(filters(u32::MAX), None);
    }
}
