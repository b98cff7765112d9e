//! A result of a step as the result of an action. Knows both forms; does not know where contents lie.
//!
//! The result itself is the standard output of the action, which servers give back with the answer; servers ignore requests for the contents of output files.

use std::collections::BTreeMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use kforge_foundation::base::Digest;
use kforge_types::record::{StepKind, StepResult, Verdict};

use super::error::RemoteError;

/// The largest result that is stored, in bytes, without its outputs: servers refuse large messages.
pub(crate) const LARGEST: usize = 200_000;

/// The largest output that is read, in bytes: a server must not make this machine run out of memory.
const LARGEST_OUTPUT: u64 = 1 << 30;

/// The result of an action for a result of a step. `digests` are the server's digests of the outputs, in order. None if it is larger than [`LARGEST`].
pub(crate) fn written(result: &StepResult, digests: Vec<reapi::Digest>) -> Option<reapi::ActionResult> {
    let stdout_raw = serde_json::to_vec(result).ok().filter(|bytes| bytes.len() <= LARGEST)?;
    let file = |(name, digest): (&String, reapi::Digest)| reapi::OutputFile {
        path: name.clone(),
        digest: Some(digest),
        ..Default::default()
    };
    let output_files = result.outputs.keys().zip(digests).map(file).collect();
    Some(reapi::ActionResult { output_files, stdout_raw, ..Default::default() })
}

/// The first output that a step of this kind gives and that is not among these; none if all are there. A step that was refused, such as a candidate that a
/// compiler does not accept, need not give any.
pub fn lacking(kind: StepKind, verdict: Option<&Verdict>, outputs: &BTreeMap<String, Digest>) -> Option<&'static str> {
    let given: &[&'static str] = match (verdict, kind) {
        (Some(Verdict::Fail(_) | Verdict::Unknown(_)), _) => &[],
        (_, StepKind::Compile) => &["binary", "facts"],
        (_, StepKind::Inspect) => &["inspection"],
        (_, StepKind::Oracle) => &["expected"],
        (_, StepKind::Verify) => &["observation"],
        _ => &[],
    };
    given.iter().copied().find(|name| !outputs.contains_key(*name))
}

/// Whether a server's digest is one under which this content is read: of the content's size, and not so large that this machine runs out of memory.
pub(crate) fn is_readable(named: &reapi::Digest, digest: &Digest) -> bool {
    let is_hash = named.hash.len() == 64 && named.hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash && u64::try_from(named.size_bytes) == Ok(digest.size()) && digest.size() <= LARGEST_OUTPUT
}

/// The result of a step, and the server's digests of its outputs.
pub(crate) type Entry = (StepResult, BTreeMap<Digest, reapi::Digest>);

/// The result of a step in the result of an action, and for each output the server's digest. None if the action failed: such a result is not one of kforge's.
///
/// # Errors
/// The result cannot be parsed, or lacks an output.
pub(crate) fn read(kind: StepKind, stored: &reapi::ActionResult) -> Result<Option<Entry>, RemoteError> {
    if stored.exit_code != 0 {
        return Ok(None);
    }
    let damaged = |why: String| RemoteError::Entry(why);
    if stored.stdout_raw.len() > LARGEST {
        return Err(damaged(format!("it has more than {LARGEST} bytes")));
    }
    let result: StepResult = serde_json::from_slice(&stored.stdout_raw).map_err(|e| damaged(e.to_string()))?;
    if let Some(name) = lacking(kind, result.verdict.as_ref(), &result.outputs) {
        return Err(damaged(format!("no output `{name}`")));
    }
    let mut digests = BTreeMap::new();
    for (name, digest) in &result.outputs {
        let file = stored.output_files.iter().find(|file| file.path == *name);
        let named = file.and_then(|file| file.digest.clone()).ok_or_else(|| damaged(format!("no output `{name}`")))?;
        if !is_readable(&named, digest) {
            return Err(damaged(format!("output `{name}` does not have the size that it should")));
        }
        digests.insert(*digest, named);
    }
    Ok(Some((result, digests)))
}

#[cfg(test)]
mod tests {
    use super::super::digests::HashFunction;
    use super::*;

    fn result() -> StepResult {
        let outputs = [("binary", b"abc" as &[u8]), ("facts", b"{}")];
        let outputs = outputs.map(|(name, bytes)| (name.to_string(), Digest::of(bytes))).into();
        StepResult { outputs, verdict: None, notes: vec![], summary: "42 registers".into(), duration_ms: 7 }
    }

    fn stored() -> reapi::ActionResult {
        written(&result(), [b"abc" as &[u8], b"{}"].map(|bytes| HashFunction::Sha256.of(bytes)).into()).unwrap()
    }

    #[test]
    fn a_result_survives_the_way_there_and_back() {
        let (back, digests) = read(StepKind::Compile, &stored()).unwrap().unwrap();
        assert_eq!(back, result());
        assert_eq!(digests[&Digest::of(b"abc")], HashFunction::Sha256.of(b"abc"));
        let long = StepResult { summary: "x".repeat(LARGEST), ..result() };
        assert_eq!(written(&long, vec![]), None);
    }

    #[test]
    fn failed_actions_are_no_results_and_damaged_ones_are_errors() {
        assert_eq!(read(StepKind::Compile, &reapi::ActionResult { exit_code: 1, ..stored() }), Ok(None));
        let damage: [fn(&mut reapi::ActionResult); 8] = [
            |r| r.stdout_raw.resize(LARGEST + 1, b' '),
            |r| {
                let (text, size) = (String::from_utf8(r.stdout_raw.clone()).unwrap(), 2u64 << 30);
                r.stdout_raw = text.replacen(":3\"", &format!(":{size}\""), 1).into();
                r.output_files[0].digest.as_mut().unwrap().size_bytes = size as i64;
            },
            |r| r.output_files.clear(),
            |r| r.output_files[0].digest = None,
            |r| r.output_files[1].path = "other".into(),
            |r| r.output_files[0].digest.as_mut().unwrap().size_bytes = 4,
            |r| r.output_files[0].digest.as_mut().unwrap().hash = "../../x".into(),
            |r| r.stdout_raw.truncate(20),
        ];
        for damage in damage {
            let mut stored = stored();
            damage(&mut stored);
            assert!(matches!(read(StepKind::Compile, &stored), Err(RemoteError::Entry(_))), "{stored:?}");
        }
    }

    #[test]
    fn a_result_has_what_its_kind_gives_unless_the_step_was_refused() {
        for (kind, names) in [
            (StepKind::Compile, &["binary", "facts"] as &[&str]),
            (StepKind::Inspect, &["inspection"]),
            (StepKind::Oracle, &["expected"]),
            (StepKind::Verify, &["observation"]),
        ] {
            let whole: BTreeMap<String, Digest> =
                names.iter().map(|name| (name.to_string(), Digest::of(b""))).collect();
            assert_eq!((lacking(kind, None, &whole), lacking(kind, Some(&Verdict::Pass), &whole)), (None, None));
            for name in names {
                let mut less = whole.clone();
                less.remove(*name);
                assert_eq!(
                    (lacking(kind, None, &less), lacking(kind, Some(&Verdict::Pass), &less)),
                    (Some(*name), Some(*name))
                );
            }
            assert_eq!(lacking(kind, Some(&Verdict::Fail("refused".into())), &BTreeMap::new()), None);
        }
        let empty = StepResult { outputs: BTreeMap::new(), ..result() };
        assert!(read(StepKind::Compile, &written(&empty, vec![]).unwrap()).is_err());
    }
}
