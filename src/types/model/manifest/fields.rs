//! The keys of `kernel.toml`, table by table. Knows names, kinds and one line of meaning each; values are checked where they are decoded.

use super::baseline_fields::BASELINE;
use super::policy_fields::POLICY;
use super::spec::{Field, Spec, Ty, Vocabulary, opt, req};
use super::torch_fields::{TORCH, TORCH_RELEASE, TORCH_RELEASE_OR_INHERITED};
use crate::model::Pattern;
use crate::model::agent::Scope;
use crate::model::target::LANGUAGES;

const STR: Ty = Ty::Str("a string");
const GLOB: Ty = Ty::Str("a path or glob");
pub(super) const NAME: Ty = Ty::Str("a name");
const INT_EXPR: Ty = Ty::Expr("an integer expression");
const BOOL_EXPR: Ty = Ty::Expr("an expression that is true or false");
const FLOAT_EXPR: Ty = Ty::Expr("a number or an expression");
pub(super) const FUNCTION: Ty = Ty::Str("a function, as `file.py::function`");

/// `x.workspace = true`.
static INHERITED: Spec = Spec {
    doc: "Inherited from the workspace's root manifest.",
    fields: &[req("workspace", Ty::True, "inherit the value from the workspace")],
    rest: None,
};
const INHERITABLE: Ty = Ty::Any(&[STR, Ty::Table(&INHERITED)]);

static PACKAGE: Spec = Spec {
    doc: "The package.",
    fields: &[
        req("name", NAME, "the package's name: letters, digits, `-` and `_`"),
        opt("version", INHERITABLE, "its version, `1.2.3`; default `0.0.0`"),
        opt("license", INHERITABLE, "an SPDX expression"),
        opt("kforge", INHERITABLE, "the oldest kforge that can build it, `0.1`"),
    ],
    rest: None,
};

static WORKSPACE_PACKAGE: Spec = Spec {
    doc: "Values that members can inherit.",
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
    fields: &[
        opt("path", STR, "the toolkit's folder"),
        opt("workspace", Ty::True, "inherit the value from the workspace"),
    ],
    rest: None,
};
const CUDA_WORD: Ty = Ty::Str("a version such as `13.0`, or `system`");
const TRITON: Ty = Ty::Str("a release of Triton such as `3.9`");
static WORKSPACE_TOOLCHAIN: Spec = Spec {
    doc: "Compilers that members can inherit.",
    fields: &[
        opt("cuda", Ty::Any(&[CUDA_WORD, Ty::Table(&CUDA_PATH)]), "the CUDA toolkit"),
        opt("triton", TRITON, "the release of Triton"),
        opt(
            "torch",
            Ty::Any(&[TORCH, Ty::Table(&TORCH_RELEASE)]),
            "the PyTorch of references, of kernels in PyTorch and of baselines; default `system`",
        ),
    ],
    rest: None,
};
static TOOLCHAIN: Spec = Spec {
    doc: "Compilers.",
    fields: &[
        opt("cuda", Ty::Any(&[CUDA_WORD, Ty::Table(&CUDA_PATH_OR_INHERITED)]), "the CUDA toolkit"),
        opt("triton", Ty::Any(&[TRITON, Ty::Table(&INHERITED)]), "the release of Triton"),
        opt(
            "torch",
            Ty::Any(&[TORCH, Ty::Table(&TORCH_RELEASE_OR_INHERITED)]),
            "the PyTorch of references, of kernels in PyTorch and of baselines; default `system`",
        ),
        opt("workspace", Ty::True, "inherit the whole table from the workspace"),
    ],
    rest: None,
};

const DEPENDENCY_FIELDS: [Field; 3] = [
    opt("pypi", STR, "a pinned wheel, `nvidia-cutlass==4.2.0`"),
    opt("path", STR, "a folder"),
    opt("include", STR, "the include folder in it; default `.`"),
];
static WORKSPACE_DEPENDENCY: Spec = Spec { doc: "A header library.", fields: &DEPENDENCY_FIELDS, rest: None };
static DEPENDENCY: Spec = Spec {
    doc: "A header library.",
    fields: &{
        let [pypi, path, include] = DEPENDENCY_FIELDS;
        [pypi, path, include, opt("workspace", Ty::True, "inherit it from the workspace")]
    },
    rest: None,
};

