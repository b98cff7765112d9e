//! Times that are not believed: when slow launches on fresh inputs suggest cached answers, and what follows from a time below a floor. Pure: samples, floors and
//! the time by a second clock are arguments. Takes no samples.
//!
//! | sign | what is repeated before the time is refused |
//! |---|---|
//! | the first launch on inputs that were never on the device is slower than launches on others | launches on [`FRESH_SETS`] sets of such inputs; all must be slower |
//! | a time below a floor | the hot series by a second clock; if there is no hot series, nothing contradicts the time, and it is unknown |

use super::floor::Floor;
use super::stats::median;
use kforge_types::record::timing::{BenchObserved, Series};
use kforge_types::record::{Unknown, Verdict};

/// How much a sample on fresh inputs may exceed the median before cached answers are suspected: a factor, and additional nanoseconds.
const FRESH: (f64, f64) = (1.25, 5000.0);
/// The number of sets of fresh inputs on which a kernel is slow before its time is refused. One launch may be slow for another reason: a clock that ramps up,
/// the first touch of memory, another process. A kernel that caches answers is slow on every set.
pub const FRESH_SETS: usize = 3;
/// The least and the most that a second clock may measure, as a share of the hot time.
const CLOCKS: (f64, f64) = (0.5, 1.5);

/// The samples on one set of inputs that were never on the device before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnFresh {
    /// Nanoseconds of the first launch on these inputs.
    pub first_ns: f64,
    /// Nanoseconds of the fastest later launch on these inputs.
    pub again_ns: f64,
}

/// What samples on fresh inputs say of a kernel's other times.
#[derive(Debug, Clone, PartialEq)]
pub enum Freshness {
    /// Fresh inputs take no longer than others.
    Believed,
    /// Cached answers are suspected, and samples on another set of fresh inputs are needed. What the time is if there is no time for them.
    Suspected(Unknown),
    /// Every set of fresh inputs takes longer than other inputs.
    Refused(Unknown),
}

/// Whether a first launch on fresh inputs is slower than a series of cold samples explains.
pub fn is_slow(first_ns: f64, cold_ns: &[f64]) -> bool {
    first_ns > FRESH.0 * median(cold_ns) + FRESH.1
}

/// Whether a later launch on the same inputs is faster than the first by more than chance explains.
pub fn is_faster(again_ns: f64, first_ns: f64) -> bool {
    again_ns < first_ns / FRESH.0
}

/// What samples on sets of fresh inputs say of a series of cold samples on other inputs. The fastest launch counts, because what slows an honest launch down is
/// rare.
pub fn freshness(cold_ns: &[f64], fresh: &[OnFresh]) -> Freshness {
    let usual = median(cold_ns);
    let least = |of: fn(&OnFresh) -> f64| fresh.iter().map(of).fold(f64::INFINITY, f64::min);
    let (first, again) = (least(|on| on.first_ns), least(|on| on.again_ns));
    // A kernel that takes as long on inputs that are no longer fresh is slow for another reason.
    if fresh.is_empty() || !is_slow(first, cold_ns) || !is_faster(again, first) {
        return Freshness::Believed;
    }
    let draws = match fresh.len() {
        1 => "one draw".to_string(),
        more => format!("{more} draws"),
    };
    let why = Unknown::Implausible(format!(
        "at least {first:.0} ns on fresh inputs, in {draws}, but {usual:.0} ns on inputs that it had seen"
    ));
    if fresh.len() < FRESH_SETS { Freshness::Suspected(why) } else { Freshness::Refused(why) }
}

