//! The keys of `kernel.toml`, table by table. Knows names, kinds and one line of meaning each; values are checked where they are decoded.

use super::spec::{Field, Spec, Ty, opt, req};
use crate::model::Pattern;
use crate::model::agent::Scope;
use crate::model::target::{LANGUAGES, LANGUAGES_LATER};

const STR: Ty = Ty::Str("a string");
const GLOB: Ty = Ty::Str("a path or glob");
const NAME: Ty = Ty::Str("a name");
const INT_EXPR: Ty = Ty::Expr("an integer expression");
const BOOL_EXPR: Ty = Ty::Expr("an expression that is true or false");
const FLOAT_EXPR: Ty = Ty::Expr("a number or an expression");
const FUNCTION: Ty = Ty::Str("a function, as `file.py::function`");

/// `x.workspace = true`.
static INHERITED: Spec = Spec {
    doc: "Taken from the workspace's root manifest.",
    fields: &[req("workspace", Ty::True, "take the value of the workspace")],
    rest: None,
};
const INHERITABLE: Ty = Ty::Any(&[STR, Ty::Table(&INHERITED)]);

static PACKAGE: Spec = Spec {
    doc: "The package.",
    fields: &[
        req("name", NAME, "the package's name: letters, digits, `-` and `_`"),
        opt("version", INHERITABLE, "its version, `1.2.3`; `0.0.0` if not given"),
        opt("license", INHERITABLE, "an SPDX expression"),
        opt("kforge", INHERITABLE, "the oldest kforge that can build it, `0.1`"),
    ],
    rest: None,
};

static WORKSPACE_PACKAGE: Spec = Spec {
    doc: "Values members can inherit.",
    fields: &[
        opt("version", STR, "the version of members"),
        opt("license", STR, "the license of members"),
        opt("kforge", STR, "the oldest kforge that can build members"),
    ],
    rest: None,
};

static CUDA_PATH: Spec =
    Spec { doc: "A CUDA toolkit in a folder.", fields: &[req("path", STR, "the toolkit's folder")], rest: None };
static CUDA_PATH_OR_INHERITED: Spec = Spec {
    doc: "A CUDA toolkit in a folder, or the workspace's.",
    fields: &[opt("path", STR, "the toolkit's folder"), opt("workspace", Ty::True, "take the value of the workspace")],
    rest: None,
};
const CUDA_WORD: Ty = Ty::Str("a version such as `13.0`, or `system`");

static WORKSPACE_TOOLCHAIN: Spec = Spec {
    doc: "Compilers of members.",
    fields: &[opt("cuda", Ty::Any(&[CUDA_WORD, Ty::Table(&CUDA_PATH)]), "the CUDA toolkit")],
    rest: None,
};
static TOOLCHAIN: Spec = Spec {
    doc: "Compilers.",
    fields: &[
        opt("cuda", Ty::Any(&[CUDA_WORD, Ty::Table(&CUDA_PATH_OR_INHERITED)]), "the CUDA toolkit"),
        opt("workspace", Ty::True, "take the whole table of the workspace"),
    ],
    rest: None,
};

const DEPENDENCY_FIELDS: [Field; 3] = [
    opt("pypi", STR, "a pinned wheel, `nvidia-cutlass==4.2.0`"),
    opt("path", STR, "a folder"),
    opt("include", STR, "the include folder in it; `.` if not given"),
];
static WORKSPACE_DEPENDENCY: Spec = Spec { doc: "A header library.", fields: &DEPENDENCY_FIELDS, rest: None };
static DEPENDENCY: Spec = Spec {
    doc: "A header library.",
    fields: &{
        let [pypi, path, include] = DEPENDENCY_FIELDS;
        [pypi, path, include, opt("workspace", Ty::True, "take it from the workspace")]
    },
    rest: None,
};

const ARCH: Ty = Ty::Str("`cpu` or an architecture such as `sm_90a`");
static WORKSPACE_TARGET: Spec = Spec {
    doc: "What to compile for and run on.",
    fields: &[opt("arch", ARCH, "the architecture"), opt("device", STR, "whose evidence counts, by product name")],
    rest: None,
};
static TARGET: Spec = Spec {
    doc: "What to compile for and run on.",
    fields: &[
        opt("arch", ARCH, "the architecture"),
        opt("device", STR, "whose evidence counts, by product name"),
        opt("workspace", Ty::True, "take it from the workspace"),
    ],
    rest: None,
};