const ARCH: Ty = Ty::Known(Vocabulary::Arch, "`cpu` or an architecture such as `sm_90a`");
static WORKSPACE_TARGET: Spec = Spec {
    doc: "A target: what kforge compiles for and runs on.",
    fields: &[
        opt("arch", ARCH, "the architecture"),
        opt("device", STR, "the product whose evidence counts"),
        opt("ptx", Ty::Bool, "whether artifacts also hold PTX, without evidence"),
        opt("fatbin", Ty::Bool, "whether artifacts also hold a fatbin of each binary"),
    ],
    rest: None,
};
static TARGET: Spec = Spec {
    doc: "A target: what kforge compiles for and runs on.",
    fields: &[
        opt("arch", ARCH, "the architecture"),
        opt("device", STR, "the product whose evidence counts"),
        opt("ptx", Ty::Bool, "whether artifacts also hold PTX, without evidence"),
        opt("fatbin", Ty::Bool, "whether artifacts also hold a fatbin of each binary"),
        opt("workspace", Ty::True, "inherit it from the workspace"),
    ],
    rest: None,
};

static WORKSPACE: Spec = Spec {
    doc: "A workspace: several packages, one lockfile, one target folder.",
    fields: &[
        opt("members", Ty::List(&GLOB), "folders of the packages"),
        opt("exclude", Ty::List(&GLOB), "folders that are not members"),
        opt("default-members", Ty::List(&GLOB), "the members that commands in the root act on"),
        opt("package", Ty::Table(&WORKSPACE_PACKAGE), "values that members can inherit"),
        opt("targets", Ty::Map("target", &Ty::Table(&WORKSPACE_TARGET)), "targets that members can inherit"),
        opt("toolchain", Ty::Table(&WORKSPACE_TOOLCHAIN), "compilers that members can inherit"),
        opt(
            "dependencies",
            Ty::Map("dependency", &Ty::Table(&WORKSPACE_DEPENDENCY)),
            "header libraries that members can inherit",
        ),
    ],
    rest: None,
};

/// The words of `init`.
pub(super) const INITS: [&str; 5] = ["auto", "uniform", "normal", "positive", "one_hot"];
static INIT: Spec = Spec {
    doc: "How values are drawn. Exactly one of these keys is set.",
    fields: &[
        opt("range", Ty::Some(&FLOAT_EXPR, 2, 2), "uniform between the two bounds"),
        opt("permutation", INT_EXPR, "a permutation of 0..n, repeated"),
        opt("offsets", INT_EXPR, "non-decreasing from 0 to the total"),
        opt("constant", Ty::Number, "the same value everywhere"),
    ],
    rest: None,
};

const DTYPE: Ty = Ty::Known(Vocabulary::DtypeOrType, "a dtype or a type of the operator");
static TENSOR: Spec = Spec {
    doc: "A tensor.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents, outermost first"),
        opt("strides", Ty::List(&INT_EXPR), "elements between neighbours along each axis; default contiguous"),
        opt("align", Ty::Int, "alignment of its first byte, in bytes; default 256"),
        opt("init", Ty::Any(&[Ty::Words(&INITS, &[]), Ty::Table(&INIT)]), "how values are drawn"),
    ],
    rest: None,
};
static OUTPUT: Spec = Spec {
    doc: "A tensor that is only written.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents, outermost first"),
        opt("strides", Ty::List(&INT_EXPR), "elements between neighbours along each axis; default contiguous"),
        opt("align", Ty::Int, "alignment of its first byte, in bytes; default 256"),
    ],
    rest: None,
};

static PARAM: Spec = Spec {
    doc: "A scalar that the operator takes.",
    fields: &[
        req("dtype", DTYPE, "its type when passed to a kernel"),
        opt("value", FLOAT_EXPR, "its value; without it, every shape must bind the param"),
    ],
    rest: None,
};

static REFERENCE: Spec = Spec {
    doc: "A built-in operator with attributes.",
    fields: &[
        req("builtin", Ty::Known(Vocabulary::Builtin, "a built-in operator"), "its name"),
        opt("names", Ty::Map("name", &NAME), "the operator's tensor or param for each name of the built-in"),
    ],
    rest: Some(("attribute", Ty::Any(&[STR, Ty::Number, Ty::Bool, Ty::List(&Ty::Any(&[STR, Ty::Number, Ty::Bool]))]))),
};

