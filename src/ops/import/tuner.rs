//! Imports a cache of Kernel Tuner as hints: the values of tunables that the search of a kernel visits first. No time of the cache is kept.

use std::path::PathBuf;

use crate::edit::{manifest_of, replaced};
use crate::{Error, Session};
use kforge_project::source::import::tuner::{Cache, CacheFault, Hints, with_hints};
use kforge_types::model::Strategy;

/// The request for hints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TunerRequest {
    /// The cache, relative to the session's folder.
    pub path: PathBuf,
    /// The kernel of the current package.
    pub kernel: String,
    /// Pairs of a parameter of the cache and a tunable of the kernel.
    pub renamed: Vec<(String, String)>,
    /// The most hints.
    pub most: usize,
    /// Whether the manifest stays as it is.
    pub dry_run: bool,
}

/// What a cache gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedHints {
    /// The hints.
    pub hints: Hints,
    /// What the cache says of itself: device and kernel.
    pub of: (String, String),
    /// The manifest.
    pub manifest: PathBuf,
}

/// Why a cache gives no hints to a kernel.
#[derive(Debug, thiserror::Error)]
pub enum TunerError {
    /// It cannot be read.
    #[error("cannot read `{}`: {why}", path.display())]
    Unreadable {
        /// The cache.
        path: PathBuf,
        /// Why.
        #[source]
        why: std::io::Error,
    },
    /// It gives none.
    #[error("`{}`: {why}", path.display())]
    Cache {
        /// The cache.
        path: PathBuf,
        /// Why.
        #[source]
        why: CacheFault,
    },
    /// There is no such kernel with tunables of its own.
    #[error("the manifest has no kernel `{0}` with a `tune` of its own")]
    NoKernel(String),
    /// Its search visits every variant.
    #[error(
        "the search of `{0}` visits every variant, so the order of hints has no effect: state a `tune.strategy` such as `\"model\"`"
    )]
    Exhaustive(String),
}

/// Writes the fastest configurations of a cache into the manifest of the current package.
///
/// # Errors
/// [`TunerError`], or the manifest cannot be read, would have errors, or cannot be written.
pub fn kernel_tuner(session: &Session, request: &TunerRequest) -> Result<ImportedHints, Error> {
    let path = &request.path;
    let text = std::fs::read_to_string(session.cwd.join(path));
    let text = text.map_err(|why| TunerError::Unreadable { path: path.clone(), why })?;
    let fault = |why| TunerError::Cache { path: path.clone(), why };
    let cache = Cache::read(&text).map_err(fault)?;
    let (manifest, text, package) = manifest_of(session)?;
    let no_kernel = || TunerError::NoKernel(request.kernel.clone());
    let kernel = package.iter().flat_map(|package| &package.kernels).find(|k| k.name == request.kernel);
    let kernel = kernel.ok_or_else(no_kernel)?;
    if kernel.search.strategy == Strategy::Exhaustive {
        return Err(TunerError::Exhaustive(request.kernel.clone()).into());
    }
    let tunables: Vec<_> = kernel.tune.iter().map(|(name, values)| (name.value.clone(), values.clone())).collect();
    let hints = cache.hints(&tunables, &request.renamed, request.most).map_err(fault)?;
    let edited = with_hints(&text, &request.kernel, &hints.hints).ok_or_else(no_kernel)?;
    replaced(&manifest, edited, request.dry_run)?;
    Ok(ImportedHints { hints, of: (cache.device, cache.kernel), manifest })
}
