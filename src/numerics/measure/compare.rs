//! Compares an output with its expectation into an [`OutputObserved`], completely and without policy. Knows values as f64 or i64;
//! does not know where they come from.

use std::ops::Range;

use super::front::Front;
use super::pattern::Places;
use kforge_foundation::base::pieces::{self, PIECE};
use kforge_types::model::{DType, Tolerance};
use kforge_types::record::observation::{Gross, Mismatch};
use kforge_types::record::{CheckObserved, FrontPoint, OutputObserved};

/// The share of the magnitude beyond which an element is far off under any tolerance: see [`Gross`].
pub(super) const GROSS: f64 = 1e-2;
/// Pieces that are compared at once: the indices of their wrong elements are kept until the pieces are joined.
const AT_ONCE: usize = 256;

/// Compares one output, in pieces of ascending index.
pub struct Comparison<'a> {
    seen: OutputObserved,
    front: Front,
    places: Places,
    rms: f64,
    first_gross: Option<Mismatch>,
    beyond: Option<&'a Tolerance>,
}

impl<'a> Comparison<'a> {
    /// For an output of that name, type and shape, whose expectation has the root mean square `rms` (over finite elements). `beyond` is the tolerance beyond
    /// which elements are counted, if the operator declares `matched` below one.
    pub fn new(output: &str, dtype: DType, shape: &[u64], rms: f64, beyond: Option<&'a Tolerance>) -> Self {
        let seen = OutputObserved {
            output: output.into(),
            dtype,
            elements: 0,
            shape: shape.to_vec(),
            front: vec![],
            differing: 0,
            first_differing: None,
            class_differing: 0,
            class_differing_both_nonfinite: 0,
            first_class_differing: None,
            nonfinite: (0, 0),
            histogram: vec![0; 11],
            gross: None,
            diagnosis: None,
            fit: None,
            beyond: beyond.map(|_| 0),
            checked: None,
        };
        Comparison { seen, front: Front::default(), places: Places::new(shape), rms, first_gross: None, beyond }
    }

    /// Compares elements from `start` on: written values, expected values (rounded to the output's type), and the scale if there is one.
    pub fn floats(&mut self, start: u64, got: &[f64], want: &[f64], scale: Option<&[f64]>) {
        let count = got.len().min(want.len());
        let each = |part: &mut Self, range: Range<usize>| {
            range.for_each(|i| part.float(start + i as u64, got[i], want[i], scale.map(|s| s[i])));
        };
        self.share(count, each);
    }

    /// Compares elements of an exactly compared output from `start` on.
    pub fn ints(&mut self, start: u64, got: &[i64], want: &[i64]) {
        self.share(got.len().min(want.len()), |part, range| {
            range.for_each(|i| part.int(start + i as u64, got[i], want[i]));
        });
    }

    /// Applies `each` to `count` elements. Many elements are compared in parallel, each piece into its own part, and the parts are joined in order, so that the
    /// result does not depend on the number of processors. If there are scales and more elements of a binade matter than a front keeps, the ends of the pieces
    /// decide which elements represent the others. The pieces are the same everywhere, and the front's bound on the difference still holds (see there).
    fn share(&mut self, count: usize, each: impl Fn(&mut Self, Range<usize>) + Sync) {
        if count <= PIECE {
            return each(self, 0..count);
        }
        for from in (0..count).step_by(AT_ONCE * PIECE) {
            let parts = pieces::map((count - from).min(AT_ONCE * PIECE), |at, len| {
                let mut part = Comparison::new("", self.seen.dtype, &[], self.rms, self.beyond);
                each(&mut part, from + at..from + at + len);
                part
            });
            parts.into_iter().for_each(|part| self.join(part));
        }
    }