const TORCH_EXPR: Ty = Ty::Expr("an expression over dims and params");
const TORCH_VALUE: Ty = Ty::Any(&[TORCH_EXPR, Ty::List(&TORCH_EXPR)]);

/// The keys that say how a module or function of PyTorch is called.
macro_rules! torch_call_fields {
    ($($first:expr,)? ; $($last:expr,)?) => {
        &[
            $($first,)?
            opt(
                "init",
                Ty::Any(&[Ty::List(&TORCH_VALUE), Ty::Map("argument", &TORCH_VALUE)]),
                "the arguments of the module's constructor, in order or by name",
            ),
            opt(
                "constants",
                Ty::Map("constant", &TORCH_VALUE),
                "values of constants at the top of the file; for a reference also `helpers.NAME`, a constant of a module that is imported",
            ),
            opt(
                "state",
                Ty::Map("parameter or buffer", &Ty::Any(&[NAME, Ty::Bool])),
                "the operator's tensor for each parameter and buffer of the module, or `false` for a buffer that no tensor gives; default its name with `_` for `.`",
            ),
            opt("names", Ty::Map("argument", &NAME), "the operator's tensor, param or dim for each argument"),
            opt("mode", Ty::Words(&["eval", "train"], &[]), "the mode of the module; default eval"),
            $($last,)?
        ]
    };
}

static TORCH_CALL: Spec = Spec { doc: "How a kernel in PyTorch is called.", fields: torch_call_fields!(;), rest: None };

static TORCH_REFERENCE: Spec = Spec {
    doc: "A module or function of PyTorch.",
    fields: torch_call_fields!(
        req(
            "torch",
            Ty::Str("a module or function, as `file.py::Name`"),
            "the class of a module, a module, or a function",
        ),
        ;
        opt(
            "casts",
            Ty::Words(&["double", "keep"], &[]),
            "whether casts to floats below float64 are taken as casts to float64; default double",
        ),
    ),
    rest: None,
};

static TORCH_INPUTS: Spec = Spec {
    doc: "A function that makes inputs with PyTorch.",
    fields: &[req("torch", FUNCTION, "the function, called with dims and params in a table, and with the device")],
    rest: None,
};

/// The terms of a tolerance.
pub(super) static TOLERANCE: Spec = Spec {
    doc: "How far an element may lie from its expected value.",
    fields: &[
        opt("atol", Ty::Number, "absolute part"),
        opt("rtol", Ty::Number, "relative part: a multiple of the expected value"),
        opt("ulp", Ty::Number, "units in the last place of the expected value"),
        opt("scaled", Ty::Number, "part relative to the operator on absolute values, in epsilons of the accumulator"),
        opt("acc", Ty::Known(Vocabulary::Dtype, "a float dtype"), "the accumulator's dtype; default f32"),
        opt("matched", Ty::Number, "share of elements that must pass; default 1"),
        opt("max_error", Ty::Number, "maximum absolute error of the other elements"),
        opt("nonfinite", Ty::Words(&["same", "any", "forbid"], &[]), "how values that are not finite are compared"),
    ],
    rest: None,
};
const TOLERANCES: Ty = Ty::Any(&[Ty::Words(&["auto"], &[]), Ty::Tolerance]);

static PRECISION: Spec = Spec {
    doc: "How precisely kernels may compute. The tolerance that is derived allows for it.",
    fields: &[
        opt("accumulate", DTYPE, "the float type in which sums are accumulated; default f32, f64 for f64 outputs"),
        opt("intermediates", Ty::List(&DTYPE), "the float types to which values in between are rounded, one for each"),
    ],
    rest: None,
};

static COMPARE: Spec = Spec {
    doc: "A comparison for every written tensor, or one for each tensor by name.",
    fields: &[opt("argmax_of", NAME, "accept any index whose value in this input equals the maximum")],
    rest: Some(("written tensor", Ty::Any(&[COMPARE_WORD, Ty::Table(&ARGMAX)]))),
};
static ARGMAX: Spec = Spec {
    doc: "A comparison.",
    fields: &[req("argmax_of", NAME, "accept any index whose value in this input equals the maximum")],
    rest: None,
};
const COMPARE_WORD: Ty = Ty::Str("`elements`, `unordered` or `file.py::function`");