/// The verdict on a bench whose cold or hot median is below its floor; none if neither is. `floor` gives the floor of cold (`true`) and hot times.
/// `clock` measures the hot launches again with a second clock, given the median that is below its floor. It is called only if there is a hot series: many
/// launches in a row are hot, so their time says nothing of a cold one.
///
/// # Errors
/// Those of `clock`.
pub fn below_floor<E>(
    seen: &BenchObserved,
    floor: impl Fn(bool) -> Floor,
    clock: impl FnOnce(f64) -> Result<f64, E>,
) -> Result<Option<Verdict>, E> {
    let told = |series: &Option<Series>| series.as_ref().map_or(f64::NAN, |series| median(&series.samples_ns));
    let (cold, hot) = (told(&seen.cold), told(&seen.hot));
    let below = [("cold", cold), ("hot", hot)].map(|(what, told)| (what, told, floor(what == "cold")));
    let Some((what, told, floor)) = below.into_iter().find(|(_, told, floor)| *told < floor.ns) else {
        return Ok(None);
    };
    if !hot.is_nan() {
        let clocked = clock(told)?;
        if !(CLOCKS.0..=CLOCKS.1).contains(&(clocked / hot)) {
            let message = format!("events measure {hot:.0} ns hot, but the worker's clock measures {clocked:.0} ns");
            return Ok(Some(Verdict::Fail(message)));
        }
    }
    let (least, needed) = (floor.ns, floor.what);
    let message = format!("{told:.0} ns {what}, but the hardware needs at least {least:.0} ns to {needed}");
    Ok(Some(Verdict::Unknown(Unknown::Implausible(message))))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const fn on(first_ns: f64, again_ns: f64) -> OnFresh {
        OnFresh { first_ns, again_ns }
    }

    /// The decision on a kernel with these cold samples, asked after each set as a bench asks, and the number of sets that it took.
    fn decided(cold_ns: &[f64], sets: &[OnFresh]) -> (Freshness, usize) {
        let ends = |n: &usize| !matches!(freshness(cold_ns, &sets[..*n]), Freshness::Suspected(_));
        let n = (1..=sets.len()).find(ends).unwrap_or(sets.len());
        (freshness(cold_ns, &sets[..n]), n)
    }

    /// The samples of an honest softmax (f16, 4096 x 16384) on an H200, whose time was refused.
    const SOFTMAX: [f64; 5] = [71_200.0, 71_328.0, 71_300.0, 71_400.0, 71_360.0];
    const SLOW_ONCE: OnFresh = on(175_680.0, 71_400.0);

    #[test]
    fn one_slow_launch_on_fresh_inputs_is_not_held_against_a_kernel() {
        let honest = on(72_100.0, 71_300.0);
        assert_eq!(decided(&SOFTMAX, &[SLOW_ONCE, honest, honest]), (Freshness::Believed, 2));
        assert_eq!(decided(&SOFTMAX, &[SLOW_ONCE, SLOW_ONCE, honest]), (Freshness::Believed, 3));
    }

    #[test]
    fn where_no_time_is_left_for_other_inputs_the_time_is_unknown() {
        let (said, sets) = decided(&SOFTMAX, &[SLOW_ONCE]);
        let Freshness::Suspected(why) = said else { panic!("{said:?}") };
        let expected =
            "implausible: at least 175680 ns on fresh inputs, in one draw, but 71328 ns on inputs that it had seen";
        assert_eq!((why.to_string().as_str(), sets), (expected, 1));
    }

    #[test]
    fn an_ordinary_kernel_is_asked_about_one_set() {
        assert_eq!(decided(&SOFTMAX, &[on(73_000.0, 71_000.0)]), (Freshness::Believed, 1));
        // A short kernel may take up to five microseconds longer.
        assert_eq!(decided(&[4000.0; 30], &[on(9900.0, 4000.0)]), (Freshness::Believed, 1));
    }

    #[test]
    fn a_kernel_that_is_slow_on_every_fresh_set_is_refused() {
        let cached = [on(300_000.0, 20_000.0), on(410_000.0, 21_000.0), on(290_000.0, 19_000.0)];
        let (said, sets) = decided(&[20_000.0; 30], &cached);
        let Freshness::Refused(why) = said else { panic!("{said:?}") };
        let expected =
            "implausible: at least 290000 ns on fresh inputs, in 3 draws, but 20000 ns on inputs that it had seen";
        assert_eq!((why.to_string().as_str(), sets), (expected, FRESH_SETS));
    }

    #[test]
    fn a_slow_second_launch_on_one_set_hides_no_cached_answer() {
        let cached = [on(300_000.0, 20_000.0), on(300_000.0, 290_000.0), on(300_000.0, 295_000.0)];
        assert!(matches!(decided(&[20_000.0; 30], &cached), (Freshness::Refused(_), FRESH_SETS)));
    }

    #[test]
    fn a_device_that_became_slower_is_not_held_against_a_kernel() {
        assert_eq!(decided(&SOFTMAX, &[on(175_680.0, 170_000.0)]), (Freshness::Believed, 1));
        assert_eq!(decided(&[], &[SLOW_ONCE]), (Freshness::Believed, 1), "no series to compare it with");
    }

    fn seen(cold: Option<f64>, hot: Option<f64>) -> BenchObserved {
        let series = |ns: Option<f64>| ns.map(|ns| Series { samples_ns: vec![ns; 5], dropped: 0 });
        BenchObserved { cold: series(cold), hot: series(hot), verified: true, ..BenchObserved::default() }
    }

    /// The verdict where cold times have a floor of 1000 ns and hot times one of 400 ns, and the number of times that the clock was asked.
    fn said(seen: &BenchObserved, clocked: f64) -> (Option<Verdict>, u32) {
        let mut asked = 0;
        let floor = |cold| Floor { ns: if cold { 1000.0 } else { 400.0 }, what: "move the operator's bytes" };
        let clock = |_| {
            asked += 1;
            Ok::<f64, Infallible>(clocked)
        };
        let verdict = below_floor(seen, floor, clock).unwrap_or_else(|never| match never {});
        (verdict, asked)
    }

    fn implausible(told: &str) -> Option<Verdict> {
        let floor = if told.ends_with("cold") { 1000 } else { 400 };
        let message = format!("{told}, but the hardware needs at least {floor} ns to move the operator's bytes");
        Some(Verdict::Unknown(Unknown::Implausible(message)))
    }

    #[test]
    fn a_hot_time_of_the_clock_is_not_held_against_a_cold_series() {
        // A bench with few samples takes one series. The launches are much faster hot.
        assert_eq!(said(&seen(Some(900.0), None), 300.0), (implausible("900 ns cold"), 0));
        // All hot samples were dropped.
        let mut dropped = seen(Some(900.0), None);
        dropped.hot = Some(Series { samples_ns: vec![], dropped: 5 });
        assert_eq!(said(&dropped, 300.0), (implausible("900 ns cold"), 0));
    }

    #[test]
    fn the_clock_is_held_against_the_hot_series() {
        let fails = |hot: u32, clocked: u32| {
            let message = format!("events measure {hot} ns hot, but the worker's clock measures {clocked} ns");
            (Some(Verdict::Fail(message)), 1)
        };
        assert_eq!(said(&seen(None, Some(300.0)), 900.0), fails(300, 900));
        assert_eq!(said(&seen(None, Some(300.0)), 310.0), (implausible("300 ns hot"), 1));
        assert_eq!(said(&seen(Some(900.0), Some(500.0)), 520.0), (implausible("900 ns cold"), 1));
        assert_eq!(said(&seen(Some(900.0), Some(500.0)), 1200.0), fails(500, 1200));
    }

    #[test]
    fn times_at_their_floors_need_no_clock() {
        assert_eq!(said(&seen(Some(1000.0), Some(400.0)), f64::NAN), (None, 0));
        assert_eq!(said(&seen(None, None), f64::NAN), (None, 0));
    }
}
