//! Turns an agent's answer into an attempt: the kernel that the answer contains, if it is acceptable, and the variants that can be tried. Knows what an agent's
//! declaration may state; plans nothing.
//!
//! The agent is not trusted. Its declaration may name flags that change code, but no flags that name files or programs. Its source includes only what the
//! package's own kernels include. For a method of the registry, only the registry states which machine code shows it. The reasons for a refusal are sent to the
//! agent, and reveal no holdout shape.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::sources::Sources;
use kforge_foundation::base::{Diagnostic, Digest, Severity, SourceFile};
use kforge_pipeline::optimize::methods::registry;
use kforge_pipeline::plan::input::Attempt;
use kforge_pipeline::plan::variants::torn;
use kforge_types::model::generate::GENERATED;
use kforge_types::model::{
    GeneratedKernel, Kernel, Language, Operator, Package, ShapeRole, Signature, Target, Text, TuneValue, TypeChoice,
    Variant, check_written, parse_template,
};
use kforge_types::record::answer::{Answer, Proposal};

/// The maximum number of methods in an agent's declaration: each one is compiled without, verified and timed. A champion keeps those of earlier rounds, three
/// each.
const MOST_METHODS: usize = 24;

/// The maximum number of characters of an agent's source, and of its declaration: they go into prompts of repairs.
const LONGEST: usize = 200_000;

/// The flags that an agent's declaration may name: macros, and how arithmetic is done.
static FLAGS: LazyLock<Regex> = LazyLock::new(|| {
    let own = r"^(-[DU]\w+(=[\w.+-]*)?|-O[0-3]|--?use_fast_math|--?(fmad|ftz|prec-div|prec-sqrt|extra-device-vectorization|restrict)(=(true|false))?|--?maxrregcount=\d+)$";
    Regex::new(own).expect("BUG: an expression that is always the same")
});

/// The subject of a question and of its answer.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The package.
    pub package: &'a Package,
    /// The kernel, as declared.
    pub kernel: &'a Kernel,
    /// Its operator.
    pub operator: &'a Operator,
    /// The choice of types.
    pub choice: &'a TypeChoice,
    /// The target.
    pub target: &'a Target,
}

/// The attempt for an answer, and why the answer contains nothing to try.
pub(super) fn attempt(about: About<'_>, answer: &Answer) -> (Attempt, Option<String>) {
    let question = &answer.question;
    let empty = Attempt {
        round: question.round,
        attempt: question.attempt,
        methods: question.methods.clone(),
        written: None,
        branches: vec![],
    };
    let Some(proposal) = &answer.proposal else {
        return (empty, Some(answer.refused.clone().unwrap_or_else(|| "no answer was usable".into())));
    };
    let written = match written(about, proposal) {
        Ok(written) => written,
        Err(why) => return (empty, Some(why)),
    };
    // An answer without branches is one variant, with the first values.
    let branches = if proposal.branches.is_empty() { vec![BTreeMap::new()] } else { proposal.branches.clone() };
    let (mut good, mut refused) = (vec![], None);
    for values in branches {
        let flagged = written.as_ref().map_or(Ok(()), |kernel| flagged(about, kernel, &values));
        match flagged.and_then(|()| launched(about, written.as_ref().unwrap_or(about.kernel), &values)) {
            Ok(()) => good.push(values),
            Err(why) => drop(refused.get_or_insert(why)),
        }
    }
    // Why some variants cannot be tried is reported only if none can.
    let refused = refused.filter(|_| good.is_empty());
    (Attempt { written: written.filter(|_| !good.is_empty()), branches: good, ..empty }, refused)
}

/// Checks that a variant's flags are still allowed once its tunables are filled in.
fn flagged(about: About<'_>, kernel: &Kernel, values: &BTreeMap<String, TuneValue>) -> Result<(), String> {
    let variant = kernel.variant(about.target, about.choice, values).map_err(|d| told(&[d]))?;
    let flags = variant.map(|variant| kernel.flags(&variant, about.choice)).unwrap_or_default();
    match flags.iter().find(|flag| !FLAGS.is_match(flag)) {
        Some(flag) => Err(format!("with its tunables filled in, `{flag}` is not an allowed flag")),
        None => Ok(()),
    }
}

/// Checks that a variant can be launched at every shape that it serves, because a plan must not contain a launch that cannot be bound.
///
/// # Errors
/// Why it cannot be launched, worded for the agent.
fn launched(about: About<'_>, kernel: &Kernel, values: &BTreeMap<String, TuneValue>) -> Result<(), String> {
    let variant = kernel.variant(about.target, about.choice, values).map_err(|d| told(&[d]))?;
    let Some(variant) = variant else { return Err("`tune` has no such variant, or `where` leaves it out".into()) };
    binds(about, kernel, &variant)?;
    // The variant is also examined without each of its methods.
    for method in &kernel.methods {
        if let Some(off) = kernel.without(&variant, method) {
            binds(about, kernel, &off.variant).map_err(|why| format!("without `{}`: {why}", method.id))?;
        }
    }
    Ok(())
}

