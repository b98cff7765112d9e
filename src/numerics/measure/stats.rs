//! Medians and intervals. Pure and seeded: the same samples give the same interval on every machine.

/// The median; NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The geometric mean of positive values; NaN for no values.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// A 64-bit counter generator (splitmix64, Steele et al. 2014), enough for resampling.
pub(super) struct Resampler(u64);

impl Resampler {
    pub(super) fn new(seed: u64) -> Self {
        Resampler(seed)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Multiply-shift maps to 0..n with a bias below n / 2^64.
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

/// The number of resamples for an interval.
const RESAMPLES: usize = 2000;

/// The median of block medians and its 95 % percentile-bootstrap interval, resampling whole blocks: samples within a block share clocks and buffers and are not
/// independent. None for fewer than three blocks.
pub fn block_interval(blocks: &[Vec<f64>]) -> Option<(f64, f64, f64)> {
    let medians: Vec<f64> = blocks.iter().filter(|b| !b.is_empty()).map(|b| median(b)).collect();
    if medians.len() < 3 {
        return None;
    }
    let mut resampler = Resampler(medians.len() as u64);
    let mut draws: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&(0..medians.len()).map(|_| medians[resampler.below(medians.len())]).collect::<Vec<_>>()))
        .collect();
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some((median(&medians), at(0.025), at(0.975)))
}

/// The blocks of several shapes as blocks of the geometric mean over the shapes: each block is the mean of the shapes' median
/// log-ratios in that block. There are as many blocks as the shape with the fewest has. If the blocks were concatenated instead, a
/// gain at one shape and a loss at another would look like noise.
pub fn over_shapes(shapes: &[&[Vec<f64>]]) -> Vec<Vec<f64>> {
    let medians: Vec<Vec<f64>> =
        shapes.iter().map(|blocks| blocks.iter().filter(|b| !b.is_empty()).map(|b| median(b)).collect()).collect();
    let count = medians.iter().map(Vec::len).min().unwrap_or(0);
    (0..count).map(|i| vec![medians.iter().map(|m| m[i]).sum::<f64>() / medians.len() as f64]).collect()
}

/// How A compares with B, from pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the four answers of the design")]
pub enum Paired {
    Faster,
    Slower,
    Same,
    Undecided,
}

/// Compares A with B from log-ratios of time, against a margin (0.01: one percent).
pub fn decide(blocks: &[Vec<f64>], margin: f64) -> Paired {
    block_interval(blocks).map_or(Paired::Undecided, |interval| answer(interval, margin))
}

/// The answer of an interval of log-ratios at a margin.
pub fn answer((_, low, high): (f64, f64, f64), margin: f64) -> Paired {
    let edge = margin.ln_1p();
    if high < -edge {
        Paired::Faster
    } else if low > edge {
        Paired::Slower
    } else if low > -edge && high < edge {
        Paired::Same
    } else {
        Paired::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(centre: f64, spread: f64) -> Vec<Vec<f64>> {
        (0..12)
            .map(|b| (0..4).map(|i| centre + spread * (f64::from((b * 7 + i * 3) % 11) / 5.0 - 1.0)).collect())
            .collect()
    }

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (2.0, 2.5));
        assert!(median(&[]).is_nan());
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn decisions_follow_interval_and_margin() {
        assert_eq!(decide(&blocks(0.05, 0.002), 0.01), Paired::Slower);
        assert_eq!(decide(&blocks(-0.05, 0.002), 0.01), Paired::Faster);
        assert_eq!(decide(&blocks(0.0, 0.002), 0.01), Paired::Same);
        assert_eq!(decide(&blocks(0.01, 0.05), 0.01), Paired::Undecided);
        assert_eq!(decide(&blocks(0.05, 0.002)[..2], 0.01), Paired::Undecided);
    }

    #[test]
    fn shapes_are_weighed_against_each_other_block_by_block() {
        let (slower, faster) = (blocks(0.05, 0.002), blocks(-0.05, 0.002));
        assert_eq!(decide(&over_shapes(&[&slower]), 0.01), decide(&slower, 0.01));
        assert_eq!(decide(&over_shapes(&[&slower, &faster]), 0.01), Paired::Same);
        assert_eq!(over_shapes(&[&slower, &faster[..5]]).len(), 5);
        assert!(over_shapes(&[&slower, &[]]).is_empty());
    }

    #[test]
    fn the_interval_is_the_same_every_time() {
        assert_eq!(block_interval(&blocks(0.0, 0.1)), block_interval(&blocks(0.0, 0.1)));
    }
}
