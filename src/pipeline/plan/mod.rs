//! From the model to nodes: which steps exist, what each step reads, and in which order they run. Pure: knows the model, and digests of files and toolchains;
//! reads no file, clock or environment.
//!
//! # What enters a key, and why
//!
//! Every key holds the kind, its semantic version, and the digest of kforge's own code that executes the step ([`kforge_types::record::implementation`] says
//! which code that is). Steps that observe a device hold a protocol version instead of the digest. In addition:
//!
//! | kind | parameters | inputs | left out |
//! |---|---|---|---|
//! | generate | the source's name in the package | every file that it can reach | tunables: a file is the same for all variants |
//! | compile | compiler, architecture, entries, macros, flags, whether a round tries it | the tree from generate; the toolchain with its sub-tools, libraries and headers; the emulator's headers, and for a source with cub on `cpu` those of the CUDA release | tunables that the source cannot see |
//! | inspect | architecture, entries, whether to disassemble | the binary, the facts in the compiler's log | names |
//! | oracle | problem, trial, how outputs compare | files of the package's own functions that it calls (reference, inputs, checks) and what runs them; the processor features by which numeric libraries choose code | the tolerance (unless `matched` is below one); the kernel |
//! | calibrate | tolerances; outputs declared undecidable; why nothing was computed | how null candidates compare | the kernels, the selected shapes |
//! | verify | problem, launches, trials, how outputs compare, whether it runs in a process of its own | binary, inspection, expected digests, own functions as for oracle; on `cpu` the C library, libm, libstdc++ and the processor features by which they choose code | the tolerance (unless `matched` is below one) |
//! | bench | problem, launches, which outputs need a scale | binary, inspection | the device; tolerances |
//! | calls | problem, what is called, how outputs compare | the kernel's sources, own functions as for oracle; Python, the system's PyTorch by content, the releases of the libraries of CUDA beside it | the device; which variant is champion; tolerances (unless `matched` is below one) |
//! | pairs | problem, launches of both in an order that follows from content, cold or hot | both binaries, inspections | the device; which variants were nominated; who compares them |
//! | judge | tolerance, whether it confirms a champion | the observation of verify; whether the operator decides; for a champion that of bench, and for one in PyTorch that of calls in place of verify | names, the device |
//! | match | signature | two inspections | the method's name |
//! | search | strategy, seed, budget, limits of the architecture, launches | the space by values; the previous search step's state; inspections, judgements and times that it asked for | names of tunables, variants and shapes; the device |
//! | select | declared order, classes, pins, margin; the range that counts as near the best, if it nominates or names variants to time in full | judgements, times, pairs | names of variants and shapes |
//! | baseline | what is called and how, the champion's launches, cold or hot | the champion's binary, inspection; expected digests, own functions as for oracle; the files that the baseline can reach; Python, the system's PyTorch by content, the releases of the libraries of CUDA beside it | the device; the baseline's name; tolerances |
//! | rate | tolerance | the observation of the baseline; whether the operator decides | names, the device |
//! | attribute | threshold, margin, whether the champion uses the method | match, pairs, judgements without the method | the method's name |
//! | profile | problem, launches, the requested metrics | binary, inspection | the device; which variant is champion |
//! | roofline | operations, bytes and arithmetic of each bench shape, cold or hot | times, metrics | names of shapes |
//! | round | number, architecture, what is known of operator and kernel, methods, what was tried | roofline, attributions, the previous decision | names |
//!
//! # What is added by results
//!
//! On a device target the plan has four phases ([`kforge_engine::Rank`]): all variants up to the nominating select step; pairs of the variants near the best;
//! the deciding select step; ablation and profiles of its champions, and their confirmation once no challenge follows. If classes may split, two more come before the decision: the select step that knows the
//! champions of whole classes and names the variants that may be faster at one bench shape, and their pairs with the champions. On `cpu`, where nothing is
//! timed, the first select step decides.
//!
//! A kernel whose space is searched begins before that: each search step decides which variants are compiled, sampled and timed next. Its result adds them and
//! the next search step in the next wave. The last search step adds the nominating select step over the visited variants.
//!
//! Once no challenge can change the champions, their baselines are timed beside them ([`baselines`]), calls of those in PyTorch are timed ([`calls`]), and where
//! several kernels implement one operator, their champions take part in one more selection ([`leaders`]).
//!
//! If an attribution shows that the kernel without a method is faster than the champion, it takes part in a further selection ([`challenge`]).
//!
//! If a kernel has many variants, all are timed with few samples first; those that may be the fastest are timed in full in the next wave ([`finals`]).
//!
//! A kernel with rounds is planned from its recorded rounds, with one selection after each ([`rounds`]). Only the decision of the round after the last one
//! comes from results.
//!
//! Names of packages, kernels, operators and shapes are only in ids and labels, so the same work under other names has the same keys.

pub mod baselines;
pub mod calls;
pub mod challenge;
mod compile_order;
pub mod bound;
pub mod context;
pub mod expand;
pub mod finals;
pub mod index_width;
pub mod input;
pub mod kernels;
pub mod leaders;
pub mod node_builder;
pub mod memory;
pub mod operators;
mod pair_order;
pub mod regression;
pub mod rounds;
pub mod search;
pub mod timing_steps;
pub mod triton;
pub mod variants;

pub use context::Planner;
pub use input::{Goal, PackageInput, PlanInput, Selection, Tool, Toolchains};
