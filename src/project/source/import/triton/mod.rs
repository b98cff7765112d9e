//! A manifest for kernels in Triton that somebody has: parameters, tunables from `@triton.autotune`, constants from `@triton.heuristics`, and grids from launches.
//! Pure: takes what a parser says of the sources, gives a text. Operators, shapes and their checks are those of kernels in CUDA C++.
//!
//! | decision | reason |
//! |---|---|
//! | a parameter that is no address names a dim, also where the launcher names it otherwise | the kernel's names are those of `args` |
//! | strides are those of contiguous tensors | kforge allocates tensors so unless an operator states strides |
//! | the configurations of `@triton.autotune` are tunables, and `where` admits only their combinations | what nobody tried may not fit a device |
//! | a constant that a launch states as a number is a tunable with one value | a grid can name it, and more values are easily added |
//! | tensors have the type `T` | a kernel in Triton takes its types from its arguments |

mod facts;
mod kernel;
mod table;

use std::collections::BTreeMap;

pub use facts::{Heuristic, PythonConfig, PythonFile, PythonKernel, PythonLaunch, PythonParam};

use super::guess::Guess;
use super::kernel::Kernel;
use super::manifest::{Writer, written};
use super::operators::Operator;
use super::{ImportedManifest, UnreadFile};
use kernel::Found;
pub(super) use kernel::TYPE;

/// Writes the manifest of a package for the kernels in these files. Names are relative to the package's folder.
pub fn import_triton(package: &str, files: &BTreeMap<String, PythonFile>) -> ImportedManifest {
    let mut found: Vec<Found<'_>> = vec![];
    let mut unread = vec![];
    for (file, facts) in files {
        unread.extend(facts.error.iter().map(|why| UnreadFile { file: file.clone(), why: why.clone() }));
        found.extend(facts.functions.iter().map(|function| Found::read(file, function, &facts.launches)));
    }
    let kernels: Vec<Kernel> = found.iter().map(|found| found.kernel.clone()).collect();
    let skipped: Vec<String> =
        unread.iter().map(|file: &UnreadFile| format!("`{}`: {}", file.file, file.why)).collect();
    let command = "kforge import triton";
    let head = "# which verifies small shapes without a GPU, and `kforge check`, which compiles everything here for the other targets.\n";
    let targets = "[targets.cpu] # Triton's interpreter: runs anywhere with numpy, verifies small shapes, does not time\n\
                   [targets.sm_90a]\narch = \"sm_90a\" # the architecture of your GPU, with `a` from sm_90 on; `kforge doctor` shows it\n";
    let table = |out: &mut String, name: &str, operator: &Operator, index: usize, guess: &Guess| {
        table::write(out, name, operator, &found[index], guess);
    };
    let writer = Writer { command, head, targets, table: &table };
    let written = written(package, &kernels, &skipped, &writer);
    let (known, operators) = written.operators;
    ImportedManifest {
        text: written.text,
        kernels: written.kernels,
        operators,
        known,
        checks: written.checks,
        unfinished: vec![],
        unread,
    }
}
