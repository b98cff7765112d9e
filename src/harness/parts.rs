//! The code of kforge-harness that executes steps: which of it enters keys, and why the rest does not. Knows names of files and packages; `build.rs` reads
//! them, and `tests/layering` checks them.

use super::Part;

/// Code that enters keys.
pub(crate) const PARTS: &[Part] = &[
    Part { name: "harness/tasks", files: &["task.rs", "message.rs"], packages: &[] },
    Part { name: "harness/confinement", files: &["compilers.rs", "confine.rs", "confine"], packages: &[] },
    Part { name: "harness/system", files: &["system.rs"], packages: &[] },
    Part { name: "harness/trees", files: &["trees.rs"], packages: &[] },
    Part { name: "harness/triton", files: &["triton.rs", "triton"], packages: &[] },
    // `safetensors` reads only where a tensor lies in a file. Its dependencies differ with features that a workspace enables and a crate by itself does not.
    Part { name: "harness/python", files: &["python_server.py", "python_server.rs", "oracle/known.py"], packages: &[] },
    Part { name: "harness/references", files: &["oracle", "!oracle/known.py"], packages: &[] },
    Part { name: "harness/candidates", files: &["candidate", "machine.rs"], packages: &[] },
    Part { name: "harness/comparison", files: &["compare.rs"], packages: &[] },
    Part {
        name: "harness/verification",
        files: &["fresh.rs", "layout.rs", "memory_file.rs", "observer.rs", "reports.rs", "runner.rs"],
        packages: &[],
    },
    Part { name: "harness/arguments", files: &["arguments.rs"], packages: &[] },
];

/// Code that is in no key, and why.
#[cfg(test)]
pub(crate) const APART: &[(&str, &str)] = &[
    ("lib.rs", "declares"),
    ("baseline", "runs while a device is observed: the protocol in the parameters stands for it"),
    ("elsewhere.rs", "says whether a machine is the one that a key states; what a step gives there is the same"),
    ("execute.rs", "lays out inputs and keeps outputs by digest"),
    ("stage.rs", "lays out inputs and keeps outputs by digest"),
    ("pool.rs", "keeps processes"),
    ("hangs.rs", "decides only whether a step is launched; what it gives is not stored"),
    ("device_slots.rs", "says which step goes first"),
    ("problem_sets", "describes tasks for an import, which is no step"),
];
