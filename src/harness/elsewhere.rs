//! What a worker on another machine answers: the response to a step with its outputs by content, or in what the machine differs from the one that the step's
//! key states. Knows answers; does not know how tools are found.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::message::Response;
use super::stage::name_of_output;
use kforge_foundation::base::Digest;

/// The answer of `kforge worker --once`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnceAnswer {
    /// The step was executed, or could not be.
    Answered {
        /// What a worker of this machine answers, as well.
        response: Response,
        /// Each output by name. A server that loses or changes one is noticed.
        outputs: BTreeMap<String, Digest>,
        /// How long the step took in milliseconds, without what was compared before.
        #[serde(default)]
        duration_ms: u64,
        /// Whether the candidate timed out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        timed_out: bool,
        /// What a device showed, as a record that the worker signed; none if it has no key, or the step observes no device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<SignedRecord>,
    },
    /// The step was not executed, because its result would not be one of its key.
    Differs {
        /// In what the machine differs.
        differences: Vec<Difference>,
    },
}

/// A document with one record of a device, in the format of a bundle of evidence, and its signature. It may be by anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRecord {
    /// The document.
    pub document: String,
    /// The signature over it, in OpenSSH's format.
    pub signature: String,
}

impl OnceAnswer {
    /// The answer for a response, with the outputs in a folder, of a step that took so long, and in which the candidate timed out or did not.
    ///
    /// # Errors
    /// An output cannot be read, or is none that a worker of this machine may give.
    pub fn of(response: Response, output: &Path, took: Duration, timed_out: bool) -> io::Result<OnceAnswer> {
        let mut outputs = BTreeMap::new();
        if matches!(response, Response::Done { .. }) {
            for entry in std::fs::read_dir(output)? {
                let entry = entry?;
                let name = name_of_output(&entry)?;
                outputs.insert(name, Digest::of_file(&entry.path())?);
            }
        }
        let duration_ms = took.as_millis() as u64;
        Ok(OnceAnswer::Answered { response, outputs, duration_ms, timed_out, signed: None })
    }

    /// The same with what the worker signed.
    pub fn with(self, record: SignedRecord) -> OnceAnswer {
        match self {
            OnceAnswer::Answered { response, outputs, duration_ms, timed_out, .. } => {
                OnceAnswer::Answered { response, outputs, duration_ms, timed_out, signed: Some(record) }
            }
            differs @ OnceAnswer::Differs { .. } => differs,
        }
    }
}

/// In what a machine differs from the one that a step's key states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The program executes such steps by other code.
    Code,
    /// Parts of a tool, library or processor.
    Parts {
        /// The input of the step that describes them.
        input: String,
        /// Their names, such as `cc1plus`.
        names: Vec<String>,
    },
    /// The contents of an input are not those that the step's key states.
    Contents {
        /// The input, or a file that is none.
        input: String,
    },
    /// The machine does not have what an input describes, or cannot tell.
    Missing {
        /// The input.
        input: String,
        /// Why.
        why: String,
    },
}

/// How many names are shown.
const SHOWN: usize = 5;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Code => f.write_str("its kforge executes the step by other code"),
            Difference::Parts { input, names } => {
                let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
                let more = names.len().saturating_sub(SHOWN);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                write!(f, "its `{input}` has other parts: {}{more}", shown.join(", "))
            }
            Difference::Contents { input } => {
                write!(f, "the contents of its input `{input}` are not those that the step states")
            }
            Difference::Missing { input, why } => write!(f, "its `{input}` is not known: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_stated_by_content_and_differences_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("binary"), "abc").unwrap();
        let done = |forget| Response::Done { verdict: None, notes: vec![], summary: String::new(), forget };
        let took = Duration::from_millis(7);
        let answer = OnceAnswer::of(done(false), folder.path(), took, false).unwrap();
        let outputs = [("binary".to_string(), Digest::of(b"abc"))].into();
        assert_eq!(
            answer,
            OnceAnswer::Answered { response: done(false), outputs, duration_ms: 7, timed_out: false, signed: None }
        );
        std::fs::create_dir(folder.path().join("more")).unwrap();
        let refused = OnceAnswer::of(done(false), folder.path(), took, false).unwrap_err().to_string();
        assert!(refused.contains("`more` is not a regular file"), "{refused}");
        let failed = Response::Failed { message: "x".into(), notes: vec![] };
        let answer = OnceAnswer::of(failed.clone(), folder.path(), took, false).unwrap();
        let expected = OnceAnswer::Answered {
            response: failed,
            outputs: BTreeMap::new(),
            duration_ms: 7,
            timed_out: false,
            signed: None,
        };
        assert_eq!(answer, expected);
        let names = (0..7).map(|n| format!("part{n}")).collect();
        let text = Difference::Parts { input: "toolchain".into(), names }.to_string();
        assert_eq!(text, "its `toolchain` has other parts: `part0`, `part1`, `part2`, `part3`, `part4` and 2 more");
    }
}
