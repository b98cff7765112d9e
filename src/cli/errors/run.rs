//! Errors of `kforge run` about names, as diagnostics: what the user may mean, and which names exist.

use kforge_foundation::base::Diagnostic;
use kforge_ops::run::RunError;

/// The most names that are listed.
const LISTED: usize = 12;

/// The diagnostic of an error about a name.
pub(super) fn diagnostic(error: &RunError) -> Option<Diagnostic> {
    let of = |code: &'static str| Diagnostic::error(code, error.to_string());
    Some(match error {
        RunError::NoKernel(_) => of("run.kernel").expected("the name of one kernel, or the id of a step"),
        RunError::SeveralPackages { packages, .. } => {
            of("run.package").expected(format!("`-p` with one of {}", listed(packages, packages.len())))
        }
        RunError::NoShape { shape, known, .. } => of("run.shape")
            .suggest(shape, known.iter().map(String::as_str))
            .expected(format!("`--shape` with one of {}", listed(known, LISTED))),
        RunError::ShapeNeeded { known, .. } => {
            of("run.shape").expected(format!("`--shape` with one of {}", listed(known, LISTED)))
        }
        RunError::NoVariant { variant, known, .. } => of("run.variant")
            .expected(format!("one of {}", listed(known, LISTED)))
            .suggest(variant, known.iter().map(String::as_str)),
        RunError::NotServed { .. } => of("run.variant").hint("its operator has no such shape, or no variant serves it"),
        RunError::NoCpu(_) | RunError::Failed | RunError::Nothing { .. } | RunError::Lost(_) => return None,
    })
}

pub(super) fn listed(names: &[String], most: usize) -> String {
    names.iter().take(most).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
