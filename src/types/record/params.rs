//! The parameters of each kind of step, and the documents that the steps write. A step reads its parameters from the same value that was hashed into its key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use serde::{Deserialize, Serialize};

use super::contract::TritonFacts;
use super::{Diagnosis, FindingKind, Unknown, Verdict};
use crate::model::bound::{Buffer, Constant, Launch, Problem};
use crate::model::method::SassPatterns;
use crate::model::torch::TorchLaunch;
use crate::model::triton::TritonCompile;
use crate::model::{Compare, Metric, Policy, Sanitizer, Tolerance};
use kforge_foundation::base::Digest;

/// generate, from files. Inputs `file:NAME` hold every file that the source can reach. Output `source`: a [`super::spec::Tree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateParams {
    /// The file to compile, relative to the package.
    pub main: String,
}

/// The compiler to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// NVRTC, or nvcc if NVRTC's diagnostic says that a header is missing or that the file contains host code.
    Auto,
    /// NVRTC.
    Nvrtc,
    /// nvcc.
    Nvcc,
    /// Triton.
    Triton,
    /// None: the sources of a kernel in Triton are brought into the form that Triton's interpreter runs on `cpu`.
    TritonInterpreter,
    /// None: the sources of a kernel in PyTorch are brought into the form that Python runs.
    Torch,
    /// The host's C++ compiler and the emulator, optimized, without watching accesses.
    EmulatorPlain,
    /// The host's C++ compiler and the emulator, with every access watched.
    EmulatorCheck,
}

/// compile. Inputs: `tree:source`; `toolchain`, a [`Toolchain`]; for the emulator, its headers as `tree:emulator`. Outputs: `binary` (stripped, without paths;
/// see [`super::machine_code`]), `facts` (a [`CompileFacts`] with what only the compiler's log reports), `log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompileParams {
    /// The compiler to use.
    pub compiler: Compiler,
    /// `cpu`, or an architecture: `sm_90a`.
    pub arch: String,
    /// The file to compile, as the tree names it.
    pub main: String,
    /// Entries as C++ spells them, with types and tunables filled in, in order of first use.
    pub entries: Vec<String>,
    /// Macros. Only those tunables that the source can see.
    pub defines: BTreeMap<String, String>,
    /// Language standard: `c++17`.
    pub std: String,
    /// Include folders, as the tree names them.
    pub include: Vec<String>,
    /// Further flags, as declared.
    pub flags: Vec<String>,
    /// Whether a round tries it. A refusal by the compiler is then a failing verdict, which is remembered, rather than an error of the build.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub candidate: bool,
    /// Whether it is compiled a second time, with line tables, into the output `lined`, for the findings of Compute Sanitizer. Not on `cpu`, where line tables
    /// are always kept separately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lined: bool,
    /// Whether the PTX of the compilation is kept, as the output `ptx`. Nothing that runs or is judged reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ptx: bool,
    /// The function that launches, if the kernel has its own launcher. The binary is then a shared library of host code that contains machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What each function is compiled for, in the order of `entries`, if the kernel is written in Triton.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triton: Vec<TritonCompile>,
}

/// The output of a compilation that holds its PTX, if the parameters ask for it.
pub const PTX: &str = "ptx";

/// The name of the program of the Python that runs references and kernels in PyTorch, among the tools of a step: the interpreter itself, not a link to it.
pub const PYTHON_PROGRAM: &str = "python-program";
/// The beginning of the names of what that program reads.
pub const PYTHON_READS: &str = "python-reads:";

/// The name of the Python that runs Triton's interpreter, among the tools of a step. A reference in Python may have a `python` of its own.
pub const INTERPRETER_PYTHON: &str = "triton-python";
/// The name of its numpy's folder.
pub const INTERPRETER_NUMPY: &str = "triton-numpy";

/// The prefix of tools and files of a CUDA toolchain that belong to the host: to the compiler that nvcc calls.
pub const HOST: &str = "host:";

/// A toolchain by content, as it enters keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// Each tool and sub-tool (`nvrtc`, `nvrtc-builtins`, `ptxas`, `cc1plus`, `headers`) and its digest.
    pub tools: BTreeMap<String, Digest>,
    /// What a compilation may read besides its sources, by content: the headers of the compiler and of the system to which it belongs. Empty if the headers are
    /// laid out with the tools.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub headers: BTreeSet<Digest>,
}

