//! The code of kforge-project that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part { name: "project/paths", files: &["workspace/find.rs"], packages: &[] },
    Part { name: "project/host-code", files: &["source", "!source/import", "!source/python.rs"], packages: &[] },
    Part { name: "project/includes", files: &["workspace/includes.rs"], packages: &[] },
    Part { name: "project/c++", files: &["toolchain/cxx.rs"], packages: &[] },
    Part { name: "project/python", files: &["toolchain/python.rs"], packages: &[] },
];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("source/import", "writes manifests for people; no step uses it"),
    ("source/python.rs", "what it finds is in the parameters of compilations"),
    ("workspace", "what it finds enters as inputs; what steps use of it is listed"),
    ("toolchain", "what it finds enters as inputs; what steps use of it is listed"),
];
