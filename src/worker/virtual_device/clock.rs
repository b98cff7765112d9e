//! The virtual clock: the time of a launch, as a function of seed, step and sample. Pure numbers; reads no clock.

/// The random draws of one step.
pub(super) struct Clock {
    state: u64,
    noise: f64,
    drift: f64,
}

impl Clock {
    /// The draws of the step whose key begins with the bytes `step`.
    pub(super) fn new(seed: u64, step: &[u8; 32], noise: f64, drift: f64) -> Self {
        let key = step.chunks_exact(8).fold(0u64, |sum, part| {
            sum.rotate_left(7) ^ part.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte))
        });
        let mut clock = Clock { state: key ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), noise, drift };
        clock.next();
        clock
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A factor within the drift around one, shared by everything that is measured at one moment.
    pub(super) fn moment(&mut self) -> f64 {
        1.0 + self.drift * (2.0 * self.uniform() - 1.0)
    }

    /// One sample of a launch whose true time is `ns`. The noise is a sum of twelve uniform draws, which is close to normal and bounded.
    pub(super) fn sample(&mut self, ns: f64, moment: f64) -> f64 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        ns * moment * (1.0 + self.noise * normal).max(0.01)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_hang_on_seed_and_step_alone_and_have_the_stated_spread() {
        let draws = |seed, step: u8| {
            let mut clock = Clock::new(seed, &[step; 32], 0.01, 0.0);
            (0..2000).map(|_| clock.sample(100.0, 1.0)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 1), draws(1, 1));
        assert_ne!(draws(1, 1), draws(2, 1));
        assert_ne!(draws(1, 1), draws(1, 2));
        let mean = draws(1, 1).iter().sum::<f64>() / 2000.0;
        let spread = (draws(1, 1).iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
        assert!((mean - 100.0).abs() < 0.1 && (spread - 1.0).abs() < 0.1, "{mean} {spread}");
    }
}
