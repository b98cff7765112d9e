//! The text of a manifest for kernels and guesses: operators that several kernels share, shapes, launches, and a comment `# check: ...` at each place that a person
//! must confirm or state. Knows the form of `kernel.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::ImportedKernel;
use super::covers::launch_of;
use super::expression::Expression;
use super::guess::{Guess, Role, guess};
use super::kernel::{Extents, Kernel};
use super::operators::{Operator, identifier, operators, shapes};
use super::through::written_through_structs;
use super::triton::TYPE;
use kforge_foundation::base::{Severity, SourceFile};
use kforge_types::model::{inherit, parse};

/// What a manifest says and which kernels are in it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) kernels: Vec<ImportedKernel>,
    /// Operators that are ready, and all.
    pub(super) operators: (usize, usize),
    /// How many places are to be checked.
    pub(super) checks: usize,
}

/// How the manifest of kernels in one language differs from that of another.
pub(super) struct Writer<'a> {
    /// The command that writes it.
    pub(super) command: &'a str,
    /// How the comment at its top ends: what verifies the kernels.
    pub(super) head: &'a str,
    /// Its targets.
    pub(super) targets: &'a str,
    /// Writes the tables of a kernel, which has this name and this index, with the guess for it alone.
    pub(super) table: &'a dyn Fn(&mut String, &str, &Operator, usize, &Guess),
}

/// Writes the manifest of a package with kernels in CUDA C++.
pub(super) fn manifest(package: &str, kernels: &[Kernel], skipped: &[String]) -> Written {
    let (command, head) = ("kforge import cuda", "# which verifies everything here without a GPU.\n");
    let targets = "[targets.cpu] # emulated: runs anywhere, verifies, does not time\n\
                   [targets.sm_90a]\narch = \"sm_90a\" # the architecture of your GPU; `kforge doctor` shows it\n";
    let table = |out: &mut String, name: &str, operator: &Operator, index: usize, guess: &Guess| {
        write_kernel(out, name, operator, &kernels[index], guess);
    };
    written(package, kernels, skipped, &Writer { command, head, targets, table: &table })
}

/// Writes the manifest of a package.
pub(super) fn written(package: &str, kernels: &[Kernel], skipped: &[String], writer: &Writer<'_>) -> Written {
    let guesses: Vec<Guess> = kernels.iter().map(guess).collect();
    let operators = operators(kernels, &guesses);
    let names = names(kernels);
    let mut out = format!("[package]\nname = {}\nversion = \"0.1.0\"\n\n{}", text(package), writer.targets);
    for file in skipped {
        let _ = write!(out, "\n# Not imported: {}\n", one_line(file));
    }
    let mut imported: Vec<Option<ImportedKernel>> = kernels.iter().map(|_| None).collect();
    let header = out.clone();
    let (mut ready, mut comments) = (String::new(), String::new());
    let (mut known, mut checks) = (0, 0);
    for operator in &operators {
        let mut head = String::new();
        write_operator(&mut head, operator, kernels);
        let of = |index: &usize| {
            let mut table = String::new();
            (writer.table)(&mut table, &names[*index], operator, *index, &guesses[*index]);
            table
        };
        let tables: Vec<String> = operator.kernels.iter().map(of).collect();
        checks += [&head].into_iter().chain(&tables).map(|text| text.matches(CHECK).count()).sum::<usize>();
        // What kforge's own reader refuses is a comment: first the whole, then each kernel by itself.
        let refused = |tables: &[&String]| {
            let tables: String = tables.iter().map(|table| table.as_str()).collect();
            refused(&format!("{header}{head}{tables}").replacen(NO_REFERENCE, "reference = \"ref.py::reference\"", 1))
        };
        let all: Vec<&String> = tables.iter().collect();
        let mut why: Vec<Option<String>> = vec![None; tables.len()];
        if operator.known()
            && let Some(first) = refused(&all)
        {
            why = tables.iter().map(|table| refused(&[table])).collect();
            let kept: Vec<&String> = tables.iter().zip(&why).filter(|(_, why)| why.is_none()).map(|(t, _)| t).collect();
            if kept.is_empty() || refused(&kept).is_some() {
                why = vec![Some(first); tables.len()];
            }
        }
        let sound = operator.known() && why.iter().any(Option::is_none);
        known += usize::from(sound);
        match sound {
            true => ready.push_str(&head),
            false => comments.extend(head.lines().map(commented)),
        }
        for ((index, table), why) in operator.kernels.iter().zip(&tables).zip(why) {
            match (&why, sound) {
                (None, true) => ready.push_str(table),
                _ => {
                    // Uncommented and with a reference, it may still not load.
                    let stands_in = || refused(&[&table.clone()]).filter(|_| !operator.known());
                    if let Some(why) = why.clone().or_else(stands_in) {
                        let _ = write!(comments, "\n# # kforge refuses this as it is: {}", one_line(&why));
                    }
                    comments.extend(table.lines().map(commented));
                }
            }
            imported[*index] = Some(ImportedKernel {
                name: names[*index].clone(),
                place: kernels[*index].place.clone(),
                entry: kernels[*index].entry.clone(),
                operator: operator.name.clone(),
                known: operator.known(),
                refused: why,
                launched: kernels[*index].launched.clone(),
                checks: table.matches(CHECK).count(),
            });
        }
    }
    let (first, rest) = match (ready.is_empty(), comments.is_empty()) {
        // A build of nothing would be refused.
        (true, false) => (ALL_UNKNOWN, ""),
        (_, true) => (ALL_READY, ""),
        (false, false) => (ALL_READY, UNKNOWN),
    };
    let out = format!("# Written by `{}`. {first}{}{out}{rest}{ready}{comments}", writer.command, writer.head);
    let kernels = imported.into_iter().flatten().collect();
    Written { text: out, kernels, operators: (known, operators.len()), checks }
}

