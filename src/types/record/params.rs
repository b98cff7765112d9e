//! The parameters of each kind of step, and the documents they give. A runner reads these from the very value that was hashed into its key.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Unknown, Verdict};
use crate::model::bound::{Buffer, Constant, Launch, Problem};
use crate::model::method::SassPatterns;
use crate::model::{Compare, Metric, Sanitizer, Tolerance};
use kforge_foundation::base::Digest;

/// generate, from files. Inputs `file:NAME` hold every file the source can reach. Output `source`: a [`super::spec::Tree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateParams {
    /// The file to compile, relative to the package.
    pub main: String,
}

/// Which compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// NVRTC; nvcc where NVRTC's diagnostic says that a header is missing or the file holds host code.
    Auto,
    /// NVRTC.
    Nvrtc,
    /// nvcc.
    Nvcc,
    /// The host's C++ compiler and the emulator, optimised, without watched accesses.
    EmulatorPlain,
    /// The same with every access watched.
    EmulatorCheck,
}

/// compile. Inputs: `tree:source`; `toolchain`, a [`Toolchain`]; for the emulator, `tree:emulator`, its headers.
/// Outputs: `binary` (stripped, free of paths), `facts` (what only the compiler's log says: a [`CompileFacts`]), `log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompileParams {
    /// Which compiler.
    pub compiler: Compiler,
    /// `cpu`, or an architecture: `sm_90a`.
    pub arch: String,
    /// The file to compile, as the tree names it.
    pub main: String,
    /// Entries as C++ spells them, types and tunables filled in, in order of first use.
    pub entries: Vec<String>,
    /// Macros: only those tunables that the source can see.
    pub defines: BTreeMap<String, String>,
    /// Language standard: `c++17`.
    pub std: String,
    /// Include folders, as the tree names them.
    pub include: Vec<String>,
    /// Further flags, as declared.
    pub flags: Vec<String>,
    /// Whether it is tried in a round: that the compiler refuses it is then a failing verdict, which is remembered, and no error of the build.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub candidate: bool,
    /// Whether it is compiled once more, with line tables, into the output `lined`: for what Compute Sanitizer finds. Not on `cpu`, where they are always kept
    /// apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lined: bool,
    /// The function that launches, where the kernel has a launcher of its own: the binary is then a shared library of host code with machine code in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// With this begin the names of those of a CUDA's tools and files that are the host's own: of the compiler that nvcc calls.
pub const HOST: &str = "host:";

/// What a toolchain is, by content: what enters keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// Each tool and sub-tool (`nvrtc`, `nvrtc-builtins`, `ptxas`, `cc1plus`, `headers`) and its digest.
    pub tools: BTreeMap<String, Digest>,
    /// What a compilation may read beyond its sources, by content: the headers of the compiler and of the system it is at home on. Empty where it is laid out
    /// with the tools.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub headers: BTreeSet<Digest>,
}

/// What only the compiler reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileFacts {
    /// The compiler that made the binary, where `auto` had to choose: `nvrtc` or `nvcc`.
    pub compiler: String,
    /// The symbol of each entry, in the order of the entries; where the kernel has a launcher of its own, of each kernel in the binary.
    pub symbols: Vec<String>,
    /// Bytes of spill stores and loads by symbol.
    pub spills: BTreeMap<String, (u64, u64)>,
}

/// inspect. Inputs: `binary`, `facts`; `toolchain` where it disassembles. Output `inspection`: a [`super::Inspection`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectParams {
    /// As for compile.
    pub arch: String,
    /// As for compile.
    pub entries: Vec<String>,
    /// Whether to count opcodes: only where methods are judged.
    pub disassemble: bool,
    /// The variant's launches, for their arguments and blocks: counts and sizes are checked against the binary. Values and grids are left out.
    pub launches: Vec<Launch>,
    /// Whether the binary is a library with a launcher of its own: then every kernel in it is inspected, by its symbol.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

