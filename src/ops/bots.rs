//! This machine as a worker of a server that speaks the Remote Workers API, such as BuildGrid: what it says of itself, which device it holds, and how a step is
//! executed. Knows settings, tools and devices; the package `kforge-remote` knows the server.
//!
//! | decision | because |
//! |---|---|
//! | a step is executed by this program, in a process of its own with `--once` | it compares its tools with those of the step's key, as on any other worker, and confines itself |
//! | the process ends with this one | a step whose worker was killed must not go on |
//! | it uses the tools that the worker found, and no path that was sent | who may write to the server must not choose which programs run here, or which files a source may read |
//! | it works in no folder with files of the step, and its temporary files are in one that goes with the lease | a relative path would lead to what was sent; killed processes leave files behind |
//! | the lock that builds take of the device is held as long as the worker lives | a measurement beside another process is none |
//! | a step gets a list of devices in a folder of this worker, and takes its locks there | it would wait for the worker for ever |
//! | what the device shows is signed with the key of the worker, if it has one ([`crate::worker_key`]) | a record that nobody vouches for is a claim |
//! | the step sees that device only | the lock of another one is not held |
//! | tools are looked for once, when the worker starts | what is said of them only routes: the files of these tools are compared again for each step |

use std::path::PathBuf;

#[cfg(feature = "remote")]
mod advertised;
#[cfg(feature = "remote")]
mod serve;

use std::time::Duration;

use crate::Error;
use crate::worker_key::WorkerKeyError;
use kforge_engine::lock::LockError;

/// What a worker is asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotsRequest {
    /// The server: `grpcs://HOST:PORT`, or `grpc://HOST:PORT` without encryption.
    pub url: String,
    /// The instance at the server; if none is named, that of the settings.
    pub instance: Option<String>,
    /// The name of the worker; if none is named, the machine's and the number of this process.
    pub name: Option<String>,
    /// Whether the worker holds no device.
    pub without_device: bool,
}

/// What happens to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BotsSaid {
    /// It knows what it is, and asks the server for work.
    Serves {
        /// The server.
        url: String,
        /// The name of the worker.
        name: String,
        /// What it says of itself.
        properties: Vec<(String, String)>,
    },
    /// The machine lacks something that steps need. Servers send it no step that needs it.
    Lacks {
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The server knows it.
    Registered,
    /// The server cannot be used now, and why. It is asked again.
    Gone(String),
    /// A step begins.
    Began(String),
    /// A step has ended.
    Ended {
        /// The name of its lease.
        lease: String,
        /// Its exit code.
        code: i32,
        /// How long it took, with the transfer of its files.
        took: Duration,
    },
    /// A lease has no result.
    NoResult {
        /// Its name.
        lease: String,
        /// Why.
        why: String,
    },
}

/// Why this machine is no worker of a server.
#[derive(Debug, thiserror::Error)]
pub enum BotsError {
    /// This program cannot use a server.
    #[error("the server `{0}` is not used: this kforge was built without its feature `remote`")]
    NoFeature(String),
    /// The network is not to be used.
    #[error("the server `{0}` is not used: `--offline` or `net.offline` is set")]
    Offline(String),
    /// The address is none of a server.
    #[error("`{url}` is no address of a server: {why}")]
    Url {
        /// What was given.
        url: String,
        /// Why.
        why: String,
    },
    /// Another process holds every device.
    #[error("another process holds the device `{}`: end it, or leave the device out with `--no-device`", .0.join("`, `"))]
    Busy(Vec<String>),
    /// Locks are of no use.
    #[error(
        "the device `{device}` cannot be held: the file system of `{}` has no locks; leave the device out with `--no-device`",
        path.display()
    )]
    NoLocks {
        /// The device.
        device: String,
        /// The file of its lock.
        path: PathBuf,
    },
    /// The lock of a device cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A folder of the home cannot be written.
    #[error("`{}` cannot be written: {why}", path.display())]
    Unwritten {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// The key of the worker cannot be used.
    #[error(transparent)]
    Key(#[from] WorkerKeyError),
    /// The server, or what the settings say of it, cannot be used.
    #[error("the server `{url}` cannot be used: {why}")]
    Fails {
        /// Its address.
        url: String,
        /// Why.
        why: String,
    },
    /// The home or the devices of this machine cannot be used.
    #[error(transparent)]
    Other(#[from] Box<Error>),
}

/// A name of a product as servers' operators write it: `NVIDIA H200` is `nvidia-h200`.
#[cfg(feature = "remote")]
pub(crate) fn slug(product: &str) -> String {
    let words = product.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

impl crate::Session {
    /// Executes steps for a server until the session is interrupted.
    ///
    /// # Errors
    /// This machine is no worker of that server.
    pub fn serve_bots(&self, asked: &BotsRequest, say: Box<dyn Fn(BotsSaid)>) -> Result<(), BotsError> {
        if self.offline() {
            return Err(BotsError::Offline(asked.url.clone()));
        }
        self.as_bot(asked, say)
    }

    #[cfg(not(feature = "remote"))]
    fn as_bot(&self, asked: &BotsRequest, _: Box<dyn Fn(BotsSaid)>) -> Result<(), BotsError> {
        Err(BotsError::NoFeature(asked.url.clone()))
    }
}
