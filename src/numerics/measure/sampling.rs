//! Sampling: when there are enough samples, which of them count, and how short times are measured (docs/design.md, section 7). Pure:
//! samples and states are arguments.

use super::orders::Orders;
use super::stats::{Resampler, block_interval, median};
use kforge_types::record::timing::PairsObserved;
pub use kforge_types::record::timing::Side;

/// The resolution of event times in nanoseconds: CUDA documents about half a microsecond (cuEventElapsedTime).
const RESOLUTION_NS: f64 = 500.0;
/// Times below this are measured as the slope between a graph of one copy and a graph of many.
pub const SHORT_NS: f64 = 10_000.0;
/// How long many copies should take together: long enough that the resolution is a four-hundredth of it.
const LONG_NS: f64 = 200_000.0;
/// Copies in a graph, least and most.
const COPIES: (f64, f64) = (20.0, 400.0);

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stopping {
    /// The least number of samples.
    pub least: usize,
    /// The most samples.
    pub most: usize,
    /// The width of the median's interval, as a share of the median, at which the median is known well enough.
    pub width: f64,
}

/// The rule of bench: half a percent, which is half the margin that distinguishes variants. If three hundred samples do not determine a time that well, they
/// come from several states of the device. More samples do not decide between such states; pairs do.
pub const BENCH: Stopping = Stopping { least: 30, most: 300, width: 0.005 };

impl Stopping {
    /// Whether no more samples are needed.
    pub fn enough(&self, samples: &[f64]) -> bool {
        if samples.len() < self.least || samples.len() >= self.most {
            return samples.len() >= self.most;
        }
        match median_interval(samples) {
            Some((low, high)) => high - low <= self.width * median(samples),
            None => false,
        }
    }
}

/// The 95 % interval of the median, between order statistics: ranks n/2 -+ 0.98 sqrt(n), from the normal approximation of the binomial (Conover, "Practical
/// Nonparametric Statistics", 3.2). None for fewer than six samples, which have no interval of that level.
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let n = samples.len();
    if n < 6 {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let reach = 0.98 * (n as f64).sqrt();
    let low = ((n as f64 / 2.0 - reach).floor().max(0.0)) as usize;
    let high = ((n as f64 / 2.0 + reach).ceil() as usize).min(n - 1);
    Some((sorted[low], sorted[high]))
}

/// The number of blocks of pairs that may be enough: each order on each of two inputs, twice.
const BLOCKS: usize = 8;
/// The most blocks of pairs if both orders agree, and if they do not.
const MOST: (usize, usize) = (16, 32);
/// The width of the log-ratio's interval at which the ratio is known well enough: half the margin of one percent, so that a ratio
/// beyond the margin, or within half of it, is decided.
const PRECISE: f64 = 0.005;

/// Whether blocks of pairs determine the ratio well enough. The ratio itself does not matter: a rule that stops at a favorable result
/// finds differences that do not exist.
pub fn known(blocks: &[Vec<f64>]) -> bool {
    blocks.len() >= BLOCKS && block_interval(blocks).is_some_and(|(_, low, high)| high - low <= PRECISE)
}

/// The most blocks of these pairs: twice as many if the orders are apart after the usual number, whatever they say. It depends on those blocks only, so later
/// ones cannot end a disagreement early.
pub fn most(seen: &PairsObserved) -> usize {
    let (usual, more) = MOST;
    if seen.blocks.len() < usual {
        return usual;
    }
    let until = |n: usize| PairsObserved {
        blocks: seen.blocks.iter().take(n).cloned().collect(),
        first: seen.first.iter().take(n).copied().collect(),
    };
    match Orders::of(&[&until(usual)]).is_some_and(|orders| orders.are_apart()) {
        true => more,
        false => usual,
    }
}

/// The number of samples per check of whether a device has warmed up.
const WINDOW: usize = 10;

/// Whether clocks and caches have settled: the medians of the last two windows are within one per cent of each other.
pub fn settled(samples: &[f64]) -> bool {
    let Some(earlier) = samples.len().checked_sub(2 * WINDOW) else { return false };
    let (a, b) = (median(&samples[earlier..earlier + WINDOW]), median(&samples[earlier + WINDOW..]));
    (a - b).abs() <= 0.01 * a.min(b)
}

/// How many copies of a kernel that takes about `ns` go into the longer graph.
pub fn copies(ns: f64) -> u32 {
    (LONG_NS / ns.max(1.0)).ceil().clamp(COPIES.0, COPIES.1) as u32
}

/// Nanoseconds per copy, from a graph of one copy and a graph of many; none if the difference is not well above the resolution.
pub fn slope(one: f64, many: f64, copies: u32) -> Option<f64> {
    let apart = many - one;
    (copies > 1 && apart >= 20.0 * RESOLUTION_NS).then(|| apart / f64::from(copies - 1))
}

