//! kforge: Cargo for GPU kernels. This page describes the packages, the files that kforge writes, and the flow of data.
//!
//! # Packages
//!
//! Each package is a folder of `src` and uses only packages above it in the table; cargo enforces this. A package with several rooms lists them in their order
//! of import, which `tests/layering` enforces. Rooms with a star are pure: no files, clock, environment or processes. `clippy.toml` and `tests/layering`
//! enforce that.
//!
//! | package | rooms | does |
//! |---|---|---|
//! | `kforge-foundation` | [`base`] | digests, the canonical encoding of keys, diagnostics with spans, atomic files |
//! | | [`process`] | child processes: groups, limits, capture, time-outs |
//! | | [`config`] | settings from files, environment and flags; the only reader of the environment |
//! | `kforge-types` | [`model`] * | `kernel.toml` to a typed model: parse, validate, expressions, binding |
//! | | [`record`] * | the types of results: verdicts, outcomes, specs, observations, events |
//! | `kforge-numerics` | [`reference`](mod@reference) * | built-in operators: f64 oracle, cost, input generators, null candidates |
//! | | [`measure`] * | comparison, judgement, calibration, signatures, statistics, selection, attribution, search over tunables |
//! | `kforge-project` | [`source`] * | CUDA C++ sources as text: declarations, what entries reach, host code |
//! | | [`workspace`] | root, members, inheritance, selection, includes, lockfile |
//! | | [`toolchain`] | find, install and fingerprint compilers |
//! | `kforge-engine` | [`engine`] | nodes, scheduler, journal, stores, locks, evidence, collection; the traits that other packages implement |
//! | `kforge-remote` | `remote` | the client of remote caches and remote execution; a cargo feature of the same name |
//! | `kforge-harness` | [`harness`] | running untrusted code and comparing its results: messages, confinement, the pool of workers, references, buffers |
//! | `kforge-emulator` | [`emulator`] | CUDA C++ compiled for the host and run thread by thread |
//! | `kforge-cuda` | [`cuda`] | CUDA compilers, machine code, and running and timing kernels on a device |
//! | `kforge-worker` | [`worker`] | the worker process: which code executes which step; the verifier of emulated kernels |
//! | `kforge-pipeline` | [`plan`] * | from the model to nodes; expansion by results; the candidates of recorded rounds |
//! | | [`optimize`] * | templates of kernels; the registry of methods; candidates of a round; agents (only [`optimize::agents::ask`] is not pure) |
//! | | [`step`] | one file per kind of pure step |
//! | | [`report`] * | from results to values, text, markdown, JSON, and formats of other tools |
//! | | [`release`] | import and export: evidence bundles; artifacts and where they are published; the comparison of two states |
//! | `kforge-ops` | [`ops`] | what commands do: from a request to events and a result or a typed error; prints nothing and does not know the command line |
//! | `kforge-serve` | `serve` | evaluation as a service: a queue, a journal and an HTTP interface in front of `ops`; a cargo feature of the same name |
//! | `kforge` | [`cli`] | parses, calls an operation, renders; one thin file per command; the only printer |
//!
//! # The flow of data
//!
//! `kernel.toml` is parsed into a [`model::Package`]. [`workspace`] finds every file that its kernels can reach, and [`plan`] makes nodes of both. [`engine`]
//! binds a node's inputs to contents, forms its key, and looks the key up in the journal, the shared cache, the evidence index and the remote cache. Only a
//! step without a known result is executed: pure kinds in [`step`], the rest by a [`worker`] process, which starts a confined runner for candidate code. What a
//! step saw is an observation. A judgement is a pure function of observations and policy. [`report`] renders both for people.
//!
//! # Files kforge writes
//!
//! | where | what |
//! |---|---|
//! | `kforge.lock` | resolved versions and pins; committed with the sources |
//! | `kforge-install.lock` | the artifacts that are installed in a folder, by digest ([`release::install_lock`]) |
//! | `kernels/` | installed artifacts ([`ops::install`]); each is in a folder `.kforge-install-*` beside its own until it is complete |
//! | `evidence/*.kfe` | bundles of evidence, written by `kforge evidence export`; committed beside the manifest ([`release::bundle`]) |
//! | `target/kforge/journal` | the memory of this workspace: stats of leaves, keys and results of steps ([`engine::journal`]) |
//! | `target/kforge/certificate` | proof that the last build still has nothing to do ([`engine::certificate`]) |
//! | `target/kforge/generated/` | the sources that templates and agents wrote, by package and kernel, for people to read |
//! | `target/kforge/package/` | the artifacts of `kforge package` ([`release::artifact`]) |
//! | `target/kforge/report.json` | the report of the last build |
//! | `target/kforge/history.json` | champions over the bundles that git holds ([`release::history`]) |
//! | `target/kforge/ci/` | the documents of the last run of `kforge ci` |
//! | `target/kforge/request.json` | what the last build was asked for |
//! | `target/kforge/root` | the folder of the workspace when its candidates were last recorded |
//! | `target/kforge/.lock` | held while a build runs |
//! | `$KFORGE_HOME/cas/` | contents by digest, read-only ([`engine::blobs`]) |
//! | `$KFORGE_HOME/actions/` | results by key ([`engine::action`]) |
//! | `$KFORGE_HOME/evidence/` | observations of devices by question, and the tags of those that were made here ([`engine::evidence`]) |
//! | `$KFORGE_HOME/signed/` | signed documents of imported bundles, by digest ([`release::signed`]) |
//! | `$KFORGE_HOME/devices/` | what the driver reports about devices, for workers; one file per set of visible devices |
//! | `$KFORGE_HOME/answers/` | answers of agents ([`engine::answers`]) |
//! | `$KFORGE_HOME/candidates/` | the candidates of each workspace and their results ([`engine::candidates`]) |
//! | `$KFORGE_HOME/toolchains/` | installed toolchains, each in a folder named by the digest of its set |
//! | `$KFORGE_HOME/machine` | the components of this machine's own tools ([`ops::session::machine`]) |
//! | `$KFORGE_HOME/scratch/` | expected outputs, computed again when needed |
//! | `$KFORGE_HOME/pending/` | unfinished changes of a command to a workspace ([`workspace::changes`]) |
//! | `~/.local/state/kforge/machine-key` | the key of this machine, outside the home; variables name another place ([`engine::machine_key`]) |
//! | `$KFORGE_HOME/serve/` | what `kforge serve` must not forget, and the workspaces of its evaluations; `--state` names another folder |
//! | `$KFORGE_HOME/tmp/`, `locks/`, `workspaces/` | unfinished files, locks, and the workspaces that use this home |
//! | `.kforge-artifact-*`, `.kforge-rerun-*`, `.kforge-reproduce-*` in the system's temporary folder | what is verified, run again or compared, while that lasts ([`engine::temporary`]) |

pub use kforge_cuda as cuda;
pub use kforge_emulator as emulator;
pub use kforge_engine as engine;
pub use kforge_foundation::{base, config, process};
pub use kforge_harness as harness;
pub use kforge_numerics::{measure, reference};
pub use kforge_ops as ops;
pub use kforge_pipeline::{optimize, plan, release, report, step};
pub use kforge_project::{source, toolchain, workspace};
#[cfg(feature = "serve")]
pub use kforge_serve as serve;
pub use kforge_types::{model, record};
pub use kforge_worker as worker;

pub mod cli;
