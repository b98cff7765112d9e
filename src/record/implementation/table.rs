//! Which of kforge's own code does which step. Plain values, because the build script reads them too; knows names of files, not what is in them.
//!
//! A test follows the imports of every file listed here and fails on one that leads to code that is neither listed for the same work nor in [`APART`]. New files
//! in a listed folder are listed with it; a new folder has to be listed here before the tests pass.

/// Code that belongs together: files and folders below `src`, a `!` before what is left out of them, and the packages of `Cargo.lock` whose behaviour is in what
/// they make (those that they need count with them).
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Files and folders.
    pub files: &'static [&'static str],
    /// Packages.
    pub packages: &'static [&'static str],
}

const fn part(name: &'static str, files: &'static [&'static str], packages: &'static [&'static str]) -> Part {
    Part { name, files, packages }
}

/// All parts.
pub const PARTS: &[Part] = &[
    part(
        "documents",
        &[
            "base/diag.rs",
            "base/digest.rs",
            "record/inspection.rs",
            "record/observation.rs",
            "record/params.rs",
            "record/peaks.rs",
            "record/profile.rs",
            "record/result.rs",
            "record/spec.rs",
            "record/timing.rs",
            "record/verdict.rs",
        ],
        &["blake3", "serde", "serde_json"],
    ),
    part(
        "problems",
        &[
            "model/bound.rs",
            "model/coordinates.rs",
            "model/dtype.rs",
            "model/grid.rs",
            "model/operator.rs",
            "model/tensor_map.rs",
            "model/tolerance.rs",
            "model/launch.rs",
        ],
        &[],
    ),
    part("pure steps", &["step/io.rs"], &[]),
    part("tasks", &["worker/task.rs", "worker/message.rs"], &[]),
    part("generate", &["step/generate.rs"], &[]),
    part(
        "judge",
        &[
            "step/judge.rs",
            "measure/judge.rs",
            "measure/tolerate.rs",
            "measure/compare.rs",
            "measure/front.rs",
            "measure/pattern.rs",
        ],
        &[],
    ),
    part("calibrate", &["step/calibrate.rs", "measure/calibrate.rs"], &[]),
    part("match", &["step/matching.rs", "measure/signature.rs", "model/method.rs"], &["regex"]),
    part(
        "search",
        &[
            "step/search.rs",
            "measure/search",
            "measure/stats.rs",
            "model/limits.rs",
            "model/search.rs",
            "record/search.rs",
        ],
        &[],
    ),
    part("select", &["step/select.rs", "measure/select.rs", "measure/stats.rs"], &[]),
    part("attribute", &["step/attribute.rs", "measure/attribute.rs", "measure/stats.rs"], &[]),
    part(
        "roofline",
        &[
            "step/roofline.rs",
            "measure/ceiling.rs",
            "measure/roofline.rs",
            "measure/derived.rs",
            "measure/stats.rs",
            "model/method.rs",
            "record/metric.rs",
        ],
        &[],
    ),
    // With its data files: what the registry says of a method decides whether it is chosen.
    part(
        "round",
        &[
            "step/round.rs",
            "optimize/methods",
            "optimize/round",
            "!optimize/round/branches.rs",
            "model/method.rs",
            "record/metric.rs",
            "record/round.rs",
        ],
        &["regex", "toml"],
    ),
    part("references", &["reference"], &["libm", "matrixmultiply", "rayon"]),
    part(
        "own references",
        &[
            "worker/oracle",
            "worker/compilers.rs",
            "worker/confine.rs",
            "worker/confine",
            "worker/system.rs",
            "workspace/find.rs",
            "toolchain/cxx.rs",
            "toolchain/python.rs",
        ],
        &[],
    ),
    part(
        "comparison",
        &["worker/compare.rs", "measure/compare.rs", "measure/front.rs", "measure/judge.rs", "measure/pattern.rs"],
        &[],
    ),
    part(
        "emulator's compiler and inspection",
        &[
            "worker/serve/emulated.rs",
            "worker/compilers.rs",
            "worker/confine.rs",
            "worker/confine",
            "worker/emulator/abi.rs",
            "worker/emulator/assembly.rs",
            "worker/emulator/build.rs",
            "worker/emulator/foreign.rs",
            "worker/emulator/headers.rs",
            "worker/emulator/image.rs",
            "worker/emulator/inspect.rs",
            "worker/emulator/launches.rs",
            "worker/emulator/prelude.rs",
            "worker/system.rs",
            "workspace/includes.rs",
            "toolchain/cxx.rs",
        ],
        &["object"],
    ),
    part(
        "emulator",
        &[
            "worker/emulator",
            "!worker/emulator/assembly.rs",
            "!worker/emulator/build.rs",
            "!worker/emulator/foreign.rs",
            "!worker/emulator/headers.rs",
            "!worker/emulator/inspect.rs",
            "!worker/emulator/launches.rs",
            "!worker/emulator/prelude.rs",
        ],
        &["addr2line", "libloading", "object"],
    ),
    // With the language of expressions: grids that depend on the device are computed where they are launched.
    part(
        "judging process",
        &[
            "worker/judge",
            "worker/runner.rs",
            "worker/compilers.rs",
            "worker/confine.rs",
            "worker/confine",
            "model/expr",
        ],
        &["minijinja"],
    ),
    part(
        "CUDA compilers and inspection",
        &[
            "worker/compiled.rs",
            "worker/cuda",
            "!worker/cuda/device",
            "worker/compilers.rs",
            "worker/confine.rs",
            "worker/confine",
            "model/limits.rs",
            "toolchain/cxx.rs",
        ],
        &["libloading", "object"],
    ),
];

/// The kind of step, what it is for (`cpu`, `device`, or `any` where it asks for no architecture), and the parts that do it.
pub const WORK: &[(&str, &str, &[&str])] = &[
    ("generate", "any", &["documents", "pure steps", "generate"]),
    ("compile", "cpu", &["documents", "tasks", "emulator's compiler and inspection"]),
    ("compile", "device", &["documents", "problems", "tasks", "CUDA compilers and inspection"]),
    ("inspect", "cpu", &["documents", "tasks", "emulator's compiler and inspection"]),
    ("inspect", "device", &["documents", "problems", "tasks", "CUDA compilers and inspection"]),
    ("oracle", "any", &["documents", "problems", "tasks", "references", "own references", "comparison"]),
    ("calibrate", "any", &["documents", "problems", "pure steps", "judge", "calibrate"]),
    (
        "verify",
        "cpu",
        &[
            "documents",
            "problems",
            "tasks",
            "references",
            "own references",
            "comparison",
            "emulator",
            "judging process",
        ],
    ),
    ("judge", "any", &["documents", "problems", "pure steps", "judge"]),
    ("match", "any", &["documents", "pure steps", "match"]),
    ("search", "any", &["documents", "problems", "pure steps", "search"]),
    ("select", "any", &["documents", "problems", "pure steps", "select"]),
    ("attribute", "any", &["documents", "problems", "pure steps", "attribute"]),
    ("roofline", "any", &["documents", "problems", "pure steps", "roofline"]),
    ("round", "any", &["documents", "problems", "pure steps", "round"]),
];

/// Code of the rooms `reference`, `measure`, `worker` and `step`, and code that these use, that no key holds, and why.
pub const APART: &[(&str, &str)] = &[
    ("base", "bytes, places and messages; what of it is in documents is listed"),
    ("process", "starts and ends processes; what they say is read by code that is listed"),
    ("model", "what it makes of a manifest is in the parameters; what steps compute with is listed"),
    ("record", "names, events and classes of devices; what is in documents is listed"),
    ("engine", "carries specs and results, and looks into neither"),
    ("workspace", "what it finds enters as inputs; what steps use of it is listed"),
    ("toolchain", "what it finds enters as inputs; what steps use of it is listed"),
    ("worker/emulator/include", "enters as an input, `tree:emulator`"),
    ("worker/cuda/shim", "enters as an input, `tree:shim`"),
    ("worker/entry.rs", "a command line"),
    ("worker/execute.rs", "lays out inputs and keeps outputs by digest"),
    ("worker/stage.rs", "lays out inputs and keeps outputs by digest"),
    ("worker/mod.rs", "declares"),
    ("worker/once.rs", "a command line"),
    ("worker/pool.rs", "keeps processes"),
    ("worker/turns.rs", "says who goes first"),
    ("worker/serve.rs", "the loop around a step"),
    ("worker/serve", "the table of what does which step; what does them is listed"),
    (
        "worker/cuda/device",
        "observes devices: the protocols in the parameters stand for it; products that it makes for the oracle have the bits of those made here",
    ),
    ("measure/floor.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/units.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("measure/sampling.rs", "decides while a device is observed: the protocols in the parameters stand for it"),
    ("worker/virtual_device", "only in test builds, with protocols of its own"),
    ("measure/mod.rs", "declares"),
    ("measure/score.rs", "figures for reports, which no step makes"),
    ("optimize/round/branches.rs", "answers for agents, whose answers are kept by content"),
    ("step/mod.rs", "declares"),
    ("step/runners.rs", "the table of what does which step; what does them is listed"),
];
