//! Why a bundle is refused. Knows the form of a bundle and its conditions; reads none.

use super::bundle::FORMAT_VERSION;
use super::signature::NotSignature;
use kforge_foundation::base::Digest;
use kforge_types::record::StepKind;

/// The entry of a bundle's archive that holds its document.
pub(super) const DOCUMENT: &str = "evidence.json";
/// The entry of a bundle's archive that holds its contents.
pub(super) const CONTENTS: &str = "contents";
/// The entry of a bundle's archive that holds its signature.
pub(super) const SIGNATURE: &str = "signature";

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Its file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(std::io::Error),
    /// Its file is a folder or something else.
    #[error("it is not a regular file")]
    NotFile,
    /// Its file cannot be written.
    #[error("it cannot be written: {0}")]
    Write(ArchiveError),
    /// Its file is not an archive, or ends too early.
    #[error("it is damaged, cut off, or not a bundle of evidence: {0}")]
    Damaged(ArchiveError),
    /// Its archive has other entries.
    #[error("it holds {}: expected only `{DOCUMENT}` and `{CONTENTS}`, and `{SIGNATURE}` if it is signed", entries(.0))]
    Entries(Vec<String>),
    /// Its contents continue after the last one that the document names.
    #[error("`{CONTENTS}` holds more than `{DOCUMENT}` names")]
    More,
    /// A part of it is too large.
    #[error("{what} is too large: expected at most {limit} bytes")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// The most bytes that the part may have.
        limit: u64,
    },
    /// Its document is not JSON.
    #[error("`evidence.json` is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// Its document has another format.
    #[error("its format is {}: expected at most {FORMAT_VERSION}, the latest that kforge {} knows", .0.map_or("none".to_string(), |v| v.to_string()), env!("CARGO_PKG_VERSION"))]
    Format(Option<u64>),
    /// Its document has another form.
    #[error("`evidence.json` does not match its schema: {0}")]
    Schema(serde_json::Error),
    /// Its document has an unknown field.
    #[error("`evidence.json` has a field that this version does not know: `{0}`")]
    UnknownField(String),
    /// Its document cannot be compared with what was read from it.
    #[error(transparent)]
    Encode(serde_json::Error),
    /// Its document says that it is signed, which no document of its format does.
    #[error("`{DOCUMENT}` says that it is signed, which only a `{SIGNATURE}` beside it can")]
    Signed,
    /// Its signature cannot be read.
    #[error("its `{SIGNATURE}` is {0}")]
    Signature(NotSignature),
    /// It has a signature, which bundles of its format cannot have.
    #[error("it holds a `{SIGNATURE}`, which a bundle of format {0} cannot have")]
    SignedEarlier(u32),
    /// The signature that it should get is not one of its document.
    #[error("the signature is not one of `{DOCUMENT}`")]
    OtherSignature,
    /// A content is missing.
    #[error("content {} is missing", .0.short())]
    NoContent(Digest),
    /// A content does not match its digest.
    #[error("content {} does not have its digest: the file is damaged", .0.short())]
    Content(Digest),
    /// A content appears more than once.
    #[error("content {} appears twice", .0.short())]
    RepeatedContent(Digest),
    /// No record names a content.
    #[error("no record names content {}", .0.short())]
    UnnamedContent(Digest),
    /// A question is inconsistent with its records.
    #[error("question {}: {fault}", .key.short())]
    Question {
        /// The question's key.
        key: Digest,
        /// What is wrong.
        fault: QuestionFault,
    },
    /// No question of the bundle timed a champion.
    #[error("the champion of `{package}/{kernel}` at `{shape}` was not timed")]
    NotTimed {
        /// Its package.
        package: String,
        /// Its kernel.
        kernel: String,
        /// The shape.
        shape: String,
    },
}

/// What is wrong with a question of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum QuestionFault {
    /// Its key is not the hash of its fields.
    #[error("the key of its fields is {}", .0.short())]
    Key(Digest),
    /// It compiled a binary that nothing asks about.
    #[error("no other question is about the binary that it compiled")]
    Binary,
    /// It asks no device.
    #[error("such a {0} step does not observe a device")]
    NoDevice(StepKind),
    /// It appears more than once.
    #[error("it appears twice")]
    Repeated,
    /// It has no record.
    #[error("nothing answers it")]
    NoRecord,
    /// A record answers another question.
    #[error("a record of it answers question {}", .0.short())]
    OtherRecord(Digest),
    /// A record appears more than once.
    #[error("a record of it appears twice")]
    RepeatedRecord,
    /// An output of a record is missing in the bundle.
    #[error("its output `{name}`, content {}, is missing", .content.short())]
    NoOutput {
        /// The output.
        name: String,
        /// Its content.
        content: Digest,
    },
    /// A record's time is not a valid time.
    #[error("`{0}` is not a time: expected one in RFC 3339 format")]
    NotTime(String),
    /// A record does not say where it was observed.
    #[error("a record of it does not say where it was observed")]
    NoProvenance,
    /// A record's provenance cannot be read.
    #[error("its provenance cannot be read: {0}")]
    Provenance(serde_json::Error),
    /// A record's provenance differs from the one that was recorded with it.
    #[error("its provenance differs from the one that was recorded with it")]
    OtherProvenance,
    /// A record's observation does not have the form of its kind.
    #[error("its observation is not one of a {kind} step: {error}")]
    Observation {
        /// The kind of its step.
        kind: StepKind,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// Why an archive cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The format is wrong.
    #[error(transparent)]
    Zip(#[from] zip::result::ZipError),
    /// The bytes cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The document cannot be read or written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Its contents are shorter than they should be.
    #[error("`{CONTENTS}` ends too early")]
    Short,
}

/// The first entries of an archive.
fn entries(names: &[String]) -> String {
    let listed: Vec<String> = names.iter().take(4).map(|name| format!("`{}`", name.escape_debug())).collect();
    listed.join(", ")
}
