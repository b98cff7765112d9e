//! The front of worst errors: the few elements that decide every tolerance. Knows numbers; does not know tolerances.
//!
//! An element fails when `error > atol + rtol*|want| + ulp*ulp(want) + scaled*eps*S`. Which elements can be the ones that fail first?
//!
//! * Another element with at least the same error and at most the same `|want|` (and `S`) fails whenever this element does, since `ulp` never falls as
//!   `|want|` grows. This element is dominated and dropped.
//! * Within one binade of `|want|`, the ulp term is constant and the rest is linear in `|want|`, so only corners of the upper convex hull of (|want|, error)
//!   can be the worst. The arithmetic that decides which points are corners neither overflows nor vanishes, from 5e-324 to 1.8e308. The hull bounds the front
//!   if the error grows with the value (a wrong factor), where no element is dominated.
//!
//! With a scale `S`, the hull would have one more dimension, so only dominated elements are dropped. If more than [`CAP`] remain in a binade, those whose
//! `|want|` and `S` agree within a sixty-fourth are merged into the strictest of them. A merge can only make a tolerance look tighter, by 1.6 %.

use std::collections::BTreeMap;

use kforge_types::record::FrontPoint;

/// The number of points with scales in one binade beyond which the binade is thinned.
const CAP: usize = 256;
/// The same limit without scales. A hull leaves few points, and the sooner it is known, the more new points are dropped at once: of
/// 32, 64 and 256, 64 was fastest.
const FIRST: usize = 64;

/// Points of one binade, thinned whenever their number has doubled, so that adding a point costs little on average.
struct Binade {
    points: Vec<FrontPoint>,
    /// How many points without scales the last thinning left. They come first and rise strictly in |want| and in error.
    thinned: usize,
    limit: usize,
}

impl Default for Binade {
    fn default() -> Self {
        Binade { points: vec![], thinned: 0, limit: FIRST }
    }
}

impl Binade {
    /// Adds a point, unless a point that the last thinning left dominates it, or it is below the line between two of them. This drops
    /// most points without sorting.
    fn push(&mut self, point: FrontPoint) {
        if point.scale.is_none() {
            let left = &self.points[..self.thinned];
            let (before, behind) = left.split_at(left.partition_point(|p| p.want.abs() <= point.want.abs()));
            if let Some(before) = before.last()
                && (before.error >= point.error
                    || behind.first().is_some_and(|next| next.error > point.error && below(before, &point, next)))
            {
                return;
            }
        }
        let limit = if point.scale.is_some() { self.limit.max(CAP) } else { self.limit };
        self.points.push(point);
        if self.points.len() > limit {
            thin(&mut self.points);
            self.thinned = if self.points.iter().any(|p| p.scale.is_some()) { 0 } else { self.points.len() };
            self.limit = FIRST.max(2 * self.points.len());
        }
    }
}

/// Collects elements and keeps those that matter.
#[derive(Default)]
pub struct Front {
    /// By exponent of |want|; `i32::MIN` for zero.
    binades: BTreeMap<i32, Binade>,
    /// The error and `|want|` of an element that no later one dominated: new points are first tested against it.
    quick: Option<(f64, f64)>,
}

/// The exponent of a binade: `floor(log2(|x|))`, subnormals included; `i32::MIN` for zero.
fn binade(x: f64) -> i32 {
    let bits = x.to_bits() & 0x7fff_ffff_ffff_ffff;
    match (bits >> 52) as i32 {
        0 if bits == 0 => i32::MIN,
        // A subnormal's exponent is that of its highest set bit.
        0 => -1074 + (63 - bits.leading_zeros() as i32),
        e => e - 1023,
    }
}

impl Front {
    /// Takes one element with finite values. Elements without error never matter.
    pub fn push(&mut self, point: FrontPoint) {
        if point.error <= 0.0 {
            return;
        }
        let magnitude = point.want.abs();
        if point.scale.is_none() {
            if let Some((error, want)) = self.quick
                && error >= point.error
                && want <= magnitude
            {
                return;
            }
            if self.quick.is_none_or(|(error, want)| point.error >= error && magnitude <= want) {
                self.quick = Some((point.error, magnitude));
            }
        }
        self.binades.entry(binade(magnitude)).or_default().push(point);
    }

