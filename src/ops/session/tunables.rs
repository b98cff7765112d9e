//! Checks that a source leaves the names of its kernel's tunables to the macros that kforge gives the compiler. A source that defines or declares such a name
//! itself would compile to the same code for every value, or to other code than the file as it is. Reported at the tunable, before anything is compiled.

use std::collections::{BTreeMap, BTreeSet};

use kforge_foundation::base::Diagnostic;
use kforge_project::source::{FixedBy, SourceTree, fixed};
use kforge_project::workspace::closure::Closure;
use kforge_types::model::Kernel;
use kforge_types::model::entry::function;
use kforge_types::model::kernel::LaunchAction;

/// Reports the first tunable of a kernel whose name the source defines or declares. `found` holds every file that the source reaches, `include` its include
/// folders.
pub(super) fn check(kernel: &Kernel, include: &[String], found: &Closure) -> Option<Diagnostic> {
    let entries = kernel.launches.iter().filter_map(|launch| match &launch.action {
        LaunchAction::Kernel { entry, .. } => Some(entry.value.as_str()),
        LaunchAction::Memset { .. } => None,
    });
    let entries: Vec<&str> = entries.collect();
    // A tunable that an entry names is a template argument and no macro.
    let words: BTreeSet<&str> =
        entries.iter().flat_map(|e| e.split(|c: char| !c.is_alphanumeric() && c != '_')).collect();
    // Files of dependencies are not the author's to change.
    let own = |file: &&String| !file.starts_with('@');
    let scans = || found.scans.iter().filter(|(file, _)| own(file)).map(|(_, scan)| scan);
    let named = |name: &&str| scans().any(|scan| scan.identifiers.binary_search_by(|i| i.as_str().cmp(name)).is_ok());
    let tunables = kernel.tune.iter().map(|(name, _)| name.value.as_str());
    let names: Vec<&str> = tunables.filter(|name| !words.contains(name)).filter(named).collect();
    if names.is_empty() {
        return None;
    }
    // A text that cannot be read is that of a generated source, or is reported elsewhere.
    let text = |(file, path): (&String, &std::path::PathBuf)| {
        std::fs::read(path).ok().map(|bytes| (file.clone(), String::from_utf8_lossy(&bytes).into_owned()))
    };
    let files: BTreeMap<String, String> = found.paths.iter().filter(|(file, _)| own(file)).filter_map(text).collect();
    let kernels: Vec<&str> = entries.iter().map(|entry| function(entry)).collect();
    let fixed = fixed(SourceTree { files: &files, main: &kernel.source, include }, &names, &kernels)?;
    let tunable = kernel.tune.iter().map(|(name, _)| name).find(|name| name.value == fixed.name)?;
    let (name, place) = (&fixed.name, &fixed.place);
    let inner = |of: &str, what: &str| {
        (
            format!("{place}: {of} has a {what} `{name}`, and the tunable `{name}` is a macro of that name"),
            format!("give the tunable or the {what} another name"),
        )
    };
    let (message, hint) = match &fixed.by {
        FixedBy::Define => (
            format!("{place} defines `{name}`, so the tunable `{name}` has no effect"),
            format!(
                "write `#ifndef {name}` before the `#define` and `#endif` behind it, or give the tunable another name"
            ),
        ),
        FixedBy::Declaration => (
            format!("{place} declares `{name}`, and the tunable `{name}` is a macro of that name"),
            format!(
                "write `#ifndef {name}` before the declaration and `#endif` behind it, or give the tunable another name"
            ),
        ),
        FixedBy::Parameter { kernel } => inner(&format!("kernel `{kernel}`"), "parameter"),
        FixedBy::InnerParameter { function } => inner(&format!("`{function}`"), "parameter"),
        FixedBy::Local { function } => inner(&format!("`{function}`"), "variable"),
        FixedBy::Member { class } => inner(&format!("`{class}`"), "member"),
    };
    Some(tunable.place.error("kernel.tunable-fixed", message).hint(hint))
}
