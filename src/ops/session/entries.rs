//! Checks entries against the sources that should declare them. A function that no reachable file declares, or a template argument that nothing declares, is
//! reported at its place in the manifest before anything is compiled. Knows scans of sources; parses no C++.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kforge_foundation::base::Diagnostic;
use kforge_project::workspace::closure::Closure;
use kforge_project::workspace::entries::kernels;
use kforge_types::model::entry::function;
use kforge_types::model::kernel::LaunchAction;
use kforge_types::model::triton::JitParam;
use kforge_types::model::{Kernel, Operator, Text};

/// Namespaces of the toolchain's own libraries, which no file of a package declares.
const LIBRARIES: [&str; 7] = ["cub", "thrust", "cuda", "cooperative_groups", "cg", "nvcuda", "std"];

/// Reports the names in a kernel's entries that nothing declares. `found` holds every file that the source reaches.
pub(super) fn check(kernel: &Kernel, operator: Option<&Operator>, found: &Closure) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for launch in &kernel.launches {
        let LaunchAction::Kernel { entry, .. } = &launch.action else { continue };
        let (text, name) = (entry.value.as_str(), function(&entry.value));
        let library = text.split_once("::").is_some_and(|(space, _)| LIBRARIES.contains(&space.trim()));
        let tunable = kernel.tune.iter().any(|t| t.0.value == name);
        if name.is_empty() || library || tunable || found.sees(name) {
            continue;
        }
        let at = text.find(name).unwrap_or(0);
        let place = entry.place.within(text, at..at + name.len());
        let there = declared(found.paths.values());
        let error = place.error("manifest.unknown-entry", format!("`{}` has no kernel `{name}`", kernel.source));
        let error = match there.as_slice() {
            [] => error.expected("a function declared `__global__`, and the source and its headers declare none"),
            names => error.expected(format!("one of {}", quoted(names.iter().map(String::as_str)))),
        };
        wrong.push(error.suggest(name, there.iter().map(String::as_str)));
    }
    let Some(operator) = operator else { return wrong };
    for stranger in kernel.strangers(operator) {
        if found.sees(&stranger.value) {
            continue;
        }
        let known = kernel.template_names(operator);
        let error = stranger.place.error("manifest.unknown-name", format!("unknown name `{stranger}` in an entry"));
        if operator.dims.iter().any(|dim| dim.value == stranger.value) {
            let error =
                error.expected("a name that is fixed when the kernel is compiled, and dims differ between shapes");
            let dim = &stranger.value;
            let tunable =
                Some(dim.to_uppercase()).filter(|upper| upper != dim).unwrap_or_else(|| format!("{dim}_FIXED"));
            let hint = format!(
                "declare a tunable, `tune.{tunable} = [64, 128]`, use it in the entry, and state `requires = [\"{dim} == {tunable}\"]`"
            );
            wrong.push(error.hint(hint));
            continue;
        }
        let error = if known.is_empty() {
            error.expected(format!(
                "a name that `{}` declares: the kernel has no tunables and its operator no types",
                kernel.source
            ))
        } else {
            let known = quoted(known.iter().copied());
            error.expected(format!("a tunable or type, one of {known}, or a name that `{}` declares", kernel.source))
        };
        wrong.push(error.suggest(&stranger.value, known));
    }
    wrong
}

/// Reports the functions that a kernel in Triton launches and its source does not declare.
pub(super) fn check_python(
    kernel: &Kernel,
    source: &str,
    functions: &BTreeMap<String, Vec<JitParam>>,
) -> Vec<Diagnostic> {
    let entries = kernel.launches.iter().filter_map(|launch| match &launch.action {
        LaunchAction::Kernel { entry, .. } => Some(entry),
        LaunchAction::Memset { .. } => None,
    });
    let missing = entries.filter(|entry| !functions.contains_key(&entry.value));
    let error = |entry: &Text| {
        let error = entry.place.error("manifest.unknown-entry", format!("`{source}` has no function `{entry}`"));
        let error = match functions.is_empty() {
            true => error.expected("a function with `@triton.jit`, and the file declares none"),
            false => error.expected(format!("one of {}", quoted(functions.keys().map(String::as_str)))),
        };
        error.suggest(&entry.value, functions.keys().map(String::as_str))
    };
    missing.map(error).collect()
}

/// Reports what is called of a kernel in PyTorch if its source does not have the name at all. Whether it is a module or a function, only Python knows.
pub(super) fn check_torch(kernel: &Kernel, text: &str) -> Option<Diagnostic> {
    let name = &kernel.torch.as_ref()?.function;
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    if words.any(|word| word == name) {
        return None;
    }
    let declared = |line: &str| {
        let rest = line.strip_prefix("class ").or_else(|| line.strip_prefix("def "))?;
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (!name.is_empty()).then_some(name)
    };
    let there: Vec<String> = text.lines().filter_map(declared).collect();
    let error = kernel.source_place.error("manifest.unknown-entry", format!("`{}` has no `{name}`", kernel.source));
    let error = match there.as_slice() {
        [] => error.expected("a module or function, and the file declares none"),
        names => error.expected(format!("one of {}", quoted(names.iter().map(String::as_str)))),
    };
    Some(error.suggest(name, there.iter().map(String::as_str)))
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// The kernels that files declare. Files that can no longer be read are skipped, because this is only for a message.
fn declared<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Vec<String> {
    let texts = paths.filter_map(|path| std::fs::read(path).ok());
    let mut all: Vec<String> = texts.flat_map(|bytes| kernels(&String::from_utf8_lossy(&bytes))).collect();
    all.sort();
    all.dedup();
    all
}
