//! What `kforge import` found, as a document for programs. Knows names and places; reads no sources.

use serde::Serialize;

/// What `kforge import cuda --message-format json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ImportDocument {
    /// Version of this format.
    pub format_version: u32,
    /// The name of the package.
    pub package: String,
    /// The manifest that was written; none if it was only printed.
    pub manifest_path: Option<String>,
    /// How many sources were read.
    pub sources: usize,
    /// How many operators the manifest has, those in comments included.
    pub operators: usize,
    /// How many of them have a reference. The others and their kernels are comments of the manifest.
    pub known_operators: usize,
    /// How many lines end in `# check: ...`.
    pub checks: usize,
    /// The kernels by source and line.
    pub kernels: Vec<ImportedKernelDocument>,
    /// Files that were left out.
    pub skipped: Vec<SkippedFileDocument>,
}

/// A kernel of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ImportedKernelDocument {
    /// Its name.
    pub name: String,
    /// The file that defines it, relative to the package.
    pub source: String,
    /// The line at which it is defined, from 1.
    pub line: u32,
    /// Its entry.
    pub entry: String,
    /// Its operator.
    pub operator: String,
    /// Whether the operator has a reference. Otherwise the kernel is a comment of the manifest.
    pub known_operator: bool,
    /// The launch that was read, as `file:line`; none if no launch was found.
    pub launched_at: Option<String>,
    /// How many of its lines end in `# check: ...`.
    pub checks: usize,
}

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SkippedFileDocument {
    /// The file, relative to the package.
    pub path: String,
    /// Why it was left out.
    pub reason: String,
}
