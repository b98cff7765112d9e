// What of this package's code does steps, for `build.rs` and for `tests/layering`. Plain values.

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part { name: "worker/emulated", files: &["serve/emulated.rs"], packages: &[] },
    Part { name: "worker/compiled", files: &["compiled.rs"], packages: &[] },
    Part { name: "worker/verifier", files: &["verifier"], packages: &[] },
];

/// Code that no key holds, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("lib.rs", "declares"),
    ("entry.rs", "a command line"),
    ("once.rs", "a command line"),
    ("serve.rs", "the loop around a step"),
    ("serve/dispatch.rs", "the table of what does which step; what does them is listed"),
    ("virtual_device", "only in test builds, with protocols of its own"),
];