    /// The points that matter, by descending error.
    pub fn finish(mut self) -> Vec<FrontPoint> {
        let mut all: Vec<FrontPoint> = Vec::new();
        for Binade { points, .. } in self.binades.values_mut() {
            thin(points);
            all.append(points);
        }
        let mut kept = undominated(all);
        kept.sort_by(|a, b| b.error.total_cmp(&a.error).then(a.index.cmp(&b.index)));
        kept
    }
}

/// Drops dominated points, then those that the hull or the merge removes.
fn thin(points: &mut Vec<FrontPoint>) {
    let kept = undominated(std::mem::take(points));
    *points = if kept.first().is_some_and(|p| p.scale.is_some()) { merge(kept) } else { hull(kept) };
}

/// Points that no other point dominates, by one sweep over ascending |want|. With scales, the sweep carries a staircase from each scale to the largest error of
/// any point so far with at most that scale; both rise.
fn undominated(mut points: Vec<FrontPoint>) -> Vec<FrontPoint> {
    points.sort_by(|a, b| {
        let scale = |p: &FrontPoint| p.scale.unwrap_or(0.0);
        let want = a.want.abs().total_cmp(&b.want.abs());
        want.then(scale(a).total_cmp(&scale(b))).then(b.error.total_cmp(&a.error)).then(a.index.cmp(&b.index))
    });
    let mut kept: Vec<FrontPoint> = Vec::new();
    // The bits of nonnegative floats have the same order as the floats.
    let mut stairs: BTreeMap<u64, f64> = BTreeMap::new();
    for point in points {
        let scale = point.scale.unwrap_or(0.0).abs().to_bits();
        if stairs.range(..=scale).next_back().is_some_and(|(_, error)| *error >= point.error) {
            continue;
        }
        let covered: Vec<u64> =
            stairs.range(scale..).take_while(|(_, error)| **error <= point.error).map(|(s, _)| *s).collect();
        for scale in covered {
            stairs.remove(&scale);
        }
        stairs.insert(scale, point.error);
        kept.push(point);
    }
    kept
}

