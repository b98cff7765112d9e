//! How old something is, in words. Knows times as records write them; the caller passes the present time.

use jiff::Timestamp;

/// The age as text: `3 days ago`.
pub fn ago(then: &str, now: Timestamp) -> String {
    let Ok(at) = then.parse::<Timestamp>() else { return format!("at `{then}`") };
    let seconds = now.as_second() - at.as_second();
    let said = |n: i64, unit: &str| format!("{n} {unit}{} ago", if n == 1 { "" } else { "s" });
    match seconds {
        i64::MIN..-60 => format!("at {then}, which is in the future"),
        -60..60 => "just now".into(),
        60..3600 => said(seconds / 60, "minute"),
        3600..86_400 => said(seconds / 3600, "hour"),
        _ => said(seconds / 86_400, "day"),
    }
}

/// A range of ages: `3 days ago`, or `3 days to 5 hours ago`.
pub fn span(oldest: &str, newest: &str, now: Timestamp) -> String {
    let (oldest, newest) = (ago(oldest, now), ago(newest, now));
    match oldest == newest {
        true => newest,
        false => format!("{} to {newest}", oldest.trim_end_matches(" ago")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_largest_unit() {
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        for (then, says) in [
            ("2026-11-20T11:59:30Z", "just now"),
            ("2026-11-20T11:58:30Z", "1 minute ago"),
            ("2026-11-20T07:00:00Z", "5 hours ago"),
            ("2026-11-17T11:00:00Z", "3 days ago"),
            ("2027-01-01T00:00:00Z", "at 2027-01-01T00:00:00Z, which is in the future"),
            ("yesterday", "at `yesterday`"),
        ] {
            assert_eq!(ago(then, now), says);
        }
    }
}
