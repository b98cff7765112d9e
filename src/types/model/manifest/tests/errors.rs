//! Each kind of error: its code, the text at its place, and what it expects or advises. Each case changes one place of the reference's example.

use super::{file, read, show, under};
use crate::model::manifest::schema;
use kforge_foundation::base::Severity;

const EXAMPLE: &str = include_str!("example.toml");

/// An error: the text of the example to replace; its replacement; the code; the text at the place; a part of what is expected or advised.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str);

const TUNED: &str = "BLOCK = [128, 256, 512]";

const SOURCE: &str = "source = \"rms_norm.cu\"";

const STRUCTURE: [Case; 25] = [
    ("ulp = 1 }", "ulp = 1, rtoll = 1e-3 }", "manifest.unknown-key", "rtoll", "did you mean `rtol`"),
    (
        "tolerance = { f32 = { atol = 1e-5, rtol = 1e-5 }, f16 = { atol = 1e-3, rtol = 1e-3, ulp = 1 } }",
        "tolerance = { rtoll = 1e-5 }",
        "manifest.unknown-key",
        "rtoll",
        "did you mean `rtol`",
    ),
    ("ulp = 1 }", "ulp = 1, abs_tol = 1e-3 }", "manifest.unknown-key", "abs_tol", "did you mean `atol`"),
    ("ulp = 1 }", "ulp = 1, rel_tol = 1e-3 }", "manifest.unknown-key", "rel_tol", "did you mean `rtol`"),
    ("tolerance = { f32 =", "tolerance = { f33 =", "manifest.unknown-key", "f33", "did you mean `f32`"),
    ("[operator.rms_norm]", "[operators.rms_norm]", "manifest.unknown-key", "operators", "did you mean `operator`"),
    ("[toolchain]\ncuda", "[toolchain]\ncudda", "manifest.unknown-key", "cudda", "did you mean `cuda`"),
    ("block = [\"BLOCK\"]", "blocks = [\"BLOCK\"]", "manifest.unknown-key", "blocks", "did you mean `block`"),
    ("where = [", "wher = [", "manifest.unknown-key", "wher", "did you mean `where`"),
    ("role = \"bench\" }", "rol = \"bench\" }", "manifest.unknown-key", "rol", "did you mean `role`"),
    ("sass.any", "sass.anny", "manifest.unknown-key", "anny", "did you mean `any`"),
    (
        "reference = \"builtin:rms_norm\"",
        "reference = \"builtin:rms_norm\"\ncost = \"work.py::work\"",
        "manifest.unknown-key",
        "cost",
        "write it as `flops",
    ),
    ("name = \"norms\"", "", "manifest.missing-key", "package", "`name`"),
    ("reference = \"builtin:rms_norm\"", "", "manifest.missing-key", "rms_norm", "`reference`"),
    ("grid = [\"rows\"]", "", "manifest.missing-key", "\"rms_norm<T, BLOCK, VEC>\"", "`grid`"),
    ("arch = \"sm_90a\"", "", "manifest.missing-key", "h200", "only `cpu` needs none"),
    ("dims = [\"rows\", \"cols\"]", "dims = \"rows\"", "manifest.type", "\"rows\"", "a list of"),
    (
        "inputs.w = { dtype = \"T\", shape = [\"cols\"] }",
        "inputs.w = { dtype = \"T\", shape = [1.5] }",
        "manifest.type",
        "1.5",
        "an integer expression",
    ),
    ("atol = 1e-5", "atol = \"small\"", "manifest.type", "\"small\"", "a number"),
    ("role = \"holdout\"", "role = \"hold-out\"", "manifest.value", "\"hold-out\"", "did you mean `holdout`"),
    ("BLOCK = [128, 256, 512]", "BLOCK = []", "manifest.length", "[]", "at least 1"),
    ("block = [\"BLOCK\"]", "block = [1, 1, 1, 1]", "manifest.length", "[1, 1, 1, 1]", "1 to 3"),
    ("cols = 257 }", "cols = 99999999999999999999 }", "manifest.overflow", "99999999999999999999", "64-bit"),
    ("atol = 1e-5", "atol = inf", "manifest.value", "inf", "a finite number"),
    ("version = \"0.1.0\"", "version = 0.1.0", "manifest.syntax", ".0", ""),
];

