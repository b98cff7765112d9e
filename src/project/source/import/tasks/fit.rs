//! Expressions for integers that are known at several sizes: `N`, `2 * N + 1`, `A // B`, and the extents of convolutions and pooling. An expression is taken
//! only if it gives the integer at every size. Knows numbers; does not know what they mean.

use std::collections::BTreeSet;

/// A size by which integers are explained: its name, and its value in each run. The first run is the task's own.
#[derive(Debug, Clone)]
pub(super) struct Dim {
    pub(super) name: String,
    /// Wide, so that no expression of sizes overflows.
    pub(super) values: Vec<i128>,
}

/// The largest kernel, stride and padding that are tried as literals.
const LITERAL_KERNEL: i128 = 11;
const LITERAL_STRIDE: i128 = 3;
const LITERAL_PADDING: i128 = 5;
/// The largest divisor of one dim.
const DIVISOR: i128 = 64;

/// The expression of an integer in terms of dims; a number if it never changes. None if there is none.
pub(super) fn fit(wanted: &[i128], dims: &[Dim]) -> Option<String> {
    let base = *wanted.first()?;
    if wanted.iter().all(|value| *value == base) {
        return Some(base.to_string());
    }
    let relevant: Vec<&Dim> = dims.iter().filter(|dim| moves(wanted, dim, dims)).collect();
    match &relevant[..] {
        [] => None,
        [one] if one.values == wanted => Some(one.name.clone()),
        // Two values fit too many expressions: those of an axis, for example. The extent of a window has so many parts that they do.
        some if some.iter().any(|dim| distinct(dim) < 3) => (some.len() > 2).then(|| windows(wanted, some)).flatten(),
        [one] => of_one(wanted, one),
        several => linear(wanted, several, dims)
            .or_else(|| product(wanted, several))
            .or_else(|| quotient(wanted, several))
            .or_else(|| windows(wanted, several)),
    }
}

/// Whether the integer differs in some run that differs from the first only in this dim.
fn moves(wanted: &[i128], dim: &Dim, dims: &[Dim]) -> bool {
    alone(dim, dims).any(|run| wanted[run] != wanted[0])
}

/// The runs in which only this dim differs from the first.
fn alone<'d>(dim: &'d Dim, dims: &'d [Dim]) -> impl Iterator<Item = usize> + 'd {
    let differs = |dim: &Dim, run: usize| dim.values[run] != dim.values[0];
    let only = move |run: &usize| {
        differs(dim, *run) && dims.iter().all(|other| other.name == dim.name || !differs(other, *run))
    };
    (1..dim.values.len()).filter(only)
}

/// Whether an expression gives every value.
fn holds(wanted: &[i128], value: impl Fn(usize) -> Option<i128>) -> bool {
    wanted.iter().enumerate().all(|(run, want)| value(run) == Some(*want))
}

/// How many values a dim has.
fn distinct(dim: &Dim) -> usize {
    dim.values.iter().collect::<BTreeSet<_>>().len()
}

fn of_one(wanted: &[i128], dim: &Dim) -> Option<String> {
    let (name, a) = (&dim.name, &dim.values);
    let other = a.iter().position(|value| *value != a[0])?;
    let (rise, run) = (wanted[other] - wanted[0], a[other] - a[0]);
    if rise % run == 0 && rise != 0 {
        let (factor, rest) = (rise / run, wanted[0] - rise / run * a[0]);
        if holds(wanted, |at| Some(factor * a[at] + rest)) {
            return Some(sum(&times(factor, name), rest));
        }
    }
    (2..=DIVISOR).find_map(|by| {
        // Every `a + rest` whose quotient is the first value.
        let mut rests: Vec<i128> = (0..by).map(|part| wanted[0] * by + part - a[0]).collect();
        rests.sort_by_key(|rest| rest.abs());
        let rest = rests.into_iter().find(|rest| holds(wanted, |at| Some((a[at] + rest).div_euclid(by))))?;
        Some(match rest {
            0 => format!("{name} // {by}"),
            _ => format!("({}) // {by}", sum(name, rest)),
        })
    })
}

