//! The code of kforge-emulator that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "emulator/compiler",
        files: &[
            "abi.rs",
            "asked.rs",
            "assembly.rs",
            "bounds.rs",
            "cccl.rs",
            "compile.rs",
            "cub.cuh",
            "error.rs",
            "foreign.rs",
            "headers.rs",
            "host_code.rs",
            "image.rs",
            "inspect.rs",
            "known_headers.rs",
            "launches.rs",
            "messages.rs",
            "pointers.rs",
            "prelude.rs",
            "ptx",
            "source_lines.rs",
            "unincluded.rs",
        ],
        packages: &["object"],
    },
    Part {
        name: "emulator/runtime",
        files: &[
            ".",
            "!asked.rs",
            "!assembly.rs",
            "!bounds.rs",
            "!cccl.rs",
            "!compile.rs",
            "!cub.cuh",
            "!foreign.rs",
            "!headers.rs",
            "!host_code.rs",
            "!include",
            "!inspect.rs",
            "!known_headers.rs",
            "!launches.rs",
            "!messages.rs",
            "!pointers.rs",
            "!prelude.rs",
            "!ptx",
            "!unincluded.rs",
        ],
        packages: &["addr2line", "libloading", "object"],
    },
];

/// Code that no key contains, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[("include", "enters as an input, `tree:emulator`")];