/// A launcher of a kernel's own, as it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLaunch {
    /// The `extern "C"` function of the library.
    pub function: String,
    /// Version of what it is handed and of how it is run: raised when either changes.
    pub protocol: u32,
}

/// A tool of Compute Sanitizer, as it is asked and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sanitized {
    /// The tool.
    pub tool: Sanitizer,
    /// Version of how it is asked and of what counts of what it lists: raised when either changes.
    pub protocol: u32,
}

/// One trial of a verification: which inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number.
    pub trial: u32,
    /// Seed of the counter-based generator.
    pub seed: u64,
    /// The distribution for inputs whose `init` is auto.
    pub distribution: String,
}

impl Trial {
    /// How often a candidate is run on a trial's inputs by itself.
    pub const RUNS: usize = 3;
    /// The same with the launches that come one after another in one process, for those that keep something between them.
    pub const MOST_RUNS: usize = Trial::RUNS + 2;
}

/// oracle. Inputs: `processor`, a [`Toolchain`] that says by what numeric libraries choose; where functions of the package's own are called, `tree:reference`,
/// the files of the reference, of the generator of inputs and, where null candidates are compared, of checks, in one tree, and `toolchain:python` and
/// `toolchain:c++` for what runs those in Python and in C++.
/// Outputs: `expected`, an [`Expected`]; `nulls`, a [`NullsObserved`], where they are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OracleParams {
    /// What to compute.
    pub problem: Problem,
    /// On which inputs.
    pub trial: Trial,
    /// Outputs whose tolerance declares `scaled`, for which the scale (the operator on absolute values) is wanted.
    pub scaled: Vec<String>,
    /// Whether the null candidates are to be compared with the expectation, into the output `nulls`.
    pub nulls: bool,
    /// How each output is compared, for null candidates; empty without.
    pub compare: BTreeMap<String, Compare>,
    /// Tolerances to count elements of null candidates beyond, only for outputs whose tolerance declares `matched` below one.
    pub count_beyond: BTreeMap<String, Tolerance>,
}

/// Digests of expected values: the bytes are scratch, made again when needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Each written tensor and the digest of its expected values as f64 (or i64), row-major, little endian, before rounding to its dtype.
    pub outputs: BTreeMap<String, Digest>,
    /// The same of the scale, where it was asked for.
    #[serde(default)]
    pub scales: BTreeMap<String, Digest>,
}

/// One shape of one operator for calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateCase {
    /// Distribution of the trial.
    pub distribution: String,
    /// The operator's tolerance at this shape by output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Terms of the longest sum, where the tolerance was derived from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<u64>,
}

/// calibrate: one case an input. Inputs `nulls:N`: a [`NullsObserved`] of case N. Output `calibration`: a [`Calibration`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateParams {
    /// What was observed where.
    pub cases: Vec<CalibrateCase>,
    /// Why there are no cases, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Unknown>,
}

/// How the null candidates of one case compare with the expectation; part of the oracle step's output `nulls`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullsObserved {
    /// Each candidate (`zeros`, `constant`, `copy of x`, `another seed`, `inputs rounded to f16`) and how those outputs compare in which it
    /// differs from the expectation after rounding; one that differs in none is not listed.
    pub candidates: BTreeMap<String, Vec<super::OutputObserved>>,
}

/// Whether tolerance, shapes and distributions can tell correct from wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Candidates, each with its output (`zeros as y`), that pass wherever they differ from the expectation: any makes the operator indecisive.
    pub indecisive: Vec<String>,
    /// Those that pass on some of these cases: (candidate with its output, cases).
    pub weak: Vec<(String, Vec<usize>)>,
    /// The tolerance of each case by output, declared or derived.
    pub tolerance: Vec<BTreeMap<String, Tolerance>>,
}

