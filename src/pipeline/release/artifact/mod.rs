//! Artifacts: the champions of a package with everything that a user of them needs to judge and load them. Knows formats and conditions; plans, compiles and
//! signs nothing.
//!
//! | file | does |
//! |---|---|
//! | [`files`] | the files of an artifact by name, and the index that names each with its digests |
//! | [`kernels`] | `kernels.json`: launches, dispatch, verdicts, times and records |
//! | [`tar`](mod@tar) | the archive form |
//! | [`statement`] | the in-toto statement with its SLSA provenance |
//! | [`spdx`] | the bill of materials |
//! | [`check`] | what an artifact claims, against its own evidence and sources |
//!
//! | decision | because |
//! |---|---|
//! | the index lists every other file with size, SHA-256 and BLAKE3 | people have `sha256sum`; kforge's records name contents by BLAKE3 |
//! | the root is the SHA-256 of the lines that `sha256sum` prints for these files, sorted by name | a shell computes it |
//! | only the index is signed | it names everything else by digest |
//! | no file holds the time, the user, or a path of the machine that packed it | equal inputs give equal bytes. Records hold the times of observations |
//! | the archive is an uncompressed tar | compressors change between versions |
//! | the contents of the evidence are packed with xz | they are more than half of an artifact of one kernel, and deflate does not see how much alike they are |
//! | the evidence is a bundle of the usual format without a signature | the signature of the index covers it; whoever packs vouches for the standing of its records |
//! | PTX is marked as without evidence in the index, in `kernels.json` and in the bill of materials | a driver makes other machine code of it than what was verified |
//! | a fatbin holds what lies beside it, uncompressed; one with PTX has the mark of PTX | a reader compares the bytes without a tool |
//! | sources and the manifest lie in `source/` as a package that builds | whoever doubts a binary rebuilds it |

pub mod check;
pub mod error;
pub mod files;
pub mod kernels;
pub mod spdx;
pub mod statement;
pub mod tar;

pub use error::ArtifactError;
pub use files::{ArtifactFiles, FileEntry, Index};
pub use kernels::KernelsDocument;

/// The index.
pub const INDEX: &str = "kforge-artifact.json";
/// The SSH signature of the bytes of the index.
pub const INDEX_SIGNATURE: &str = "kforge-artifact.json.sig";
/// The launches, verdicts and times of kernels.
pub const KERNELS: &str = "kernels.json";
/// The bundle of evidence.
pub const EVIDENCE: &str = "evidence.kfe";
/// The in-toto statement.
pub const STATEMENT: &str = "provenance.intoto.json";
/// The bill of materials.
pub const SBOM: &str = "sbom.spdx.json";
/// The folder of machine code, and of PTX and fatbins beside it.
pub const BINARIES: &str = "binaries";
/// The ending of files with PTX.
pub const PTX_ENDING: &str = ".ptx";
/// The ending of fatbins.
pub const FATBIN_ENDING: &str = ".fatbin";
/// The folder of the package's sources.
pub const SOURCE: &str = "source";
/// The folder of sources that kforge generated from templates.
pub const GENERATED: &str = "generated";
