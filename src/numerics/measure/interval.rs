//! Intervals for reports: of a median from its samples, of a ratio of two medians, of a mean of ratios; and quantiles. Pure numbers; does not know what was
//! measured.

use super::stats::geometric_mean;

/// The share of intervals that miss the median, on each side.
const MISSED: f64 = 0.025;

/// The interval of 95 % of the median of samples, by their order alone: it assumes no distribution, and has two samples as its ends. None for fewer than six
/// samples, whose whole range is less certain than that.
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let n = samples.len();
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The number of samples below the median is binomial. `below` is the probability of at most `k` of them.
    let (mut ln_share, mut below, mut k) = (-(n as f64) * std::f64::consts::LN_2, 0.0, 0);
    loop {
        below += ln_share.exp();
        if below > MISSED || k >= n {
            break;
        }
        ln_share += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    let low = k.checked_sub(1)?;
    Some((*sorted.get(low)?, *sorted.get(n - 1 - low)?))
}

/// A positive value and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The ends.
    pub interval: (f64, f64),
}

/// The interval of a ratio of two positive values that were found independently, by recovery of variances (MOVER) on logarithms: each end is as far from the
/// ratio as the root of the sum of the squares of the two distances. None if a value is not positive or lies outside of its interval.
///
/// The intervals of two medians hold the noise within two sessions. What differs between the sessions is in neither; only pairs show it.
pub fn ratio_interval(over: Estimate, under: Estimate) -> Option<(f64, f64)> {
    // The ratio itself is not rounded through logarithms, so that it lies within its interval, however narrow.
    let ratio = over.value / under.value;
    let (over, under) = (logarithms(over)?, logarithms(under)?);
    let low = (over.value - over.interval.0).hypot(under.interval.1 - under.value);
    let high = (over.interval.1 - over.value).hypot(under.value - under.interval.0);
    Some((ratio * (-low).exp(), ratio * high.exp()))
}

/// The interval of the geometric mean of positive values that were found independently, as [`ratio_interval`] combines them. None for no values.
pub fn mean_interval(of: &[Estimate]) -> Option<(f64, f64)> {
    let values: Vec<f64> = of.iter().map(|one| one.value).collect();
    let all: Vec<Estimate> = of.iter().map(|one| logarithms(*one)).collect::<Option<_>>()?;
    let (n, mean) = (all.len() as f64, geometric_mean(&values));
    let root =
        |distance: &dyn Fn(&Estimate) -> f64| all.iter().map(|one| distance(one).powi(2)).sum::<f64>().sqrt() / n;
    let (low, high) = (root(&|one| one.value - one.interval.0), root(&|one| one.interval.1 - one.value));
    (!all.is_empty()).then(|| (mean * (-low).exp(), mean * high.exp()))
}

/// The logarithms of an estimate; none if it has none, or if the value is outside of its interval.
fn logarithms(of: Estimate) -> Option<Estimate> {
    let (low, high) = of.interval;
    let sound = low > 0.0 && low <= of.value && of.value <= high && high.is_finite();
    sound.then(|| Estimate { value: of.value.ln(), interval: (low.ln(), high.ln()) })
}

/// The quantiles of samples in equal steps, from the least to the greatest: `steps + 1` values, each interpolated between the two nearest samples. Empty for no
/// samples.
pub fn quantiles(samples: &[f64], steps: usize) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return vec![] };
    let at = |step: usize| {
        let place = last as f64 * step as f64 / steps.max(1) as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    (0..=steps).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        // The ranks of the sign test, as books of statistics print them.
        for (n, low) in [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (50, 18), (100, 40)] {
            let samples: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            let expected = (f64::from(low), f64::from(n + 1 - low));
            assert_eq!(median_interval(&samples), Some(expected), "of {n}");
        }
    }

    #[test]
    fn few_samples_have_no_interval_and_many_have_one_around_their_median() {
        assert_eq!(median_interval(&[]), None);
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        let many: Vec<f64> = (0..20_001).map(f64::from).collect();
        let (low, high) = median_interval(&many).unwrap();
        assert!(low < 10_000.0 && high > 10_000.0 && high - low < 300.0, "{low} {high}");
    }

    #[test]
    fn the_interval_of_a_ratio_is_wider_than_that_of_either_value_and_narrower_than_of_both_ends() {
        let of = |value: f64, share: f64| Estimate { value, interval: (value / share, value * share) };
        let (low, high) = ratio_interval(of(200.0, 1.03), of(100.0, 1.04)).unwrap();
        let expected = (1.03f64.ln().powi(2) + 1.04f64.ln().powi(2)).sqrt().exp();
        assert!((low - 2.0 / expected).abs() < 1e-12 && (high - 2.0 * expected).abs() < 1e-12, "{low} {high}");
        assert!(high > 2.0 * 1.04 && high < 2.0 * 1.03 * 1.04);
        let skewed = Estimate { value: 100.0, interval: (100.0, 110.0) };
        let (low, high) = ratio_interval(skewed, of(100.0, 1.0)).unwrap();
        assert!((low - 1.0).abs() < 1e-12 && (high - 1.1).abs() < 1e-12, "each end has its own distance: {low} {high}");
        for wrong in [of(0.0, 1.0), of(-1.0, 1.1), of(f64::NAN, 1.0), Estimate { value: 9.0, interval: (1.0, 2.0) }] {
            assert_eq!((ratio_interval(wrong, of(1.0, 1.1)), mean_interval(&[wrong])), (None, None));
        }
    }

    #[test]
    fn a_ratio_and_a_mean_lie_within_their_intervals_however_narrow() {
        for (a, b) in [(3.3, 1.1), (0.1, 0.3), (7e5, 7e5), (1.0 / 3.0, 49.0)] {
            let of = |value: f64| Estimate { value, interval: (value, value) };
            assert_eq!(ratio_interval(of(a), of(b)), Some((a / b, a / b)));
            let mean = geometric_mean(&[a, b]);
            assert_eq!(mean_interval(&[of(a), of(b)]), Some((mean, mean)));
        }
    }

    #[test]
    fn the_interval_of_a_mean_narrows_with_the_number_of_values() {
        let one = Estimate { value: 2.0, interval: (1.9, 2.1) };
        let (low, high) = mean_interval(&[one; 4]).unwrap();
        let (half_low, half_high) = ((2.0f64 / 1.9).ln() / 2.0, (2.1f64 / 2.0).ln() / 2.0);
        assert!((low - 2.0 / half_low.exp()).abs() < 1e-12 && (high - 2.0 * half_high.exp()).abs() < 1e-12);
        assert_eq!(mean_interval(&[]), None);
    }

    #[test]
    fn quantiles_are_between_the_least_and_the_greatest_sample() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(quantiles(&samples, 4), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(quantiles(&[3.0, 1.0], 2), [1.0, 2.0, 3.0]);
        assert_eq!(quantiles(&[5.0], 3), [5.0; 4]);
        assert!(quantiles(&[], 3).is_empty());
    }
}
