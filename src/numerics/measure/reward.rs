//! Rewards: bounded scores for those who train on candidates, and the returns of several turns. Knows scores; does not know where they come from.
//!
//! | reward | for a correct candidate that is s times as fast | bounds | source |
//! |---|---|---|---|
//! | logistic | s^k / (1 + s^k), k = [`STEEPNESS`] | 0 to 1 | Makora, arXiv 2602.11000: logistic, about 0.5 at parity; it states no constants |
//! | weighted | 0.5, + 0.5 if s is at least 1.01, + 0.25 of the profiling ratio | 0 to 1.25 | Dr. Kernel (KernelGYM), `calculate_reward_weighted` with its coverage term |
//! | smoothed | (s - m) / d, clipped to -[`CLIP`] to [`CLIP`]; m and d are mean and deviation of the speed-ups | [`CLIP`] in both directions | CUDA-L1, arXiv 2507.14111, equation 6 |
//!
//! | decision | reason |
//! |---|---|
//! | a wrong candidate has the speed-up 0 in all of them | so none of them ranks it above a correct one |
//! | a reward that is not known is between bounds | an unknown speed-up, verdict or profiling ratio is not 0 |
//! | the mean and the deviation of the smoothed reward are those of the known speed-ups, and are stated with it | CUDA-L1 takes those of its training run so far, which no export knows |
//! | where the deviation is 0, the smoothed reward is 0 | all are the same, so nothing is better than the mean |
//! | the reward of a turn is that of its best candidate | a turn is one answer, whose variants share the source |

use serde::{Deserialize, Serialize};

use super::score::{Form, STEEPNESS, Score, Scored, score};

/// The bound of the smoothed reward in both directions. CUDA-L1 clips to a bound; this one is kforge's choice, and every export states it.
pub const CLIP: f64 = 1.5;

/// The factor by which a later turn counts less: Kevin's (arXiv 2507.11948), whose best returns are discounted sums with 0.4.
pub const DISCOUNT: f64 = 0.4;

/// The distribution of the speed-ups of some candidates.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Distribution {
    /// The number of candidates whose speed-up, or being wrong, is known.
    pub known: u64,
    /// The mean of their speed-ups; wrong ones count as 0.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl Distribution {
    /// The distribution of the known speed-ups among these.
    pub fn of<'a>(candidates: impl IntoIterator<Item = &'a Scored>) -> Self {
        let speedups: Vec<f64> = candidates.into_iter().filter_map(|of| score(Form::Speedup, of).value()).collect();
        if speedups.is_empty() {
            return Distribution::default();
        }
        let n = speedups.len() as f64;
        let mean = speedups.iter().sum::<f64>() / n;
        let variance = speedups.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n;
        Distribution { known: speedups.len() as u64, mean, deviation: variance.sqrt() }
    }

    /// CUDA-L1's smoothed reward of a speed-up (arXiv 2507.14111, equation 6): normalised by mean and deviation, and clipped.
    fn smoothed(&self, speedup: f64) -> f64 {
        let normalised = (speedup - self.mean) / self.deviation;
        if self.deviation > 0.0 && normalised.is_finite() { normalised.clamp(-CLIP, CLIP) } else { 0.0 }
    }

    /// The smoothed reward that no speed-up exceeds.
    fn highest(&self) -> f64 {
        if self.deviation > 0.0 { CLIP } else { 0.0 }
    }
}

/// Every reward of a candidate, or of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rewards {
    /// Makora's logistic reward, 0 to 1, 0.5 at parity.
    pub logistic: Score,
    /// Dr. Kernel's weighted reward, 0 to 1.25, with the profiling ratio.
    pub weighted: Score,
    /// CUDA-L1's smoothed reward, -1.5 to 1.5.
    pub smoothed: Score,
}

impl Rewards {
    /// The rewards of a candidate among others.
    pub fn of(candidate: &Scored, among: &Distribution) -> Self {
        let speedup = score(Form::Speedup, candidate);
        let smoothed = Score {
            at_least: among.smoothed(speedup.at_least),
            at_most: Some(speedup.at_most.map_or_else(|| among.highest(), |most| among.smoothed(most))),
        };
        Rewards { logistic: score(Form::Logistic, candidate), weighted: score(Form::Weighted, candidate), smoothed }
    }