/// What only the compiler reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileFacts {
    /// The compiler that built the binary, if `auto` had to choose: `nvrtc` or `nvcc`.
    pub compiler: String,
    /// The symbol of each entry, in the order of the entries. If the kernel has its own launcher, the symbol of each kernel in the binary.
    pub symbols: Vec<String>,
    /// Bytes of spill stores and loads by symbol.
    pub spills: BTreeMap<String, (u64, u64)>,
    /// What each function of the binary asks of its launches, in the order of the entries, if Triton made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triton: Vec<TritonFacts>,
}

/// inspect. Inputs: `binary`, `facts`; `toolchain` if it disassembles. Outputs: `inspection`, a [`super::Inspection`]; `listing`, the disassembly as text, if asked
/// for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectParams {
    /// See [`CompileParams::arch`].
    pub arch: String,
    /// See [`CompileParams::entries`].
    pub entries: Vec<String>,
    /// Whether to count opcodes. Only needed if methods are judged.
    pub disassemble: bool,
    /// Whether to write the disassembly. Only needed for people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listing: bool,
    /// The variant's launches. The counts and sizes of their arguments and blocks are checked against the binary. Values and grids are left out.
    pub launches: Vec<Launch>,
    /// Whether the binary is a library with its own launcher. Every kernel in it is then inspected, by its symbol.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

/// A kernel's own launcher, as it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLaunch {
    /// The `extern "C"` function of the library.
    pub function: String,
    /// The version of what the launcher receives and of how it is run. Raised when either changes.
    pub protocol: u32,
}

/// A tool of Compute Sanitizer, and how its output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sanitized {
    /// The tool.
    pub tool: Sanitizer,
    /// The version of how the tool is called, and of the choice of its reports that count. Raised when either changes.
    pub protocol: u32,
}

/// The inputs of one trial of a verification.
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
    /// How often a candidate runs on a trial's inputs by itself.
    pub const RUNS: usize = 3;
    /// Like [`Trial::RUNS`], plus the launches that run one after another in one process. They detect kernels that keep state between launches.
    pub const MOST_RUNS: usize = Trial::RUNS + 2;
    /// The most fresh trials of a verification. Each is run once.
    pub const MOST_FRESH: usize = 4;
}

/// oracle. Inputs: `processor`, a [`Toolchain`] that says what numeric libraries base their choices on. If functions of the package are called, also:
/// `tree:reference`, one tree with the files of the reference, of the generator of inputs and, if null candidates are compared, of checks; `toolchain:python`
/// and `toolchain:c++`, which run functions in Python and in C++. Outputs: `expected`, an [`Expected`]; `nulls`, a [`NullsObserved`], if requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OracleParams {
    /// What to compute.
    pub problem: Problem,
    /// The inputs.
    pub trial: Trial,
    /// Outputs whose tolerance declares `scaled`. For these the scale is needed: the operator applied to absolute values.
    pub scaled: Vec<String>,
    /// Whether to compare the null candidates with the expected values, into the output `nulls`.
    pub nulls: bool,
    /// How each output is compared, for null candidates. Empty if there are none.
    pub compare: BTreeMap<String, Compare>,
    /// Tolerances beyond which elements of null candidates are counted. Only for outputs whose tolerance declares `matched` below one.
    pub count_beyond: BTreeMap<String, Tolerance>,
}

/// Digests of expected values. The values themselves are scratch data and are computed again when needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Each written tensor and the digest of its expected values as f64 (or i64), row-major, little endian, before rounding to its dtype.
    pub outputs: BTreeMap<String, Digest>,
    /// The same for the scale, if it was requested.
    #[serde(default)]
    pub scales: BTreeMap<String, Digest>,
}

/// One trial of a shape of one operator for calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateCase {
    /// Which shape it is: its position in the operator. Names are in no key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// Distribution of the trial.
    pub distribution: String,
    /// The operator's tolerance at this shape by output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Number of terms of the longest sum, if the tolerance was derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<u64>,
    /// Whether the shape states a tolerance of its own, so that an edit of the operator's changes nothing here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// calibrate. Input `nulls:N`: a [`NullsObserved`] of case N. Outputs: `calibration`, a [`Calibration`]; `indecision`, an [`Indecision`] of the operator; for each