/// Checks that a variant's launches can be bound at every shape that it serves.
fn binds(about: About<'_>, kernel: &Kernel, variant: &Variant) -> Result<(), String> {
    for shape in &about.operator.shapes {
        let bound = || {
            if kernel.serves(variant, about.operator, about.choice, shape)? {
                kernel.launches(variant, about.choice, &about.operator.bind(about.choice, shape)?)?;
            }
            Ok(())
        };
        match bound() {
            Ok(()) => {}
            Err(_) if shape.role == ShapeRole::Holdout => {
                return Err("its launches cannot be bound for a holdout shape: it must serve every shape that `requires` allows".into());
            }
            Err(wrong) => return Err(told(&[wrong])),
        }
    }
    Ok(())
}

/// The kernel in a proposal; none if it proposes variants of the package's own kernel.
///
/// # Errors
/// The errors in its declaration, worded for the agent: holdout shapes are not named.
fn written(about: About<'_>, proposal: &Proposal) -> Result<Option<Kernel>, String> {
    let About { package, kernel, operator, target, .. } = about;
    let (Some(source), Some(declaration)) = (&proposal.source, &proposal.declaration) else {
        return match (&proposal.source, &proposal.declaration) {
            (None, None) if !kernel.is_unstarted() => Ok(None),
            _ => Err("expected both a source and its declaration".into()),
        };
    };
    if source.chars().count() > LONGEST || declaration.chars().count() > LONGEST {
        return Err(format!("source and declaration may have {LONGEST} characters each"));
    }
    let file = Arc::new(SourceFile {
        name: format!("the declaration of kernel `{}`", kernel.name),
        text: declaration.clone(),
    });
    let name = Text { value: kernel.name.clone(), place: kernel.place.clone() };
    let (made, mut wrong) = parse_template(&file, &name, kernel.language);
    let Some(mut made) = made.filter(|_| !is_wrong(&wrong)) else { return Err(told(&wrong)) };
    if made.methods.len() > MOST_METHODS {
        return Err(format!("it declares {} methods: expected at most {MOST_METHODS}", made.methods.len()));
    }
    if let Some(flag) = made.every_flag().find(|flag| !FLAGS.is_match(flag)) {
        return Err(format!(
            "`{flag}` is not an allowed flag: expected macros (`-DX=1`), `-O0` to `-O3`, `--use_fast_math`, `--fmad=false`, `--maxrregcount=64` or similar flags"
        ));
    }
    if let Some(line) = included(source).filter(|_| kernel.language == Language::Cuda) {
        return Err(format!("`{line}`: headers are named in quotes or angle brackets, without `..`"));
    }
    for method in made.methods.iter_mut().filter(|method| registry().get(&method.id).is_some()) {
        method.signature = Signature::default();
    }
    let texts = GeneratedKernel { source: source.as_str().into(), declaration: declaration.as_str().into() };
    let digest = Digest::of([source.as_bytes(), b"\0", declaration.as_bytes()].concat().as_slice());
    let written = kernel.written(made, texts, source_of(kernel, &digest));
    let mut shown = operator.clone();
    shown.shapes.retain(|shape| shape.role != ShapeRole::Holdout);
    let mut alone = written.clone();
    alone.targets = vec![target.name.clone()];
    wrong = check_written(package, &shown, &alone);
    if is_wrong(&wrong) { Err(told(&wrong)) } else { Ok(Some(written)) }
}

/// Where the source of a kernel that an agent wrote stands in the package's tree.
fn source_of(kernel: &Kernel, digest: &Digest) -> String {
    format!("{GENERATED}/{}-{}.{}", kernel.name, digest.short(), kernel.language.ending())
}

/// Why a source must not be compiled: it has errors, reaches files other than the headers of the package's own kernels and of libraries, or uses a tunable both
/// in a directive and as an argument of an entry's template.
pub(super) fn strays(kernel: &Kernel, found: &Sources) -> Option<String> {
    if let Some(wrong) = found.refused.get(&kernel.source) {
        return Some(told(wrong));
    }
    let reach = found.sources.get(&kernel.source)?;
    let library = |file: &str| file.starts_with('@');
    let own = |file: &str| file == kernel.source || found.own.contains(file);
    if let Some(file) = reach.files.keys().find(|file| !library(file) && !own(file)) {
        return Some(format!(
            "it includes `{file}`, which no kernel of the package includes: only those headers and the toolchain's are available"
        ));
    }
    torn(kernel, reach).map(|wrong| told(&[wrong]))
}

/// A line with an include that an agent's source must not use: a path that leaves its folder, or a name from a macro.
fn included(source: &str) -> Option<&str> {
    static DIRECTIVE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^[ \t]*#[ \t]*(include|include_next|embed|import)\b.*$")
            .expect("BUG: an expression that is always the same")
    });
    let named = |line: &str| {
        let rest =
            line.trim_start_matches([' ', '\t', '#']).trim_start_matches(char::is_alphabetic).trim_start_matches('_');
        let rest = rest.trim_start_matches("next").trim();
        rest.starts_with(['"', '<']) && !rest.contains("..") && !rest.starts_with("\"/") && !rest.starts_with("</")
    };
    DIRECTIVE.find_iter(source).map(|found| found.as_str()).find(|line| !named(line) || line.contains("embed"))
}

fn is_wrong(found: &[Diagnostic]) -> bool {
    found.iter().any(|d| d.severity == Severity::Error)
}

/// Errors as text.
fn told(found: &[Diagnostic]) -> String {
    let look = kforge_foundation::base::render::Look::default();
    found.iter().map(|d| kforge_foundation::base::render::render(d, look)).collect::<Vec<_>>().join("\n")
}