static WORKSPACE: Spec = Spec {
    doc: "A workspace: several packages, one lockfile, one target folder.",
    fields: &[
        opt("members", Ty::List(&GLOB), "folders of the packages"),
        opt("exclude", Ty::List(&GLOB), "folders that are no members"),
        opt("default-members", Ty::List(&GLOB), "what commands in the root act on"),
        opt("package", Ty::Table(&WORKSPACE_PACKAGE), "values members inherit"),
        opt("targets", Ty::Map("target", &Ty::Table(&WORKSPACE_TARGET)), "targets members inherit"),
        opt("toolchain", Ty::Table(&WORKSPACE_TOOLCHAIN), "compilers members inherit"),
        opt(
            "dependencies",
            Ty::Map("dependency", &Ty::Table(&WORKSPACE_DEPENDENCY)),
            "header libraries members inherit",
        ),
    ],
    rest: None,
};

/// The words of `init`.
pub(super) const INITS: [&str; 5] = ["auto", "uniform", "normal", "positive", "one_hot"];
static INIT: Spec = Spec {
    doc: "How values are drawn; one of these.",
    fields: &[
        opt("range", Ty::Some(&FLOAT_EXPR, 2, 2), "uniform between the two"),
        opt("permutation", INT_EXPR, "a permutation of 0..n, repeated"),
        opt("offsets", INT_EXPR, "non-decreasing from 0 to the total"),
        opt("constant", Ty::Number, "one value everywhere"),
    ],
    rest: None,
};

const DTYPE: Ty = Ty::Str("a dtype or a type of the operator");
static TENSOR: Spec = Spec {
    doc: "A tensor.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents, outermost first"),
        opt("strides", Ty::List(&INT_EXPR), "elements between neighbours of each axis; contiguous if not given"),
        opt("align", Ty::Int, "alignment of its first byte, in bytes; 256 if not given"),
        opt("init", Ty::Any(&[Ty::Words(&INITS, &[]), Ty::Table(&INIT)]), "how values are drawn"),
    ],
    rest: None,
};
static OUTPUT: Spec = Spec {
    doc: "A tensor that is only written.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents, outermost first"),
        opt("strides", Ty::List(&INT_EXPR), "elements between neighbours of each axis; contiguous if not given"),
        opt("align", Ty::Int, "alignment of its first byte, in bytes; 256 if not given"),
    ],
    rest: None,
};

static PARAM: Spec = Spec {
    doc: "A scalar the operator takes.",
    fields: &[
        req("dtype", DTYPE, "its type when passed to a kernel"),
        opt("value", FLOAT_EXPR, "its value; else every shape binds it"),
    ],
    rest: None,
};

static REFERENCE: Spec = Spec {
    doc: "A built-in operator with attributes.",
    fields: &[
        req("builtin", NAME, "its name"),
        opt("names", Ty::Map("name", &NAME), "the operator's tensor or param for each of the built-in's own names"),
    ],
    rest: Some(("attribute", Ty::Any(&[STR, Ty::Number, Ty::Bool, Ty::List(&Ty::Any(&[STR, Ty::Number, Ty::Bool]))]))),
};

/// The terms of a tolerance.
pub(super) static TOLERANCE: Spec = Spec {
    doc: "How far an element may lie from its expected value.",
    fields: &[
        opt("atol", Ty::Number, "absolute part"),
        opt("rtol", Ty::Number, "part relative to the expected value"),
        opt("ulp", Ty::Number, "units in the last place of the expected value"),
        opt("scaled", Ty::Number, "part relative to the operator on absolute values, in epsilons of the accumulator"),
        opt("acc", Ty::Str("a float dtype"), "the accumulator's dtype; f32 if not given"),
        opt("matched", Ty::Number, "share of elements that must pass; 1 if not given"),
        opt("max_error", Ty::Number, "cap on the absolute error of the rest"),
        opt("nonfinite", Ty::Words(&["same", "any", "forbid"], &[]), "what to make of values that are not finite"),
    ],
    rest: None,
};
const TOLERANCES: Ty = Ty::Any(&[Ty::Words(&["auto"], &[]), Ty::Tolerance]);