const VALUES: [Case; 51] = [
    (
        "params.eps = { dtype = \"f32\", value = 1e-6 }",
        "params.eps = { dtype = \"i32\", value = inf }",
        "manifest.kind",
        "inf",
        "only floats can be infinite or NaN",
    ),
    (
        "inputs.w = { dtype = \"T\", shape = [\"cols\"] }",
        "inputs.w = { dtype = \"i32\", shape = [\"cols\"], init = { constant = nan } }",
        "manifest.kind",
        "{ constant = nan }",
        "an integer",
    ),
    (
        "\"cols\", \"eps\"]",
        "\"cols\", { texture = \"x\" }]",
        "manifest.unknown-key",
        "texture",
        "textures and surfaces are not supported",
    ),
    (SOURCE, "source = \"rms_norm.cu\"\nselect = \"on\"", "manifest.value", "\"on\"", "did you mean `one`"),
    (SOURCE, "source = \"rms_norm.cu\"\nselect = { classes = 0 }", "manifest.value", "0", "at least 1"),
    (
        SOURCE,
        "source = \"rms_norm.cu\"\nselect = { clases = 2 }",
        "manifest.unknown-key",
        "clases",
        "did you mean `classes`",
    ),
    (
        SOURCE,
        "source = \"rms_norm.cu\"\nselect = { per = \"shape\", classes = 2 }",
        "manifest.conflict",
        "classes",
        "another `per`",
    ),
    (TUNED, "BLOCK = [128, 256, 512]\nstrategy = \"modl\"", "manifest.value", "\"modl\"", "did you mean `model`"),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nstrategy = \"random\"\nbudget = { variant = 40 }",
        "manifest.unknown-key",
        "variant",
        "did you mean `variants`",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nstrategy = \"random\"\nbudget = { seconds = 0 }",
        "manifest.value",
        "0",
        "1 or more",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nstrategy = \"random\"\nbudget = {}",
        "manifest.length",
        "budget",
        "`variants`, `seconds` or both",
    ),
    (TUNED, "BLOCK = [128, 256, 512]\nstrategy = \"annealing\"\nseed = -1", "manifest.value", "-1", "0 or more"),
    (
        TUNED,
        "BLOCK = [128]\nMODE = [\"b\", \"a\\u001b[2J\"]",
        "manifest.value",
        "\"a\\u001b[2J\"",
        "control characters",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nstrategy = \"model\"\nhints = [{ BLOCK = 128 }, { BLOCK = 64 }]",
        "manifest.value",
        "64",
        "a value of its list",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nstrategy = \"model\"\nhints = [{ BLOK = 128 }]",
        "manifest.unknown-key",
        "BLOK",
        "tunables of `tune`",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nhints = [{ BLOCK = 128 }]",
        "manifest.conflict",
        "hints",
        "`\"model\"` beside it",
    ),
    (
        TUNED,
        "BLOCK = [128, 256, 512]\nbudget = { variants = 40 }",
        "manifest.conflict",
        "budget",
        "`\"model\"` beside it",
    ),
    ("arch = \"sm_90a\"", "arch = \"sm_91\"", "manifest.arch", "\"sm_91\"", "sm_121"),
    (
        "source = \"rms_norm.cu\"",
        "source = \"rms_norm.cu\"\ndefines = { VEC = 2 }",
        "manifest.defines",
        "VEC",
        "`tune` says which values it takes",
    ),
    ("atol = 1e-5", "atol = -1e-5", "manifest.tolerance", "-1e-5", "0 or more"),
    ("ulp = 1 }", "matched = 1.5 }", "manifest.tolerance", "1.5", "0 to 1"),
    ("ulp = 1 }", "acc = \"i32\" }", "manifest.dtype", "\"i32\"", "a float dtype"),
    ("[targets.cpu]", "[targets.cpu]\nptx = true", "manifest.ptx", "true", "only where `arch` is that of a GPU"),
    ("[targets.cpu]", "[targets.cpu]\nfatbin = true", "manifest.fatbin", "true", "only where `arch` is that of a GPU"),
    ("arch = \"sm_90a\"", "arch = \"sm90a\"", "manifest.arch", "\"sm90a\"", "did you mean `sm_90a`"),
    ("[targets.cpu]", "[targets.cpu]\narch = \"sm_80\"", "manifest.arch", "\"sm_80\"", "another name"),
    ("version = \"0.1.0\"", "version = \"one\"", "manifest.version", "\"one\"", "`1.2.3`"),
    ("kforge = \"0.1\"", "kforge = \"99.1\"", "manifest.kforge", "\"99.1\"", "update kforge"),
    ("cuda = \"13.0\"", "cuda = \"sytem\"", "manifest.version", "\"sytem\"", "did you mean `system`"),
    ("nvidia-cutlass==4.2.0", "nvidia-cutlass", "manifest.requirement", "\"nvidia-cutlass\"", "`name==version`"),
    (
        "path = \"../common\", ",
        "path = \"../common\", pypi = \"a==1\", ",
        "manifest.conflict",
        "\"../common\"",
        "one of them",
    ),
    (
        "types = { T = [\"f32\", \"f16\"] }",
        "types = { T = [\"f32\", \"fp16\"] }",
        "manifest.dtype",
        "\"fp16\"",
        "did you mean `f16`",
    ),
    (
        "inputs.w = { dtype = \"T\"",
        "inputs.w = { dtype = \"float\"",
        "manifest.dtype",
        "\"float\"",
        "did you mean `f32`",
    ),
    (
        "inputs.w = { dtype = \"T\"",
        "inputs.w = { dtype = \"double\"",
        "manifest.dtype",
        "\"double\"",
        "did you mean `f64`",
    ),
    ("tolerance = { f32 =", "tolerance = { float32 =", "manifest.unknown-key", "float32", "did you mean `f32`"),
    ("inputs.w = { dtype = \"T\"", "inputs.w = { dtype = \"TT\"", "manifest.dtype", "\"TT\"", "`T`"),
    (
        "types = { T = [\"f32\", \"f16\"] }",
        "types = { T = [\"f32\", \"f32\"] }",
        "manifest.duplicate-name",
        "\"f32\"",
        "each dtype once",
    ),
    (
        "reference = \"builtin:rms_norm\"",
        "reference = \"rms_norm\"",
        "manifest.reference",
        "\"rms_norm\"",
        "`builtin:rms_norm`",
    ),
    (
        "reference = \"builtin:rms_norm\"",
        "reference = \"y = 2 * x\"",
        "manifest.reference",
        "\"y = 2 * x\"",
        "a formula is `{ builtin = \"elementwise\"",
    ),
    (
        "reference = \"builtin:rms_norm\"",
        "reference = \"ref.rs::f\"",
        "manifest.function",
        "\"ref.rs::f\"",
        "`file.py::function`",
    ),
    (
        "reference = \"builtin:rms_norm\"",
        "reference = \"../ref.py::f\"",
        "manifest.path",
        "\"../ref.py::f\"",
        "relative to the package",
    ),
    ("source = \"rms_norm.cu\"", "source = \"/tmp/a.cu\"", "manifest.path", "\"/tmp/a.cu\"", "relative to the package"),
    ("sass.any = ['LDG\\.E\\.128']", "sass.any = ['LDG(']", "manifest.regex", "'LDG('", "a regular expression"),
    ("methods.\"memory.vectorized_access\"", "methods.memory", "manifest.method", "memory", "quote the name"),
    (
        "methods.\"memory.",
        "methods.\"memmory.",
        "manifest.method",
        "\"memmory.vectorized_access\"",
        "did you mean `memory`",
    ),
    (
        "off = { VEC = 1 }",
        "axis = \"compute\"\noff = { VEC = 1 }",
        "manifest.method",
        "\"compute\"",
        "the axis its name begins with, `memory`",
    ),
    (
        "methods.\"memory.vectorized_access\"",
        "methods.\"Mine\"",
        "manifest.method",
        "\"Mine\"",
        "or a name and its `axis`",
    ),
    ("VEC = [1, 4]", "VEC = [1, 4, 1]", "manifest.duplicate-name", "1", "each value once"),
    ("VEC = [1, 4]", "VEC = [1, true]", "manifest.kind", "true", "values of one kind"),
    ("language = \"cuda\"", "language = \"tritn\"", "manifest.value", "\"tritn\"", "did you mean `triton`"),
    ("block = [\"BLOCK\"]", "block = [\"BLOCK\"]\ncooperative = 1", "manifest.type", "1", "`true` or `false`"),
];