/// The first error of kforge's reader for a manifest.
pub(super) fn refused(text: &str) -> Option<String> {
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
    let (manifest, mut found) = parse(&file);
    found.extend(manifest.iter().flat_map(|manifest| inherit(manifest, None).1));
    found.into_iter().find(|d| d.severity == Severity::Error).map(|d| d.message)
}

/// How an operator states that its reference is missing.
const NO_REFERENCE: &str = "reference = \"\"";

/// What the head of a manifest says, before what verifies its kernels.
const ALL_READY: &str =
    "Confirm or complete each line that ends in `# check: ...`, then run `kforge build --target cpu`,\n";

/// The same where every kernel is a comment.
const ALL_UNKNOWN: &str = "What the kernels compute could not be guessed, so they are comments, and there is nothing to build yet. For each of them: state
# the reference, complete the lines that end in `# check: ...`, and remove the `# ` in front of its lines. Then run `kforge build --target cpu`,
";

/// What a manifest says before kernels whose operator is unknown.
const UNKNOWN: &str = "
# What the kernels at the end of this file compute could not be guessed, so they are comments, and kforge builds the other kernels. For each of them: state
# the reference, complete the lines that end in `# check: ...`, and remove the `# ` in front of its lines.
";

/// A line as a comment.
fn commented(line: &str) -> String {
    if line.is_empty() { "\n".into() } else { format!("# {line}\n") }
}

/// How a comment begins that asks for something.
const CHECK: &str = "# check: ";

pub(super) fn check(text: Option<impl AsRef<str>>) -> String {
    text.map_or_else(String::new, |text| format!(" {CHECK}{}", one_line(text.as_ref())))
}

pub(super) fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A string of TOML.
pub(super) fn text(value: &str) -> String {
    toml_edit::Value::from(value).to_string()
}

/// An extent: a number, or an expression in quotes.
pub(super) fn extent(value: &str) -> String {
    if value.parse::<i64>().is_ok() { value.to_string() } else { text(value) }
}

pub(super) fn list(all: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", all.into_iter().collect::<Vec<_>>().join(", "))
}

/// The names of kernels in the manifest: their own, with the file's where two have one.
fn names(kernels: &[Kernel]) -> Vec<String> {
    let count = |name: &str| kernels.iter().filter(|k| k.name == name).count();
    let mut taken = BTreeSet::new();
    let mut out = vec![];
    for kernel in kernels {
        let stem = kernel.place.file.rsplit('/').next().and_then(|f| f.split('.').next()).unwrap_or_default();
        let own = identifier(&kernel.name);
        let base = if count(&kernel.name) > 1 { identifier(&format!("{stem}_{own}")) } else { own };
        let mut name = base.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        out.push(name);
    }
    out
}

