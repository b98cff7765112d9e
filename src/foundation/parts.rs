//! The code of kforge-foundation that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[Part {
    name: "foundation/documents",
    files: &["base/diag.rs", "base/digest.rs", "base/pieces.rs"],
    packages: &["blake3", "rayon", "serde", "serde_json"],
}];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("base", "bytes, places and messages; what enters documents is listed"),
    ("process", "starts and ends processes; code that is listed reads their output"),
    ("config", "settings; no step reads them"),
];