const NAMES: [Case; 36] = [
    (
        "role = \"bench\" }",
        "role = \"bench\", init = { v = { safetensors = \"b\", key = \"v\" } } }",
        "manifest.unknown-tensor",
        "v",
        "one of `w`, `x`",
    ),
    (
        "role = \"bench\" }",
        "role = \"bench\", init = { y = { safetensors = \"b\", key = \"v\" } } }",
        "manifest.unknown-tensor",
        "y",
        "one of `w`, `x`",
    ),
    (
        "role = \"bench\" }",
        "role = \"bench\", init = { x = { safetensors = \"../b\", key = \"v\" } } }",
        "manifest.path",
        "\"../b\"",
        "without `..`",
    ),
    (
        "role = \"bench\" }",
        "role = \"bench\", init = { x = { safetensors = \"b\" } } }",
        "manifest.missing-key",
        "x",
        "`key`",
    ),
    (
        "outputs.y = {",
        "params.init = { dtype = \"f32\", value = 1 }\noutputs.y = {",
        "manifest.name",
        "init",
        "another name for a param",
    ),
    (
        "block = [\"BLOCK\"]",
        "block = [\"sm_count * 2\"]",
        "manifest.unknown-name",
        "sm_count",
        "in the `grid` of a launch only",
    ),
    (
        "grid = [\"rows\"]",
        "grid = [\"sm_count * 10000000\", \"sm_count * 512\"]",
        "manifest.launch-limit",
        "\"sm_count * 512\"",
        "1 to 65535",
    ),
    ("grid = [\"rows\"]", "grid = [\"sm_count / 3\"]", "manifest.remainder", "/", "`ceil_div(a, b)`"),
    ("grid = [\"rows\"]", "grid = [\"rowz\"]", "manifest.unknown-name", "rowz", "did you mean `rows`"),
    ("grid = [\"rows\"]", "grid = [\"rows *\"]", "manifest.expression", "*", "an expression"),
    ("grid = [\"rows\"]", "grid = [\"ceil_dv(rows, 2)\"]", "manifest.expression", "ceil_dv", "did you mean `ceil_div`"),
    ("grid = [\"rows\"]", "grid = [\"sqrt(rows)\"]", "manifest.expression", "sqrt", "`ceil_div`"),
    ("grid = [\"rows\"]", "grid = [\"rows / 2\"]", "manifest.remainder", "/", "`ceil_div(a, b)`"),
    ("grid = [\"rows\"]", "grid = [\"rows // (cols - cols)\"]", "manifest.division-by-zero", "//", "other than zero"),
    ("grid = [\"rows\"]", "grid = [\"rows - 3\"]", "manifest.launch-limit", "\"rows - 3\"", "1 to 2147483647"),
    ("grid = [\"rows\"]", "grid = [\"rows > 2\"]", "manifest.not-integer", "rows > 2", "an integer"),
    ("grid = [\"rows\"]", "grid = [\"rows + (cols > 2)\"]", "manifest.expression", "(cols > 2)", "an expression"),
    ("block = [\"BLOCK\"]", "block = [64, 32]", "manifest.block-too-large", "64, 32", "at most 1024"),
    (
        "\"rows\", \"cols\", \"eps\"]",
        "\"rows\", \"cols\", \"epz\"]",
        "manifest.unknown-name",
        "epz",
        "did you mean `eps`",
    ),
    (
        "\"rows\", \"cols\", \"eps\"]",
        "\"rows\", \"x + 1\", \"eps\"]",
        "manifest.unknown-name",
        "x",
        "`x` is an address",
    ),
    (
        "\"rows\", \"cols\", \"eps\"]",
        "\"rows * cols * 100000000\", \"cols\", \"eps\"]",
        "manifest.overflow",
        "rows * cols * 100000000",
        "i64",
    ),
    ("\"rows\", \"cols\", \"eps\"]", "{ ptr = \"xx\" }]", "manifest.unknown-tensor", "\"xx\"", "one of"),
    (
        "\"rows\", \"cols\", \"eps\"]",
        "{ value = \"rows\", ptr = \"x\" }]",
        "manifest.arg",
        "{ value = \"rows\", ptr = \"x\" }",
        "one of `value`",
    ),
    ("\"rows\", \"cols\", \"eps\"]", "{ struct = [\"rows:i23\"] }]", "manifest.dtype", "i23", "`i32`"),
    (
        "operator = \"rms_norm\"",
        "operator = \"rmsnorm\"",
        "manifest.unknown-operator",
        "\"rmsnorm\"",
        "did you mean `rms_norm`",
    ),
    (
        "targets = [\"cpu\", \"h200\"]",
        "targets = [\"cpu\", \"h20\"]",
        "manifest.unknown-target",
        "\"h20\"",
        "did you mean `h200`",
    ),
    (
        "targets = [\"cpu\", \"h200\"]",
        "targets = [\"cpu\", \"cpu\"]",
        "manifest.duplicate-name",
        "\"cpu\"",
        "each target once",
    ),
    ("off = { VEC = 1 }", "off = { VECT = 1 }", "manifest.unknown-tunable", "VECT", "did you mean `VEC`"),
    (
        "off = { VEC = 1 }",
        "on = { VECT = 4 }\noff = { VEC = 1 }",
        "manifest.unknown-tunable",
        "VECT",
        "did you mean `VEC`",
    ),
    ("off = { VEC = 1 }", "on = { VEC = 3 }\noff = { VEC = 1 }", "manifest.value", "VEC", "one of"),
    (
        "off = { VEC = 1 }",
        "on = { VEC = [] }\noff = { VEC = 1 }",
        "manifest.value",
        "VEC",
        "a value or a list of values",
    ),
    ("off = { VEC = 1 }", "off = { VEC = \"no\" }", "manifest.kind", "VEC", "an integer"),
    (
        "where = [\"BLOCK * VEC <= 2048\"]",
        "where = [\"BLOCK * VEC <= rows\"]",
        "manifest.unknown-name",
        "rows",
        "one of",
    ),
    (
        "where = [\"BLOCK * VEC <= 2048\"]",
        "where = [\"BLOCK > 2048\"]",
        "manifest.no-variant",
        "rms_norm",
        "`where` allows",
    ),
    ("VEC = [1, 4]", "VEC = [4]", "manifest.unserved-shape", "ragged", "`requires`"),
    (
        "requires = [\"VEC == 1 or",
        "requires = [\"VEC + 1 or",
        "manifest.kind",
        "VEC + 1 or cols % VEC == 0",
        "a truth value",
    ),
];

