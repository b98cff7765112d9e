// What of this package's code does steps, for `build.rs` and for `tests/layering`. Plain values.

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[Part {
    name: "foundation/documents",
    files: &["base/diag.rs", "base/digest.rs", "base/pieces.rs"],
    packages: &["blake3", "rayon", "serde", "serde_json"],
}];

/// Code that no key holds, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("base", "bytes, places and messages; what of it is in documents is listed"),
    ("process", "starts and ends processes; what they say is read by code that is listed"),
    ("config", "settings, which no step reads"),
];