/// shape of a case, `indecision:AT` with its position, the [`Indecision`] of that shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateParams {
    /// The cases. Each has one input.
    pub cases: Vec<CalibrateCase>,
    /// Why there are no cases, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Unknown>,
    /// Outputs that the manifest declares undecidable: they make the operator not indecisive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecidable: Vec<String>,
    /// Whether the operator has a choice of types, so that a tolerance is stated by dtype.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub typed: bool,
    /// Whether an indecisive operator is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require: bool,
}

/// How the null candidates of one case compare with the expected values. Part of the output `nulls` of the oracle step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullsObserved {
    /// Each candidate (`zeros`, `constant`, `copy of x`, `another seed`, `inputs rounded to f16`) with the comparisons of the outputs in which it differs from
    /// the expected values after rounding. A candidate that does not differ is not listed.
    pub candidates: BTreeMap<String, Vec<super::OutputObserved>>,
}

/// Whether tolerance, shapes and distributions can distinguish correct from wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// By output: the candidates that pass in all cases in which they differ from the expected values. Any such candidate makes the operator indecisive.
    pub indecisive: BTreeMap<String, Vec<String>>,
    /// The same for outputs that the manifest declares undecidable. These make no operator indecisive.
    pub undecidable: BTreeMap<String, Vec<String>>,
    /// Candidates that pass in some of these cases: (candidate with its output, cases).
    pub weak: Vec<(String, Vec<usize>)>,
    /// The shapes at which every output is one value whatever the inputs are, in the order of the cases. A kernel that reads nothing would pass there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// The tolerance of each case by output, declared or derived.
    pub tolerance: Vec<BTreeMap<String, Tolerance>>,
}

/// What a calibration says to the judgements of the operator's kernels at a shape. It is the same for every operator and shape that decide, so that an edit of a
/// tolerance judges again only the shapes that the edit is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indecision {
    /// Why a pass would mean nothing; none if the operator and the shape decide.
    pub why: Option<String>,
}

/// verify. Inputs: `binary`, `facts`, `inspection`; `lined` if a sanitizer runs; `expected:N` for each trial; `tree:reference`, `toolchain:python` and
/// `toolchain:c++` as for oracle, including checks; `tree:inputs` with the files that hold values of inputs; on `cpu` also `runtime`, a [`Toolchain`] of the
/// processor, the C library and the related libraries with which the binary computes. Output `observation`: a [`super::VerifyObservation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyParams {
    /// `cpu`, or the architecture for which the binary was built.
    pub arch: String,
    /// How the binary was built.
    pub compiler: Compiler,
    /// The problem to compute.
    pub problem: Problem,
    /// See [`CompileParams::entries`]. Launches name entries by these texts.
    pub entries: Vec<String>,
    /// The variant's launches.
    pub launches: Vec<Launch>,
    /// Its workspaces.
    pub workspaces: Vec<Buffer>,
    /// `__constant__` symbols to fill.
    pub constants: Vec<Constant>,
    /// The inputs of each trial.
    pub trials: Vec<Trial>,
    /// How each output is compared.
    pub compare: BTreeMap<String, Compare>,
    /// Outputs for which the scale is also read, because a tolerance declares `scaled`.
    pub scaled: Vec<String>,
    /// Tolerances beyond which elements are counted. Only for outputs whose tolerance declares `matched` below one.
    pub count_beyond: BTreeMap<String, Tolerance>,
    /// Version of the verification protocol.
    pub protocol: u32,
    /// The launcher, if the kernel has its own. There are then no entries and launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLaunch>,
    /// What is called, if the kernel is written in PyTorch. There are then no launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<Box<TorchLaunch>>,
    /// verify on `cpu` only: whether the shape is a holdout shape, so that nobody may see what the kernel prints. On a device, nothing that it prints is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holdout: bool,
    /// verify only: the tools of Compute Sanitizer that also watch the launches, on the inputs of the first trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sanitize: Vec<Sanitized>,
    /// verify on a device only: whether the candidate runs in a process that has run no other candidate. Champions are verified in this way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// bench only: the maximum number of samples of a series, if a few samples are to decide whether more are worth the time. None for as many as the protocol
    /// takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
    /// bench only: the only series to take, if a few samples are to decide. None for both series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Metric>,
    /// bench only: the fewest operations that any implementation needs, if the operator states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_min: Option<f64>,
    /// bench only: compulsory bytes, if the operator states them. Otherwise every tensor counts whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// pairs. Which of two binaries is A follows from their content, so that they have one question, whoever compares them. Inputs: `binary:a`, `facts:a`,