fn times(factor: i128, name: &str) -> String {
    match factor {
        1 => name.to_string(),
        -1 => format!("-{name}"),
        _ => format!("{factor} * {name}"),
    }
}

fn sum(text: &str, rest: i128) -> String {
    match rest {
        0 => text.to_string(),
        _ if rest > 0 => format!("{text} + {rest}"),
        _ => format!("{text} - {}", rest.unsigned_abs()),
    }
}

fn linear(wanted: &[i128], relevant: &[&Dim], dims: &[Dim]) -> Option<String> {
    let mut factors = vec![];
    for dim in relevant {
        let run = alone(dim, dims).find(|run| wanted[*run] != wanted[0])?;
        let (rise, by) = (wanted[run] - wanted[0], dim.values[run] - dim.values[0]);
        factors.push((rise % by == 0).then_some(rise / by)?);
    }
    let value = |run: usize| factors.iter().zip(relevant).map(|(factor, dim)| factor * dim.values[run]).sum::<i128>();
    let rest = wanted[0] - value(0);
    if !holds(wanted, |run| Some(value(run) + rest)) {
        return None;
    }
    // Positive parts first: an expression may begin with a minus, but reads better without.
    let mut parts: Vec<(i128, &str)> = factors.into_iter().zip(relevant.iter().map(|dim| dim.name.as_str())).collect();
    parts.sort_by_key(|(factor, _)| *factor < 0);
    let mut text = String::new();
    for (factor, name) in parts {
        match (text.is_empty(), factor < 0) {
            (true, _) => text = times(factor, name),
            (false, false) => text = format!("{text} + {}", times(factor, name)),
            (false, true) => text = format!("{text} - {}", times(-factor, name)),
        }
    }
    Some(sum(&text, rest))
}

fn product(wanted: &[i128], relevant: &[&Dim]) -> Option<String> {
    let value = |run: usize| relevant.iter().try_fold(1i128, |all, dim| all.checked_mul(dim.values[run]));
    let first = value(0).filter(|value| *value != 0)?;
    let factor = (wanted[0] % first == 0).then_some(wanted[0] / first)?;
    holds(wanted, |run| value(run)?.checked_mul(factor)).then(|| {
        let names = relevant.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(" * ");
        times(factor, &names)
    })
}

fn quotient(wanted: &[i128], relevant: &[&Dim]) -> Option<String> {
    let [a, b] = relevant else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(over, under)| {
        let value = |run: usize| (under.values[run] != 0).then(|| over.values[run].div_euclid(under.values[run]));
        holds(wanted, value).then(|| format!("{} // {}", over.name, under.name))
    })
}

/// A part of the extent of a window: a dim, or a literal.
#[derive(Debug, Clone, Copy)]
enum Part<'d> {
    Dim(&'d Dim),
    Literal(i128),
}

impl Part<'_> {
    fn at(&self, run: usize) -> i128 {
        match self {
            Part::Dim(dim) => dim.values[run],
            Part::Literal(value) => *value,
        }
    }

    fn text(&self) -> String {
        match self {
            Part::Dim(dim) => dim.name.clone(),
            Part::Literal(value) => value.to_string(),
        }
    }

    fn is(&self, value: i128) -> bool {
        matches!(self, Part::Literal(own) if *own == value)
    }
}

/// The parts of a window's extent.
#[derive(Debug, Clone, Copy)]
struct Window<'d> {
    extent: Part<'d>,
    kernel: Part<'d>,
    stride: Part<'d>,
    padding: Part<'d>,
    dilation: Part<'d>,
    /// `output_padding` of a transposed one.
    extra: Part<'d>,
    transposed: bool,
}

