//! Failures of pip: a typed cause, and pip's own output. Recognizes the most common failures by their wording, because pip reports them in no other way; runs
//! nothing.

use std::fmt;

/// Why pip failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// No space is left on the disk.
    #[error("there is no space left for the download: free some, or set `KFORGE_HOME` to a folder with more space")]
    Full,
    /// The files of the index differ from the locked ones.
    #[error(
        "the files of the index differ from those that kforge.lock pins for these versions; if you trust the index, run `kforge update` to lock its files"
    )]
    OtherFiles,
    /// The proxy cannot be reached, or refuses the connection.
    #[error(
        "the proxy cannot be reached, or refuses the connection: check `HTTPS_PROXY` and pip's own settings (`pip config list`)"
    )]
    Proxy,
    /// The index's certificate is not trusted.
    #[error("the index's certificate is not trusted: check `PIP_CERT` and `REQUESTS_CA_BUNDLE`")]
    Certificate,
    /// The index cannot be reached.
    #[error("the index cannot be reached: check the network and pip's own settings (`pip config list`)")]
    Unreachable,
    /// The index refuses access.
    #[error("the index refuses access: check pip's credentials for it")]
    Access,
    /// The index cannot be reached, or has no such file.
    #[error(
        "the index cannot be reached, or has no such file: check the network and pip's own settings (`pip config list`)"
    )]
    NoFile,
    /// Any other cause.
    #[error("pip failed")]
    Other,
}

/// Phrases in pip's output, in lower case, and the cause that each indicates. The first match counts, so causes that follow from other failures come last.
const CAUSES: [(&[&str], Cause); 7] = [
    (&["no space left on device", "disk quota exceeded"], Cause::Full),
    (&["do not match the hashes", "hash mismatch"], Cause::OtherFiles),
    (&["proxyerror", "cannot connect to proxy", "proxy authentication"], Cause::Proxy),
    (&["certificate_verify_failed", "sslerror", "certificate verify failed"], Cause::Certificate),
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
        Cause::Unreachable,
    ),
    (&["401 client error", "403 client error"], Cause::Access),
    (&["no matching distribution", "could not find a version"], Cause::NoFile),
];

/// A failure of pip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipFailure {
    /// Why it failed.
    pub cause: Cause,
    /// The last lines of pip's output.
    pub said: String,
}

impl PipFailure {
    /// The failure that pip's standard error describes.
    pub(super) fn of(said: &str) -> Self {
        let lower = said.to_lowercase();
        let cause = CAUSES.iter().find(|(marks, _)| marks.iter().any(|mark| lower.contains(mark)));
        PipFailure { cause: cause.map_or(Cause::Other, |(_, cause)| *cause), said: tail(said) }
    }
}

impl fmt::Display for PipFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        self.said.lines().try_for_each(|line| {
            write!(
                f,
                "
  pip: {line}"
            )
        })
    }
}

impl std::error::Error for PipFailure {}

/// The lines that the tool marks as errors; if it marks none, the last lines of its output.
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
            (full, "no space left for the download", "pip: OSError"),
            (other, "differ from those that kforge.lock pins", "pip: ERROR: THESE"),
            (refused, "the index cannot be reached: check", "Connection refused"),
            ("ERROR: something else", "pip failed", "pip: ERROR: something else"),
        ] {
            let text = PipFailure::of(said).to_string();
            let (first, rest) = text.split_once('\n').unwrap();
            assert!(first.contains(cause) && rest.contains(own) && rest.starts_with("  pip: "), "{text}");
        }
    }
}