/// NVML's bits of event reasons, with their names in lower case.
const REASONS: [(u64, &str); 9] = [
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clocks_setting"),
];
/// A sample does not count under these reasons: hardware slowdown and thermal limits.
const DROPPED: u64 = 0x8 | 0x20 | 0x40 | 0x80;
/// Idleness is not a limit; a device reports it between launches.
const IDLE: u64 = 0x1;

/// Whether samples under these reasons do not count.
pub fn dropped(reasons: u64) -> bool {
    reasons & DROPPED != 0
}

/// The names of the reasons that limit clocks, in the order of their bits.
pub fn names(reasons: u64) -> Vec<String> {
    REASONS.iter().filter(|(bit, _)| reasons & bit & !IDLE != 0).map(|(_, name)| (*name).to_string()).collect()
}

/// Whether two clocks are near enough to compare times under them: within two percent.
pub fn alike(a_mhz: u32, b_mhz: u32) -> bool {
    a_mhz.abs_diff(b_mhz) as f64 <= 0.02 * f64::from(a_mhz.max(b_mhz))
}

/// The seed of the orders of a pair's blocks, from the key of its step.
pub fn seed(key: &[u8; 32]) -> u64 {
    key.chunks_exact(8).fold(0, |sum: u64, part| {
        part.iter().fold(sum.rotate_left(17), |word, byte| word.rotate_left(8) ^ u64::from(*byte))
    })
}

/// The binary that comes first in a block of pairs: drawn from the seed for every two blocks, which have opposite orders. So both orders have as many
/// blocks, and no order coincides with a period of the device.
pub fn first(seed: u64, block: usize) -> Side {
    let draw = Resampler::new(seed ^ (block as u64 / 2).wrapping_mul(0xd6e8_feb8_6659_fd93)).below(2);
    if (draw == 0) == block.is_multiple_of(2) { Side::A } else { Side::B }
}

/// The order of the samples in a block of pairs: ABBA or BAAB, so that neither side profits from a drift.
pub fn order(first: Side) -> [Side; 4] {
    [first, first.other(), first.other(), first]
}

