//! kforge: Cargo for GPU kernels. This page is the map: of the house, of the files kforge writes, and of the way data takes.
//!
//! # The house
//!
//! Each package stands in a folder of `src` and uses only packages above its own; cargo holds that. A package of several rooms names them in their order of
//! import, which `tests/layering` holds. Rooms with a star are pure: no files, clock, environment or processes, which `clippy.toml` and `tests/layering` hold.
//!
//! | package | rooms | does |
//! |---|---|---|
//! | `kforge-foundation` | [`base`] | digests, the canonical encoding of keys, diagnostics with spans, atomic files |
//! | | [`process`] | child processes: groups, limits, capture, time-outs |
//! | | [`config`] | settings from files, environment and flags; the only reader of the environment |
//! | `kforge-types` | [`model`] * | `kernel.toml` to a typed model: parse, validate, expressions, binding |
//! | | [`record`] * | what is said and kept: verdicts, outcomes, specs, observations, events |
//! | `kforge-numerics` | [`reference`](mod@reference) * | built-in operators: f64 oracle, cost, input generators, null candidates |
//! | | [`measure`] * | comparison, judgement, calibration, signatures, statistics, selection, attribution, search over tunables |
//! | `kforge-project` | [`workspace`] | root, members, inheritance, selection, includes, lockfile |
//! | | [`toolchain`] | find, install and fingerprint compilers |
//! | `kforge-engine` | [`engine`] | nodes, scheduler, journal, stores, locks, evidence, collection; the traits behind which others stand |
//! | `kforge-harness` | [`harness`] | how untrusted code is run and its results are compared: messages, confinement, the pool of workers, references, buffers |
//! | `kforge-emulator` | [`emulator`] | CUDA C++ compiled for the host and run thread by thread |
//! | `kforge-cuda` | [`cuda`] | CUDA compilers, machine code, and what runs and times kernels on a device |
//! | `kforge-worker` | [`worker`] | the worker process: which code does which step; the verifier of emulated kernels |
//! | `kforge-pipeline` | [`plan`] * | model to nodes; expansion by results; the candidates of recorded rounds |
//! | | [`optimize`] * | templates that make kernels from operators; the registry of methods; what a round tries; agents (of these [`optimize::agents::ask`] alone touches the world) |
//! | | [`step`] | one file a kind of pure step |
//! | | [`report`] * | results to values, text, markdown, JSON |
//! | | [`release`] | what leaves and comes: evidence bundles; how one state compares with another |
//! | `kforge-ops` | [`ops`] | what commands do: a request, events, a result or a typed error; prints nothing and knows no command line |
//! | `kforge` | [`cli`] | parses, calls an operation, renders; one thin file a command; the only printer |
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
//! | `$KFORGE_HOME/machine` | what this machine's own tools consist of ([`ops::session::machine`]) |
//! | `$KFORGE_HOME/scratch/` | expected outputs, made again when needed |
//! | `$KFORGE_HOME/pending/` | what a command was about to write to a workspace ([`workspace::changes`]) |
//! | `$KFORGE_HOME/tmp/`, `locks/`, `workspaces/` | unfinished files, locks, who uses this home |

pub use kforge_cuda as cuda;
pub use kforge_emulator as emulator;
pub use kforge_engine as engine;
pub use kforge_foundation::{base, config, process};
pub use kforge_harness as harness;
pub use kforge_numerics::{measure, reference};
pub use kforge_ops as ops;
pub use kforge_pipeline::{optimize, plan, release, report, step};
pub use kforge_project::{toolchain, workspace};
pub use kforge_types::{model, record};
pub use kforge_worker as worker;

pub mod cli;