static COMPARE: Spec = Spec {
    doc: "A comparison for every written tensor, or one for each by its name.",
    fields: &[opt("argmax_of", NAME, "any index whose value in this input equals the maximum will do")],
    rest: Some(("written tensor", Ty::Any(&[COMPARE_WORD, Ty::Table(&ARGMAX)]))),
};
static ARGMAX: Spec = Spec {
    doc: "A comparison.",
    fields: &[req("argmax_of", NAME, "any index whose value in this input equals the maximum will do")],
    rest: None,
};
const COMPARE_WORD: Ty = Ty::Str("`elements`, `unordered` or `file.py::function`");

static SHAPE: Spec = Spec {
    doc: "One binding of the dims.",
    fields: &[
        opt("role", Ty::Words(&["verify", "bench", "holdout"], &[]), "verify if not given"),
        opt("tolerance", TOLERANCES, "in place of the operator's"),
    ],
    rest: Some(("dim or param", Ty::Any(&[Ty::Number, Ty::Bool]))),
};

/// The words of `pattern`.
const PATTERNS: [&str; 5] = [
    Pattern::ALL[0].name(),
    Pattern::ALL[1].name(),
    Pattern::ALL[2].name(),
    Pattern::ALL[3].name(),
    Pattern::ALL[4].name(),
];

/// An operator's keys.
pub(super) static OPERATOR: Spec = Spec {
    doc: "A contract: what is computed, for which shapes, how right it must be.",
    fields: &[
        opt("dims", Ty::List(&NAME), "integers bound by each shape"),
        opt("derived", Ty::Map("dim", &INT_EXPR), "integers computed from dims"),
        opt("types", Ty::Map("type", &Ty::Some(&Ty::Str("a dtype"), 1, usize::MAX)), "the operator once per type"),
        opt("inputs", Ty::Map("tensor", &Ty::Table(&TENSOR)), "tensors that are read"),
        opt("inouts", Ty::Map("tensor", &Ty::Table(&TENSOR)), "tensors that are read and written"),
        opt("outputs", Ty::Map("tensor", &Ty::Table(&OUTPUT)), "tensors that are written"),
        opt("params", Ty::Map("param", &Ty::Table(&PARAM)), "scalars"),
        req(
            "reference",
            Ty::Any(&[Ty::Str("`builtin:name` or `file.py::function`"), Ty::Table(&REFERENCE)]),
            "where expected values come from",
        ),
        opt("generate_inputs", FUNCTION, "a seeded function that makes inputs which depend on each other"),
        opt("cost", FUNCTION, "work that depends on data"),
        opt("tolerance", TOLERANCES, "how far results may lie from the reference; derived if not given"),
        opt("compare", Ty::Any(&[COMPARE_WORD, Ty::Table(&COMPARE)]), "how results are compared"),
        opt(
            "pattern",
            Ty::Words(&PATTERNS, &[]),
            "what kind of work it is; what reference and shapes show if not given",
        ),
        opt("level", Ty::Int, "how hard it is, from 0 to 5; what reference and shapes show if not given"),
        opt("flops", FLOAT_EXPR, "work, for reporting"),
        opt("flops_min", FLOAT_EXPR, "the least arithmetic any implementation needs"),
        opt("bytes", FLOAT_EXPR, "compulsory traffic; inputs once and outputs once if not given"),
        opt("shapes", Ty::Map("shape", &Ty::Table(&SHAPE)), "the shapes"),
        opt("seeds", Ty::List(&Ty::Int), "secret numbers, each of which adds a trial to every shape; in overlays only"),
    ],
    rest: None,
};

/// The words of `strategy`.
pub(super) const STRATEGIES: [&str; 4] = ["exhaustive", "random", "annealing", "model"];

/// Keys of a search's budget.
static SEARCH_BUDGET: Spec = Spec {
    doc: "When a search ends: what is spent first.",
    fields: &[
        opt("variants", Ty::Int, "variants that are visited at most"),
        opt("seconds", Ty::Int, "seconds that its timings may hold the device"),
    ],
    rest: None,
};