const OPERATORS: [Case; 24] = [
    (
        "reference =",
        "pattern = \"reductions\"\nreference =",
        "manifest.value",
        "\"reductions\"",
        "did you mean `reduction`",
    ),
    ("reference =", "level = 6\nreference =", "manifest.value", "6", "0 to 5"),
    (
        "dims = [\"rows\", \"cols\"]",
        "dims = [\"rows\", \"cols\", \"rows\"]",
        "manifest.duplicate-name",
        "\"rows\"",
        "names that differ",
    ),
    (
        "inputs.w =",
        "inputs.rows = { dtype = \"T\", shape = [1] }\ninputs.w =",
        "manifest.duplicate-name",
        "rows",
        "names that differ",
    ),
    ("BLOCK = [128", "cols = [1]\nBLOCK = [128", "manifest.duplicate-name", "cols", "names that differ"),
    (
        "inputs.w =",
        "inputs.\"w w\" = { dtype = \"T\", shape = [1] }\ninputs.w =",
        "manifest.name",
        "\"w w\"",
        "letters, digits",
    ),
    (
        "inputs.w =",
        "inputs.target = { dtype = \"T\", shape = [1] }\ninputs.w =",
        "manifest.name",
        "target",
        "means nothing else",
    ),
    ("name = \"norms\"", "name = \"my norms\"", "manifest.name", "\"my norms\"", "letters, digits"),
    (
        "shape = [\"rows\", \"cols\"] }\nreference",
        "shape = [\"row\", \"cols\"] }\nreference",
        "manifest.unknown-name",
        "row",
        "did you mean `rows`",
    ),
    ("outputs.y", "inputs.y", "manifest.no-output", "rms_norm", "`outputs`"),
    (
        "reference =",
        "compare = \"ref.py::check\"\nreference =",
        "manifest.unused-tolerance",
        "tolerance",
        "of other outputs only",
    ),
    (
        "reference =",
        "outputs.i = { dtype = \"i32\", shape = [] }\ncompare = { i = \"ref.py::check\" }\ninputs.got = { dtype = \"T\", shape = [] }\nreference =",
        "manifest.name",
        "got",
        "other than `got` and `want`",
    ),
    (
        "shape = [\"cols\"]",
        "shape = [\"cols\"], strides = [1, 2]",
        "manifest.length",
        "[1, 2]",
        "one stride for each axis",
    ),
    ("shape = [\"cols\"]", "shape = [\"cols\"], align = 3", "manifest.value", "3", "a power of two"),
    (
        "shape = [\"cols\"]",
        "shape = [\"cols\"], init = \"unifrom\"",
        "manifest.value",
        "\"unifrom\"",
        "did you mean `uniform`",
    ),
    ("shape = [\"cols\"]", "shape = [\"cols - 300\"]", "manifest.negative", "\"cols - 300\"", "0 or more"),
    ("shape = [\"cols\"]", "shape = [\"cols * 100000000000000\"]", "manifest.too-large", "w", "at most"),
    ("types = ", "derived = { half = \"cols / 2\" }\ntypes = ", "manifest.remainder", "/", "without remainder"),
    ("value = 1e-6", "value = \"1 / (cols - cols)\"", "manifest.division-by-zero", "/", "other than zero"),
    ("cols = 257 }", "coll = 257 }", "manifest.unknown-dim", "coll", "did you mean `cols`"),
    ("{ rows = 3, cols = 257 }", "{ rows = 3 }", "manifest.missing-dim", "ragged", "`cols = ...`"),
    ("cols = 257 }", "cols = 2.5 }", "manifest.dim", "2.5", "an integer"),
    ("value = 1e-6", "", "manifest.missing-param", "ragged", "`eps = ...`"),
    ("f32 = { atol = 1e-5, rtol = 1e-5 }, ", "", "manifest.no-tolerance", "tolerance", "`f32 = { ... }`"),
];