    /// Adds a part's observations of the elements after those compared so far.
    fn join(&mut self, part: Self) {
        let (seen, more) = (&mut self.seen, part.seen);
        seen.elements += more.elements;
        seen.differing += more.differing;
        seen.first_differing = seen.first_differing.take().or(more.first_differing);
        seen.class_differing += more.class_differing;
        seen.class_differing_both_nonfinite += more.class_differing_both_nonfinite;
        seen.first_class_differing = seen.first_class_differing.take().or(more.first_class_differing);
        seen.nonfinite = (seen.nonfinite.0 + more.nonfinite.0, seen.nonfinite.1 + more.nonfinite.1);
        seen.histogram.iter_mut().zip(more.histogram).for_each(|(all, more)| *all += more);
        seen.beyond = seen.beyond.map(|count| count + more.beyond.unwrap_or(0));
        self.first_gross = self.first_gross.take().or(part.first_gross);
        self.places.join(&part.places);
        part.front.finish().into_iter().for_each(|point| self.front.push(point));
    }

    fn int(&mut self, index: u64, got: i64, want: i64) {
        self.seen.elements += 1;
        if got == want {
            self.seen.histogram[0] += 1;
            return;
        }
        self.seen.differing += 1;
        let mismatch = || Mismatch { index, got: got.to_string(), want: want.to_string() };
        self.seen.first_differing.get_or_insert_with(mismatch);
        self.gross(index, mismatch);
        self.seen.histogram[10] += 1;
    }

    /// Takes the result of a function of the package for all `elements` instead of comparing them. `accepts` says whether an element is accepted, and `shown`
    /// returns its written and expected values.
    pub fn checked(
        &mut self,
        checked: CheckObserved,
        elements: u64,
        accepts: impl Fn(u64) -> bool,
        shown: impl Fn(u64) -> (String, String),
    ) {
        self.seen.elements = elements;
        for index in (0..elements).filter(|index| !checked.whole && !accepts(*index)) {
            self.gross(index, || {
                let (got, want) = shown(index);
                Mismatch { index, got, want }
            });
        }
        self.seen.checked = Some(checked);
    }

    fn float(&mut self, index: u64, got: f64, want: f64, scale: Option<f64>) {
        let seen = &mut self.seen;
        seen.elements += 1;
        seen.nonfinite.0 += u64::from(!got.is_finite());
        seen.nonfinite.1 += u64::from(!want.is_finite());
        if !got.is_finite() || !want.is_finite() {
            let same = (got.is_nan() && want.is_nan()) || got == want;
            if !same {
                seen.class_differing += 1;
                seen.class_differing_both_nonfinite += u64::from(!got.is_finite() && !want.is_finite());
                let dtype = seen.dtype;
                let mismatch = || Mismatch { index, got: show(dtype, got), want: show(dtype, want) };
                seen.first_class_differing.get_or_insert_with(mismatch);
                if let Some(count) = &mut seen.beyond {
                    *count += 1;
                }
                seen.histogram[10] += 1;
                self.gross(index, mismatch);
            } else {
                seen.histogram[0] += 1;
            }
            return;
        }
        // JSON cannot hold infinity: an error beyond the largest number becomes that number, and a scale that is not finite allows nothing.
        let error = (got - want).abs().min(f64::MAX);
        let scale = scale.map(|scale| if scale.is_finite() { scale } else { 0.0 });
        seen.histogram[decade(error, want)] += 1;
        if let (Some(count), Some(tolerance)) = (&mut seen.beyond, self.beyond) {
            *count += u64::from(super::judge::excess(tolerance, seen.dtype, error, want, scale) > 1.0);
        }
        if error > 0.0 {
            self.front.push(FrontPoint { index, error, got, want, scale });
            if error > GROSS * (want.abs() + self.rms) {
                let dtype = seen.dtype;
                self.gross(index, || Mismatch { index, got: show(dtype, got), want: show(dtype, want) });
            }
        }
    }

    /// Records the index of a grossly wrong value. Only the first is described.
    fn gross(&mut self, index: u64, mismatch: impl FnOnce() -> Mismatch) {
        self.places.push(index);
        self.first_gross.get_or_insert_with(mismatch);
    }