static TUNE: Spec = Spec {
    doc: "What may vary.",
    fields: &[
        opt("where", Ty::List(&BOOL_EXPR), "which variants exist, over tunables, types and the target"),
        opt("strategy", Ty::Words(&STRATEGIES, &[]), "which variants are visited; exhaustive if not given: all"),
        opt("budget", Ty::Table(&SEARCH_BUDGET), "when a search ends; 64 variants if not given"),
        opt("seed", Ty::Int, "what a search's random choices follow from; 0 if not given"),
    ],
    rest: Some(("tunable", Ty::Some(&Ty::Any(&[Ty::Int, Ty::Bool, STR]), 1, usize::MAX))),
};

/// The words of `oob`.
pub(super) const OUTSIDE: [&str; 2] = ["zero", "nan"];

static ARG: Spec = Spec {
    doc: "An argument that is not just a name.",
    fields: &[
        opt("value", Ty::Expr("an expression"), "a scalar"),
        opt("dtype", DTYPE, "its type"),
        opt("ptr", NAME, "the address of a tensor or workspace"),
        opt("offset", INT_EXPR, "elements past its start"),
        opt("struct", Ty::List(&Ty::Str("a field, as `M:i32`")), "a struct by value"),
        opt("pointers", Ty::List(&NAME), "a device array of addresses"),
        opt("tensormap", NAME, "a tensor map of a tensor or workspace, by value; from sm_90"),
        opt("box", Ty::Some(&INT_EXPR, 1, 5), "elements that one copy moves along each axis, the innermost first"),
        opt(
            "swizzle",
            INT_EXPR,
            "bytes over which rows are swizzled in shared memory: 0 (if not given), 32, 64 or 128",
        ),
        opt("oob", Ty::Words(&OUTSIDE, &[]), "what lies outside the tensor reads as; zero if not given"),
        opt(
            "l2_promotion",
            INT_EXPR,
            "bytes to which fetches are widened in the L2 cache: 0 (if not given), 64, 128 or 256",
        ),
    ],
    rest: None,
};

/// A launch's keys.
pub(super) static LAUNCH: Spec = Spec {
    doc: "A kernel launch, or a memset.",
    fields: &[
        opt("entry", Ty::Str("a function or template instance"), "what is launched"),
        opt("grid", Ty::Some(&INT_EXPR, 1, 3), "blocks along x, y, z"),
        opt("block", Ty::Some(&INT_EXPR, 1, 3), "threads along x, y, z"),
        opt("shared", INT_EXPR, "bytes of dynamic shared memory"),
        opt(
            "args",
            Ty::List(&Ty::Any(&[Ty::Expr("a name or an integer expression"), Ty::Table(&ARG)])),
            "arguments in order",
        ),
        opt("when", BOOL_EXPR, "left out where it is false"),
        opt("repeat", INT_EXPR, "how often; `iteration` counts from 0"),
        opt("memset", NAME, "fill this buffer instead of launching"),
        opt("value", Ty::Int, "the byte of a memset; 0 if not given"),
        opt("cluster", Ty::Some(&INT_EXPR, 1, 3), "blocks of a cluster along x, y, z; from sm_90"),
        opt("cooperative", Ty::Bool, "all blocks are resident at once, so that the grid can synchronise"),
        opt("pdl", Ty::Bool, "may begin before the kernel launched before it has ended; from sm_90"),
    ],
    rest: None,
};

static BUFFER: Spec = Spec {
    doc: "A workspace buffer.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents"),
        opt("init", Ty::Words(&["poison", "zero", "zero-once"], &[]), "what it holds before; poison if not given"),
    ],
    rest: None,
};

/// Patterns of machine code.
pub(super) static SASS: Spec = Spec {
    doc: "Regular expressions over opcodes, also by architecture.",
    fields: &[
        opt("any", Ty::List(&STR), "at least one occurs"),
        opt("all", Ty::List(&STR), "each occurs"),
        opt("forbid", Ty::List(&STR), "none occurs"),
        opt("count", Ty::Map("pattern", &Ty::Int), "each occurs at least so often"),
        opt("fewer", Ty::List(&STR), "each occurs less often than without the method"),
    ],
    rest: Some(("architecture", Ty::Table(&SASS_ARCH))),
};
static SASS_ARCH: Spec = Spec {
    doc: "Regular expressions over opcodes.",
    fields: &[
        opt("any", Ty::List(&STR), "at least one occurs"),
        opt("all", Ty::List(&STR), "each occurs"),
        opt("forbid", Ty::List(&STR), "none occurs"),
        opt("count", Ty::Map("pattern", &Ty::Int), "each occurs at least so often"),
        opt("fewer", Ty::List(&STR), "each occurs less often than without the method"),
    ],
    rest: None,
};

