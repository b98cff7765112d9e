//! Expressions for integers that are known in each case of a task. An expression is taken only if it gives the integer in every case; what none gives is a dim of
//! its own. Knows numbers; does not know what they mean.

/// A name for an integer, with its value in each case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Size {
    pub(super) name: String,
    pub(super) values: Vec<i64>,
}

/// The largest factor, divisor and summand that are tried.
const MOST: i64 = 16;

/// The expression of an integer in terms of sizes; a number if it never changes. None if there is none.
pub(super) fn fit(wanted: &[i64], sizes: &[Size]) -> Option<String> {
    let is =
        |value: &dyn Fn(usize) -> Option<i64>| wanted.iter().enumerate().all(|(case, want)| value(case) == Some(*want));
    if let Some(same) = sizes.iter().find(|size| size.values == wanted) {
        return Some(same.name.clone());
    }
    let first = *wanted.first()?;
    if wanted.iter().all(|value| *value == first) {
        return Some(first.to_string());
    }
    // What a single size gives is plainer than what two give.
    let of_one = |size: &Size| {
        let at = |case: usize| size.values[case];
        (1..=MOST).find_map(|n| {
            let name = &size.name;
            if is(&|case| at(case).checked_add(n)) {
                return Some(format!("{name} + {n}"));
            }
            if is(&|case| at(case).checked_sub(n)) {
                return Some(format!("{name} - {n}"));
            }
            if is(&|case| at(case).checked_mul(n)) {
                return Some(format!("{n} * {name}"));
            }
            is(&|case| Some(at(case).div_euclid(n))).then(|| format!("{name} // {n}"))
        })
    };
    sizes.iter().find_map(of_one).or_else(|| {
        let pairs = sizes.iter().flat_map(|a| sizes.iter().map(move |b| (a, b)));
        pairs.into_iter().filter(|(a, b)| a.name != b.name).find_map(|(a, b)| {
            let (x, y) = (|case: usize| a.values[case], |case: usize| b.values[case]);
            let (a, b) = (&a.name, &b.name);
            if is(&|case| x(case).checked_mul(y(case))) {
                return Some(format!("{a} * {b}"));
            }
            if is(&|case| x(case).checked_add(y(case))) {
                return Some(format!("{a} + {b}"));
            }
            if is(&|case| x(case).checked_sub(y(case))?.checked_add(1)) {
                return Some(format!("{a} - {b} + 1"));
            }
            if is(&|case| x(case).checked_sub(y(case))) {
                return Some(format!("{a} - {b}"));
            }
            is(&|case| x(case).checked_div_euclid(y(case))).then(|| format!("{a} // {b}"))
        })
    })
}