static SHAPE: Spec = Spec {
    doc: "One binding of the dims.",
    fields: &[
        opt("role", Ty::Words(&["verify", "bench", "holdout"], &[]), "what the shape is for; default verify"),
        opt("tolerance", TOLERANCES, "replaces the operator's tolerance"),
        opt(
            "init",
            Ty::Map("input or inout", &Ty::Table(&STORED)),
            "inputs and inouts whose values are in a file, the same in every trial",
        ),
    ],
    rest: Some(("dim or param", Ty::Any(&[Ty::Number, Ty::Bool]))),
};

static STORED: Spec = Spec {
    doc: "A tensor of a file in safetensors format.",
    fields: &[
        req("safetensors", Ty::Str("a file of the package"), "the file, relative to the manifest"),
        req("key", STR, "the name of the tensor in the file"),
    ],
    rest: None,
};

static DECISION: Spec = Spec {
    doc: "What happens where the tolerance cannot tell correct results from wrong ones.",
    fields: &[
        opt(
            "decisive",
            Ty::Words(&["report", "require"], &[]),
            "`require`: an indecisive operator is an error; default report: its kernels are unknown",
        ),
        opt(
            "undecidable",
            Ty::List(&NAME),
            "written tensors that no tolerance can decide; they are compared all the same",
        ),
    ],
    rest: None,
};

/// The words of `pattern`.
const PATTERNS: [&str; 5] = [
    Pattern::ALL[0].name(),
    Pattern::ALL[1].name(),
    Pattern::ALL[2].name(),
    Pattern::ALL[3].name(),
    Pattern::ALL[4].name(),
];

/// Where an operator is from.
static ORIGIN: Spec = Spec {
    doc: "The problem set that an operator is from, for people and programs that keep score.",
    fields: &[
        req("set", Ty::Str("the problem set"), "the problem set, such as `kernelbench`"),
        opt("level", Ty::Int, "the level there"),
        opt("number", Ty::Int, "the number there"),
        opt("name", Ty::Str("the name there"), "the name there"),
    ],
    rest: None,
};

/// An operator's keys.
pub(super) static OPERATOR: Spec = Spec {
    doc: "A contract: what is computed, for which shapes, and how accurate the results must be.",
    fields: &[
        opt("dims", Ty::List(&NAME), "integers that each shape binds"),
        opt("derived", Ty::Map("dim", &INT_EXPR), "integers computed from dims"),
        opt(
            "types",
            Ty::Map("type", &Ty::Some(&Ty::Known(Vocabulary::Dtype, "a dtype"), 1, usize::MAX)),
            "the dtypes that each type may be; the operator exists once for each choice",
        ),
        opt("inputs", Ty::Map("tensor", &Ty::Table(&TENSOR)), "tensors that are only read"),
        opt("inouts", Ty::Map("tensor", &Ty::Table(&TENSOR)), "tensors that are read and written"),
        opt("outputs", Ty::Map("tensor", &Ty::Table(&OUTPUT)), "tensors that are only written"),
        opt("params", Ty::Map("param", &Ty::Table(&PARAM)), "scalars"),
        req(
            "reference",
            Ty::Any(&[
                Ty::Known(Vocabulary::Reference, "`builtin:name` or `file.py::function`"),
                Ty::Table(&REFERENCE),
                Ty::Table(&TORCH_REFERENCE),
            ]),
            "where expected values come from",
        ),
        opt(
            "generate_inputs",
            Ty::Any(&[FUNCTION, Ty::Table(&TORCH_INPUTS)]),
            "a seeded function that generates inputs that depend on each other",
        ),
        opt("tolerance", TOLERANCES, "how far results may lie from the reference; default derived"),
        opt("precision", Ty::Table(&PRECISION), "how precisely kernels may compute, for a derived tolerance"),
        opt("compare", Ty::Any(&[COMPARE_WORD, Ty::Table(&COMPARE)]), "how results are compared"),
        opt("verify", Ty::Table(&DECISION), "what happens where the tolerance cannot decide"),
        opt("pattern", Ty::Words(&PATTERNS, &[]), "the kind of work; by default inferred from reference and shapes"),
        opt("level", Ty::Int, "the difficulty, from 0 to 5; by default inferred from reference and shapes"),
        opt("origin", Ty::Table(&ORIGIN), "the problem set that it is from; changes nothing"),
        opt("flops", FLOAT_EXPR, "arithmetic operations, for reports"),
        opt("flops_min", FLOAT_EXPR, "the fewest arithmetic operations that any implementation needs"),
        opt(
            "bytes",
            FLOAT_EXPR,
            "bytes that every implementation must move; by default each input and each output once",
        ),
        opt("shapes", Ty::Map("shape", &Ty::Table(&SHAPE)), "the shapes"),
        opt("seeds", Ty::List(&Ty::Int), "secret numbers; each adds a trial to every shape; only in overlays"),
    ],
    rest: None,
};

