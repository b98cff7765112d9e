//! From the model to nodes: which steps exist, what each reads, and in which order they run. Pure: knows the model, digests of files and of toolchains; reads no file,
//! clock or environment.
//!
//! # What enters a key, and why
//!
//! Every key holds the kind, its semantic version, and the digest of kforge's own code that executes the step ([`kforge_types::record::implementation`] says which code that is);
//! steps that observe a device hold the version of a protocol instead. Besides:
//!
//! | kind | parameters | inputs | left out |
//! |---|---|---|---|
//! | generate | the source's name in the package | every file it can reach | tunables: a file is the same for all variants |
//! | compile | compiler, architecture, entries, macros, flags, whether a round tries it | the tree that generate gave; the toolchain with its sub-tools, libraries and headers; the emulator's headers | tunables the source cannot see |
//! | inspect | architecture, entries, whether to disassemble | the binary, what the compiler's log says | names |
//! | oracle | problem, trial, how outputs compare | files of the package's own functions that it calls (reference, inputs, checks) and what runs them; what of the processor numeric libraries choose by | the tolerance (unless `matched` is below one); the kernel |
//! | calibrate | tolerances; why nothing was computed | how null candidates compare | the kernels |
//! | verify | problem, launches, trials, how outputs compare | binary, inspection, expected digests, own functions as for oracle; on `cpu` the C library, libm, libstdc++ and what of the processor they choose by | the tolerance (unless `matched` is below one) |
//! | bench | problem, launches | binary, inspection | the device; tolerances |
//! | pairs | problem, launches of both, cold or hot | both binaries, inspections | the device; who was nominated |
//! | judge | tolerance | what verify saw | names, the device |
//! | match | signature | two inspections | which method it is |
//! | search | strategy, seed, budget, limits of the architecture, what is launched | the space by values; what the search step before knew; inspections, judgements and times that it asked for | names of tunables, variants and shapes; the device |
//! | select | declared order, classes, pins, margin; how near to the best counts as near, where it nominates or names variants to time in full | judgements, times, pairs | names of variants and shapes |
//! | attribute | threshold | match, pairs, judgements without the method | which method it is |
//! | profile | problem, launches, the metrics that are wanted | binary, inspection | the device; who is champion |
//! | roofline | operations, bytes and arithmetic of each bench shape, cold or hot | times, metrics | names of shapes |
//! | round | number, architecture, what is known of operator and kernel, methods, what was tried | roofline, attributions, the decision before | names |
//!
//! # What is added by results
//!
//! On a device target the plan is made in four phases ([`kforge_engine::Rank`]): all variants up to the select step that nominates; pairs of those near the
//! best; the select step that decides; ablation and profiles of its champions. On `cpu`, where nothing is timed, the first select step decides.
//!
//! A kernel whose space is searched begins before that: each search step decides which variants are compiled, sampled and timed next, and its result adds them and
//! the next search step, a wave after its own. The last one adds the select step that nominates among those visited.
//!
//! If a kernel has many variants, all are timed with few samples first; those that may be the fastest are timed in full in the next wave ([`finals`]).
//!
//! A kernel with rounds is planned from what is recorded of them, with one selection after each ([`rounds`]); only the decision of the round after the last is known
//! by results.
//!
//! Names of packages, kernels, operators and shapes are only in ids and labels, so equal work under other names is the same work.

mod compile_order;
pub mod bound;
pub mod context;
pub mod expand;
pub mod finals;
pub mod input;
pub mod kernels;
pub mod node_builder;
pub mod memory;
pub mod operators;
pub mod regression;
pub mod rounds;
pub mod search;
pub mod timing_steps;
pub mod variants;

pub use context::Planner;
pub use input::{Goal, PackageInput, PlanInput, Selection, Tool, Toolchains};
