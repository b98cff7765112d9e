//! Counts with their nouns, for people. Knows the regular plurals of English.

/// A count with its noun. The caller gives the noun in the singular: `1 file`, `2 files`, `3 entries`.
pub fn count(n: impl TryInto<u64>, noun: &str) -> String {
    // A count too large for the type is more than one.
    let n = n.try_into().unwrap_or(u64::MAX);
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{n} {stem}ies"),
        _ => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        let of = |noun| [0u64, 1, 2].map(|n| count(n, noun)).join(", ");
        assert_eq!(of("file"), "0 files, 1 file, 2 files");
        assert_eq!(of("entry"), "0 entries, 1 entry, 2 entries");
        assert_eq!(of("way"), "0 ways, 1 way, 2 ways");
    }
}
