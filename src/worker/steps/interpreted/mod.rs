//! Kernels in Triton on `cpu`: their compile and inspect steps, and the document between them and the verification. Knows sources; runs nothing of them. What
//! runs them is `verifier/interpreter`.
//!
//! | decision | reason |
//! |---|---|
//! | the "binary" is the text of the sources without comments, with lines of its own | a comment changes nothing behind its compilation |
//! | findings name lines of that text; the compilation's output `lines` leads to lines of the files | the same |
mod compile;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_types::model::triton::TritonParam;

pub(super) use compile::{compile, inspect, is_interpretable};

/// What a compilation gives as its binary.
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