/// The words of `strategy`.
pub(super) const STRATEGIES: [&str; 4] = ["exhaustive", "random", "annealing", "model"];

/// Keys of a search's budget.
static SEARCH_BUDGET: Spec = Spec {
    doc: "When a search ends: when the first of these is spent.",
    fields: &[
        opt("variants", Ty::Int, "maximum number of variants that are visited"),
        opt("seconds", Ty::Int, "maximum seconds for which its timings may occupy the device"),
    ],
    rest: None,
};

static TUNE: Spec = Spec {
    doc: "What may vary: tunables with their values, and how they are searched.",
    fields: &[
        opt("where", Ty::List(&BOOL_EXPR), "conditions over tunables, types and the target: which variants exist"),
        opt("strategy", Ty::Words(&STRATEGIES, &[]), "which variants are visited; default exhaustive (all)"),
        opt("budget", Ty::Table(&SEARCH_BUDGET), "when a search ends; default 64 variants"),
        opt("seed", Ty::Int, "seed of a search's random choices; default 0"),
        opt(
            "hints",
            Ty::List(&Ty::Map("tunable", &Ty::Any(&[Ty::Int, Ty::Bool, STR]))),
            "values of tunables that a search visits first, in this order",
        ),
    ],
    rest: Some(("tunable", Ty::Some(&Ty::Any(&[Ty::Int, Ty::Bool, STR]), 1, usize::MAX))),
};

/// The words of `oob`.
pub(super) const OUTSIDE: [&str; 2] = ["zero", "nan"];

/// The forms of a member of a struct that are tables.
macro_rules! member_fields {
    ($($nested:expr)?) => {
        &[
            opt("value", Ty::Expr("an expression"), "a scalar"),
            opt("dtype", DTYPE, "its type"),
            opt("ptr", NAME, "the address of a tensor or workspace"),
            opt("offset", INT_EXPR, "elements past its start"),
            opt("pointers", Ty::List(&NAME), "a device array of addresses"),
            opt("null", Ty::Bool, "`true`: a null pointer"),
            $(opt("struct", $nested, "a struct in the struct"),)?
        ]
    };
}
const MEMBER_TEXT: Ty = Ty::Str("a member, as `M:i32`, or the name of a tensor or workspace");
static INNER_MEMBER: Spec = Spec {
    doc: "A member of a struct in a struct, in one of its explicit forms.",
    fields: member_fields!(),
    rest: None,
};
static MEMBER: Spec = Spec {
    doc: "A member of a struct in one of its explicit forms.",
    fields: member_fields!(Ty::Some(&Ty::Any(&[MEMBER_TEXT, Ty::Table(&INNER_MEMBER)]), 1, usize::MAX)),
    rest: None,
};

pub(super) static ARG: Spec = Spec {
    doc: "An argument in one of its explicit forms.",
    fields: &[
        opt("value", Ty::Expr("an expression"), "a scalar"),
        opt("dtype", DTYPE, "its type"),
        opt("ptr", NAME, "the address of a tensor or workspace"),
        opt("offset", INT_EXPR, "elements past its start"),
        opt(
            "struct",
            Ty::Some(&Ty::Any(&[MEMBER_TEXT, Ty::Table(&MEMBER)]), 1, usize::MAX),
            "a struct by value, laid out as C lays it out",
        ),
        opt("pointers", Ty::List(&NAME), "a device array of addresses"),
        opt("null", Ty::Bool, "`true`: a null pointer"),
        opt("tensormap", NAME, "a tensor map of a tensor or workspace, by value, from sm_90; in Triton a descriptor"),
        opt("box", Ty::Some(&INT_EXPR, 1, 5), "elements that one copy moves along each axis, innermost axis first"),
        opt(
            "block_shape",
            Ty::Some(&INT_EXPR, 1, 5),
            "in Triton: the block of a tensor descriptor along each axis, outermost axis first",
        ),
        opt("swizzle", INT_EXPR, "bytes over which rows are swizzled in shared memory: 0 (default), 32, 64 or 128"),
        opt("oob", Ty::Words(&OUTSIDE, &[]), "what reads outside the tensor return; default zero"),
        opt(
            "l2_promotion",
            INT_EXPR,
            "bytes to which fetches are widened in the L2 cache: 0 (default), 64, 128 or 256",
        ),
    ],
    rest: None,
};