impl Window<'_> {
    fn at(&self, run: usize) -> Option<i128> {
        let [n, k, s, p, d, extra] =
            [&self.extent, &self.kernel, &self.stride, &self.padding, &self.dilation, &self.extra]
                .map(|part| part.at(run));
        if self.transposed {
            return Some((n - 1) * s - 2 * p + d * (k - 1) + extra + 1);
        }
        (s > 0).then(|| (n + 2 * p - d * (k - 1) - 1).div_euclid(s) + 1)
    }

    fn text(&self) -> String {
        let padding = |sign: &str| match self.padding {
            Part::Literal(0) => String::new(),
            Part::Literal(value) => format!(" {sign} {}", 2 * value),
            Part::Dim(dim) => format!(" {sign} 2 * {}", dim.name),
        };
        let reach = match (self.dilation.is(1), self.kernel) {
            (true, Part::Literal(k)) => (k - 1).to_string(),
            (true, Part::Dim(k)) => format!("({} - 1)", k.name),
            (false, Part::Literal(k)) => format!("{} * {}", self.dilation.text(), k - 1),
            (false, Part::Dim(k)) => format!("{} * ({} - 1)", self.dilation.text(), k.name),
        };
        if self.transposed {
            let strided = match self.stride.is(1) {
                true => format!("{} - 1", self.extent.text()),
                false => format!("({} - 1) * {}", self.extent.text(), self.stride.text()),
            };
            let extra = if self.extra.is(0) { String::new() } else { format!(" + {}", self.extra.text()) };
            return format!("{strided}{} + {reach}{extra} + 1", padding("-"));
        }
        let inner = format!("{}{} - {reach}", self.extent.text(), padding("+"));
        match self.stride.is(1) {
            true => inner,
            false => format!("({inner} - 1) // {} + 1", self.stride.text()),
        }
    }
}

/// The extent of what a convolution, pooling or a transposed convolution gives. Each dim has one part; the other parts are literals.
fn windows(wanted: &[i128], relevant: &[&Dim]) -> Option<String> {
    if relevant.len() > 6 {
        return None;
    }
    // For each dim the part that it is: 0 is the extent.
    let mut places: Vec<Option<usize>> = vec![None; 6];
    assigned(wanted, relevant, 0, &mut places)
}

