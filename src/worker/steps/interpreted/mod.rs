//! Kernels in Triton on `cpu`: compile, inspect, and the runs of a verification, by the interpreter that comes with Triton. Knows Python and its processes; the
//! verifier decides what is run, and what the results mean.
//!
//! | decision | reason |
//! |---|---|
//! | the "binary" is the text of the sources without comments, with lines of its own | a comment changes nothing behind its compilation |
//! | findings name lines of that text; the compilation's output `lines` leads to lines of the files | the same |
//! | Python runs confined in a process of its own, as references do | a source is a program that runs while it is imported |
//! | what a source takes from PyTorch does nothing (`kforge_jitted.py`) | only wrappers around kernels use it |
//! | buffers are the verifier's memory files, mapped (`kforge_memory.py`) | nothing is copied, and the judge reads them after the process has ended |
//! | every access is checked before it happens (`kforge_memory.py`) | the interpreter follows any address |
//! | programs run in three orders; what nothing orders is a race (`kforge_memory.py`) | a device runs programs at once |
//! | arithmetic of bf16 and fp8 is replaced (`kforge_narrow.py`) | the interpreter computes with their bits as integers |
//! | what is not replaced there, and what the interpreter lacks, is not emulated | an unknown result is better than a wrong one |
//! | all runs of several trials are in one process | importing Triton takes half a second, and a Triton function keeps nothing between launches |

mod compile;
mod run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_harness::triton::{JITTED, JITTED_NAME};
use kforge_types::model::triton::TritonParam;

pub(super) use compile::{compile, inspect, is_interpretable};
pub(super) use run::Interpreted;

/// What a compilation gives as its binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Interpretable {
    /// The file of the function.
    main: String,
    /// The function.
    function: String,
    /// Its parameters.
    params: Vec<TritonParam>,
    /// The texts of the files, by name.
    files: BTreeMap<String, String>,
}

/// The programs in Python by their names in a working folder. `driver.py` and `normalise.py` are started.
const PROGRAMS: [(&str, &str); 5] = [
    ("driver.py", include_str!("driver.py")),
    ("normalise.py", include_str!("normalise.py")),
    ("kforge_memory.py", include_str!("kforge_memory.py")),
    ("kforge_narrow.py", include_str!("kforge_narrow.py")),
    (JITTED_NAME, JITTED),
];
