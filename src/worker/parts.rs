//! The code of kforge-worker that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    // One part per file or folder, so that a new kind of step needs no line here.
    Part { name: "worker/*", files: &["steps/*"], packages: &[] },
];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("lib.rs", "declares"),
    ("entry.rs", "a command line"),
    ("once.rs", "a command line"),
    ("serve.rs", "the loop around a step"),
    ("steps.rs", "registers what does which step; what does them is listed"),
    ("virtual_device", "only in test builds, with protocols of its own"),
];
