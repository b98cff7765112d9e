//! The interval of a median from its samples, for reports. Pure numbers; does not know what was measured.

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
}
