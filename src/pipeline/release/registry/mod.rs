//! Where artifacts are published: OCI registries over HTTP, and folders in the form of an OCI image layout. Knows manifests, digests and requests; does not
//! know whom a reader trusts, and prints nothing.
//!
//! | file | does |
//! |---|---|
//! | [`digest`] | the SHA-256 by which contents are named |
//! | [`reference`](mod@reference) | `oci://HOST/NAME:TAG`, `kernels://FOLDER`, and other places that people name |
//! | [`manifest`] | the manifests of artifacts and of their signatures |
//! | [`repository`] | what a place of publication can do, and how an artifact goes there and comes back |
//! | [`layout`] | the folder |
//! | [`remote`] | the registry |
//! | [`exchange`] | one HTTP request with its repetitions, redirects and logins |
//! | [`challenge`] | what a registry demands of a login |
//! | [`credentials`] | logins as Docker keeps them |
//!
//! | decision | because |
//! |---|---|
//! | folder and registry hold the same manifests, blobs and tags | what is in one can be copied to the other by any tool, and one reader serves both |
//! | the layer is the archive without its signature; signatures are manifests that refer to it | another signature changes neither the artifact nor its tag |
//! | the tag is written last | what has no name is not there: a publication that ends in the middle shows nothing |
//! | signatures are listed under the tag `sha256-HEX` wherever there is no API for referrers, so in folders too | the distribution specification says so, and it is one look-up |
//! | a reader checks every digest, and then verifies the artifact as if it lay beside it | neither a registry nor a folder is trusted |

pub mod challenge;
pub mod credentials;
pub mod digest;
pub mod error;
pub mod exchange;
pub mod layout;
pub mod manifest;
pub mod reference;
pub mod remote;
pub mod repository;

pub use digest::OciDigest;
pub use error::RegistryError;
pub use layout::Layout;
pub use reference::{Place, Reference, Version};
pub use remote::Remote;
pub use repository::{Publication, Pulled, Repository, Status};
