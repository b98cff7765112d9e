//! What operations share: settings, workspace, stores, toolchains, plan, engine. Opens things and hands them to packages that know them.

mod agreement;
pub mod build;
pub mod candidates;
pub mod certificate;
pub mod champions;
pub mod devices;
mod entries;
mod generated;
pub mod leaves;
pub mod libraries;
mod lost;
pub mod machine;
pub mod memory;
mod methods;
pub mod open;
pub mod outdated;
pub mod places;
pub mod plan;
pub mod rounds;
pub mod sources;
pub mod standing;
pub mod tools;
pub mod workers;
mod written;

pub use open::{Opened, Options, Session, Worker};