/// verify. Inputs: `binary`, `facts`, `inspection`; `lined` where it is sanitized; `expected:N` for each trial; `tree:reference`, `toolchain:python` and
/// `toolchain:c++` as for oracle, checks included; on `cpu` also `runtime`, a [`Toolchain`] of the C library and its kin, with which the binary computes, and
/// of the processor. Output `observation`: a [`super::VerifyObservation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyParams {
    /// `cpu`, or the architecture the binary is for.
    pub arch: String,
    /// How the binary was built.
    pub compiler: Compiler,
    /// What is computed.
    pub problem: Problem,
    /// As for compile; launches name entries by these.
    pub entries: Vec<String>,
    /// The variant's launches.
    pub launches: Vec<Launch>,
    /// Its workspaces.
    pub workspaces: Vec<Buffer>,
    /// `__constant__` symbols to fill.
    pub constants: Vec<Constant>,
    /// Which inputs.
    pub trials: Vec<Trial>,
    /// How each output is compared.
    pub compare: BTreeMap<String, Compare>,
    /// Outputs for which the scale is carried along, because a tolerance declares `scaled`.
    pub scaled: Vec<String>,
    /// Tolerances to count elements beyond, only for outputs whose tolerance declares `matched` below one.
    pub count_beyond: BTreeMap<String, Tolerance>,
    /// Version of the verification protocol.
    pub protocol: u32,
    /// What launches, where the kernel has a launcher of its own: there are no entries and launches then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLaunch>,
    /// verify only: what Compute Sanitizer watches the launches for besides, on the inputs of the first trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sanitize: Vec<Sanitized>,
    /// bench only: the most samples of a series, where a few are to tell whether more are worth the time; none for as many as the protocol takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
    /// bench only: the one series that is taken, where a few samples are to tell; none for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Metric>,
    /// bench only: the least operations that any implementation needs, where the operator states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_min: Option<f64>,
    /// bench only: compulsory bytes, where the operator states them; else every tensor counts whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// pairs. Inputs: `binary:a`, `facts:a`, `inspection:a` and the same of `b`. Output `observation`: a [`super::timing::PairsObserved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairsParams {
    /// The architecture both binaries are for.
    pub arch: String,
    /// Whether hot times are compared rather than cold ones.
    pub hot: bool,
    /// The launches of A.
    pub a: VerifyParams,
    /// The launches of B, on the same problem.
    pub b: VerifyParams,
    /// Version of the pairing protocol.
    pub protocol: u32,
}

/// judge. Input `observation`, absent where verify gave nothing. Output `judgement`: a [`Judgement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeParams {
    /// The tolerance of each output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Why there may be no observation, as text, for the verdict.
    pub absent: Option<Unknown>,
}

/// What judge decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// For a failure: output, first wrong index, got, want, count and distribution, what would explain it. Several lines.
    pub explanation: String,
    /// Whether the emulator was the witness.
    pub emulated: bool,
    /// What the system could not do to confine the candidate; empty where it was confined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfined: Vec<String>,
    /// Largest error over the tolerance's allowance, over all outputs; below one passes. None without comparison.
    pub worst: Option<f64>,
}

impl Judgement {
    /// A verdict without a comparison behind it.
    pub fn bare(verdict: Verdict) -> Self {
        Judgement { verdict, explanation: String::new(), emulated: false, unconfined: vec![], worst: None }
    }
}

/// match. Inputs `on` and `off`: inspections of the variant with and without the method. Output `match`: a [`Matched`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchParams {
    /// What to look for; none if there is no signature for this architecture.
    pub signature: Option<SassPatterns>,
    /// Why there is none, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// Whether machine code shows a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// It does.
    Shown,
    /// It does not.
    NotShown,
    /// It is unknown; why.
    Unknown(String),
}

/// What match finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Matched {
    /// Whether it is shown.
    pub shown: Shown,
    /// Each pattern, its count with and without the method.
    pub counts: Vec<(String, u64, u64)>,
}

/// What is known of a variant when select runs, besides its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Position in declared order; the lower wins where nothing else decides.
    pub order: u32,
    /// The digest that names this variant in `kforge.lock`: of its tunables.
    pub identity: String,
    /// For each shape it serves: the shape's position in [`SelectParams::shapes`].
    pub serves: Vec<u32>,
}