fn assigned(wanted: &[i128], relevant: &[&Dim], next: usize, places: &mut Vec<Option<usize>>) -> Option<String> {
    if next == relevant.len() {
        return places[0].is_some().then(|| literals(wanted, relevant, places)).flatten();
    }
    for part in 0..places.len() {
        if places[part].is_none() {
            places[part] = Some(next);
            let found = assigned(wanted, relevant, next + 1, places);
            places[part] = None;
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn literals(wanted: &[i128], relevant: &[&Dim], places: &[Option<usize>]) -> Option<String> {
    let choices = |part: usize, literals: std::ops::RangeInclusive<i128>| -> Vec<Part<'_>> {
        match places[part] {
            Some(dim) => vec![Part::Dim(relevant[dim])],
            None => literals.map(Part::Literal).collect(),
        }
    };
    let only = |part: usize, literal: i128| choices(part, literal..=literal)[0];
    let (extent, dilation) = (only(0, 0), only(4, 1));
    for transposed in [false, true] {
        if !transposed && places[5].is_some() {
            continue;
        }
        for kernel in choices(1, 1..=LITERAL_KERNEL) {
            for stride in choices(2, 1..=LITERAL_STRIDE) {
                for padding in choices(3, 0..=LITERAL_PADDING) {
                    for extra in choices(5, 0..=if transposed { 1 } else { 0 }) {
                        let window = Window { extent, kernel, stride, padding, dilation, extra, transposed };
                        if holds(wanted, |run| window.at(run)) {
                            return Some(window.text());
                        }
                    }
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expression that is found for a function of dims that were tried at these values, and in all one after another.
    fn found(dims: &[(&str, &[i128])], of: impl Fn(&[i128]) -> i128) -> Option<String> {
        let base: Vec<i128> = dims.iter().map(|(_, values)| values[0]).collect();
        let mut runs = vec![base.clone()];
        for (at, (_, values)) in dims.iter().enumerate() {
            for value in &values[1..] {
                let mut run = base.clone();
                run[at] = *value;
                runs.push(run);
            }
        }
        let last = |values: &&[i128]| values[values.len() - 1];
        runs.push(dims.iter().map(|(_, values)| last(values)).collect());
        let wanted: Vec<i128> = runs.iter().map(|run| of(run)).collect();
        let dim = |(at, (name, _)): (usize, &(&str, &[i128]))| Dim {
            name: (*name).to_string(),
            values: runs.iter().map(|run| run[at]).collect(),
        };
        fit(&wanted, &dims.iter().enumerate().map(dim).collect::<Vec<_>>())
    }

    #[test]
    fn sums_products_and_quotients_are_found() {
        let ab: &[(&str, &[i128])] = &[("a", &[16, 32, 17, 5]), ("b", &[4, 8, 5, 3])];
        let of = |f: fn(i128, i128) -> i128| found(ab, move |v| f(v[0], v[1])).unwrap_or_default();
        assert_eq!(of(|_, _| 7), "7");
        assert_eq!(of(|a, _| a), "a");
        assert_eq!(of(|a, _| 3 * a - 2), "3 * a - 2");
        assert_eq!(of(|a, _| a / 2), "a // 2");
        assert_eq!(of(|a, _| (a + 1) / 2), "(a + 1) // 2");
        assert_eq!(of(|a, b| a + 2 * b - 1), "a + 2 * b - 1");
        assert_eq!(of(|a, b| b - a), "b - a");
        assert_eq!(of(|a, b| 2 * a * b), "2 * a * b");
        assert_eq!(of(|a, b| a / b), "a // b");
    }

    #[test]
    fn the_extents_of_windows_are_found() {
        let dims: &[(&str, &[i128])] = &[
            ("n", &[64, 128, 65, 37]),
            ("k", &[4, 8, 5, 3]),
            ("s", &[2, 4, 3, 5]),
            ("p", &[1, 2, 3, 2]),
            ("d", &[3, 2, 4, 1]),
        ];
        let conv = |v: &[i128]| (v[0] + 2 * v[3] - v[4] * (v[1] - 1) - 1) / v[2] + 1;
        assert_eq!(found(dims, conv).unwrap(), "(n + 2 * p - d * (k - 1) - 1) // s + 1");
        let transposed = |v: &[i128]| (v[0] - 1) * v[2] - 2 * v[3] + v[4] * (v[1] - 1) + 1;
        assert_eq!(found(dims, transposed).unwrap(), "(n - 1) * s - 2 * p + d * (k - 1) + 1");
        // A padding that two values are known of.
        let mut two = dims.to_vec();
        two[3] = ("p", &[1, 2]);
        assert_eq!(found(&two, conv).unwrap(), "(n + 2 * p - d * (k - 1) - 1) // s + 1");
        let few = &dims[..3];
        assert_eq!(found(few, |v| (v[0] + 2 - v[1]) / v[2] + 1).unwrap(), "(n + 2 - (k - 1) - 1) // s + 1");
        assert_eq!(found(&dims[..1], |v| (v[0] - 3) / 2 + 1).unwrap(), "(n - 1) // 2");
    }

    #[test]
    fn what_no_expression_gives_at_every_size_has_none() {
        let ab: &[(&str, &[i128])] = &[("a", &[16, 32, 17, 5]), ("b", &[4, 8, 5, 3])];
        assert_eq!(found(ab, |v| v[0] * v[0]), None);
        assert_eq!(found(ab, |v| v[0] ^ v[1]), None);
        // Two sizes show nothing but equality.
        assert_eq!(found(&[("a", &[16, 33])], |v| 2 * v[0]), None);
        assert_eq!(found(&[("a", &[16, 33])], |v| v[0]).unwrap(), "a");
        assert_eq!(found(&[("a", &[16, 32, 17]), ("axis", &[1, 2])], |v| v[0] * v[1]), None);
    }
}
