//! The code that operations share: settings, workspace, stores, toolchains, plan, engine. Opens resources and passes them to the packages that use them.

mod agreement;
pub mod build;
pub(crate) mod candidates;
pub mod certificate;
pub(crate) mod champions;
mod claims;
pub mod devices;
pub mod evidence_policy;
mod entries;
pub(crate) mod fresh_home;
mod generated;
pub(crate) mod lacking_pythons;
pub(crate) mod git;
pub(crate) mod package_files;
pub(crate) mod libraries;
mod missing_inputs;
pub mod needs;
pub(crate) mod known_devices;
pub mod machine;
mod machine_key;
pub(crate) mod memory;
mod methods;
pub(crate) mod open;
pub mod outdated;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod remote;
mod remote_devices;
#[cfg(feature = "remote")]
mod remote_observations;
#[cfg(feature = "remote")]
pub(crate) mod remote_workers;
pub mod request;
pub mod rounds;
pub(crate) mod shared;
pub(crate) mod sources;
pub(crate) mod standing;
mod stored;
pub mod tools;
pub mod trust;
mod tunables;
pub(crate) mod workers;
mod written_kernel;

pub use open::{Opened, Options, Session, Worker};
pub use shared::Shared;