/// `inspection:a` and the same for `b`; for inputs that the package gives, `tree:reference` with their generator, `toolchain:python` and `tree:inputs`. Output
/// `observation`: a [`super::timing::PairsObserved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairsParams {
    /// The architecture for which both binaries were built.
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

/// judge. Inputs: `observation`, absent if verify gave nothing; `calibration`, the [`Indecision`] of the shape, absent if calibrate gave nothing. If it confirms a champion,
/// also `timed`, a [`super::timing::BenchObserved`], absent if the shape is not timed. If it confirms one in PyTorch, `called` in place of `observation`: a
/// [`super::kind::calls::documents::CallsObserved`]. Output `judgement`: a [`Judgement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeParams {
    /// The tolerance of each output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Why the observation may be absent, for the verdict.
    pub absent: Option<Unknown>,
    /// Whether it confirms a champion: the observation is of a process that ran no other candidate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
    /// The inputs whose values are in files of the package, so that every candidate can know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_inputs: Vec<String>,
    /// The policy of a kernel in PyTorch whose calls were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// What judge concludes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// For a failure: output, first wrong index, actual and expected value, count and distribution, and a possible explanation. Several lines.
    pub explanation: String,
    /// Whether the emulator ran the kernel, or Triton's interpreter, or PyTorch on the processor.
    pub emulated: bool,
    /// Whether it was Triton's interpreter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interpreted: bool,
    /// Whether it was PyTorch on the processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_torch: bool,
    /// What the system could not do to confine the candidate. Empty if the candidate was confined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfined: Vec<String>,
    /// The largest ratio of an error to the error that the tolerance allows, over all outputs. A ratio below one passes. None without a comparison. A fresh
    /// trial counts only if it fails: a judgement that passes is the same whatever was drawn.
    pub worst: Option<f64>,
    /// Why a verdict rests on no fresh trial. None if there was one, or if the verdict needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_fresh: Option<String>,
    /// Whether it confirms a champion, as in [`JudgeParams::confirms`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
    /// The inputs that every candidate can know, as in [`JudgeParams::known_inputs`]. Empty without an observation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_inputs: Vec<String>,
    /// What explains wrong values of outputs, if their pattern is plain. At most one for each output: where failing trials show several, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnoses: Vec<OutputDiagnosis>,
    /// For a failure: the finding that decides it; none if only values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
}

/// What explains the wrong values of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputDiagnosis {
    /// The output.
    pub output: String,
    /// The explanation in a sentence.
    pub text: String,
    /// The explanation.
    pub diagnosis: Diagnosis,
}

impl Judgement {
    /// A verdict without a comparison.
    pub fn bare(verdict: Verdict) -> Self {
        Judgement {
            verdict,
            explanation: String::new(),
            emulated: false,
            interpreted: false,
            in_torch: false,
            unconfined: vec![],
            worst: None,
            no_fresh: None,
            confirms: false,
            known_inputs: vec![],
            diagnoses: vec![],
            finding: None,
        }
    }
}

/// match. Inputs `on` and `off`: inspections of the variant with and without the method; `on:N` and `off:N` from 1, if it has several binaries. Output `match`:
/// a [`Matched`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchParams {
    /// The patterns to look for. None if there is no signature for this architecture.
    pub signature: Option<SassPatterns>,
    /// Why there is no signature, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl MatchParams {
    /// The names of the inputs with a variant's binary of that number, with and without the method.
    pub fn inputs(at: usize) -> [String; 2] {
        ["on", "off"].map(|side| if at == 0 { side.into() } else { format!("{side}:{at}") })
    }
}

/// Whether machine code shows a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The machine code shows it.
    Shown,
    /// The machine code does not show it.
    NotShown,
    /// It is unknown; the text says why.
    Unknown(String),
}

/// What match finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Matched {
    /// Whether the machine code shows the method.
    pub shown: Shown,
    /// Each pattern with its counts with and without the method.
    pub counts: Vec<(String, u64, u64)>,
}

/// What is known of a variant when select runs, besides the inputs of select.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Position in declared order. The lower position is preferred if nothing else decides.
    pub order: u32,
    /// The digest of the variant's tunables, which identifies it in `kforge.lock`.
    pub identity: String,
    /// For each shape it serves: the shape's position in [`SelectParams::shapes`].
    pub serves: Vec<u32>,
}