    /// The completed observation.
    pub fn finish(mut self) -> OutputObserved {
        self.seen.front = self.front.finish();
        self.seen.gross =
            self.first_gross.map(|first| Gross { count: self.places.count(), first, pattern: self.places.explain() });
        self.seen
    }
}

/// The root mean square of the finite values; 0 if there are none.
pub fn rms(values: &[f64]) -> f64 {
    let finite = |at: usize, len: usize| values[at..at + len].iter().filter(|v| v.is_finite());
    let of = |unit: f64| {
        let piece = |at, len| finite(at, len).fold((0.0, 0u64), |(s, n), v| (s + (v / unit) * (v / unit), n + 1));
        let pieces = pieces::map(values.len(), piece).into_iter();
        let (sum, count) = pieces.fold((0.0, 0), |(sum, count), (s, n)| (sum + s, count + n));
        if count == 0 { 0.0 } else { (sum / count as f64).sqrt() * unit }
    };
    let plain = of(1.0);
    // Squares overflow from 1.3e154 on and vanish below 1e-162: such values are taken relative to the largest.
    if (1e-140..1e140).contains(&plain) {
        return plain;
    }
    let largest = finite(0, values.len()).fold(0.0f64, |most, v| most.max(v.abs()));
    if largest > 0.0 { of(largest) } else { plain }
}

/// The decade of a relative error: 0 below 1e-9 (including no error), then one per decade, and 10 from 1 on.
fn decade(error: f64, want: f64) -> usize {
    // Ten comparisons take a third of the time of a logarithm.
    const FROM: [f64; 10] = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
    let relative = error / want.abs().max(f64::MIN_POSITIVE);
    FROM.iter().map(|from| usize::from(relative >= *from)).sum()
}

/// A value of a type in readable form: the fewest digits that read back to it in that type. All digits if the type does not hold the value, for whole numbers,
/// and for types of one byte, whose few values are well known: 65504, 0.25.
pub fn show(dtype: DType, x: f64) -> String {
    let x = shortest(dtype, x);
    if x != 0.0 && (x.abs() < 1e-4 || x.abs() >= 1e7) && x.is_finite() { format!("{x:e}") } else { format!("{x}") }
}

