//! A test runner for executables that start themselves as workers, which the usual one cannot be. Takes the words of the usual one that cargo and CI pass:
//! names, `--list`, `--ignored` and `--include-ignored`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A test by name.
pub(crate) type Test = (&'static str, fn());

/// Runs the tests that the words select, one after another; returns whether all passed. `second_tier` holds the names of those that are ignored unless the
/// words ask for them.
pub(crate) fn made(tests: &[Test], second_tier: &[&str], words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|w| w == word);
    let filter: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut all = true;
    for (name, test) in tests.iter().filter(|(name, _)| filter.is_empty() || filter.iter().any(|f| name.contains(*f))) {
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