/// select. Inputs: `judgement:V:S` (a [`Judgement`]) for each contender V and each shape S that it serves; `bench:V:S` and `pairs:V:W:S`, if there are any.
/// Output `selection`: a [`Selection`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectParams {
    /// Contenders in declared order.
    pub candidates: Vec<Contender>,
    /// The class of each shape. Shapes with equal texts get one champion, unless the class splits.
    pub shapes: Vec<String>,
    /// Which shapes are benched, by position.
    pub bench: Vec<u32>,
    /// The most classes that there may be once classes have split; with one, none splits.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub most_classes: u32,
    /// The identity pinned in `kforge.lock` for a class, also for one that a shape may get ([`split_class`]).
    pub pinned: BTreeMap<String, String>,
    /// The share of time by which a paired comparison must show a variant to be slower before it loses its place.
    pub margin: f64,
    /// Whether hot times decide rather than cold times.
    pub hot: bool,
    /// Whether this target can have timings at all.
    pub timed: bool,
    /// Whether the contenders come from rounds. Only this step then fails if none of them is correct.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
    /// Set if the step only nominates. Its output is then `nomination`, a [`Nomination`], instead of `selection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortlist: Option<Shortlist>,
    /// Set if the step names the variants to be timed in full, among variants that were timed with few samples (inputs `few:V:S`, and `bench:V:S` of variants
    /// that were already timed in full). Its output is then `nomination`, a [`Nomination`], instead of `selection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finals: Option<Finals>,
    /// Set if the step only names the methods that are harmful, by their inputs `attribution:I`. Its output is then `nomination`, a [`Nomination`] with one class
    /// whose `near` holds these I.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub challenge: bool,
}

pub(super) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_one(n: &u32) -> bool {
    *n == 1
}

/// Which variants are near enough to the fastest after few samples to be timed in full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Finals {
    /// The share by which a variant's fastest sample may be slower than the best variant's median (0.07: seven per cent).
    pub within: f64,
}

/// Which variants are near enough to the fastest to be compared with it in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shortlist {
    /// The share by which a variant's median may be slower than the best (0.05: five per cent).
    pub within: f64,
    /// Maximum number of variants of a class, including the best.
    pub most: u32,
    /// Set if the champions of whole classes are known and the step names the variants that may be faster than them at one bench shape.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub splits: bool,
}

/// The class that a bench shape gets if it is split from its class: `0@3`. Names of shapes and values of expressions have no `@`, so it is no other class.
pub fn split_class(class: &str, shape: impl Display) -> String {
    format!("{class}@{shape}")
}

/// The class from which a shape was split, and the shape, if it is such a class; the opposite of [`split_class`].
pub fn split_from(class: &str) -> Option<(&str, &str)> {
    class.split_once('@')
}

/// The variants near the best in one class of shapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nominees {
    /// The class.
    pub class: String,
    /// The variant with the fastest median. None if no variant is both correct and timed.
    pub best: Option<u32>,
    /// The variants to compare with the best in pairs, in declared order.
    pub near: Vec<u32>,
    /// The bench shapes at which they are timed, in full or in pairs.
    pub shapes: Vec<u32>,
}

/// What the nominating select step decides: only which variants are paired. Noise in new measurements that changes no nominee changes nothing after this step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Nomination {
    /// One per class or single bench shape for which variants are named, in the order of the first shape.
    pub classes: Vec<Nominees>,
}

/// The champion of one class of shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Champion {
    /// The class; one of [`split_class`] for a bench shape that was split from its class.
    pub class: String,
    /// The shapes for which it is champion, by position. Together, the champions have each shape once.
    pub shapes: Vec<u32>,
    /// The contender's position. None if no contender serves the class and is correct.
    pub variant: Option<u32>,
    /// Whether it was selected without measurements.
    pub provisional: bool,
    /// The reason, in one line.
    pub because: String,
    /// If the class is the result of a split: what the champion gains over the champion of the undivided class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// The contenders that tie with it for fastest, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<u32>,
}

