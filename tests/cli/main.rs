//! The command line: every command as people run it, in separate folders and homes, without a network. Builds are of a few elements on `cpu`.

mod completions;
mod docs;
mod edits;
mod embed;
mod exports;
mod faults;
#[path = "../installed/folders.rs"]
mod folders;
mod helps;
mod history;
mod queries;
mod rebuilds;
mod imports;
mod imports_gpu_mode;
mod imports_kernelbench;
mod imports_traces;
mod imports_triton;
mod imports_tuner;
mod pages;
mod place;
mod releases;
mod schemas;
mod shared;
mod starts;
mod workflow_file;
mod workflows;