const REST: [Case; 14] = [
    ("dtype = \"f32\", value = 1e-6", "dtype = \"u8\", value = 300", "manifest.overflow", "300", "from 0 to 255"),
    (
        "flops = \"4 *",
        "verify.undecidable = [\"yy\"]\nflops = \"4 *",
        "manifest.unknown-tensor",
        "\"yy\"",
        "did you mean `y`",
    ),
    ("flops = \"4 *", "verify.undecidable = [\"x\"]\nflops = \"4 *", "manifest.unknown-tensor", "\"x\"", "one of `y`"),
    (
        "flops = \"4 *",
        "verify.decisive = \"required\"\nflops = \"4 *",
        "manifest.value",
        "\"required\"",
        "did you mean `require`",
    ),
    (
        "flops = \"4 *",
        "verify.undecideable = [\"y\"]\nflops = \"4 *",
        "manifest.unknown-key",
        "undecideable",
        "did you mean `undecidable`",
    ),
    ("flops = \"4 *", "compare = { argmax_of = \"z\" }\nflops = \"4 *", "manifest.unknown-tensor", "\"z\"", "one of"),
    (
        "flops = \"4 *",
        "compare = \"unorderd\"\nflops = \"4 *",
        "manifest.value",
        "\"unorderd\"",
        "did you mean `unordered`",
    ),
    (
        "flops = \"4 * rows * cols\"",
        "flops = \"4 * row * cols\"",
        "manifest.unknown-name",
        "row",
        "did you mean `rows`",
    ),
    (
        "flops = \"4 * rows * cols\"",
        "flops = \"rows - 4 * cols\"",
        "manifest.negative",
        "\"rows - 4 * cols\"",
        "0 or more",
    ),
    ("entry = \"rms_norm<T, BLOCK, VEC>\"", "memset = \"x\"", "manifest.input-written", "\"x\"", "an output"),
    (
        "[kernel.rms_norm.tune]",
        "[kernel.rms_norm.constants]\nc_w = \"y\"\n[kernel.rms_norm.tune]",
        "manifest.unknown-tensor",
        "\"y\"",
        "one of `w`, `x`",
    ),
    (
        "[kernel.rms_norm.tune]",
        "[kernel.rms_norm.select]\nper = \"BLOCK > 1\"\n[kernel.rms_norm.tune]",
        "manifest.unknown-name",
        "BLOCK",
        "one of",
    ),
    ("license = \"Apache-2.0\"", "license.workspace = true", "manifest.no-workspace", "workspace", "its own value"),
    (
        "[targets.h200]\n",
        "[workspace.targets.h200]\narch = \"sm_80\"\n[targets.h200]\nworkspace = true\n",
        "manifest.conflict",
        "arch",
        "only `workspace = true`",
    ),
];