/// By how much a champion is faster at a bench shape than the champion of the undivided class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gain {
    /// The champion of the undivided class.
    pub over: u32,
    /// The bench shape, by position.
    pub shape: u32,
    /// The share of time that it saves, from pairs.
    pub faster_by: f64,
    /// Its interval of 95 %.
    pub interval: (f64, f64),
    /// How many variants tie for fastest at the shape, with this one.
    pub tied: u32,
    /// Whether `kforge.lock` pins it for the class.
    pub pinned: bool,
}

impl Gain {
    /// The reason, in one line; `over` names what it is faster than.
    pub fn reason(&self, over: &str) -> String {
        let (low, high) = (self.interval.0 * 100.0, self.interval.1 * 100.0);
        let mut text = format!("{:.1} % [{low:.1}, {high:.1}] faster than {over}", self.faster_by * 100.0);
        match (self.pinned, self.tied) {
            (true, _) => text.push_str("; pinned in kforge.lock"),
            (false, 1) => {}
            (false, n) => drop(write!(text, "; first declared of {n} variants that tie for fastest there")),
        }
        text
    }
}

/// A bench shape at which another variant is faster than the champion by more than the margin, as far as is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Overtaken {
    /// The shape, by position.
    pub shape: u32,
    /// The other variant.
    pub by: u32,
    /// The share of the champion's time that it saves: from pairs if they decide, otherwise from medians.
    pub faster_by: f64,
    /// Why the champion stays.
    pub because: Stays,
    /// The pairs of the two with each other, where pairs do not decide; none if each was paired only with a third.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsWithChampion>,
}

/// Pairs of a variant with a champion, in shares of time: the variant's over the champion's, minus one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairsWithChampion {
    /// The estimate.
    pub slower_by: f64,
    /// Its interval of 95 %.
    pub interval: (f64, f64),
    /// Whether the two orders disagree. The interval then decides nothing, wherever it lies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orders_disagree: bool,
}

/// Why a champion stays although another variant's times are better at a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stays {
    /// Pairs do not decide between the two.
    Undecided,
    /// The two were not compared in pairs.
    Unpaired,
    /// The manifest allows no more classes.
    Classes,
}

/// What select decides. What is built depends only on the champions in it, not on the figures, so noise in new measurements changes nothing after this step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Selection {
    /// One per class, in the order of the first shape; each class before those that were split from it.
    pub champions: Vec<Champion>,
    /// Bench shapes at which another variant is faster than the champion, as far as is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtaken: Vec<Overtaken>,
    /// Correct contenders that are not champions, in declared order.
    pub frontier: Vec<u32>,
    /// Contenders that are known to be wrong.
    pub wrong: Vec<u32>,
    /// Contenders that are wrong on `cpu`, for a target that is a device and has not shown them to be wrong itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong_on_cpu: Vec<u32>,
}

/// The end of the name of an input with pairs whose A is the second of the variants that the step compares.
pub const TURNED: &str = ":turned";

/// attribute. Inputs: `match`; for each shape S, `pairs:S` (of the variant without and with the method) or `pairs:S:turned` (of the variant with and without
/// it), and `judgement:S` (of the variant without the method), each absent if there is none. Output `attribution`: an [`Attribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeParams {
    /// The share of time that the lower bound of the saving must exceed.
    pub threshold: f64,
    /// The share of time by which the kernel without the method must be faster before the method counts as harmful: the margin of the selection.
    pub margin: f64,
    /// Whether the champion does not use the method. There are then no inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unused: bool,
}

/// The conclusion about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The machine code shows it, and the lower bound of its saving exceeds the threshold.
    Effective,
    /// The machine code shows it, but the lower bound of its saving does not exceed the threshold.
    Ineffective,
    /// The kernel is decidedly faster without it.
    Harmful,
    /// The machine code does not show it. What it saves does not matter.
    ImplementationFailed,
    /// It is unknown.
    Inconclusive,
    /// The champion does not use it.
    NotUsed,
}

impl Fate {
    /// The conclusion in words.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Effective => "effective",
            Fate::Ineffective => "ineffective",
            Fate::Harmful => "harmful",
            Fate::ImplementationFailed => "implementation failed",
            Fate::Inconclusive => "inconclusive",
            Fate::NotUsed => "not used",
        }
    }
}

/// What a method is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attribution {
    /// The conclusion about the method.
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

/// A reason and the detail that a verdict adds to it, as one sentence.
pub fn detailed(because: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| because.to_string(), |detail| format!("{because}: {detail}"))
}
