//! The client for servers that speak the Remote Execution API (REAPI) of Bazel, as caches of results: BuildBarn, BuildBuddy, NativeLink, BuildGrid, buildbox-casd,
//! bazel-remote; and for the workers behind such servers. Knows keys, results, contents and actions; does not know kernels.
//!
//! | decision | because |
//! |---|---|
//! | a result lies under an address that is made of kforge's own key ([`address`]) | the key is a digest of everything that the step sees; the server need not have the inputs |
//! | only steps of workers are asked about, and no observation of a device | a pure step takes less time than a round trip, and evidence needs a signature |
//! | many questions are in flight at once, and contents are read in batches | ten thousand questions one after the other take minutes at 20 ms |
//! | an output is fetched when a step or a report reads it | most binaries are read by steps whose results are known as well |
//! | every content is compared with its digest | the server may be wrong; what a result *says* is the word of whoever may write to the cache |
//! | no error of the server is an error of the build | the step runs here instead; the first error is a warning, and after [`breaker::MOST`] in a row nothing more is sent |
//!
//! One thread ([`client`]) talks to the server. All other threads send it requests and wait for answers.

mod address;
mod batches;
mod blobs;
mod bots;
mod breaker;
mod cache;
mod capabilities;
mod client;
mod connection;
mod contents;
mod credentials;
mod digests;
mod entry;
mod error;
mod execute;
mod recheck;
mod retry;
mod step;
mod streams;
mod tree;
mod upload;

pub use blobs::RemoteBlobs;
pub use bots::{BotEvent, BotOptions, ExecuteIn, LeaseError, serve_bots};
pub use cache::{Remote, RemoteOptions, Sampled};
pub use capabilities::Capabilities;
pub use connection::{Access, Tls};
pub use entry::lacking;
pub use error::RemoteError;
pub use step::{Meaning, Program, ReadAnswer, RemoteStep, StepInput};
