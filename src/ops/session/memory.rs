//! The memory that this machine has for steps. Knows the system's files; does not know how much steps need.

use kforge_foundation::config::Settings;

/// The share of the memory that is left to the system, its caches and kforge itself: one part in this many.
const LEFT: u64 = 8;

/// The memory in MiB that all running steps together may expect to need: the setting `build.memory`, else seven eighths of the available memory or of the limit
/// of this process's control group, whichever is less. If neither is known, there is no limit.
pub(crate) fn capacity_mib(settings: &Settings) -> u64 {
    let bytes = match settings.number("build.memory") {
        0 => {
            let read = |path: &str| std::fs::read_to_string(path).ok();
            let there = read("/proc/meminfo").as_deref().and_then(available);
            let group = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
            there.into_iter().chain(group).min().map_or(u64::MAX, |least: u64| least - least / LEFT)
        }
        set => set,
    };
    (bytes >> 20).max(1)
}

/// All memory of this machine, or the limit of this process's control group if that is less.
pub(crate) fn total() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let there = read("/proc/meminfo").as_deref().and_then(|text| line_of(text, "MemTotal:"));
    let group = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    there.into_iter().chain(group).min()
}

/// `MemAvailable` in bytes.
fn available(meminfo: &str) -> Option<u64> {
    line_of(meminfo, "MemAvailable:")
}

/// The bytes in a line of the system's.
fn line_of(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read_from_the_system_s_own_words() {
        assert_eq!(available("MemTotal:       24576000 kB\nMemAvailable:   1024 kB\n"), Some(1 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(line_of("MemTotal:       24576000 kB\n", "MemTotal:"), Some(24_576_000 << 10));
    }
}