fn check(cases: &[Case]) {
    let mut wrong = vec![];
    for (old, new, code, place, advice) in cases {
        assert!(EXAMPLE.contains(old), "the example lacks {old}");
        let (_, _, found) = read(&EXAMPLE.replacen(old, new, 1));
        let good = found.iter().any(|d| {
            let said = format!("{} {}", d.expected.as_deref().unwrap_or_default(), d.hints.join(" "));
            d.code == *code && under(d) == *place && said.contains(advice) && d.severity == Severity::Error
        });
        // One mistake gives one kind of message. Others would mislead the reader.
        let alone = found.iter().all(|d| d.code == *code) || *code == "manifest.syntax" || new.contains("memset");
        let placed = found.iter().all(|d| d.expected.is_some() && d.labels.iter().any(|l| l.primary));
        // The mistake is reported once. Errors that follow from it do not help.
        let at = |d: &kforge_foundation::base::Diagnostic| d.labels.iter().find(|l| l.primary).map(|l| l.span.clone());
        let once = (1..found.len())
            .all(|i| !found[..i].iter().any(|d| (at(d), &d.message) == (at(&found[i]), &found[i].message)));
        if !good || !alone || !placed || !once {
            wrong.push(format!(
                "{new:?} should give {code} at {place:?} saying {advice:?}, and gave {:#?}",
                found.iter().map(show).collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn structural_errors_say_place_and_what_was_expected() {
    check(&STRUCTURE);
}

#[test]
fn wrong_values_say_place_and_what_was_expected() {
    check(&VALUES);
}

#[test]
fn unknown_names_and_later_constructs_say_place_and_what_was_expected() {
    check(&NAMES);
}

#[test]
fn operators_that_do_not_bind_say_place_and_what_was_expected() {
    check(&OPERATORS);
}

#[test]
fn the_rest_says_place_and_what_was_expected() {
    check(&REST);
}

#[test]
fn a_name_that_is_no_dim_and_a_dim_that_is_not_bound_are_one_mistake() {
    let told = |shape: &str| {
        let (_, _, found) = read(&EXAMPLE.replacen("{ rows = 3, cols = 257 }", shape, 1));
        found.iter().map(show).collect::<Vec<_>>()
    };
    let [one] = &told("{ rows = 3, k = 257 }")[..] else { panic!() };
    assert!(one.starts_with("manifest.unknown-dim | k | operator `rms_norm` has no dim or param `k`"), "{one}");
    assert!(one.ends_with("did you mean `cols`, which shape `ragged` does not bind?"), "{one}");
    // With several unknown names, nobody can tell which name belongs to which dim.
    assert_eq!(told("{ k = 257, m = 3 }").len(), 4);
}

#[test]
fn all_errors_of_a_file_come_at_once_in_its_order() {
    let text = EXAMPLE
        .replacen("cuda =", "cudda =", 1)
        .replacen("sm_90a", "sm90", 1)
        .replacen("atol = 1e-5", "atoll = 1e-5", 1)
        .replacen("cols = 257 }", "coll = 257 }", 1)
        .replacen("operator = \"rms_norm\"", "operator = \"rms\"", 1)
        .replacen("targets = [\"cpu\"", "targets = [\"cppu\"", 1)
        .replacen("language = \"cuda\"", "language = \"tritn\"", 1)
        .replacen("grid = [\"rows\"]", "grid = [\"rows +\"]", 1);
    let (_, _, mut found) = read(&text);
    crate::model::package::sort(&mut found);
    let places: Vec<&str> = found.iter().map(under).collect();
    let expected = ["cudda", "\"sm90\"", "atoll", "coll", "\"rms\"", "\"tritn\"", "\"cppu\"", "+"];
    assert_eq!(places, expected, "{:#?}", found.iter().map(show).collect::<Vec<_>>());
}

#[test]
fn several_syntax_errors_come_at_once_with_the_keys_that_were_read() {
    let (manifest, found) = crate::model::parse(&file("[package]\nname = \nlicence = \"x\"\nversion = 1.2.3\n"));
    assert!(manifest.is_none());
    let codes: Vec<_> = found.iter().map(|d| d.code).collect();
    assert_eq!(
        codes.iter().filter(|c| **c == "manifest.syntax").count(),
        2,
        "{:#?}",
        found.iter().map(show).collect::<Vec<_>>()
    );
    assert!(found.iter().any(|d| d.code == "manifest.unknown-key" && under(d) == "licence"));
}

#[test]
fn the_schema_accepts_the_examples_and_refuses_a_typo() {
    let validator = jsonschema::validator_for(&schema(&["elementwise", "matmul", "rms_norm"])).unwrap();
    let json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    for good in [EXAMPLE, include_str!("everything.toml")] {
        let errors: Vec<String> = validator.iter_errors(&json(good)).map(|e| e.to_string()).collect();
        assert_eq!(errors, [""; 0]);
    }
    let words = [
        ("rtol", "rtoll"),
        ("reference = \"builtin:rms_norm\"", "reference = \"builtin:rms_nrm\""),
        ("dtype = \"f32\"", "dtype = \"float32\""),
        ("arch = \"sm_90a\"", "arch = \"sm90\""),
    ];
    for (word, wrong) in words {
        assert!(EXAMPLE.contains(word), "{word}");
        let errors: Vec<String> =
            validator.iter_errors(&json(&EXAMPLE.replacen(word, wrong, 1))).map(|e| e.to_string()).collect();
        assert_eq!(errors.len(), 1, "{wrong}: {errors:?}");
    }
    let typed = EXAMPLE.replace("dtype = \"f32\"", "dtype = \"T\"");
    assert!(validator.is_valid(&json(&typed)) && validator.is_valid(&json(&typed.replace("\"T\"", "\"input\""))));
    assert!(!validator.is_valid(&json(&EXAMPLE.replacen("language = \"cuda\"", "language = \"tritn\"", 1))));
}

#[test]
fn a_key_that_is_misspelt_hides_no_other_mistake_of_its_kernel() {
    let codes = |text: &str| {
        let (_, _, found) = read(text);
        found.iter().map(|d| format!("{} {}", d.code, under(d))).collect::<Vec<_>>()
    };
    let wrong = EXAMPLE
        .replacen("language = \"cuda\"", "langage = \"cuda\"", 1)
        .replacen("where = [\"BLOCK", "where = [\"BLOK", 1)
        .replacen("off = { VEC = 1 }", "off = { VEX = 1 }", 1);
    let all = ["manifest.unknown-key langage", "manifest.unknown-name BLOK", "manifest.unknown-tunable VEX"];
    assert_eq!(codes(&wrong), all);
    // An unknown table may hold the tunables, so no name can be called unknown.
    let tables = EXAMPLE.replace("[kernel.rms_norm.tune]", "[kernel.rms_norm.tunables]");
    assert_eq!(codes(&tables), ["manifest.unknown-key tunables"]);
    let nameless = wrong.replacen("operator = \"rms_norm\"", "operator = \"rms_nrm\"", 1);
    let nameless = codes(&nameless.replacen("langage = \"cuda\"", "language = \"cuda\"", 1));
    assert_eq!(nameless, ["manifest.unknown-operator \"rms_nrm\"", "manifest.unknown-tunable VEX"]);
}

#[test]
fn seeds_are_offered_to_nobody_who_declares_an_operator() {
    let (_, _, found) = read(&EXAMPLE.replacen("flops = ", "seed = [1]\nflops = ", 1));
    let told = show(&found[0]);
    assert!(told.contains("unknown key `seed`") && !told.contains("`seeds`"), "{told}");
}