/// A launch's keys.
pub(super) static LAUNCH: Spec = Spec {
    doc: "A kernel launch, or a memset.",
    fields: &[
        opt("entry", Ty::Str("a function or template instance"), "the function to launch"),
        opt("grid", Ty::Some(&INT_EXPR, 1, 3), "blocks along x, y, z"),
        opt("block", Ty::Some(&INT_EXPR, 1, 3), "threads along x, y, z"),
        opt("shared", INT_EXPR, "bytes of dynamic shared memory"),
        opt(
            "args",
            Ty::List(&Ty::Any(&[Ty::Expr("a name or an integer expression"), Ty::Table(&ARG)])),
            "arguments in order",
        ),
        opt("when", BOOL_EXPR, "condition; the launch is omitted if it is false"),
        opt("repeat", INT_EXPR, "number of repetitions; `iteration` counts from 0"),
        opt("memset", NAME, "fill this buffer instead of launching"),
        opt("value", Ty::Int, "the byte of a memset; default 0"),
        opt("cluster", Ty::Some(&INT_EXPR, 1, 3), "blocks of a cluster along x, y, z; from sm_90"),
        opt("cooperative", Ty::Bool, "whether all blocks must be resident at once, so that the grid can synchronise"),
        opt(
            "pdl",
            Ty::Bool,
            "whether it may begin before the previous kernel has ended (programmatic dependent launch); from sm_90",
        ),
        opt("constexprs", Ty::Map("constant", &CONSTEXPR), "in Triton: the values of `tl.constexpr` parameters"),
        opt("options", Ty::Table(&OPTIONS), "in Triton: the options of the compiler"),
    ],
    rest: None,
};

/// A constant of a launch in Triton.
const CONSTEXPR: Ty = Ty::Any(&[Ty::Expr("an expression"), Ty::Table(&CONSTEXPR_FORM)]);
static CONSTEXPR_FORM: Spec = Spec {
    doc: "A constant in one of its explicit forms.",
    fields: &[
        opt("next_pow2", INT_EXPR, "the least power of two that is at least this"),
        opt("dtype", DTYPE, "a dtype or a type of the operator, as Triton's dtype"),
    ],
    rest: None,
};

/// The options of a launch in Triton.
pub(super) static OPTIONS: Spec = Spec {
    doc: "Options of Triton's compiler.",
    fields: &[
        opt("num_warps", INT_EXPR, "warps of a program, a power of two; default 4"),
        opt("num_stages", INT_EXPR, "stages of software pipelines; default 3"),
        opt("num_ctas", INT_EXPR, "blocks of a cluster that run one program; default 1; more from sm_90"),
        opt("maxnreg", INT_EXPR, "most registers of a thread; by default the compiler's choice"),
        opt("enable_fp_fusion", BOOL_EXPR, "whether products and sums may be fused; default true"),
    ],
    rest: None,
};

static BUFFER: Spec = Spec {
    doc: "A workspace buffer.",
    fields: &[
        req("dtype", DTYPE, "the element type"),
        req("shape", Ty::List(&INT_EXPR), "extents"),
        opt("init", Ty::Words(&["poison", "zero", "zero-once"], &[]), "initial contents; default poison"),
    ],
    rest: None,
};

/// Patterns of machine code.
pub(super) static SASS: Spec = Spec {
    doc: "Regular expressions over opcodes, for all architectures or by architecture.",
    fields: &[
        opt("any", Ty::List(&STR), "at least one occurs"),
        opt("all", Ty::List(&STR), "each occurs"),
        opt("forbid", Ty::List(&STR), "none occurs"),
        opt("count", Ty::Map("pattern", &Ty::Int), "each occurs at least this often"),
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
        opt("count", Ty::Map("pattern", &Ty::Int), "each occurs at least this often"),
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
            "the resource it relieves; by default the first part of its name",
        ),
        opt("on", Ty::Table(&ON), "the values of tunables that choose it; with others, a variant does not use it"),
        opt("off", Ty::Table(&OFF), "how to turn it off"),
        opt("sass", Ty::Table(&SASS), "the machine code that shows it; by default that of the registry"),
    ],
    rest: None,
};
static ON: Spec = Spec {
    doc: "The values of tunables that choose a method.",
    fields: &[],
    rest: Some(("tunable", Ty::Any(&[Ty::Int, Ty::Bool, STR, Ty::List(&ONE_VALUE)]))),
};
static ONE_VALUE: Ty = Ty::Any(&[Ty::Int, Ty::Bool, STR]);
static OFF: Spec = Spec {
    doc: "What turning a method off means.",
    fields: &[opt("flags", Ty::List(&STR), "flags to add"), opt("source", STR, "another source")],
    rest: Some(("tunable", Ty::Any(&[Ty::Int, Ty::Bool, STR]))),
};

