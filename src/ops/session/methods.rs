//! Checks the methods that kernels declare against the registry: a name close to one in the registry, without a signature of its own, is probably a typing
//! error. Knows manifests and the registry; does not know what a method does.

use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::diag::closest;
use kforge_pipeline::optimize::methods::registry;
use kforge_types::model::Package;

/// Warns of names that are probably misspelled methods of the registry. A package's own methods may have any name: a method that states `sass` is not checked.
pub(super) fn check(package: &Package) -> Vec<Diagnostic> {
    let methods = package.kernels.iter().flat_map(|kernel| &kernel.methods);
    let unshown = methods.filter(|method| method.signature.is_empty() && registry().get(&method.id).is_none());
    let warn = |method: &kforge_types::model::Method| {
        let id = &method.id;
        let meant = meant(id)?;
        let warning = Diagnostic::warning(
            "manifest.unknown-method",
            format!("`{id}` is not a method of the registry and states no `sass`"),
        );
        let place = &method.place;
        let warning = warning.at(&place.file, place.span.clone(), "whether machine code shows it stays unknown");
        Some(warning.hint(format!("did you mean `{meant}`?")))
    };
    unshown.filter_map(warn).collect()
}

/// The method of the registry that a name probably means. Names are compared without their axes, because a common axis does not make names similar.
fn meant(id: &str) -> Option<&'static str> {
    let name = |id: &'static str| id.split_once('.').map_or(id, |(_, name)| name);
    let entries = || registry().entries().iter().map(|entry| entry.id.as_str());
    let got = id.split_once('.').map_or(id, |(_, name)| name);
    let best = closest(got, entries().map(name))?;
    let same_axis = |known: &&str| known.split('.').next() == id.split('.').next();
    let named = || entries().filter(|known| name(known) == best);
    named().find(same_axis).or_else(|| named().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_close_to_one_of_the_registry_means_that() {
        assert_eq!(meant("memory.vectorised_access"), Some("memory.vectorized_access"));
        assert_eq!(meant("compute.vectorized_access"), Some("memory.vectorized_access"));
        assert_eq!(meant("compute.warp_shufle"), Some("compute.warp_shuffle"));
        assert_eq!(meant("memory.my_layout"), None);
    }
}
