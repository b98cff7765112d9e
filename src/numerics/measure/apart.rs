//! Whether times on inputs of one class differ from those on others by more than noise and power explain. Pure numbers; does not know what was launched.

use super::stats::median;

/// How many times a class of inputs may take as long as others, or others as long as it, before a report says so. Data alone changes the power that a launch
/// draws, and under a power limit its time. It is also the factor by which a launch on fresh inputs may be slower than others.
const APART: f64 = 1.25;

/// Whether launches on inputs of a class take longer or shorter than those of a series by more than power and noise explain: by over a quarter, and outside of
/// all samples of the series.
pub fn is_apart(series_ns: &[f64], class_ns: &[f64]) -> bool {
    let (usual, class) = (median(series_ns), median(class_ns));
    let beyond = |of: fn(f64, f64) -> bool| series_ns.iter().all(|ns| of(class, *ns));
    (class > APART * usual && beyond(|class, ns| class > ns))
        || (class < usual / APART && beyond(|class, ns| class < ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_apart_beyond_a_quarter_and_beyond_all_samples() {
        let series = [98.0, 100.0, 102.0];
        let of = |ns| is_apart(&series, &[ns]);
        assert_eq!([of(120.0), of(126.0), of(81.0), of(79.0)], [false, true, false, true]);
        assert!(!is_apart(&[100.0, 100.0, 130.0], &[128.0]), "one sample was as slow");
        assert!(!is_apart(&series, &[]) && !is_apart(&[], &[1.0]));
    }
}
