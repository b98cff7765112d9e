//! Kernels in Triton on `cpu`, and kernels in PyTorch: their compile and inspect steps, and the documents between them and the verification. Knows sources; runs
//! nothing of them. What runs them is `verifier/interpreter` and `verifier/torch`.
//!
//! | decision | reason |
//! |---|---|
//! | the "binary" is the text of the sources without comments, with lines of its own | a comment changes nothing behind its compilation |
//! | findings name lines of that text; the compilation's output `lines` leads to lines of the files | the same |
mod compile;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_types::model::triton::TritonParam;

pub(super) use compile::{compile, compile_torch, inspect, is_interpretable};

/// What the compilation of a kernel in PyTorch gives as its binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Importable {
    /// The file with what is called.
    pub(super) main: String,
    /// The texts of the files, by name.
    pub(super) files: BTreeMap<String, String>,
}

/// What the compilation of a kernel in Triton gives as its binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Interpretable {
    /// The file of the functions.
    main: String,
    /// The functions, by their names in launches.
    functions: BTreeMap<String, InterpretableFunction>,
    /// The texts of the files, by name.
    files: BTreeMap<String, String>,
}

/// A function that launches name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InterpretableFunction {
    /// Its name in the file.
    function: String,
    /// Its parameters.
    params: Vec<TritonParam>,
}
