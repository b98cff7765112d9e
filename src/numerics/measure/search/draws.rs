//! Random numbers that follow from a seed and a stream: the same on every machine.

/// A counter-based generator (splitmix64; Steele, Lea, Flood 2014).
pub(super) struct Draws(u64);

impl Draws {
    /// A stream of a seed; the streams of one seed are independent of each other.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut draws = Draws(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        draws.next();
        draws
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniform number below `n`, which is not zero; multiply-shift, with a bias below n / 2^64.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// A uniform number in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Puts the items into a random order.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
