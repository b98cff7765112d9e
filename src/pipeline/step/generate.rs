//! generate, from a file: the source and every file that it can reach, as one tree.

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::count;
use kforge_types::record::params::GenerateParams;
use kforge_types::record::spec::Tree;

use super::io;

/// The prefix of the inputs that are files of the tree.
const FILE: &str = "file:";

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: GenerateParams = io::params(job)?;
    let mut tree = Tree::default();
    for (name, input) in &job.spec.inputs {
        if let (Some(file), Some(digest)) = (name.strip_prefix(FILE), input.digest) {
            // Store the bytes now, because the file may change while the build runs.
            io::bytes(job, name)?.map(|b| job.blobs.put(&b)).transpose().map_err(|e| RunError::io("", &e))?;
            tree.files.insert(file.to_string(), digest);
        }
    }
    let summary = match tree.files.len() {
        1 => params.main,
        n => format!("{} and {}", params.main, count(n - 1, "header")),
    };
    io::one(job, "source", &tree, summary)
}
