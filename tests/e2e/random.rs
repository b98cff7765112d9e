//! Random numbers for choices that should differ between runs and can be repeated. Prints the seed, because a failure should be repeatable.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (Steele, Lea, Flood 2014): sufficient for choosing moments and places.
pub(crate) struct Random(u64);

impl Random {
    /// Seeds from the variable `KFORGE_TEST_SEED`, else from the clock. The seed is printed; a failing test shows it.
    #[expect(clippy::disallowed_methods, reason = "how to repeat a failed test is told by the environment")]
    #[expect(clippy::print_stderr, reason = "the seed of a failed test must be known")]
    pub(crate) fn seeded() -> Self {
        let given = std::env::var("KFORGE_TEST_SEED").ok().and_then(|s| s.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let seed = given.unwrap_or_else(now);
        eprintln!("KFORGE_TEST_SEED={seed}");
        Random(seed)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