static SELECT: Spec = Spec {
    doc: "How champions are selected.",
    fields: &[
        opt(
            "per",
            Ty::Str("`all`, `shape` or an expression over dims"),
            "what defines a class of shapes; each class has one champion",
        ),
        opt("metric", Ty::Words(&["cold", "hot"], &[]), "the timing that decides"),
        opt("classes", Ty::Int, "maximum number of classes after a split; 1 for no split; default 4"),
    ],
    rest: None,
};
const SELECT_OR_WORD: Ty = Ty::Any(&[Ty::Words(&["one"], &[]), Ty::Table(&SELECT)]);

/// The words of `sanitize`.
const SANITIZERS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];
static VERIFY: Spec = Spec {
    doc: "Additional verification.",
    fields: &[opt(
        "sanitize",
        Ty::List(&Ty::Words(&SANITIZERS, &[])),
        "the tools of Compute Sanitizer to run on small shapes on a GPU",
    )],
    rest: None,
};

/// The words of `exemplars`.
const SCOPES: [&str; 3] = [Scope::Workspace.name(), Scope::Package.name(), Scope::Kernel.name()];

static GENERATE: Spec = Spec {
    doc: "What generates a kernel, and who improves it.",
    fields: &[
        opt("template", STR, "a built-in template by name, or a folder of the package that holds one"),
        opt("agent", NAME, "the agent that writes the candidates of its rounds: `rules`, or one of `agents`"),
        opt("judge", NAME, "the agent that diagnoses and corrects; by default the same agent in another role"),
        opt("rounds", Ty::Int, "number of rounds; default 3"),
        opt("branches", Ty::Int, "maximum number of variants of an answer that are tried; default 4"),
        opt("repairs", Ty::Int, "how often an answer without a correct variant is corrected; default 3"),
        opt("exemplars", Ty::Words(&SCOPES, &[]), "whose earlier kernels an agent sees; default workspace"),
        opt(
            "start",
            Ty::Map("tunable", &Ty::Any(&[Ty::Int, Ty::Bool, STR])),
            "the variant to start from; by default the first value of each tunable",
        ),
    ],
    rest: None,
};

static PRICES: Spec = Spec {
    doc: "Prices for a million tokens.",
    fields: &[
        req("input", Ty::Number, "price for a million tokens of prompts"),
        req("output", Ty::Number, "price for a million tokens of answers"),
    ],
    rest: None,
};
static AGENT_BUDGET: Spec = Spec {
    doc: "What one run of `kforge optimize` may ask of an agent.",
    fields: &[
        opt("requests", Ty::Int, "requests"),
        opt("tokens", Ty::Int, "maximum number of tokens of prompts and answers together"),
        opt("money", Ty::Number, "maximum cost by `prices`"),
    ],
    rest: None,
};

/// An agent's keys.
pub(super) static AGENT: Spec = Spec {
    doc: "An agent: who may be asked for kernels.",
    fields: &[
        opt("http", STR, "an endpoint with the protocol of chat completions, `https://host/v1`"),
        opt("model", STR, "the model that the endpoint is asked for"),
        opt("key", NAME, "the environment variable that holds the endpoint's key"),
        opt("temperature", Ty::Number, "sampling temperature; by default the endpoint's own"),
        opt("max_tokens", Ty::Int, "maximum number of tokens of an answer; by default the endpoint's own limit"),
        opt("command", Ty::Some(&STR, 1, usize::MAX), "a program that reads a prompt and writes an answer"),
        opt("time_limit", Ty::Int, "time limit of a request, in seconds; default 600"),
        opt("per_minute", Ty::Int, "maximum number of requests per minute"),
        opt(
            "parallel",
            Ty::Int,
            "maximum number of concurrent requests; default 4 for an endpoint and 1 for a program",
        ),
        opt("retries", Ty::Int, "how often a request without a valid answer is repeated; default 3"),
        opt("prices", Ty::Table(&PRICES), "prices for a million tokens"),
        opt("budget", Ty::Table(&AGENT_BUDGET), "limits for one run of `kforge optimize`"),
    ],
    rest: None,
};

