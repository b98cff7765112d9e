//! What a failing pip said: the cause in a line of ours, its own words below. Knows how pip words the commonest failures; runs nothing.

/// What pip says of a failure, in lower case, and what that means. The first that is found counts, so what other failures bring about comes last.
const CAUSES: [(&[&str], &str); 7] = [
    (
        &["no space left on device", "disk quota exceeded"],
        "there is no space left where it is downloaded to: free some, or set `KFORGE_HOME` to a folder with more",
    ),
    (
        &["do not match the hashes", "hash mismatch"],
        "the index has other files under these versions than kforge.lock names; `kforge update` locks those that it has, if you trust them",
    ),
    (
        &["proxyerror", "cannot connect to proxy", "proxy authentication"],
        "the proxy cannot be reached or refuses: see `HTTPS_PROXY` and pip's own settings (`pip config list`)",
    ),
    (
        &["certificate_verify_failed", "sslerror", "certificate verify failed"],
        "the index's certificate is not trusted: see `PIP_CERT` and `REQUESTS_CA_BUNDLE`",
    ),
    (
        &[
            "connection refused",
            "name resolution",
            "name or service not known",
            "failed to establish a new connection",
            "newconnectionerror",
            "timed out",
            "network is unreachable",
            "connection broken",
        ],
        "the index cannot be reached: see the network and pip's own settings (`pip config list`)",
    ),
    (&["401 client error", "403 client error"], "the index refuses access: see pip's credentials for it"),
    (
        &["no matching distribution", "could not find a version"],
        "the index cannot be reached, or has no such file: see the network and pip's own settings (`pip config list`)",
    ),
];

/// The cause, and below it pip's words.
pub(super) fn words(said: &str) -> String {
    let lower = said.to_lowercase();
    let cause = CAUSES.iter().find(|(marks, _)| marks.iter().any(|mark| lower.contains(mark)));
    let own: String = tail(said).lines().map(|line| format!("\n  pip: {line}")).collect();
    format!("{}{own}", cause.map_or("pip failed", |(_, cause)| cause))
}

/// The last lines of what a tool said, its errors if it marks them.
fn tail(said: &str) -> String {
    let lines: Vec<&str> =
        said.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("[notice]")).collect();
    let errors: Vec<&str> = lines.iter().copied().filter(|l| l.starts_with("ERROR")).collect();
    let shown = if errors.is_empty() { &lines[lines.len().saturating_sub(6)..] } else { &errors[..] };
    if shown.is_empty() { "it said nothing".into() } else { shown.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_a_tool_are_its_last_words() {
        assert_eq!(tail("WARNING: x\nERROR: no such wheel\n[notice] new pip\n"), "ERROR: no such wheel");
        assert_eq!(tail(""), "it said nothing");
        assert_eq!(tail("1\n2\n3\n4\n5\n6\n7"), "2\n3\n4\n5\n6\n7");
    }

    #[test]
    fn a_failure_is_told_with_its_cause_and_in_pips_words() {
        let retry = "WARNING: Retrying (Retry(total=0)) after connection broken by 'ProxyError('Cannot connect to proxy.', OSError('x'))': /simple/\nERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)";
        let none = "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\nERROR: No matching distribution found for a==1";
        let full =
            "--- Logging error ---\nTraceback (most recent call last):\nOSError: [Errno 28] No space left on device";
        let other = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.";
        let refused =
            "NewConnectionError('<pip>: Failed to establish a new connection: [Errno 111] Connection refused')";
        for (said, cause, own) in [
            (retry, "the proxy cannot be reached", "pip: ERROR: Could not find"),
            (none, "cannot be reached, or has no such file", "pip: ERROR: No matching"),
            (full, "no space left where it is downloaded to", "pip: OSError"),
            (other, "other files under these versions than kforge.lock names", "pip: ERROR: THESE"),
            (refused, "the index cannot be reached: see", "Connection refused"),
            ("ERROR: something else", "pip failed", "pip: ERROR: something else"),
        ] {
            let text = words(said);
            let (first, rest) = text.split_once('\n').unwrap();
            assert!(first.contains(cause) && rest.contains(own) && rest.starts_with("  pip: "), "{text}");
        }
    }
}
