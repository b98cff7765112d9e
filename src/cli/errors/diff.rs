//! Errors of `kforge diff` about names, as diagnostics: what the user may mean, and which names exist.

use super::run::listed;
use kforge_foundation::base::Diagnostic;
use kforge_ops::diff::DiffError;

/// The most names that are listed.
const LISTED: usize = 12;

/// The diagnostic of an error.
pub(super) fn diagnostic(error: &DiffError) -> Diagnostic {
    let of = |code: &'static str| Diagnostic::error(code, error.to_string());
    match error {
        DiffError::NotThere { .. } => of("diff.kernel").expected("a kernel, and a package and a target that have it"),
        DiffError::NoVariant { variant, known, .. } => of("diff.variant")
            .expected(format!("one of {}", listed(known, LISTED)))
            .suggest(variant, known.iter().map(String::as_str)),
        DiffError::Several { known, .. } => of("diff.variant").expected(format!("one of {}", listed(known, LISTED))),
        DiffError::NoChampion { .. } => of("diff.champion")
            .hint("`kforge build` selects champions; or name both variants: `kforge diff KERNEL A B`"),
        DiffError::Same { known, .. } if known.is_empty() => of("diff.same").hint("it is the only variant"),
        DiffError::Same { known, .. } => of("diff.same").expected(format!("one of {}", listed(known, LISTED))),
    }
}
