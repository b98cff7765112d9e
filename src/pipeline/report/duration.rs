//! Times as text, for the terminal, Markdown and pages. Knows units; knows no reports.

/// Nanoseconds with the unit that fits: `7.90 us`.
pub(crate) fn duration(ns: f64) -> String {
    match scale(ns) {
        (_, "ns") => format!("{ns:.0} ns"),
        (per, unit) => format!("{:.2} {unit}", ns / per),
    }
}

/// The nanoseconds of the unit that fits a time, and its name.
pub(crate) fn scale(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns < 1e3 => (1.0, "ns"),
        ns if ns < 1e6 => (1e3, "us"),
        ns if ns < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_unit_that_fits() {
        let told = [12.0, 999.4, 7_870.4, 2.5e6, 3.21e9].map(duration);
        assert_eq!(told, ["12 ns", "999 ns", "7.87 us", "2.50 ms", "3.21 s"]);
    }
}