/// The number with the fewest decimal digits that is nearer to `x` than to any other value of the type.
fn shortest(dtype: DType, x: f64) -> f64 {
    let ulp = dtype.ulp(x);
    let known = dtype.bytes() == 1 || x.fract() == 0.0 && x.abs() < 1e7;
    if !x.is_finite() || known || ulp == 0.0 || x % ulp != 0.0 {
        return x;
    }
    // Below a power of two, values are twice as dense.
    let below = if x.to_bits() << 12 == 0 { ulp / 4.0 } else { ulp / 2.0 };
    let near = |text: &f64| if text.abs() < x.abs() { (x - text).abs() < below } else { (x - text).abs() < ulp / 2.0 };
    (0..17).filter_map(|digits| format!("{x:.digits$e}").parse().ok()).find(near).unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(got: &[f64], want: &[f64]) -> OutputObserved {
        let mut c = Comparison::new("y", DType::F32, &[want.len() as u64], rms(want), None);
        c.floats(0, got, want, None);
        c.finish()
    }

    #[test]
    fn equal_outputs_leave_no_trace() {
        let seen = compare(&[1.0, f64::NAN, f64::INFINITY], &[1.0, f64::NAN, f64::INFINITY]);
        assert_eq!(
            (seen.elements, seen.front.len(), seen.class_differing, seen.nonfinite, seen.gross),
            (3, 0, 0, (2, 2), None)
        );
    }

    #[test]
    fn errors_are_counted_by_decades() {
        let of = |errors: &[f64]| errors.iter().map(|error| decade(*error, -2.0)).collect::<Vec<_>>();
        assert_eq!(of(&[0.0, 1e-300, 1.9e-9, 2e-9, 1.9e-8, 2e-8]), [0, 0, 0, 1, 1, 2]);
        assert_eq!(of(&[0.19, 0.2, 1.9, 2.0, 3e300]), [8, 9, 9, 10, 10]);
        assert_eq!((decade(1.0, 0.0), decade(f64::MAX, f64::MIN_POSITIVE)), (10, 10));
    }

    #[test]
    fn classes_are_told_apart() {
        let seen = compare(
            &[f64::NAN, f64::INFINITY, 1.0, f64::NEG_INFINITY],
            &[1.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN],
        );
        assert_eq!((seen.class_differing, seen.class_differing_both_nonfinite), (4, 2));
        assert_eq!(seen.first_class_differing.unwrap(), Mismatch { index: 0, got: "NaN".into(), want: "1".into() });
    }

    #[test]
    fn the_first_plainly_wrong_element_is_named_with_its_pattern() {
        let want = vec![2.0; 100];
        let mut got = want.clone();
        got[90..].fill(0.0);
        let gross = compare(&got, &want).gross.unwrap();
        assert_eq!(
            (gross.count, gross.first.index, gross.pattern.as_deref()),
            (10, 90, Some("the last 10 of 100 elements"))
        );
    }

    #[test]
    fn errors_and_scales_beyond_the_largest_number_can_be_kept_and_read() {
        for scale in [None, Some(f64::INFINITY), Some(f64::NAN)] {
            let mut c = Comparison::new("y", DType::F64, &[1], 0.0, None);
            c.floats(0, &[-1.7e308], &[1.7e308], scale.as_ref().map(std::slice::from_ref));
            let seen = c.finish();
            assert_eq!((seen.front[0].error, seen.front[0].scale), (f64::MAX, scale.map(|_| 0.0)));
            let text = serde_json::to_string(&seen).unwrap();
            assert_eq!(serde_json::from_str::<OutputObserved>(&text).unwrap(), seen);
        }
    }

    #[test]
    fn the_root_mean_square_neither_overflows_nor_vanishes() {
        for unit in [1e300, 1.0, 1e-300, 5e-324] {
            assert_eq!(rms(&[3.0 * unit, -3.0 * unit, f64::NAN, f64::INFINITY]), 3.0 * unit);
        }
        assert_eq!((rms(&[]), rms(&[0.0])), (0.0, 0.0));
        let want = [1e300, 1e300];
        assert_eq!(compare(&[1e300, 0.0], &want).gross.unwrap().first.index, 1);
    }

    #[test]
    fn values_are_shown_with_the_fewest_digits_that_read_back_to_them() {
        let f32s = [-1.175_990_2f32, 0.1, 1.0 / 3.0, 16_777_216.0, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1), 7.0];
        for x in f32s {
            let shown = show(DType::F32, f64::from(x));
            assert_eq!(shown.parse::<f32>().unwrap(), x, "{shown}");
            assert!(shown.len() <= format!("{x:e}").len().max(format!("{x}").len()), "{shown} for {x}");
        }
        assert_eq!(show(DType::F32, -1.1759902238845825), "-1.1759902");
        assert_eq!(show(DType::F16, 0.333_251_953_125), "0.3333");
        assert_eq!(show(DType::Bf16, 3.140_625), "3.14");
        assert_eq!(show(DType::F16, 65504.0), "65504");
        assert_eq!(show(DType::F8e8m0, 0.25), "0.25");
        assert_eq!(show(DType::F64, 0.1 + 0.2), "0.30000000000000004");
        // A value that the type does not hold is shown in full, and NaN and infinities have no short form.
        assert_eq!(show(DType::F16, 0.1), "0.1");
        assert_eq!(show(DType::F32, 1e-9 + 1.0), "1.000000001");
        assert_eq!([f64::NAN, f64::NEG_INFINITY, 0.0, -0.0].map(|x| show(DType::F16, x)), ["NaN", "-inf", "0", "-0"]);
    }

    #[test]
    fn the_first_wrong_element_is_told_in_its_own_type() {
        let mut c = Comparison::new("y", DType::F32, &[1], 1.0, None);
        c.floats(0, &[f64::from(0.1f32)], &[f64::from(0.7f32)], None);
        let first = c.finish().gross.unwrap().first;
        assert_eq!((first.got.as_str(), first.want.as_str()), ("0.1", "0.7"));
    }

    #[test]
    fn what_is_seen_of_many_elements_is_what_each_shows_alone() {
        let count = 3 * PIECE + 7;
        let unit = |i: usize, salt: u64| {
            let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
            (bits.wrapping_mul(0xd134_2543_de82_ef95) >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut want: Vec<f64> = (0..count).map(|i| 8.0 * unit(i, 1) - 4.0).collect();
        let off = |i: usize| if i.is_multiple_of(3) { 0.0 } else { 1e-3 * unit(i, 2) };
        let mut got: Vec<f64> = want.iter().enumerate().map(|(i, x)| x + off(i)).collect();
        got[2 * PIECE + 5] = f64::NAN;
        (want[9], got[9]) = (f64::INFINITY, f64::INFINITY);
        (PIECE - 1..PIECE + 3).for_each(|i| got[i] = 100.0);
        let tolerance = Tolerance { atol: 5e-4, ..Tolerance::default() };
        let new = || Comparison::new("y", DType::F32, &[count as u64], 2.0, Some(&tolerance));
        let (mut alone, mut shared) = (new(), new());
        (0..count).for_each(|i| alone.float(i as u64, got[i], want[i], None));
        shared.floats(0, &got, &want, None);
        let (alone, shared) = (alone.finish(), shared.finish());
        assert_eq!((alone.gross.clone().unwrap().count, alone.class_differing, alone.front.len() > 3), (5, 1, true));
        assert_eq!(shared, alone);

        let of = |values: &[f64]| values.iter().map(|x| *x as i64).collect::<Vec<_>>();
        let (got, want) = (of(&got), of(&want));
        let new = || Comparison::new("i", DType::I32, &[count as u64], 0.0, None);
        let (mut alone, mut shared) = (new(), new());
        (0..count).for_each(|i| alone.int(i as u64, got[i], want[i]));
        shared.ints(0, &got, &want);
        assert_eq!(shared.finish(), alone.finish());
    }

    /// A seeded number from 0 to 1.
    fn unit(i: usize, salt: u64) -> f64 {
        let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
        (bits.wrapping_mul(0xd134_2543_de82_ef95) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// By how much elements exceed a tolerance at most: all elements, or those of a front.
    fn worst(tolerance: &Tolerance, all: impl Iterator<Item = (f64, f64, f64)>) -> f64 {
        let excess =
            |(error, want, scale)| super::super::judge::excess(tolerance, DType::F32, error, want, Some(scale));
        all.map(excess).fold(0.0, f64::max)
    }

    #[test]
    fn what_is_seen_of_many_elements_with_scales_is_the_same_everywhere_and_what_each_shows_alone() {
        let count = 3 * PIECE + 7;
        let in_threads = |threads: usize, f: &(dyn Fn() -> OutputObserved + Sync)| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
        };
        // Errors that grow with the scale, as errors of sums do, and errors that do not.
        for (salt, grows) in [(0, 1.0), (1, 1.0), (2, 0.0), (3, 0.0)] {
            let want: Vec<f64> = (0..count).map(|i| 8.0 * unit(i, salt) - 4.0).collect();
            let scale: Vec<f64> = (0..count).map(|i| (6.0 * unit(i, salt + 9) - 2.0).exp2() + want[i].abs()).collect();
            let error = |i: usize| 1e-3 * scale[i].powf(grows) * unit(i, salt + 17);
            let mut got: Vec<f64> = (0..count).map(|i| want[i] + error(i)).collect();
            got[2 * PIECE + 5] = f64::NAN;
            let beyond = Tolerance { scaled: 4096.0, ..Tolerance::default() };
            let new = || Comparison::new("y", DType::F32, &[count as u64], 2.0, Some(&beyond));
            let shared = || {
                let mut shared = new();
                shared.floats(0, &got, &want, Some(&scale));
                shared.finish()
            };
            let mut alone = new();
            (0..count).for_each(|i| alone.float(i as u64, got[i], want[i], Some(scale[i])));
            let (mut alone, mut shared) = (alone.finish(), {
                let one = in_threads(1, &shared);
                assert_eq!(one, in_threads(3, &shared));
                one
            });
            let (front, _) = (std::mem::take(&mut shared.front), std::mem::take(&mut alone.front));
            assert_eq!(shared, alone);
            assert!(front.len() > 10 && alone.beyond.is_some_and(|count| count > 100), "{alone:?}");
            for (atol, rtol, scaled) in [(0.0, 0.0, 1000.0), (1e-4, 1e-4, 1000.0), (1e-3, 0.0, 0.0), (1e-6, 1e-3, 10.0)]
            {
                let tolerance = Tolerance { atol, rtol, scaled, ..Tolerance::default() };
                let finite = (0..count).filter(|i| got[*i].is_finite());
                let all = worst(&tolerance, finite.map(|i| ((got[i] - want[i]).abs(), want[i], scale[i])));
                let kept = worst(&tolerance, front.iter().map(|p| (p.error, p.want, p.scale.unwrap())));
                assert!(kept >= all && kept <= 1.02 * all, "{kept} {all}");
            }
        }
    }

    #[test]
    fn where_more_elements_with_scales_matter_than_are_kept_no_tolerance_looks_looser() {
        // Error, value and scale rise together: no element dominates another, and all are in one binade.
        let count = 3 * PIECE + 7;
        let of = |from: f64, by: f64| (0..count).map(|i| from + by * i as f64 / count as f64).collect::<Vec<f64>>();
        let (want, scale, error) = (of(1.0, 0.99), of(1.0, 3.0), of(1e-4, 1e-3));
        let got: Vec<f64> = want.iter().zip(&error).map(|(want, error)| want + error).collect();
        let mut shared = Comparison::new("y", DType::F32, &[count as u64], 1.5, None);
        shared.floats(0, &got, &want, Some(&scale));
        let front = shared.finish().front;
        for (rtol, scaled) in [(0.0, 1000.0), (1e-4, 1000.0), (1e-3, 10.0), (1e-4, 0.0)] {
            let tolerance = Tolerance { rtol, scaled, ..Tolerance::default() };
            let each = (0..count).map(|i| ((got[i] - want[i]).abs(), want[i], scale[i]));
            let alone = worst(&tolerance, each);
            let kept = worst(&tolerance, front.iter().map(|p| (p.error, p.want, p.scale.unwrap())));
            assert!(kept >= alone && kept <= 1.02 * alone, "{kept} {alone}");
        }
    }

    #[test]
    fn integers_are_exact() {
        let mut c = Comparison::new("i", DType::I32, &[3], 0.0, None);
        c.ints(0, &[1, 2, 3], &[1, 5, 3]);
        let seen = c.finish();
        assert_eq!((seen.differing, seen.first_differing.unwrap().index), (1, 1));
    }

    #[test]
    fn elements_beyond_a_tolerance_are_counted_where_asked() {
        let tolerance = Tolerance { atol: 0.1, ..Tolerance::default() };
        let mut c = Comparison::new("y", DType::F32, &[3], 1.0, Some(&tolerance));
        c.floats(0, &[1.0, 1.05, 1.2], &[1.0, 1.0, 1.0], None);
        assert_eq!(c.finish().beyond, Some(1));
    }
}