fn write_operator(out: &mut String, operator: &Operator, kernels: &[Kernel]) {
    let guess = &operator.guess;
    let first = &kernels[operator.kernels[0]];
    let _ = write!(out, "\n[operator.{}]\n", operator.name);
    let written = guess.tensors.iter().any(|t| t.role != Role::Input);
    let asked = (!written).then(|| {
        let none = "no parameter of the kernel is written: state in `outputs` or `inouts` what it writes";
        written_through_structs(first).unwrap_or_else(|| none.into())
    });
    let _ = writeln!(out, "dims = {}{}", list(guess.dims.iter().map(|d| text(d))), check(asked));
    if guess.tensors.iter().any(|tensor| tensor.dtype == TYPE) {
        let asked = Some("the dtypes that callers pass");
        let _ = writeln!(out, "types = {{ {TYPE} = [\"f32\", \"f16\"] }}{}", check(asked));
    }
    let unknown = guess.reference.is_none();
    for tensor in &guess.tensors {
        let asked = tensor.check.clone().or_else(|| unknown.then(|| "state the shape".to_string()));
        let shape = list(tensor.shape.iter().map(|e| extent(e)));
        let (role, name) = (tensor.role.key(), &tensor.name);
        let _ = writeln!(out, "{role}.{name} = {{ dtype = \"{}\", shape = {shape} }}{}", tensor.dtype, check(asked));
    }
    for (name, dtype) in &guess.floats {
        let value = if name.to_ascii_lowercase().contains("eps") { "1e-5" } else { "1.5" };
        let asked = Some(format!("state the value that callers pass for `{name}`"));
        let _ = writeln!(out, "params.{name} = {{ dtype = \"{dtype}\", value = {value} }}{}", check(asked));
    }
    match &guess.reference {
        Some(reference) => {
            let why: String = guess.why.iter().map(|why| format!("; {why}")).collect();
            let asked = Some(format!("guessed from the name `{}`{why}", first.name));
            let _ = writeln!(out, "reference = {reference}{}", check(asked));
        }
        None => {
            let asked = Some(
                "state what it computes: a built-in of docs/references.md, or a function of yours: `ref.py::NAME`, or `ref.cpp::NAME`, which needs no numpy",
            );
            let _ = writeln!(out, "{NO_REFERENCE}{}", check(asked));
        }
    }
    if let Some(tolerance) = guess.tolerance {
        let half = tolerance.contains("f16") || matches!(guess.tensors.last().map(|t| t.dtype), Some("f16" | "bf16"));
        let asked = half.then_some("the kernel computes in 16 bits: state the error that you accept");
        let _ = writeln!(out, "tolerance = {tolerance}{}", check(asked));
    }
    let asked = (!guess.dims.is_empty())
        .then_some("sizes are guesses from the launch: less than a block, several blocks and a rest, whole blocks");
    let _ = write!(out, "\n[operator.{}.shapes]{}\n", operator.name, check(asked));
    for (name, sizes, bench) in shapes(operator) {
        let bound = guess.dims.iter().zip(sizes).map(|(dim, size)| format!("{dim} = {size}"));
        let bound = bound.chain(bench.then(|| "role = \"bench\"".to_string())).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "{name} = {{ {bound} }}");
    }
}

/// What is asked for an argument that is no number.
fn by_value(kernel: &Kernel, name: &str, spelling: &str) -> String {
    let value = format!("state `{name}`, a `{spelling}`");
    let members = match kernel.structs.get(name) {
        Some(Some(members)) => members,
        Some(None) => return format!("{value}: `{{ struct = [...] }}` with its members"),
        None => return value,
    };
    let pointers: Vec<String> = members.pointers.iter().map(|pointer| format!("`{pointer}`")).collect();
    let tensors = match &pointers[..] {
        [] => String::new(),
        [one] => format!(", where {one} is a tensor of the operator"),
        all => format!(", where {} are tensors of the operator", all.join(", ")),
    };
    format!("{value}: `{{ struct = {} }}`{tensors}", list(members.all.iter().map(|member| text(member))))
}