/// The logarithm of (time of A / time of B) from four samples in their order: the mean over the outer and the inner pair, which cancels a drift that is linear
/// in time. None if a time is invalid.
pub fn log_ratio(order: [Side; 4], ns: [f64; 4]) -> Option<f64> {
    let of = |side| order.iter().zip(ns).filter(|(s, _)| **s == side).map(|(_, ns)| ns.ln()).sum::<f64>() / 2.0;
    let ratio = of(Side::A) - of(Side::B);
    (ns.iter().all(|ns| *ns > 0.0) && ratio.is_finite()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::stats::{Paired, decide};

    fn noisy(n: usize, centre: f64, spread: f64) -> Vec<f64> {
        (0..n).map(|i| centre * (1.0 + spread * (((i * 7919) % 101) as f64 / 50.0 - 1.0))).collect()
    }

    #[test]
    fn sampling_ends_when_the_median_is_known_and_not_before() {
        let narrow = noisy(100, 1000.0, 0.001);
        assert!(!BENCH.enough(&narrow[..29]));
        assert!(BENCH.enough(&narrow[..30]));
        let wide = noisy(1000, 1000.0, 0.2);
        assert!(!BENCH.enough(&wide[..200]));
        assert!(BENCH.enough(&wide), "the cap ends it");
        let lone: Vec<f64> = narrow.iter().enumerate().map(|(i, x)| if i == 5 { x * 50.0 } else { *x }).collect();
        assert!(BENCH.enough(&lone), "one disturbed sample widens no median's interval");
    }

    #[test]
    fn pairs_are_enough_when_their_interval_is_narrow_whatever_they_say() {
        let blocks = |centre: f64, spread: f64, count: usize| -> Vec<Vec<f64>> {
            (0..count).map(|i| vec![centre + spread * ((i * 7 % 5) as f64 / 2.0 - 1.0)]).collect()
        };
        for centre in [0.0, 0.01, -0.3] {
            assert!(!known(&blocks(centre, 0.001, 7)) && known(&blocks(centre, 0.001, 8)), "{centre}");
            assert!(!known(&blocks(centre, 0.02, 15)), "{centre}");
        }
        assert!(!known(&vec![vec![]; 9]), "without samples");
    }

    #[test]
    fn the_interval_lies_around_the_median_and_needs_six() {
        let samples: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(median_interval(&samples), Some((40.0, 60.0)));
        assert_eq!(median_interval(&samples[..5]), None);
    }

    #[test]
    fn a_device_is_warm_once_two_windows_agree() {
        let falling: Vec<f64> = (0..40).map(|i| 1000.0 * (1.0 - 0.01 * f64::from(i))).collect();
        assert!(!settled(&falling));
        assert!(!settled(&noisy(19, 1000.0, 0.001)));
        assert!(settled(&[falling, noisy(20, 600.0, 0.001)].concat()));
    }

    #[test]
    fn short_times_are_slopes_or_undecided() {
        assert_eq!(copies(2000.0), 100);
        assert_eq!((copies(9999.0), copies(0.0)), (21, 400));
        assert_eq!(slope(7000.0, 207_000.0, 101), Some(2000.0));
        assert_eq!(slope(7000.0, 16_000.0, 20), None, "within twenty times the resolution");
        assert_eq!(slope(7000.0, 6000.0, 20), None);
        assert_eq!(slope(7000.0, 207_000.0, 1), None);
    }

    #[test]
    fn heat_drops_a_sample_and_a_power_cap_does_not() {
        for bits in [0x8, 0x20, 0x40, 0x80, 0x44] {
            assert!(dropped(bits), "{bits:#x}");
        }
        for bits in [0, 0x1, 0x2, 0x4, 0x10, 0x100] {
            assert!(!dropped(bits), "{bits:#x}");
        }
        assert_eq!(names(0x5), ["sw_power_cap"]);
        assert!(alike(1980, 1965) && !alike(1980, 1500));
    }

    #[test]
    fn orders_are_drawn_and_balanced_after_every_two_blocks() {
        let drawn = |seed: u64| (0..32).map(|block| first(seed, block)).collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        for seed in 0..20 {
            assert!(drawn(seed).chunks(2).all(|two| two[0] == two[1].other()), "{seed}");
        }
        let begins: Vec<Side> = (0..200).flat_map(|seed| drawn(seed).into_iter().step_by(2)).collect();
        let a = begins.iter().filter(|side| **side == Side::A).count();
        assert!((1450..1750).contains(&a), "{a} of {}", begins.len());
    }

    #[test]
    fn orders_that_are_apart_get_twice_as_many_blocks() {
        let of = |blocks: usize, effect: f64| {
            let first: Vec<Side> = (0..blocks).map(|block| first(3, block)).collect();
            let ratio = |(block, first): (usize, &Side)| {
                let noise = 0.002 * ((block * 7 % 5) as f64 / 2.0 - 1.0);
                vec![noise + if *first == Side::A { effect } else { -effect }]
            };
            PairsObserved { blocks: first.iter().enumerate().map(ratio).collect(), first }
        };
        assert_eq!(
            (most(&of(15, 0.02)), most(&of(16, 0.02)), most(&of(20, 0.02)), most(&of(16, 0.0))),
            (16, 32, 32, 16)
        );
        let mut healed = of(32, 0.0);
        healed.blocks[..16].clone_from_slice(&of(16, 0.02).blocks);
        assert_eq!(most(&healed), 32, "later blocks do not matter");
    }

    #[test]
    fn a_linear_drift_favours_neither_side() {
        for first in [Side::A, Side::B] {
            let order = order(first);
            // Each sample takes longer than the one before by the same factor.
            let drifting =
                std::array::from_fn(|i| 1000.0 * 1.01f64.powi(i as i32) * if order[i] == Side::A { 1.05 } else { 1.0 });
            let ratio = log_ratio(order, drifting).unwrap();
            assert!((ratio - 1.05f64.ln()).abs() < 1e-12, "{ratio}");
        }
        assert_eq!(log_ratio(order(Side::A), [1.0, 0.0, 1.0, 1.0]), None);
    }

    /// Tests on the arithmetic what the suite tests on a device: a planted difference of two percent is found, and no difference is found if there is none.
    #[test]
    fn two_per_cent_are_found_and_nothing_is_not() {
        let blocks = |slower: f64, salt: usize| -> Vec<Vec<f64>> {
            (0..16)
                .map(|block| {
                    let noise = noisy(400, 1000.0, 0.01);
                    let order = order(first(salt as u64, block));
                    (0..4)
                        .filter_map(|at| {
                            let ns = std::array::from_fn(|i| {
                                let factor = if order[i] == Side::A { 1.0 + slower } else { 1.0 };
                                noise[(salt * 131 + block * 17 + at * 5 + i * 3) % 400] * factor
                            });
                            log_ratio(order, ns)
                        })
                        .collect()
                })
                .collect()
        };
        let decided = |slower, want| (0..100).filter(|salt| decide(&blocks(slower, *salt), 0.01) == want).count();
        assert!(decided(0.02, Paired::Slower) >= 95, "{}", decided(0.02, Paired::Slower));
        assert_eq!(decided(0.0, Paired::Slower) + decided(0.0, Paired::Faster), 0);
    }
}
