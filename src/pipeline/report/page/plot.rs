//! Marks on an axis: dots with intervals, strips of quantiles, ticks. Knows axes and SVG; does not know what the numbers mean.
//!
//! A plot that stands in a row of a table is as wide as its cell. Its places are given in per cent, so it is never scaled, and neither are its marks or texts.

use super::html::Html;
use super::units::{digits, place};

/// The share of a plot's width that stays free on each side, so that marks at the ends are whole.
const MARGIN: f64 = 0.02;

/// A scale of values along a plot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

/// The forms of a dot. They differ without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dot {
    /// A filled circle.
    Filled,
    /// A circle without filling.
    Hollow,
    /// A square on its corner.
    Diamond,
}

impl Axis {
    /// A logarithmic axis that holds these positive values and `also`; none without a value.
    pub(crate) fn logarithmic(values: impl IntoIterator<Item = f64>, also: f64) -> Self {
        let sound = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = sound.fold((also, also), |(low, high), v| (low.min(v), high.max(v)));
        // Values that hardly differ are not spread over the whole plot.
        let (low, high) = (low.min(also / 1.02), high.max(also * 1.02));
        Axis { low: low.ln(), high: high.ln(), logarithmic: true }
    }

    /// A linear axis that holds these values and `also`.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, also: f64) -> Self {
        let sound = values.into_iter().filter(|v| v.is_finite());
        let (low, high) = sound.fold((also, also), |(low, high), v| (low.min(v), high.max(v)));
        let high = if high > low { high } else { low + low.abs().max(1.0) * 0.01 };
        Axis { low, high, logarithmic: false }
    }

    /// The share of the plot's width at which a value lies.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        MARGIN + (1.0 - 2.0 * MARGIN) * ((value - self.low) / (self.high - self.low))
    }

    /// Round values on the axis, at most about five.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.logarithmic {
            true => logarithmic_ticks(self.low.exp(), self.high.exp()),
            false => linear_ticks(self.low, self.high),
        }
    }
}

/// Ticks in some unit with their texts, in as few significant digits as show each of them, at least two: so no two are alike.
pub(crate) fn labelled(ticks: &[f64], per: f64) -> Vec<(f64, String)> {
    let shows = |value: f64, text: &str| text.parse().is_ok_and(|told: f64| (told - value).abs() <= 1e-6 * value.abs());
    let fits = |significant: &i32| ticks.iter().all(|tick| shows(tick / per, &digits(tick / per, *significant)));
    let significant = (2..6).find(fits).unwrap_or(6);
    ticks.iter().map(|tick| (*tick, digits(tick / per, significant))).collect()
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

fn logarithmic_ticks(low: f64, high: f64) -> Vec<f64> {
    if high / low < 4.0 {
        return linear_ticks(low, high);
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = || first..=last;
    let within = |v: &f64| *v >= low * 0.999 && *v <= high * 1.001;
    let fine = decades().flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(d))).filter(within);
    let fine: Vec<f64> = fine.collect();
    if fine.len() <= 7 {
        return fine;
    }
    let every = (last - first) / 5 + 1;
    decades().filter(|d| d % every == 0).map(|d| 10f64.powi(d)).filter(within).collect()
}

/// The style of a table whose plots have a line at a value: `--z:50%`.
pub(crate) fn line_at(axis: &Axis, value: f64) -> String {
    format!("--z:{}", place(axis.share(value)))
}

/// A dot with its interval, in a row of a table.
pub(crate) fn interval(h: &mut Html, axis: &Axis, value: f64, ends: Option<(f64, f64)>, dot: Dot) {
    h.open("svg", &[("class", &"f")], |h| {
        if let Some((low, high)) = ends {
            bar(h, axis, "w", low, high);
        }
        mark(h, axis.share(value), dot);
    });
}

/// A bar from one value to another. The style gives its height.
fn bar(h: &mut Html, axis: &Axis, class: &'static str, low: f64, high: f64) {
    let (low, high) = (axis.share(low), axis.share(high));
    h.empty("rect", &[("class", &class), ("x", &place(low)), ("width", &place((high - low).max(0.001)))]);
}

