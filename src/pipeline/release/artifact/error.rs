//! Why the files of an artifact are refused. Knows the conditions; reads nothing.

use super::{INDEX, INDEX_SIGNATURE};

/// Why the files of an artifact are refused.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// It cannot be read.
    #[error("cannot read `{name}`: {source}")]
    Read {
        /// The file or folder.
        name: String,
        /// The cause.
        source: std::io::Error,
    },
    /// It is neither a folder nor an archive. The cause is not kept: the words of the archive's reader repeat bytes of the file.
    #[error("not an artifact: neither a folder nor a tar archive")]
    NotArchive,
    /// An archive was cut off, for example by a download that was interrupted.
    #[error("the archive ends early, at byte {at}: get it again")]
    EndsEarly {
        /// The number of its bytes.
        at: u64,
    },
    /// It is compressed.
    #[error("it is compressed with {with}, and kforge reads the archive itself: unpack it first with `{with} -d`")]
    Compressed {
        /// The program that compresses in this form.
        with: &'static str,
    },
    /// A name could be written outside of a folder, or differs between systems.
    #[error(
        "it holds `{0}`: expected names of at most 255 bytes with `/`, none of them a folder of another, without `..`, empty parts or control characters"
    )]
    Name(String),
    /// An entry is not a regular file.
    #[error("`{0}` is not a regular file: an artifact holds only regular files")]
    NotFile(String),
    /// An archive has other bytes than kforge writes for the same files.
    #[error(
        "the archive is not in the form that kforge writes (sorted names, fixed headers, nothing after the end): get it again"
    )]
    NotCanonical,
    /// A name occurs twice.
    #[error("it holds `{0}` twice")]
    Repeated(String),
    /// It is too large.
    #[error("it is too large: expected at most {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A file that every artifact has is missing.
    #[error("it has no `{0}`")]
    Missing(String),
    /// A document has another form.
    #[error("`{name}` does not match its schema: {source}")]
    Schema {
        /// The file.
        name: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// A document has the right fields in another text.
    #[error(
        "`{0}` is not in the text that kforge writes, for example because a key is repeated: get the artifact again"
    )]
    OtherText(&'static str),
    /// A document is of another version.
    #[error("`{name}` has format {version}: this kforge reads format {known}")]
    Version {
        /// The file.
        name: &'static str,
        /// Its version.
        version: u64,
        /// The version that this kforge reads.
        known: u32,
    },
    /// A listed file is missing.
    #[error("`{0}` is listed in `{INDEX}` and does not exist")]
    NotThere(String),
    /// A file is not listed.
    #[error("`{0}` is not listed in `{INDEX}`")]
    NotListed(String),
    /// A file has other contents than listed.
    #[error("`{name}` is not the file that `{INDEX}` lists: its {what} is {found}, listed is {listed}")]
    Changed {
        /// The file.
        name: String,
        /// What differs.
        what: &'static str,
        /// The value of the file.
        found: String,
        /// The value in the index.
        listed: String,
    },
    /// The files are not listed in order, or the root is not that of the list.
    #[error("the root in `{INDEX}` is not that of its files: expected {0}")]
    Root(String),
    /// A document cannot be written.
    #[error(transparent)]
    Encode(serde_json::Error),
    /// The signature cannot be read.
    #[error("`{INDEX_SIGNATURE}` is {0}")]
    Signature(crate::release::signature::NotSignature),
}
