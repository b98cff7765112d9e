//! Finds processes that a build leaves running, by names that only its project has. Knows `/proc`.

use std::fs;
use std::time::{Duration, Instant};

use crate::project::Project;

/// How long a process that was told to end may take to disappear on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that should happen by itself; returns whether it did.
pub(crate) fn comes_to_pass(mut it: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !it() {
        if Instant::now() > end {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    true
}

/// Processes of the project that are running and do not end soon by themselves, as `/proc` describes them.
pub(crate) fn left_behind(project: &Project) -> Vec<String> {
    let mut left = vec![];
    comes_to_pass(|| {
        left = running(project);
        left.is_empty()
    });
    left
}

/// Processes whose program, working folder or arguments are the project's.
fn running(project: &Project) -> Vec<String> {
    let (place, program) = (project.place().display().to_string(), project.program().display().to_string());
    let mut found = vec![];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let link =
            |name: &str| fs::read_link(entry.path().join(name)).map(|p| p.display().to_string()).unwrap_or_default();
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let told = format!("{pid}: {} in {}: {words}", link("exe"), link("cwd"));
        if pid != std::process::id() && (told.contains(&place) || told.contains(&program)) {
            found.push(told);
        }
    }
    found
}
