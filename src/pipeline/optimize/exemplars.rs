//! Which earlier kernels a prompt shows: two with different scores, because contrast teaches more than showing only the best. Knows scores; does not know what
//! was scored. A pure function of scores, temperature and seed, so that a prompt can be reproduced word for word.
//!
//! After CUDA-L1 (arXiv 2507.14111, section 3): kernels are put into buckets by score. Distinct buckets are drawn with a probability proportional to exp((s -
//! mean) / tau), where s is the bucket's score. One kernel is drawn uniformly from each bucket. The paper does not state the width of a bucket. Here a bucket
//! spans a fifth of a doubling, about 15 %, which is more than noise and less than the gain of a method.

use std::collections::BTreeMap;

use kforge_numerics::reference::philox::Stream;

/// Buckets per doubling of the score.
const BUCKETS: f64 = 5.0;

/// How many exemplars a prompt shows.
pub const SHOWN: usize = 2;

/// The default temperature: a bucket whose score is one higher is drawn e times as often.
pub const TAU: f64 = 1.0;

/// Separates these draws from all others of the same seed.
const ORDINAL: u32 = 0x6578_656d;

/// At most [`SHOWN`] positions in `scores`, from distinct buckets, higher scores first. A score that is not above zero belongs to an incorrect kernel and is
/// never drawn. `tau` must be above zero; a higher `tau` makes the probabilities of buckets more equal.
pub fn exemplars(scores: &[f64], tau: f64, seed: u64) -> Vec<usize> {
    let mut buckets: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (at, score) in scores.iter().enumerate().filter(|(_, s)| s.is_finite() && **s > 0.0) {
        // The base-2 logarithm of a finite float is below 1100, so the product fits.
        buckets.entry((score.log2() * BUCKETS).floor() as i64).or_default().push(at);
    }
    let mut left: Vec<Vec<usize>> = buckets.into_values().collect();
    let stream = Stream::new(seed, ORDINAL);
    let mut drawn: Vec<usize> = vec![];
    for draw in 0..SHOWN as u64 {
        let Some(bucket) = bucket(&left, scores, tau, fraction(&stream, 2 * draw)) else { break };
        let members = left.remove(bucket);
        let member = stream.below(2 * draw + 1, 0, members.len() as u64);
        drawn.extend(usize::try_from(member).ok().and_then(|member| members.get(member)));
    }
    drawn.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    drawn
}

/// The bucket at a fraction of the total weight; none if there are no buckets.
fn bucket(buckets: &[Vec<usize>], scores: &[f64], tau: f64, fraction: f64) -> Option<usize> {
    let means: Vec<f64> =
        buckets.iter().map(|b| b.iter().map(|at| scores[*at]).sum::<f64>() / b.len() as f64).collect();
    // The probabilities do not depend on the constant that is subtracted. With the greatest mean instead of their mean, no power overflows.
    let greatest = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = means.iter().map(|mean| ((mean - greatest) / tau).exp()).collect();
    let mut rest = fraction * weights.iter().sum::<f64>();
    for (at, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return Some(at);
        }
    }
    // Rounding can leave a small remainder after the last bucket.
    buckets.len().checked_sub(1)
}

/// A number in [0, 1), with 53 bits.
fn fraction(stream: &Stream, index: u64) -> f64 {
    stream.below(index, 0, 1 << 53) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_others() {
        let scores: Vec<f64> = (1..=40).map(|n| f64::from(n) / 8.0).collect();
        let all: Vec<Vec<usize>> = (0..50).map(|seed| exemplars(&scores, TAU, seed)).collect();
        assert_eq!(all, (0..50).map(|seed| exemplars(&scores, TAU, seed)).collect::<Vec<_>>());
        assert!(all.windows(2).any(|w| w[0] != w[1]));
    }

    #[test]
    fn two_of_distinct_buckets_are_drawn_the_better_first() {
        let scores = [1.0, 1.01, 3.0, 3.02, 0.0, f64::NAN, -1.0, f64::INFINITY];
        for seed in 0..200 {
            let drawn = exemplars(&scores, TAU, seed);
            assert_eq!(drawn.len(), 2);
            assert!([2, 3].contains(&drawn[0]) && [0, 1].contains(&drawn[1]), "{drawn:?}");
        }
    }

    #[test]
    fn with_one_bucket_one_is_drawn_and_with_none_none() {
        for seed in 0..20 {
            assert_eq!(exemplars(&[2.0, 2.01, 2.02], TAU, seed).len(), 1);
        }
        assert_eq!(exemplars(&[], TAU, 1), [0; 0]);
        assert_eq!(exemplars(&[0.0, f64::NAN], TAU, 1), [0; 0]);
    }

    #[test]
    fn buckets_are_drawn_in_proportion_to_the_exponential_of_their_scores() {
        // Three buckets are drawn from, so that the one that is left out is random too. By hand, for scores 1, 2 and 4 at tau 2: weights exp(-1.5), exp(-1), 1.
        let scores = [1.0, 2.0, 4.0];
        let weight = |s: f64| ((s - 4.0) / 2.0).exp();
        let total: f64 = scores.iter().map(|s| weight(*s)).sum();
        let p = |s: f64| weight(s) / total;
        let left_out = |a: f64, b: f64| p(a) * p(b) / (1.0 - p(a)) + p(b) * p(a) / (1.0 - p(b));
        let expected = [left_out(2.0, 4.0), left_out(1.0, 4.0), left_out(1.0, 2.0)];
        let n = 20_000;
        let mut counts = [0.0; 3];
        for seed in 0..n {
            let drawn = exemplars(&scores, 2.0, seed);
            let missing = (0..3).find(|at| !drawn.contains(at)).unwrap();
            counts[missing] += 1.0 / n as f64;
        }
        for (got, want) in counts.iter().zip(expected) {
            assert!((got - want).abs() < 0.015, "{counts:?} against {expected:?}");
        }
    }

    #[test]
    fn members_of_a_bucket_are_drawn_alike() {
        let mut counts = [0; 4];
        for seed in 0..4000 {
            exemplars(&[2.0, 2.01, 2.02, 2.03], TAU, seed).into_iter().for_each(|at| counts[at] += 1);
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
    }

    #[test]
    fn large_scores_and_small_temperatures_do_no_harm() {
        assert_eq!(exemplars(&[1e300, 1.0, 1e-300], 1e-9, 3), [0, 1]);
    }
}