static METHOD: Spec = Spec {
    doc: "A named optimisation with a switch.",
    fields: &[
        opt(
            "axis",
            Ty::Words(&["compute", "memory", "latency"], &[]),
            "the resource it relieves; the one its name begins with if not given",
        ),
        opt("off", Ty::Table(&OFF), "the variant without it"),
        opt("sass", Ty::Table(&SASS), "what machine code shows it; what the registry says of it if not given"),
    ],
    rest: None,
};
static OFF: Spec = Spec {
    doc: "What turning a method off means.",
    fields: &[opt("flags", Ty::List(&STR), "flags to add"), opt("source", STR, "another source")],
    rest: Some(("tunable", Ty::Any(&[Ty::Int, Ty::Bool, STR]))),
};

static SELECT: Spec = Spec {
    doc: "How champions are selected.",
    fields: &[
        opt("per", Ty::Str("`all`, `shape` or an expression over dims"), "one champion for each class of shapes"),
        opt("metric", Ty::Words(&["cold", "hot"], &[]), "which timing decides"),
    ],
    rest: None,
};

/// The words of `sanitize`.
const SANITIZERS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];
static VERIFY: Spec = Spec {
    doc: "How it is verified besides.",
    fields: &[opt(
        "sanitize",
        Ty::List(&Ty::Words(&SANITIZERS, &[])),
        "what Compute Sanitizer watches it for on a GPU, on small shapes",
    )],
    rest: None,
};

/// The words of `exemplars`.
const SCOPES: [&str; 3] = [Scope::Workspace.name(), Scope::Package.name(), Scope::Kernel.name()];

static GENERATE: Spec = Spec {
    doc: "What makes a kernel, and who improves it.",
    fields: &[
        opt("template", STR, "a built-in template by name, or a folder of the package that holds one"),
        opt("agent", NAME, "who writes what its rounds try: `rules`, or one of `agents`"),
        opt("judge", NAME, "who diagnoses and corrects; the same agent in another role if not given"),
        opt("rounds", Ty::Int, "how many rounds there are to be; 3 if not given"),
        opt("branches", Ty::Int, "variants of an answer that are tried; 4 if not given"),
        opt("repairs", Ty::Int, "how often an answer without a right variant is corrected; 3 if not given"),
        opt("exemplars", Ty::Words(&SCOPES, &[]), "whose earlier kernels an agent is shown; workspace if not given"),
        opt(
            "start",
            Ty::Map("tunable", &Ty::Any(&[Ty::Int, Ty::Bool, STR])),
            "the variant to start from; the first value of each tunable if not given",
        ),
    ],
    rest: None,
};

static PRICES: Spec = Spec {
    doc: "What a million tokens cost.",
    fields: &[req("input", Ty::Number, "those of prompts"), req("output", Ty::Number, "those of answers")],
    rest: None,
};
static AGENT_BUDGET: Spec = Spec {
    doc: "What one run of `kforge optimize` may ask of an agent.",
    fields: &[
        opt("requests", Ty::Int, "requests"),
        opt("tokens", Ty::Int, "tokens of prompts and answers"),
        opt("money", Ty::Number, "what they cost by `prices`"),
    ],
    rest: None,
};

/// An agent's keys.
pub(super) static AGENT: Spec = Spec {
    doc: "Who may be asked for kernels.",
    fields: &[
        opt("http", STR, "an endpoint with the protocol of chat completions, `https://host/v1`"),
        opt("model", STR, "the model that the endpoint is asked for"),
        opt("key", NAME, "the environment variable that holds the endpoint's key"),
        opt("temperature", Ty::Number, "sampling temperature; the endpoint's own if not given"),
        opt("max_tokens", Ty::Int, "most tokens of an answer; the endpoint's own limit if not given"),
        opt("command", Ty::Some(&STR, 1, usize::MAX), "a program that reads a prompt and writes an answer"),
        opt("time_limit", Ty::Int, "seconds after which a request is given up; 600 if not given"),
        opt("per_minute", Ty::Int, "most requests a minute"),
        opt("parallel", Ty::Int, "most requests under way at once; 4 of an endpoint and 1 of a program if not given"),
        opt("retries", Ty::Int, "how often a request without a good answer is repeated; 3 if not given"),
        opt("prices", Ty::Table(&PRICES), "what a million tokens cost"),
        opt("budget", Ty::Table(&AGENT_BUDGET), "what one run may ask for"),
    ],
    rest: None,
};

