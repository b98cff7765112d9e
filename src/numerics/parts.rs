//! The code of kforge-numerics that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part { name: "numerics/references", files: &["reference"], packages: &["libm", "matrixmultiply"] },
    Part {
        name: "numerics/comparison",
        files: &[
            "measure/compare.rs",
            "measure/diagnosed",
            "measure/front.rs",
            "measure/judge.rs",
            "measure/pattern.rs",
        ],
        packages: &[],
    },
    Part { name: "numerics/diagnosis", files: &["measure/diagnose"], packages: &[] },
    Part { name: "numerics/tolerance", files: &["measure/confirm.rs", "measure/own_share.rs", "measure/tolerate.rs"], packages: &[] },
    Part { name: "numerics/calibration", files: &["measure/calibrate.rs", "measure/deciding.rs"], packages: &[] },
    Part { name: "numerics/signatures", files: &["measure/signature.rs"], packages: &["regex"] },
    Part {
        name: "numerics/statistics",
        files: &["measure/orders.rs", "measure/paired.rs", "measure/stats.rs"],
        packages: &[],
    },
    Part { name: "numerics/search", files: &["measure/search"], packages: &[] },
    Part { name: "numerics/selection", files: &["measure/select.rs", "measure/split.rs"], packages: &[] },
    Part { name: "numerics/attribution", files: &["measure/attribute.rs"], packages: &[] },
    Part {
        name: "numerics/roofline",
        files: &["measure/ceiling.rs", "measure/roofline.rs", "measure/derived.rs"],
        packages: &[],
    },
];

/// Code that no key contains, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("lib.rs", "declares"),
    ("measure/mod.rs", "declares"),
    ("measure/floor.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/units.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/implausible.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/sampling.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/score.rs", "figures for reports, which no step makes"),
    ("measure/reward.rs", "figures for exports, which no step makes"),
    ("measure/apart.rs", "figures for reports, which no step makes"),
    ("measure/interval.rs", "figures for reports, which no step makes"),
];