/// select. Inputs: `judgement:V:S` (a [`Judgement`]) for each candidate V and shape S it serves; `bench:V:S` and `pairs:V:W:S` where there are any.
/// Output `selection`: a [`Selection`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectParams {
    /// Candidates in declared order.
    pub candidates: Vec<Contender>,
    /// The class of each shape; shapes with equal texts get one champion.
    pub shapes: Vec<String>,
    /// Which shapes are benched, by position.
    pub bench: Vec<u32>,
    /// The identity pinned in `kforge.lock` for a class.
    pub pinned: BTreeMap<String, String>,
    /// Share by which a paired comparison must show a variant slower before it loses its place.
    pub margin: f64,
    /// Whether hot times decide rather than cold ones.
    pub hot: bool,
    /// Whether this target can have timings at all.
    pub timed: bool,
    /// Whether the candidates come from rounds, so that only this step fails if none of them is correct.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
    /// Set on the step that only nominates: its output is `nomination`, a [`Nomination`], and no `selection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortlist: Option<Shortlist>,
    /// Set on a step that names who is to be timed in full, of variants that were timed with few samples (inputs `few:V:S`, and `bench:V:S` of those that were
    /// timed in full already): its output is `nomination`, a [`Nomination`], and no `selection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finals: Option<Finals>,
}

/// Who is near enough to the fastest after few samples to be timed in full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Finals {
    /// Share by which a variant's fastest sample may be slower than the best's median (0.07: seven per cent).
    pub within: f64,
}

/// Who is near enough to the fastest to be compared with it in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shortlist {
    /// Share by which a variant's median may be slower than the best (0.05: five per cent).
    pub within: f64,
    /// Most variants of a class, the best with them.
    pub most: u32,
}

/// Who is near the best in one class of shapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nominees {
    /// The class.
    pub class: String,
    /// The fastest by medians; none if no variant is both correct and timed.
    pub best: Option<u32>,
    /// Who is to be compared with it in pairs, in declared order.
    pub near: Vec<u32>,
}

/// What the nominating select step decides: only who is to be paired, so that re-measured noise that moves nobody changes nothing after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nomination {
    /// One a class, in order of first shape.
    pub classes: Vec<Nominees>,
}

/// The champion of one class of shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Champion {
    /// The class.
    pub class: String,
    /// The candidate's position; none if none serves and none is correct.
    pub variant: Option<u32>,
    /// Whether it was selected without measurements.
    pub provisional: bool,
    /// The reason, in one line.
    pub because: String,
}

/// What select decides: only the decision, so that re-measured noise changes nothing after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Selection {
    /// One a class, in order of first shape.
    pub champions: Vec<Champion>,
    /// Correct candidates that are not champions, in declared order.
    pub frontier: Vec<u32>,
    /// Candidates known to be wrong.
    pub wrong: Vec<u32>,
}

/// attribute. Inputs: `match`; for each shape S where it was taken, `pairs:S` (of the variant without and with the method) and `judgement:S` of the variant
/// without it, absent where there are none. Output `attribution`: an [`Attribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeParams {
    /// Share of time that the lower bound of the saving must exceed.
    pub threshold: f64,
}

/// What became of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The machine code shows it and it saves more than the noise.
    Effective,
    /// The machine code shows it and it does not.
    Ineffective,
    /// The machine code does not show it, whatever the time.
    ImplementationFailed,
    /// It is unknown.
    Inconclusive,
}

/// What a method is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attribution {
    /// What became of it.
    pub fate: Fate,
    /// The reason, in one line that names no shape.
    pub because: String,
    /// What a verdict adds to the reason. It may name a holdout shape, so no agent and no export sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// (time without - time with) / time with: median, and the ends of its 95 % interval. None if it was not timed.
    pub saving: Option<(f64, f64, f64)>,
}

impl Attribution {
    /// The reason with its detail, for people.
    pub fn reason(&self) -> String {
        detailed(&self.because, self.detail.as_deref())
    }
}

/// A reason and what a verdict adds to it, as one sentence.
pub fn detailed(because: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| because.to_string(), |detail| format!("{because}: {detail}"))
}