const LAUNCHES: Ty = Ty::Some(&Ty::Table(&LAUNCH), 1, usize::MAX);
const FLAGS: Field = opt("flags", Ty::List(&STR), "flags of the compiler; tunables and types in them are replaced");
const DEFINES: Field = opt(
    "defines",
    Ty::Map("macro", &Ty::Any(&[Ty::Int, Ty::Bool, STR])),
    "macros; tunables and types in strings are replaced",
);
const STD: Field = opt("std", Ty::Words(&["c++14", "c++17", "c++20", "c++23"], &[]), "the language standard");
const COMPILER: Field = opt("compiler", Ty::Words(&["auto", "nvrtc", "nvcc"], &[]), "auto if not given");

/// The keys of a template's `template.toml`: those of a kernel that do not depend on who uses it.
pub(super) static TEMPLATE: Spec = Spec {
    doc: "What a template makes of an operator: a kernel without its operator, source and targets.",
    fields: &[
        opt("requires", Ty::List(&BOOL_EXPR), "which shapes a variant serves"),
        opt("tune", Ty::Table(&TUNE), "what may vary"),
        req("launch", LAUNCHES, "what runs, in order"),
        opt("methods", Ty::Map("method", &Ty::Table(&METHOD)), "its optimisations"),
        COMPILER,
        STD,
        FLAGS,
        DEFINES,
        opt("workspace", Ty::Map("buffer", &Ty::Table(&BUFFER)), "scratch buffers"),
    ],
    rest: None,
};

/// A kernel's keys.
pub(super) static KERNEL: Spec = Spec {
    doc: "One implementation of an operator.",
    fields: &[
        req("operator", NAME, "what it implements"),
        opt("language", Ty::Words(&LANGUAGES, &LANGUAGES_LATER), "cuda if not given"),
        opt("source", STR, "its source file, relative to the package; needed unless it is generated"),
        opt("generate", Ty::Table(&GENERATE), "what makes its source, launches, tunables and methods"),
        opt("targets", Ty::List(&NAME), "the targets it is for; all if not given"),
        opt("requires", Ty::List(&BOOL_EXPR), "which shapes a variant serves"),
        opt("tune", Ty::Table(&TUNE), "what may vary"),
        opt("launch", LAUNCHES, "what runs, in order; needed unless it is generated"),
        opt("methods", Ty::Map("method", &Ty::Table(&METHOD)), "its optimisations"),
        opt("select", Ty::Table(&SELECT), "how champions are selected"),
        opt("verify", Ty::Table(&VERIFY), "how it is verified besides"),
        COMPILER,
        STD,
        opt("include", Ty::List(&STR), "include folders of the package"),
        FLAGS,
        DEFINES,
        opt("workspace", Ty::Map("buffer", &Ty::Table(&BUFFER)), "scratch buffers"),
        opt("constants", Ty::Map("symbol", &NAME), "`__constant__` symbols and the inputs that fill them"),
        opt("host", STR, "a function that launches, in place of `source` and `launch`: `launch.cu::run`"),
    ],
    rest: None,
};

/// The whole manifest.
pub(super) static MANIFEST: Spec = Spec {
    doc: "kernel.toml: operators, their kernels and targets.",
    fields: &[
        opt("package", Ty::Table(&PACKAGE), "the package"),
        opt("workspace", Ty::Table(&WORKSPACE), "the workspace, in its root manifest"),
        opt("toolchain", Ty::Table(&TOOLCHAIN), "compilers"),
        opt("dependencies", Ty::Map("dependency", &Ty::Table(&DEPENDENCY)), "header libraries"),
        opt("targets", Ty::Map("target", &Ty::Table(&TARGET)), "what to compile for and run on"),
        opt("agents", Ty::Map("agent", &Ty::Table(&AGENT)), "who may be asked for kernels"),
        opt("operator", Ty::Map("operator", &Ty::Table(&OPERATOR)), "contracts"),
        opt("kernel", Ty::Map("kernel", &Ty::Table(&KERNEL)), "implementations"),
    ],
    rest: None,
};