    /// The rewards of what could not be tried: the least there are.
    pub fn least(among: &Distribution) -> Self {
        Rewards::of(&Scored { correct: Some(false), ..Scored::default() }, among)
    }

    /// What applies to each of the rewards.
    fn each(with: impl Fn(fn(&Rewards) -> &Score) -> Score) -> Self {
        Rewards { logistic: with(|r| &r.logistic), weighted: with(|r| &r.weighted), smoothed: with(|r| &r.smoothed) }
    }

    /// The rewards of the best of several candidates; none of none.
    pub fn best(candidates: &[Rewards]) -> Option<Self> {
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        (!candidates.is_empty()).then(|| {
            Rewards::each(|of| {
                let all = || candidates.iter().map(of);
                Score {
                    at_least: most(&mut all().map(|score| score.at_least)),
                    at_most: all().map(|s| s.at_most).collect::<Option<Vec<f64>>>().map(|s| most(&mut s.into_iter())),
                }
            })
        })
    }

    /// The discounted return of each turn: its reward, and `discount` of the return of the turn after it.
    pub fn returns(turns: &[Rewards], discount: f64) -> Vec<Self> {
        let mut returns: Vec<Rewards> = vec![];
        for turn in turns.iter().rev() {
            let later = returns.last().copied();
            returns.push(Rewards::each(|of| {
                let sum = |now: f64, then: f64| now + discount * then;
                match later.as_ref().map(of) {
                    None => *of(turn),
                    Some(then) => Score {
                        at_least: sum(of(turn).at_least, then.at_least),
                        at_most: of(turn).at_most.zip(then.at_most).map(|(now, then)| sum(now, then)),
                    },
                }
            }));
        }
        returns.reverse();
        returns
    }
}

/// The constants of rewards, which documents state beside them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RewardConstants {
    /// The exponent k of the logistic reward.
    pub steepness: f64,
    /// The bound of the smoothed reward in both directions.
    pub clip: f64,
    /// The distribution by which the smoothed reward is normalised.
    pub among: Distribution,
}

