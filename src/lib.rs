//! kforge: Cargo for GPU kernels. This page is the map: of the house, of the files kforge writes, and of the way data takes.
//!
//! # The house
//!
//! The rooms stand below in their order of import: a file uses only rooms above its own. `tests/layering` reads the imports and fails on one that runs
//! back, and on files, clock, environment or processes in a pure room (*).
//!
//! | room | does |
//! |---|---|
//! | [`base`] | digests, the canonical encoding of keys, diagnostics with spans, atomic files |
//! | [`process`] | child processes: groups, limits, capture, time-outs |
//! | [`model`] * | `kernel.toml` to a typed model: parse, validate, expressions, binding |
//! | [`record`] * | what is said and kept: verdicts, outcomes, specs, observations, events |
//! | [`reference`] | built-in operators: f64 oracle, cost, input generators, null candidates |
//! | [`measure`] * | comparison, judgement, calibration, signatures, statistics, selection, attribution, search over tunables |
//! | [`config`] | settings from files, environment and flags; the only reader of the environment |
//! | [`workspace`] | root, members, inheritance, selection, includes, lockfile |
//! | [`toolchain`] | find, install and fingerprint compilers |
//! | [`engine`] | nodes, scheduler, journal, stores, locks, evidence, collection; the traits behind which others stand |
//! | [`plan`] * | model to nodes; expansion by results; the candidates of recorded rounds |
//! | [`worker`] | worker processes: compilers, the judge, the runner, the SIMT emulator |
//! | [`optimize`] * | templates that make kernels from operators; the registry of methods; what a round tries; agents (of these [`optimize::agents::ask`] alone touches the world) |
//! | [`step`] | one file a kind of step |
//! | [`report`] * | results to values, text, markdown, JSON |
//! | [`release`] | what leaves and comes: evidence bundles; how one state compares with another |
//! | [`cli`] | one thin file a command; the only printer |
//!
//! # The way data takes
//!
//! `kernel.toml` is parsed into a [`model::Package`]; [`workspace`] finds every file its kernels can reach; [`plan`] makes nodes of both; [`engine`] binds a
//! node's inputs to contents, forms its key, and asks the journal, the shared cache and the evidence index. Only what nobody knows is run: pure kinds in
//! [`step`], the rest by a [`worker`] process, which starts a confined runner for candidate code. What a step saw is an observation; a judgement is a pure
//! function of observations and policy; [`report`] makes of both what people read.
//!
//! # Files kforge writes
//!
//! | where | what |
//! |---|---|
//! | `kforge.lock` | what was resolved and pinned; committed with the sources |
//! | `evidence/*.kfe` | bundles of evidence, written by `kforge evidence export`; committed beside the manifest ([`release::bundle`]) |
//! | `target/kforge/journal` | this workspace's memory: stats of leaves, keys and results of steps ([`engine::journal`]) |
//! | `target/kforge/certificate` | proof that the last build still has nothing to do ([`engine::certificate`]) |
//! | `target/kforge/generated/` | the sources that templates and agents made, by package and kernel, to be read |
//! | `target/kforge/report.json` | what the last build found |
//! | `target/kforge/root` | the folder of the workspace when its candidates were last remembered |
//! | `target/kforge/.lock` | held while a build runs |
//! | `$KFORGE_HOME/cas/` | contents by digest, read-only ([`engine::blobs`]) |
//! | `$KFORGE_HOME/actions/` | results by key ([`engine::action`]) |
//! | `$KFORGE_HOME/evidence/` | observations of devices by question ([`engine::evidence`]) |
//! | `$KFORGE_HOME/devices/` | what the driver says of devices, for workers; a file for each set that was visible |
//! | `$KFORGE_HOME/answers/` | what agents answered ([`engine::answers`]) |
//! | `$KFORGE_HOME/candidates/` | what became of each workspace's candidates ([`engine::candidates`]) |
//! | `$KFORGE_HOME/toolchains/` | installed toolchains, each folder named by the digest of its set |
//! | `$KFORGE_HOME/machine` | what this machine's own tools consist of ([`cli::session::machine`]) |
//! | `$KFORGE_HOME/scratch/` | expected outputs, made again when needed |
//! | `$KFORGE_HOME/pending/` | what a command was about to write to a workspace ([`workspace::changes`]) |
//! | `$KFORGE_HOME/tmp/`, `locks/`, `workspaces/` | unfinished files, locks, who uses this home |

pub mod base;
pub mod process;
pub mod model;
pub mod record;
pub mod reference;
pub mod measure;
pub mod config;
pub mod workspace;
pub mod toolchain;
pub mod engine;
pub mod plan;
pub mod worker;
pub mod optimize;
pub mod step;
pub mod report;
pub mod release;
pub mod cli;