/// A dot in the middle of a row. The style gives its height and radius.
fn mark(h: &mut Html, at: f64, dot: Dot) {
    let x = place(at);
    match dot {
        Dot::Filled => h.empty("circle", &[("cx", &x)]),
        Dot::Hollow => h.empty("circle", &[("class", &"o"), ("cx", &x)]),
        // A nested drawing moves the form to a place in per cent.
        Dot::Diamond => h.open("svg", &[("x", &x), ("y", &"50%")], |h| {
            h.empty("path", &[("d", &"M0-5 5 0 0 5-5 0z")]);
        }),
    }
}

/// Several dots of one row.
pub(crate) fn dots(h: &mut Html, axis: &Axis, values: &[(f64, Dot)]) {
    h.open("svg", &[("class", &"f")], |h| {
        for (value, dot) in values {
            mark(h, axis.share(*value), *dot);
        }
    });
}

/// A strip of quantiles in a row: the range from the 5th to the 95th per cent, the middle half, and the median.
pub(crate) fn strip(h: &mut Html, axis: &Axis, [low, quarter, median, three, high]: [f64; 5]) {
    h.open("svg", &[("class", &"f")], |h| {
        bar(h, axis, "q", low, high);
        bar(h, axis, "h", quarter, three);
        h.empty("rect", &[("class", &"m"), ("x", &place(axis.share(median)))]);
    });
}

/// The axis itself, for the head of the column: ticks with their values in some unit, followed by what `unit` adds to each.
pub(crate) fn axis(h: &mut Html, axis: &Axis, per: f64, unit: &str) {
    h.open("svg", &[("class", &"f x"), ("aria-hidden", &"true")], |h| {
        for (tick, text) in labelled(&axis.ticks(), per) {
            let at = axis.share(tick);
            let anchor = if at < 0.1 {
                "start"
            } else if at > 0.9 {
                "end"
            } else {
                "middle"
            };
            h.leaf("text", &[("x", &place(at)), ("y", &11), ("text-anchor", &anchor)], format!("{text}{unit}"));
            let x = place(at);
            h.empty("line", &[("x1", &x), ("x2", &x), ("y1", &14), ("y2", &18)]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_on_an_axis_in_proportion() {
        let axis = Axis::logarithmic([0.5, 2.0], 1.0);
        assert!((axis.share(1.0) - 0.5).abs() < 1e-12 && (axis.share(0.5) - MARGIN).abs() < 1e-12);
        let axis = Axis::linear([-0.1, 0.3], 0.0);
        assert!((axis.share(0.1) - 0.5).abs() < 1e-12 && (axis.share(0.3) - (1.0 - MARGIN)).abs() < 1e-12);
        let narrow = Axis::logarithmic([1.0], 1.0);
        assert!((narrow.share(1.0) - 0.5).abs() < 1e-12, "{narrow:?}");
        for axis in
            [Axis::linear([], 0.0), Axis::linear([f64::NAN], 5.0), Axis::logarithmic([-1.0, f64::INFINITY], 1.0)]
        {
            assert!(axis.share(1.0).is_finite(), "{axis:?}");
        }
    }

    #[test]
    fn texts_of_ticks_differ() {
        let shown = |axis: Axis, per: f64| -> Vec<String> {
            labelled(&axis.ticks(), per).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(shown(Axis::logarithmic([1.03], 1.0), 1.0), ["1.00", "1.02"]);
        assert_eq!(shown(Axis::linear([-0.004, 0.018], 0.0), 0.01), ["0", "1.0"]);
        assert_eq!(shown(Axis::linear([7_963.0, 7_971.0], 7_965.0), 1e3), ["7.964", "7.966", "7.968", "7.970"]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |ticks: Vec<f64>| ticks.iter().map(|tick| format!("{tick:.3}")).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(linear_ticks(-0.05, 0.31)), "0.000 0.100 0.200 0.300");
        assert_eq!(shown(logarithmic_ticks(0.9, 12.0)), "1.000 2.000 5.000 10.000");
        let wide = logarithmic_ticks(1e-6, 1e6);
        assert!((3..=7).contains(&wide.len()), "{wide:?}");
        assert!((3..=7).contains(&logarithmic_ticks(0.98, 1.02).len()));
    }
}
