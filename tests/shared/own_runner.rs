//! A test runner for executables that start themselves as workers, which the usual one cannot be. Takes the words of the usual one that cargo and CI pass:
//! names, `--list`, `--ignored` and `--include-ignored`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Instant;

/// A test by name.
pub(crate) type Test = (&'static str, fn());

/// Marks a process that runs a share of the tests: every `of`th from number `which` on, as in `--share=0/2`.
const SHARE: &str = "--share=";

/// Runs the tests that the words select, one after another; returns whether all passed. `second_tier` holds the names of those that are ignored unless the
/// words ask for them.
pub(crate) fn made(tests: &[Test], second_tier: &[&str], words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|w| w == word);
    let filter: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let (which, of) = share(words);
    let selected = tests.iter().filter(|(name, _)| filter.is_empty() || filter.iter().any(|f| name.contains(*f)));
    let mut all = true;
    for (name, test) in selected.skip(which).step_by(of) {
        let ignored = second_tier.contains(name);
        if has("--list") {
            println!("{name}: test");
        } else if has("--ignored") && !ignored {
            // Belongs to the first tier.
        } else if ignored && !has("--ignored") && !has("--include-ignored") {
            println!("test {name} ... ignored, second tier");
        } else {
            let began = Instant::now();
            let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
            let said = if passed { "ok" } else { "FAILED" };
            println!("test {name} ... {said} <{:.3}s>", began.elapsed().as_secs_f64());
            all &= passed;
        }
    }
    all
}

/// Runs this executable once for each list of further words, all at the same time; returns whether all passed. They are processes, because some tests count the
/// processes that they have started.
pub(crate) fn side_by_side(words: &[String], further: &[&[String]]) -> bool {
    let own = std::env::current_exe().unwrap();
    let start = |more: &&[String]| Command::new(&own).args(words).args(*more).spawn().unwrap();
    let started: Vec<_> = further.iter().map(start).collect();
    let passed: Vec<bool> = started.into_iter().map(|mut child| child.wait().unwrap().success()).collect();
    passed.iter().all(|passed| *passed)
}

/// The words that divide the tests into `of` shares.
pub(crate) fn shares(of: usize) -> Vec<String> {
    (0..of).map(|which| format!("{SHARE}{which}/{of}")).collect()
}

/// The share that the words ask for: all tests, if they ask for none.
fn share(words: &[String]) -> (usize, usize) {
    let Some(share) = words.iter().find_map(|word| word.strip_prefix(SHARE)) else { return (0, 1) };
    let (which, of) = share.split_once('/').unwrap();
    (which.parse().unwrap(), of.parse().unwrap())
}