/// Corners of the upper hull of points of one binade, sorted by |want| with rising error.
fn hull(points: Vec<FrontPoint>) -> Vec<FrontPoint> {
    let mut kept: Vec<FrontPoint> = Vec::new();
    for point in points {
        while let [.., a, b] = kept[..] {
            if !below(&a, &b, &point) {
                break;
            }
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

/// Whether `b` is on or below the line from `a` to `p`, so that it is never the worst of them. All are in one binade, in which |want| and error rise strictly.
///
/// Errors may be as large or as small as floats can be, so that their products could overflow or vanish. These products cannot: the bits of floats of one
/// binade are as far apart as the floats, which gives distances along |want| as integers below 2^52, and errors are taken relative to the binade of the
/// largest. Products and differences keep their rounding errors, because points dropped for a rounding error would add up over many points.
fn below(a: &FrontPoint, b: &FrontPoint, p: &FrontPoint) -> bool {
    let along = |q: &FrontPoint| (q.want.abs().to_bits() - a.want.abs().to_bits()) as f64;
    let unit = -binade(p.error);
    let [ea, eb, ep] = [a, b, p].map(|q| libm::scalbn(q.error, unit));
    let (left, right) = (product(difference(eb, ea), along(p)), product(difference(ep, ea), along(b)));
    left.0 < right.0 || (left.0 == right.0 && left.1 <= right.1)
}

/// `x - y` for `x >= y >= 0`, and its rounding error (Dekker's two-sum, exact because `x` is the larger).
fn difference(x: f64, y: f64) -> (f64, f64) {
    let rounded = x - y;
    (rounded, (x - rounded) - y)
}

/// A number with its remainder, times another number, as a normalized number with its rounding error.
fn product((high, low): (f64, f64), by: f64) -> (f64, f64) {
    let rounded = high * by;
    let rest = high.mul_add(by, -rounded) + low * by;
    let sum = rounded + rest;
    (sum, (rounded - sum) + rest)
}

/// Merges points whose |want| and scale agree within a sixty-fourth, if there are too many.
fn merge(points: Vec<FrontPoint>) -> Vec<FrontPoint> {
    if points.len() <= CAP / 2 {
        return points;
    }
    let cell = |x: f64| (x.log2() * 44.4).floor() as i64;
    let mut cells: BTreeMap<(i64, i64), FrontPoint> = BTreeMap::new();
    for point in points {
        let scale = point.scale.unwrap_or(0.0);
        let into = cells.entry((cell(point.want.abs()), cell(scale))).or_insert(point);
        // The point that stays is allowed the smaller of the two allowances.
        let (want, scale) = (into.want.abs().min(point.want.abs()), into.scale.unwrap_or(0.0).min(scale));
        let stays = if point.error > into.error { point } else { *into };
        *into = FrontPoint { want: want.copysign(stays.want), scale: Some(scale), ..stays };
    }
    cells.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::judge::allowance;
    use kforge_types::model::{DType, Tolerance};
    use proptest::prelude::*;

    fn point(index: u64, error: f64, want: f64) -> FrontPoint {
        FrontPoint { index, error, got: want + error, want, scale: None }
    }

    fn front(points: &[FrontPoint]) -> Vec<FrontPoint> {
        let mut front = Front::default();
        points.iter().for_each(|p| front.push(*p));
        front.finish()
    }

    proptest! {
        #[test]
        fn the_front_decides_every_tolerance(
            points in prop::collection::vec((0.0f64..4.0, -1000.0f64..1000.0), 1..600), atol in 0.0f64..2.0, rtol in 0.0f64..0.1, ulps in 0.0f64..4.0
        ) {
            let all: Vec<_> = points.iter().enumerate().map(|(i, (e, w))| point(i as u64, *e, *w)).collect();
            let ulp = |w: f64| if w == 0.0 { 0.0 } else { f64::powi(2.0, binade(w) - 10) };
            let fails = |p: &FrontPoint| p.error > atol + rtol * p.want.abs() + ulps * ulp(p.want) + 1e-12;
            let loosely = |p: &FrontPoint| p.error > atol + rtol * p.want.abs() + ulps * ulp(p.want) - 1e-12;
            let kept = front(&all);
            prop_assert!(!all.iter().any(fails) || kept.iter().any(loosely));
            prop_assert!(kept.iter().all(|k| all.contains(k)));
        }
    }

    #[test]
    fn what_is_dropped_on_arrival_changes_no_front() {
        let mut bits = 1u64;
        let mut unit = || {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (bits >> 11) as f64 / (1u64 << 53) as f64
        };
        // Errors that do not depend on the value; errors that grow with it (many stay); and a wrong factor in f32, whose errors are close to a line.
        let errors: [fn(f64, f64) -> f64; 3] = [
            |_, noise| noise,
            |want, noise| want * want * (1.0 + 1e-3 * noise),
            |want, _| f64::from((want * 1.001) as f32) - want,
        ];
        for (kind, error) in errors.into_iter().enumerate() {
            let element = |i| {
                let (want, noise) = (f64::from((1.0 + unit()) as f32), unit());
                point(i, error(want, noise), want)
            };
            let all: Vec<FrontPoint> = (0..5000).map(element).collect();
            let at_once = hull(undominated(all.clone()));
            let mut kept = front(&all);
            kept.reverse();
            assert_eq!(kept, at_once, "{kind}");
        }
    }

    /// Magnitudes from the least positive float to the largest, zero, and neighbors of each other.
    fn magnitude() -> impl Strategy<Value = f64> {
        prop_oneof![
            2 => Just(0.0),
            2 => (1u64..1 << 54).prop_map(f64::from_bits),
            2 => (f64::MAX.to_bits() - (1 << 54)..=f64::MAX.to_bits()).prop_map(f64::from_bits),
            // Within a few binades, as a tensor's values are.
            6 => (-3i32..3, 1.0f64..2.0, prop::sample::select(vec![-1070, -300, 0, 40, 1017]))
                .prop_map(|(e, x, base)| libm::scalbn(x, e + base)),
            4 => (0u64..f64::MAX.to_bits()).prop_map(f64::from_bits),
            2 => (0u64..64).prop_map(|i| f64::from_bits(1.5f64.to_bits() + i)),
        ]
    }

    proptest! {
        #[test]
        #[ignore = "second tier: every magnitude"]
        fn fronts_decide_as_the_elements_do_at_any_magnitude(
            points in prop::collection::vec((magnitude(), magnitude(), any::<bool>()), 1..300),
            terms in (magnitude(), magnitude(), 0usize..300, 0usize..300, 0u8..4), ulp in prop_oneof![Just(0.0), 0.0f64..8.0]
        ) {
            let all: Vec<_> = points
                .iter()
                .enumerate()
                .map(|(i, (e, w, minus))| {
                    let want = if *minus { -w } else { *w };
                    FrontPoint { index: i as u64, error: *e, got: want, want, scale: None }
                })
                .collect();
            // Any two terms, or terms that are exact at one element, or on the line through two.
            let (p, q) = (&all[terms.2 % all.len()], &all[terms.3 % all.len()]);
            let slope = ((p.error - q.error) / (p.want.abs() - q.want.abs())).abs();
            let slope = if slope.is_finite() { slope } else { 1.0 };
            let (atol, rtol) = match terms.4 {
                0 => (terms.0, terms.1),
                1 => (p.error, 0.0),
                2 => (0.0, Some(p.error / p.want.abs()).filter(|r| r.is_finite()).unwrap_or(0.0)),
                _ => ((p.error - slope * p.want.abs()).max(0.0), slope),
            };
            let tolerance = Tolerance { atol, rtol, ulp, ..Tolerance::default() };
            let kept = front(&all);
            prop_assert!(kept.iter().all(|k| all.contains(k)));
            // Beyond the rounding of the allowance itself, a few parts in 2^53, the front must not miss what fails, and must not contain points
            // that are not elements.
            let fails = |p: &FrontPoint, slack: f64| p.error * slack > allowance(&tolerance, DType::F64, p.want, None);
            let first = all.iter().find(|p| fails(p, 1.0 - 1e-14));
            prop_assert!(first.is_none() || kept.iter().any(|p| fails(p, 1.0)), "{first:?} of {kept:?}");
        }
    }

    #[test]
    fn a_corner_survives_where_products_would_overflow_or_vanish() {
        for unit in [1016, 0, -1060] {
            let at = |index, error: f64, want: f64| point(index, libm::scalbn(error, unit), libm::scalbn(want, unit));
            let corner = [at(0, 1.0, 64.0), at(1, 3.0, 65.0), at(2, 4.0, 100.0)];
            assert_eq!(front(&corner).iter().map(|p| p.index).collect::<Vec<_>>(), [2, 1, 0], "2^{unit}");
            let dent = [at(0, 1.0, 64.0), at(1, 1.5, 99.0), at(2, 4.0, 100.0)];
            assert_eq!(front(&dent).iter().map(|p| p.index).collect::<Vec<_>>(), [2, 0], "2^{unit}");
        }
    }

    #[test]
    fn a_wrong_factor_leaves_a_small_front() {
        let all: Vec<_> = (1..100_000u64).map(|i| point(i, i as f64 * 0.01, i as f64)).collect();
        // 17 binades, each with a few corners from rounding errors.
        assert!(front(&all).len() < 128, "{}", front(&all).len());
    }

    #[test]
    fn equal_elements_leave_nothing() {
        assert!(front(&[point(0, 0.0, 1.0)]).is_empty());
    }

    #[test]
    fn binades_of_subnormals_and_zero_are_their_own() {
        assert_eq!((binade(0.0), binade(1.0), binade(-1.9), binade(f64::MIN_POSITIVE / 2.0)), (i32::MIN, 0, 0, -1023));
    }

    #[test]
    fn scales_that_rise_with_errors_do_not_slow_it_down() {
        let mut front = Front::default();
        for i in 0..200_000u64 {
            let x = (i * 7919 % 200_003) as f64 / 200_003.0;
            front.push(FrontPoint { scale: Some(1.0 + x), ..point(i, x * 1e-6 + 1e-9, 1.0 + x) });
        }
        // Within one binade, the merge leaves one point for each sixty-fourth of |want| and scale.
        assert!(front.finish().len() < 4 * CAP);
    }

    #[test]
    fn a_point_with_a_smaller_scale_survives() {
        let a = FrontPoint { scale: Some(10.0), ..point(0, 1.0, 5.0) };
        let b = FrontPoint { scale: Some(1.0), ..point(1, 0.5, 5.0) };
        let c = FrontPoint { scale: Some(20.0), ..point(2, 0.5, 6.0) };
        assert_eq!(front(&[a, b, c]).iter().map(|p| p.index).collect::<Vec<_>>(), [0, 1]);
    }
}