fn write_kernel(out: &mut String, name: &str, operator: &Operator, kernel: &Kernel, guess: &Guess) {
    // The kernel's names for tensors, scalars and dims, as the operator names them.
    let shared = &operator.guess;
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    named.extend(guess.tensors.iter().zip(&shared.tensors).map(|(a, b)| (a.name.as_str(), b.name.as_str())));
    named.extend(guess.floats.iter().zip(&shared.floats).map(|(a, b)| (a.0.as_str(), b.0.as_str())));
    let dims: BTreeMap<&str, &str> =
        guess.dims.iter().zip(&shared.dims).map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let renamed = |e: &Expression| {
        let own = |e: &Expression| match e {
            Expression::Name(name) => dims.get(name.as_str()).map(|other| Expression::Name((*other).to_string())),
            _ => None,
        };
        e.renamed(&own)
    };
    let _ = write!(out, "\n[kernel.{name}] # {}\n", one_line(&kernel.place.to_string()));
    let _ = writeln!(out, "operator = {}\nsource = {}", text(&operator.name), text(&kernel.source));
    if !kernel.include.is_empty() {
        let _ = writeln!(out, "include = {}", list(kernel.include.iter().map(|folder| text(folder))));
    }
    for constant in kernel.constants.iter().filter(|constant| constant.tensor.is_some()) {
        let name = &constant.name;
        let asked = Some(format!("`{name}` is a constant that host code fills"));
        let _ = writeln!(out, "constants.{name} = {}{}", text(name), check(asked));
    }
    requires(out, guess, &dims);
    if let Some(zeroed) = &guess.zeroed {
        let zeroed = named.get(zeroed.as_str()).copied().unwrap_or(zeroed);
        let _ = write!(out, "\n[[kernel.{name}.launch]]\nmemset = {} # the kernel adds to it\n", text(zeroed));
    }
    let _ = write!(out, "\n[[kernel.{name}.launch]]\n");
    let _ = writeln!(out, "entry = {}{}", text(&kernel.entry), check(kernel.entry_check.as_ref()));
    let at = kernel.launched.as_ref().map_or(String::new(), |place| format!(" at {place}"));
    let stated = |key: &str, extents: &Extents, otherwise: String, out: &mut String| match &extents.unknown {
        None => {
            let all = extents.known.iter().map(|e| extent(&renamed(e).text()));
            let asked = extents.assumed.as_ref().map(|why| format!("a guess: {why}"));
            let _ = writeln!(out, "{key} = {}{}", list(all), check(asked));
        }
        Some(why) => {
            let asked = match kernel.launched {
                Some(_) => format!("state it; the source has `{why}`{at}"),
                None => format!("state it; {why}"),
            };
            let _ = writeln!(out, "{key} = {otherwise}{}", check(Some(asked)));
        }
    };
    let (grid, block) = launch_of(kernel, guess);
    let written = |all: Vec<Expression>| list(all.iter().map(|e| extent(&renamed(e).text())));
    stated("grid", &kernel.grid, written(grid), out);
    stated("block", &kernel.block, written(block), out);
    if let Some(bytes) = &kernel.shared {
        match (&bytes.unknown, &bytes.known[..]) {
            (None, [one]) => {
                let asked = bytes.assumed.as_ref().map(|why| format!("a guess: {why}"));
                let _ = writeln!(out, "shared = {}{}", extent(&renamed(one).text()), check(asked));
            }
            (why, _) => {
                let why = why.clone().unwrap_or_default();
                let asked = Some(format!("state its bytes; the source has `{why}`{at}"));
                let _ = writeln!(out, "shared = 0{}", check(asked));
            }
        }
    }
    let mut asked = vec![];
    let arguments = kernel.parameters.iter().map(|p| {
        if let Some(other) = named.get(p.name.as_str()) {
            return text(other);
        }
        if kernel.nulls.contains(&p.name) {
            asked.push(format!("the launch passes a null pointer for `{}`", p.name));
            return "{ null = true }".into();
        }
        match (kernel.integers.get(&p.name), p.dtype) {
            (Some(e), Some("i32")) => text(&renamed(e).text()),
            (Some(e), Some(dtype)) => format!("{{ value = {}, dtype = \"{dtype}\" }}", text(&renamed(e).text())),
            (_, Some("bool")) => {
                asked.push(format!("state `{}`, a truth value", p.name));
                "{ value = \"true\", dtype = \"bool\" }".into()
            }
            _ => {
                asked.push(by_value(kernel, &p.name, &p.spelling));
                "\"0\"".into()
            }
        }
    });
    let arguments = list(arguments.collect::<Vec<_>>());
    let unstated = kernel.constants.iter().filter(|constant| constant.tensor.is_none());
    asked.extend(unstated.map(|one| format!("`{}` is a constant that host code fills, and no input here", one.name)));
    let asked = (!asked.is_empty()).then(|| asked.join("; "));
    let _ = writeln!(out, "args = {arguments}{}", check(asked));
}

/// Writes which sizes a kernel serves. `dims` are the manifest's names of dims.
pub(super) fn requires(out: &mut String, guess: &Guess, dims: &BTreeMap<&str, &str>) {
    if !guess.multiples.is_empty() {
        let conditions = guess
            .multiples
            .iter()
            .map(|(dim, by)| text(&format!("{} % {by} == 0", dims.get(dim.as_str()).copied().unwrap_or(dim))));
        let asked = Some(guess.demands.join("; "));
        let _ = writeln!(out, "requires = {}{}", list(conditions), check(asked));
    }
}
