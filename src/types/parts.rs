//! The code of kforge-types that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "types/documents",
        files: &[
            "record/contract.rs",
            "record/diagnosis.rs",
            "record/inspection.rs",
            "record/machine_code.rs",
            "record/observation.rs",
            "record/params.rs",
            "record/peaks.rs",
            "record/profile.rs",
            "record/result.rs",
            "record/spec.rs",
            "record/timing.rs",
            "record/tool_message.rs",
            "record/verdict.rs",
        ],
        packages: &["serde", "serde_json"],
    },
    Part {
        name: "types/problems",
        files: &[
            "model/bound.rs",
            "model/coordinates.rs",
            "model/dtype.rs",
            "model/grid.rs",
            "model/operator.rs",
            "model/tensor_map.rs",
            "model/specialise.rs",
            "model/triton.rs",
            "model/tolerance.rs",
            "model/torch.rs",
            "model/policy.rs",
            "model/launch.rs",
            "model/layout.rs",
            "model/real.rs",
        ],
        packages: &[],
    },
    Part { name: "types/fatbins", files: &["record/fatbin.rs"], packages: &["object"] },
    // The files beside the descriptor of a kind: one part for each kind, so that a new kind needs no line here.
    Part { name: "types/kinds/*", files: &["record/kind/*/documents.rs"], packages: &[] },
    Part { name: "types/methods", files: &["model/method.rs"], packages: &[] },
    Part { name: "types/metrics", files: &["record/metric.rs"], packages: &[] },
    Part { name: "types/limits", files: &["model/limits.rs"], packages: &[] },
    Part { name: "types/search", files: &["model/search.rs", "record/search.rs"], packages: &[] },
    Part { name: "types/rounds", files: &["record/round.rs"], packages: &[] },
    // Grids that depend on the device are computed when they are launched.
    Part { name: "types/expressions", files: &["model/expr"], packages: &["libm"] },
];

/// Code that enters no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("model", "what it makes of a manifest is in the parameters; what steps compute with is listed"),
    ("record", "names, events and classes of devices; what is in documents is listed"),
];
