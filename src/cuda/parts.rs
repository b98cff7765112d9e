// The code of this package that executes steps, for `build.rs` and for `tests/layering`. Plain values.

/// Code that enters keys.
pub(crate) const PARTS: &[Part] =
    &[Part { name: "cuda/compilers", files: &[".", "!device", "!shim"], packages: &["libloading", "object"] }];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("shim", "enters as an input, `tree:shim`"),
    (
        "device",
        "observes devices: the protocols in the parameters stand for it; products that it makes for the oracle have the bits of those made here",
    ),
];
