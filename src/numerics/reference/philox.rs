//! Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): a counter of 128 bits
//! and a key of 64 bits give 128 random bits, by integer arithmetic only. So CPU and device compute the same bits, and any element can be computed without
//! those before it. Does not know what the bits are for.

const MULTIPLIER_0: u64 = 0xD251_1F53;
const MULTIPLIER_1: u64 = 0xCD9E_8D57;
const WEYL_0: u32 = 0x9E37_79B9;
const WEYL_1: u32 = 0xBB67_AE85;

/// Ten rounds.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL_0), key[1].wrapping_add(WEYL_1)];
        }
        let product_0 = MULTIPLIER_0 * u64::from(counter[0]);
        let product_1 = MULTIPLIER_1 * u64::from(counter[2]);
        counter = [
            (product_1 >> 32) as u32 ^ counter[1] ^ key[0],
            product_1 as u32,
            (product_0 >> 32) as u32 ^ counter[3] ^ key[1],
            product_0 as u32,
        ];
    }
    counter
}

/// [`philox`] for `N` counters at once, word by word, which a compiler vectorizes.
#[inline(always)]
fn philox_all<const N: usize>(mut counters: [[u32; N]; 4], mut key: [u32; 2]) -> [[u32; N]; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL_0), key[1].wrapping_add(WEYL_1)];
        }
        let mut next = [[0; N]; 4];
        for i in 0..N {
            let product_0 = MULTIPLIER_0 * u64::from(counters[0][i]);
            let product_1 = MULTIPLIER_1 * u64::from(counters[2][i]);
            next[0][i] = (product_1 >> 32) as u32 ^ counters[1][i] ^ key[0];
            next[1][i] = product_1 as u32;
            next[2][i] = (product_0 >> 32) as u32 ^ counters[3][i] ^ key[1];
            next[3][i] = product_0 as u32;
        }
        counters = next;
    }
    counters
}

/// The low and high words of a 64-bit number, as keys and counters take them.
pub fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

/// The stream of random words for one seed and one tensor.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    key: [u32; 2],
    ordinal: u32,
}

impl Stream {
    /// The stream of a seed and an ordinal.
    pub fn new(seed: u64, ordinal: u32) -> Self {
        Stream { key: words(seed), ordinal }
    }

    /// The four words of an element; `draw` counts the blocks that an element needs beyond its first.
    pub fn block(&self, index: u64, draw: u32) -> [u32; 4] {
        let [low, high] = words(index);
        philox([low, high, self.ordinal, draw], self.key)
    }

    /// The blocks of `N` elements from `index` on, word by word.
    #[inline(always)]
    pub fn blocks<const N: usize>(&self, index: u64, draw: u32) -> [[u32; N]; 4] {
        let (mut low, mut high) = ([0; N], [0; N]);
        for (i, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
            [*low, *high] = words(index.wrapping_add(i as u64));
        }
        philox_all([low, high, [self.ordinal; N], [draw; N]], self.key)
    }

    /// A number in [0, n), by multiplying a 64-bit word (bias below n / 2^64); 0 if n is 0.
    pub fn below(&self, index: u64, draw: u32, n: u64) -> u64 {
        let b = self.block(index, draw);
        let word = u64::from(b[0]) | u64::from(b[1]) << 32;
        ((u128::from(word) * u128::from(n)) >> 64) as u64
    }
}

/// The image of `index` under a permutation of 0..n that the stream keys: a balanced Feistel network of four rounds over the next even power of two, applied
/// until the result is below n, so that each element is found independently. `n` must exceed `index`.
pub fn permute(stream: &Stream, index: u64, n: u64) -> u64 {
    let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2).div_ceil(2);
    let mask = (1u64 << bits) - 1;
    let mut x = index;
    loop {
        let (mut left, mut right) = (x >> bits, x & mask);
        for round in 0..4 {
            let word = stream.block(right, u32::MAX - round)[0];
            (left, right) = (right, left ^ (u64::from(word) & mask));
        }
        x = left << bits | right;
        if x < n {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the authors' Random123 distribution (kat_vectors, philox4x32 10).
    #[test]
    fn philox_gives_the_authors_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_permutation_hits_every_place_once() {
        for n in [1, 2, 3, 5, 16, 17, 1000] {
            let stream = Stream::new(7, 3);
            let mut seen: Vec<u64> = (0..n).map(|i| permute(&stream, i, n)).collect();
            if n == 1000 {
                assert!(seen.iter().enumerate().filter(|(i, v)| *i as u64 == **v).count() < 20);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }
    }
}
