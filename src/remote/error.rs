//! Why a remote cache could not be used.

use std::path::PathBuf;

use kforge_foundation::base::Digest;

/// Why a remote cache could not be used, or an answer of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// A file that the settings name cannot be read.
    #[error("cannot read `{path}`: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The credential helper gave no credentials.
    #[error("the credential helper `{program}` {why}")]
    Helper {
        /// The program.
        program: PathBuf,
        /// What it did.
        why: String,
    },
    /// Credentials would be sent without encryption.
    #[error("credentials are sent only to `grpcs://` servers and to this machine")]
    Exposed,
    /// A certificate, key or token cannot be used.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// The server cannot be reached.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server answered with an error.
    #[error("{method}: {code}{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Status {
        /// The method of the API.
        method: &'static str,
        /// The code of gRPC.
        code: String,
        /// The server's text.
        message: String,
    },
    /// The server took too long.
    #[error("{method}: no answer within {seconds} s")]
    Late {
        /// The method of the API.
        method: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// The server lacks something that kforge needs.
    #[error("the server has {0}")]
    Lacks(&'static str),
    /// The server gave other bytes than those with the digest.
    #[error("the server gave other bytes than those of {0}")]
    WrongBytes(Digest),
    /// The server named a content that it does not have.
    #[error("the server no longer has a content that it named")]
    Gone,
    /// The inputs of a step cannot be sent.
    #[error("the inputs of a step cannot be sent: {0}")]
    Inputs(String),
    /// The server has no worker for a step.
    #[error("it has no worker with the properties `{properties}`{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Unroutable {
        /// The properties of the step, from `remote.properties`.
        properties: String,
        /// The server's text.
        message: String,
    },
    /// No worker took a step.
    #[error("no worker took a step within {seconds} s")]
    NotTaken {
        /// The limit.
        seconds: u64,
    },
    /// A worker is another machine than a step needs.
    #[error("a worker did not execute a step: {0}")]
    Differs(String),
    /// A worker did not execute a step.
    #[error("a worker did not execute a step: {0}")]
    Worker(String),
    /// A worker states an output that the server does not have.
    #[error("the result of a worker lacks the output `{0}`")]
    Output(String),
    /// The server gives a failure that it remembers, even if it is asked for a new result.
    #[error("the server remembers failures")]
    Remembered,
    /// A result that was computed again here is another one.
    #[error(
        "the result under the key {key} is not what this machine computes: {what} differs; no further result of it is used in this build"
    )]
    Contradiction {
        /// The key of the step.
        key: Digest,
        /// What differs.
        what: String,
    },
    /// A stored result is not one of kforge's, or damaged.
    #[error("a stored result cannot be read: {0}")]
    Entry(String),
}

impl RemoteError {
    /// Whether the server itself fails: it cannot be reached, does not answer, or answers with an error that it may have for every request.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            RemoteError::Connect(_) | RemoteError::Late { .. } => true,
            RemoteError::Status { .. } => !self.is_final(),
            _ => false,
        }
    }

    /// Whether the server refused the credentials.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        matches!(self, RemoteError::Status { code, .. } if code == "Unauthenticated")
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            RemoteError::Connect(_) => {
                "check the host and the port of `remote.url`, whether the server speaks TLS (`grpcs://`) or not (`grpc://`), and whether it runs"
            }
            RemoteError::Status { code, .. } => match code.as_str() {
                "Unauthenticated" | "PermissionDenied" => {
                    "name valid credentials: `remote.token-file`, `remote.credential-helper` or `remote.client-certificate`"
                }
                "Unimplemented" => "name a server of the Remote Execution API in `remote.url`",
                "NotFound" | "InvalidArgument" => {
                    "check `remote.instance-name`: the operator of the server knows its instances"
                }
                _ => "look at the log of the server",
            },
            RemoteError::Late { .. } => "look at the load of the server, or raise `remote.timeout`",
            RemoteError::File { .. } | RemoteError::Helper { .. } | RemoteError::Credentials(_) => {
                "mend what the settings `remote.*` name: `kforge config` shows them"
            }
            RemoteError::Exposed => "name the server by `grpcs://`",
            RemoteError::Lacks(_) | RemoteError::Remembered => {
                "let the operator of the server configure it so, or name another one"
            }
            RemoteError::Unroutable { .. } => "start a worker with these properties, or change `remote.properties`",
            RemoteError::NotTaken { .. } => {
                "start a worker with the properties of the step, or raise `remote.queue-limit`"
            }
            RemoteError::Differs(_) => "give the workers the kforge, the compiler and the libraries of this machine",
            RemoteError::Worker(_) | RemoteError::Output(_) | RemoteError::Inputs(_) => {
                "look at the log of the worker: it must be able to start this kforge (`remote.program`)"
            }
            RemoteError::WrongBytes(_)
            | RemoteError::Gone
            | RemoteError::Contradiction { .. }
            | RemoteError::Entry(_) => "name another server, or let its operator clear it: it gives what it must not",
        }
    }

    /// Whether the server refused for a reason that will not go away during a build.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            RemoteError::Status { code, .. } => {
                matches!(code.as_str(), "Unauthenticated" | "PermissionDenied" | "Unimplemented")
            }
            RemoteError::File { .. }
            | RemoteError::Helper { .. }
            | RemoteError::Exposed
            | RemoteError::Credentials(_)
            | RemoteError::Connect(_)
            | RemoteError::Unroutable { .. }
            | RemoteError::Lacks(_) => true,
            _ => false,
        }
    }
}
