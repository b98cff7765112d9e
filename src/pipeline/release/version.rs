//! Versions of packages as texts: `1.2.3`, or `1.2.3-rc.1`. Knows their order and the tags that state one; knows no package.

/// The numbers of a version such as `1.2.3`, in the text that has no leading zeros; none if the text is anything else.
pub fn numbers(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split('.').map(|part| part.parse::<u64>().ok().filter(|n| n.to_string() == part));
    let three = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(three)
}

/// The numbers of a version, and whether it has nothing after them, which is later than anything that has.
fn parts(version: &str) -> Option<([u64; 3], bool)> {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    Some((numbers(&version[..end])?, end == version.len()))
}

/// Whether a version is certainly later than another. Of `1.2.3-rc.1` and `1.2.3-rc.2`, neither is.
pub fn is_later(version: &str, than: &str) -> bool {
    matches!((parts(version), parts(than)), (Some(one), Some(other)) if one > other)
}

/// Whether a tag states a version, perhaps with more after it.
pub fn states_version(tag: &str) -> bool {
    parts(tag).is_some()
}

/// Whether a tag can name a package of this version: a tag that states a version states this one, perhaps with more after a `-`.
pub fn fits_tag(version: &str, tag: &str) -> bool {
    let is_own = tag.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    is_own || !states_version(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let mut tags = ["1.2.3", "0.10.0", "0.9.0", "1.10.0"].map(|tag| (numbers(tag).unwrap(), tag));
        tags.sort();
        assert_eq!(tags.map(|(_, tag)| tag), ["0.9.0", "0.10.0", "1.2.3", "1.10.0"]);
        for tag in ["1.2", "1.2.3.4", "latest", "01.2.3", "1.2.+3", "1.2.3-rc1", ""] {
            assert_eq!(numbers(tag), None, "{tag}");
        }
        for (one, other) in [("1.10.0", "1.9.0"), ("1.0.0", "1.0.0-rc.1"), ("1.0.1-rc.1", "1.0.0")] {
            assert!(is_later(one, other) && !is_later(other, one), "{one} {other}");
        }
        for (one, other) in [("1.0.0", "1.0.0"), ("1.0.0-rc.2", "1.0.0-rc.1"), ("x", "1.0.0"), ("1.0.0", "x")] {
            assert!(!is_later(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_tag_that_states_a_version_is_for_no_other() {
        for (version, tag) in [
            ("1.2.3", "1.2.3"),
            ("1.2.3", "stable"),
            ("1.2.3", "1.2.3-cuda12"),
            ("1.0.0-rc.1", "1.0.0-rc.1"),
            ("1.2.3", "v1.2"),
        ] {
            assert!(fits_tag(version, tag), "{version} {tag}");
        }
        for (version, tag) in
            [("1.2.3", "1.2.4"), ("1.2.3", "1.2.30"), ("0.9.0", "1.0.0-rc.1"), ("1.0.0-rc.1", "1.0.0")]
        {
            assert!(!fits_tag(version, tag), "{version} {tag}");
        }
    }
}
