//! The code of kforge-cuda that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "cuda/compilers",
        files: &[".", "!device", "!fatbinary.rs", "!shim"],
        packages: &["libloading", "object"],
    },
    Part { name: "cuda/fatbinary", files: &["fatbinary.rs"], packages: &[] },
];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("shim", "enters as an input, `tree:shim`"),
    (
        "device",
        "observes devices: the protocols in the parameters stand for it; products that it makes for the oracle have the bits of those made here",
    ),
];