impl RewardConstants {
    /// The constants for rewards among these candidates.
    pub fn among(among: Distribution) -> Self {
        RewardConstants { steepness: STEEPNESS, clip: CLIP, among }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(correct: bool, speedup: f64, ratio: f64) -> Scored {
        Scored { correct: Some(correct), speedup: Some(speedup), ratio: Some(ratio) }
    }

    /// Every reward with the bounds that it never leaves.
    fn bounded(of: &Rewards) -> [(Score, f64, f64); 3] {
        [(of.logistic, 0.0, 1.0), (of.weighted, 0.0, 1.25), (of.smoothed, -CLIP, CLIP)]
    }

    #[test]
    fn the_smoothed_reward_is_the_clipped_distance_from_the_mean_in_deviations() {
        let all = [known(true, 1.0, 1.0), known(true, 2.0, 1.0), known(false, 9.0, 1.0), Scored::default()];
        let among = Distribution::of(&all);
        assert_eq!((among.known, among.mean), (3, 1.0), "the wrong one is 0, and the unknown one takes no part");
        assert!((among.deviation - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        let smoothed = |of: &Scored| Rewards::of(of, &among).smoothed;
        let value = |of: &Scored| smoothed(of).value().unwrap();
        assert_eq!((value(&all[0]), value(&known(true, 9.0, 1.0))), (0.0, CLIP));
        assert!(
            (value(&all[1]) - 1.0 / among.deviation).abs() < 1e-12
                && (value(&all[2]) + 1.0 / among.deviation).abs() < 1e-12
        );
        assert_eq!((smoothed(&all[3]).value(), smoothed(&all[3]).at_most), (None, Some(CLIP)), "unknown is not 0");
        let same = Distribution::of(&[known(true, 2.0, 1.0), known(true, 2.0, 1.0)]);
        assert_eq!(Rewards::of(&known(true, 2.0, 1.0), &same).smoothed.value(), Some(0.0));
        assert_eq!(Rewards::of(&Scored::default(), &Distribution::default()).smoothed.value(), Some(0.0));
    }

    #[test]
    fn a_ratio_that_was_not_measured_is_between_bounds() {
        let unmeasured = Scored { ratio: None, ..known(true, 2.0, 0.0) };
        let weighted = |of: &Scored| Rewards::of(of, &Distribution::default()).weighted;
        assert_eq!((weighted(&unmeasured).at_least, weighted(&unmeasured).at_most), (1.0, Some(1.25)));
        assert_eq!(weighted(&known(true, 2.0, 0.4)).value(), Some(1.1));
    }

    #[test]
    fn a_return_adds_the_discounted_returns_of_later_turns() {
        let among = Distribution::default();
        let turns = [
            Rewards::least(&among),
            Rewards::of(&known(true, 1.0, 1.0), &among),
            Rewards::of(&Scored::default(), &among),
        ];
        let returns = Rewards::returns(&turns, 0.4);
        let logistic: Vec<(f64, Option<f64>)> =
            returns.iter().map(|r| (r.logistic.at_least, r.logistic.at_most)).collect();
        assert_eq!(logistic, [(0.4 * 0.5, Some(0.4 * 0.9)), (0.5, Some(0.9)), (0.0, Some(1.0))]);
        assert_eq!(Rewards::returns(&turns, 0.0), turns, "without later turns");
    }

    #[test]
    fn a_turn_is_worth_its_best_candidate() {
        let among = Distribution::default();
        let of = |c: &Scored| Rewards::of(c, &among);
        let best =
            Rewards::best(&[of(&known(false, 1.0, 1.0)), of(&known(true, 1.0, 1.0)), of(&Scored::default())]).unwrap();
        assert_eq!((best.logistic.at_least, best.logistic.at_most), (0.5, Some(1.0)));
        assert_eq!(Rewards::best(&[]), None);
    }

    fn any_candidate() -> impl Strategy<Value = Scored> {
        let speedup =
            prop_oneof![Just(None), (1e-6f64..1e6).prop_map(Some), Just(Some(f64::NAN)), Just(Some(f64::INFINITY))];
        let ratio = prop::option::of(-0.5f64..1.5);
        (prop::option::of(any::<bool>()), speedup, ratio).prop_map(|(correct, speedup, ratio)| Scored {
            correct,
            speedup,
            ratio,
        })
    }

    proptest! {
        #[test]
        fn every_reward_stays_within_its_bounds(all in prop::collection::vec(any_candidate(), 0..9), one in any_candidate(), discount in 0.0f64..1.0) {
            let among = Distribution::of(&all);
            let turns: Vec<Rewards> = all.iter().chain([&one]).map(|c| Rewards::of(c, &among)).collect();
            for (reward, low, high) in turns.iter().flat_map(bounded) {
                let most = reward.at_most.unwrap();
                prop_assert!(low <= reward.at_least && reward.at_least <= most && most <= high, "{reward:?}");
            }
            let sum: f64 = (0..turns.len() as i32).map(|n| discount.powi(n)).sum();
            for (reward, low, high) in Rewards::returns(&turns, discount).iter().flat_map(bounded) {
                let most = reward.at_most.unwrap();
                prop_assert!(low * sum - 1e-9 <= reward.at_least && reward.at_least <= most && most <= high * sum + 1e-9);
            }
        }

        #[test]
        fn every_reward_of_a_correct_candidate_grows_with_its_speed_up(
            all in prop::collection::vec(any_candidate(), 0..9), slow in 1e-6f64..1e6, more in 1.0f64..1e3, ratio in prop::option::of(0.0f64..1.0)
        ) {
            let among = Distribution::of(&all);
            let of = |speedup| Rewards::of(&Scored { correct: Some(true), speedup: Some(speedup), ratio }, &among);
            for ((slower, ..), (faster, ..)) in bounded(&of(slow)).into_iter().zip(bounded(&of(slow * more))) {
                prop_assert!(slower.at_least <= faster.at_least && slower.at_most <= faster.at_most, "{slower:?} {faster:?}");
            }
        }

        #[test]
        fn a_wrong_candidate_is_never_rewarded_above_a_correct_one(
            all in prop::collection::vec(any_candidate(), 0..9), wrong in any_candidate(), correct in any_candidate()
        ) {
            let among = Distribution::of(&all);
            let of = |is_correct, c: Scored| bounded(&Rewards::of(&Scored { correct: Some(is_correct), ..c }, &among));
            for ((wrong, ..), (correct, ..)) in of(false, wrong).into_iter().zip(of(true, correct)) {
                prop_assert!(wrong.at_most.unwrap() <= correct.at_least, "{wrong:?} {correct:?}");
            }
        }
    }
}