const LAUNCHES: Ty = Ty::Some(&Ty::Table(&LAUNCH), 1, usize::MAX);
const FLAGS: Field =
    opt("flags", Ty::List(&STR), "compiler flags; names of tunables and types in them are replaced by their values");
const DEFINES: Field = opt(
    "defines",
    Ty::Map("macro", &Ty::Any(&[Ty::Int, Ty::Bool, STR])),
    "macros; names of tunables and types in strings are replaced by their values",
);
const STD: Field = opt("std", Ty::Words(&["c++14", "c++17", "c++20", "c++23"], &[]), "the language standard");
const COMPILER: Field = opt("compiler", Ty::Words(&["auto", "nvrtc", "nvcc"], &[]), "the compiler; default auto");

/// The keys of a template's `template.toml`: the keys of a kernel that do not depend on who uses the template.
pub(super) static TEMPLATE: Spec = Spec {
    doc: "What a template declares for an operator: a kernel without its operator, source and targets.",
    fields: &[
        opt("requires", Ty::List(&BOOL_EXPR), "conditions on the shapes that a variant serves"),
        opt("tune", Ty::Table(&TUNE), "tunables, and how they are searched"),
        req("launch", LAUNCHES, "launches in order"),
        opt("methods", Ty::Map("method", &Ty::Table(&METHOD)), "its optimisations"),
        COMPILER,
        STD,
        FLAGS,
        DEFINES,
        opt("workspace", Ty::Map("buffer", &Ty::Table(&BUFFER)), "scratch buffers"),
    ],
    rest: None,
};

/// The words of `specialize`.
pub(super) const SPECIALIZE: [&str; 2] = ["jit", "none"];

/// A kernel's keys.
pub(super) static KERNEL: Spec = Spec {
    doc: "One implementation of an operator.",
    fields: &[
        req("operator", NAME, "the operator that it implements"),
        opt("language", Ty::Words(&LANGUAGES, &[]), "the language; default cuda"),
        opt(
            "source",
            STR,
            "its source file, relative to the package; in PyTorch with what is called, as `file.py::Name`; required unless the kernel is generated",
        ),
        opt(
            "call",
            Ty::Table(&TORCH_CALL),
            "in PyTorch: how it is called; default as the operator's reference in PyTorch, or by names",
        ),
        opt("policy", Ty::Table(&POLICY), "in PyTorch: what it may call; default anything"),
        opt(
            "specialize",
            Ty::Any(&[Ty::Words(&SPECIALIZE, &[]), Ty::Map("dim", &Ty::Int)]),
            "in Triton: the arguments that compilations depend on; default jit, as Triton's launcher does it",
        ),
        opt("generate", Ty::Table(&GENERATE), "what generates its source, launches, tunables and methods"),
        opt("targets", Ty::List(&NAME), "the targets it is for; default all"),
        opt("requires", Ty::List(&BOOL_EXPR), "conditions on the shapes that a variant serves"),
        opt("tune", Ty::Table(&TUNE), "tunables, and how they are searched"),
        opt("launch", LAUNCHES, "launches in order; required unless the kernel is generated or in PyTorch"),
        opt("methods", Ty::Map("method", &Ty::Table(&METHOD)), "its optimisations"),
        opt("select", SELECT_OR_WORD, "how champions are selected; `\"one\"`: one champion for all shapes"),
        opt("verify", Ty::Table(&VERIFY), "additional verification"),
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
        opt("targets", Ty::Map("target", &Ty::Table(&TARGET)), "what kforge compiles for and runs on"),
        opt("agents", Ty::Map("agent", &Ty::Table(&AGENT)), "agents that kernels may name"),
        opt("operator", Ty::Map("operator", &Ty::Table(&OPERATOR)), "contracts"),
        opt("kernel", Ty::Map("kernel", &Ty::Table(&KERNEL)), "implementations"),
        opt("baseline", Ty::Map("baseline", &Ty::Table(&BASELINE)), "what champions are compared with"),
    ],
    rest: None,
};
