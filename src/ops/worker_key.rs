//! The key of a worker, with which it signs what its device showed for another machine. Knows keys, records and bundles; who trusts the key decides each build.
//!
//! | decision | because |
//! |---|---|
//! | a record is signed as a bundle of one record | whoever trusts the key for evidence trusts this record, by the same rules and lists |
//! | only if every staged input has the digest that the spec states | who sends a step could otherwise have the behaviour of one binary signed as that of another |
//! | only what the step's device showed, and no result of another kind | another machine can compute those again |
//! | only `kforge worker --bots` has a key | where another server's worker starts `--once`, whoever may execute there chooses the command, which could read the key |
//! | with a key, nothing runs that the system cannot confine | the candidate could read the key, or change what is compared |
//! | the key's file is read before the step runs | the process of a step may confine itself |

use std::path::{Path, PathBuf};

use kforge_engine::action::asks_device;
use kforge_engine::evidence::{PROVENANCE, Record};
use kforge_foundation::base::Digest;
use kforge_harness::elsewhere::{Difference, OnceAnswer, SignedRecord};
use kforge_harness::message::Response;
use kforge_harness::stage;
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::bundle::Question;
use kforge_pipeline::release::signature::{KeyError, KeyFile, Purpose, SigningKey};
use kforge_types::record::{Spec, StepResult};

/// The key of a worker.
pub struct WorkerKey(SigningKey);

/// Why a worker has no key although one is named.
#[derive(Debug, thiserror::Error)]
pub enum WorkerKeyError {
    /// The file cannot be read.
    #[error("cannot read the worker's key `{}` (`remote.worker-key`): {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file holds no key that kforge can use.
    #[error("cannot sign with the worker's key `{}` (`remote.worker-key`): {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: KeyError,
    },
    /// The private half is behind a passphrase, or in an agent or in hardware.
    #[error(
        "`{}` (`remote.worker-key`) is no private key without a passphrase: make one with `ssh-keygen -t ed25519 -N '' -f FILE`",
        .0.display()
    )]
    NotPlain(PathBuf),
}

impl WorkerKey {
    /// The private key in a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no private key without a passphrase.
    pub fn read(path: &Path) -> Result<WorkerKey, WorkerKeyError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| WorkerKeyError::Read { path: path.into(), source })?;
        match KeyFile::parse(&text).map_err(|why| WorkerKeyError::Key { path: path.into(), why })? {
            KeyFile::Private(key) => Ok(WorkerKey(key)),
            KeyFile::Encrypted(_) | KeyFile::Elsewhere(_) => Err(WorkerKeyError::NotPlain(path.into())),
        }
    }

    /// The answer of a step with a signed record of what its device showed. The answer says in what the inputs differ from the spec, if they do.
    pub fn seal(&self, spec: &Spec, input: &Path, output: &Path, answer: OnceAnswer) -> OnceAnswer {
        let OnceAnswer::Answered {
            response: Response::Done { verdict, notes, summary, forget: false },
            outputs,
            duration_ms,
            ..
        } = &answer
        else {
            return answer;
        };
        let Some(provenance) = outputs.get(PROVENANCE).filter(|_| asks_device(spec)) else { return answer };
        let differs = |difference| OnceAnswer::Differs { differences: vec![difference] };
        match stage::differing(spec, input) {
            Ok(None) => {}
            Ok(Some(input)) => return differs(Difference::Contents { input }),
            Err(error) => return differs(Difference::Missing { input: "in".into(), why: error.to_string() }),
        }
        let result = StepResult {
            outputs: outputs.clone(),
            verdict: verdict.clone(),
            notes: notes.clone(),
            summary: summary.clone(),
            duration_ms: *duration_ms,
        };
        let read = std::fs::read(output.join(PROVENANCE)).ok().filter(|bytes| Digest::of(bytes) == *provenance);
        let Some(provenance) = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()) else { return answer };
        match self.signed(spec, Record { question: spec.key(), provenance, result }) {
            Some(signed) => answer.with(signed),
            None => answer,
        }
    }

    fn signed(&self, spec: &Spec, record: Record) -> Option<SignedRecord> {
        let question = Question { key: spec.key(), spec: spec.clone(), steps: vec![], records: vec![record] };
        let bundle = Bundle { questions: vec![question], ..Bundle::default() };
        let document = serde_json::to_string(&bundle.document()).ok()?;
        let signature = self.0.sign(Purpose::Evidence.namespace(), document.as_bytes()).ok()?;
        Some(SignedRecord { document, signature: signature.text().to_string() })
    }
}
