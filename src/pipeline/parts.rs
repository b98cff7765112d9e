//! The code of kforge-pipeline that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    // One part for each file or folder, so that a new kind of step needs no line here.
    Part { name: "pipeline/*", files: &["step/*", "!step/mod.rs", "!step/io.rs", "!step/round.rs"], packages: &[] },
    Part { name: "pipeline/documents", files: &["step/io.rs"], packages: &[] },
    // With its data files, because the registry's entry for a method decides whether the method is chosen.
    Part {
        name: "pipeline/round",
        files: &["step/round.rs", "optimize/methods", "optimize/round", "!optimize/round/branches.rs"],
        packages: &["toml"],
    },
];

/// Code that is in no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("lib.rs", "declares"),
    ("plan", "all that it decides is in the parameters and inputs"),
    ("optimize", "what it proposes is kept as recorded answers, by content; what steps use of it is listed"),
    ("report", "shows results, and shapes none"),
    ("release", "carries results, and shapes none"),
    ("step/mod.rs", "registers what does which step; what does them is listed"),
];
