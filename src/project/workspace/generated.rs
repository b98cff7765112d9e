//! Completes kernels that templates generate, before the checks across a manifest's tables. Knows where the templates of a package are; [`Templates`] decides
//! what a template generates for an operator.

use std::path::Path;

use kforge_foundation::base::{Diagnostic, Witness};
use kforge_types::model::{Kernel, Language, Manifest, Operator, TemplateText};

/// File name of a template's declaration, in the template's folder.
pub const DECLARATION: &str = "template.toml";

/// File name of a template's source in that language, in the template's folder.
pub fn source_name(language: Language) -> String {
    format!("kernel.{}.j2", language.ending())
}

/// The templates that exist, and how to expand them.
#[derive(Debug, Clone, Copy)]
pub struct Templates {
    /// The built-in template of a given name, which makes kernels in a given language.
    pub builtin: fn(&str, Language) -> Option<TemplateText>,
    /// The names of all built-in templates for a language.
    pub names: fn(Language) -> Vec<&'static str>,
    /// Generates a complete kernel from an operator and a template.
    pub make: fn(&Operator, &Kernel, &TemplateText) -> Result<Kernel, Vec<Diagnostic>>,
}

/// No templates, for tests of other code.
#[cfg(test)]
pub(crate) const NONE: Templates =
    Templates { builtin: |_, _| None, names: |_| vec![], make: |_, kernel, _| Ok(kernel.clone()) };

/// Generates every kernel of `manifest` that uses a template. `folder` is the package's. File system queries are recorded in `witness`.
pub(super) fn complete(
    manifest: &mut Manifest,
    folder: &Path,
    templates: &Templates,
    witness: &mut Witness,
) -> Vec<Diagnostic> {
    let mut found = vec![];
    for kernel in &mut manifest.kernels {
        let Some(operator) = manifest.operators.iter().find(|o| o.name == kernel.operator) else { continue };
        if !kernel.is_ungenerated() || kernel.broken || operator.broken || operator.partial {
            continue;
        }
        let made = text_of(kernel, folder, templates, witness)
            .map_err(|error| vec![error])
            .and_then(|text| (templates.make)(operator, kernel, &text));
        match made {
            Ok(made) => *kernel = made,
            Err(errors) => found.extend(errors),
        }
    }
    found
}

/// The files of the template that a kernel names.
fn text_of(
    kernel: &Kernel,
    folder: &Path,
    templates: &Templates,
    witness: &mut Witness,
) -> Result<TemplateText, Diagnostic> {
    let Some(generate) = &kernel.generate else {
        return Err(kernel.place.error("template.none", format!("kernel `{}` names no template", kernel.name)));
    };
    let name = &generate.template;
    if let Some(text) = (templates.builtin)(&name.value, kernel.language) {
        return Ok(text);
    }
    let own = folder.join(&name.value);
    let mut read = |file: &str| {
        let path = own.join(file);
        let text = std::fs::read_to_string(&path);
        witness.saw(&path, text.is_ok());
        text
    };
    let source_name = source_name(kernel.language);
    match (read(DECLARATION), read(&source_name)) {
        (Ok(declaration), Ok(source)) => Ok(TemplateText { name: name.value.clone(), declaration, source }),
        (declaration, source) => {
            let known = (templates.names)(kernel.language);
            let files = [(DECLARATION, declaration.err()), (source_name.as_str(), source.err())];
            let missing = files.into_iter().filter_map(|(file, error)| Some((file, error?)));
            let notes: Vec<String> =
                missing.map(|(file, error)| format!("cannot read `{}/{file}`: {error}", name.value)).collect();
            let mut error = name.place.error("template.unknown", format!("there is no template `{name}`"));
            error.notes = notes;
            Err(error
                .expected(format!(
                    "one of {}, or a folder of the package that holds `{DECLARATION}` and `{source_name}`",
                    known.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
                ))
                .suggest(&name.value, known))
        }
    }
}
