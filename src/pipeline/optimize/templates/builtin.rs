//! The built-in templates. Knows their names and texts.

use kforge_types::model::{Language, TemplateText};

/// Name, language, declaration and source of each.
const ALL: [(&str, Language, &str, &str); 6] = [
    (
        "elementwise",
        Language::Cuda,
        include_str!("../../templates/generate/elementwise/template.toml"),
        include_str!("../../templates/generate/elementwise/kernel.cu.j2"),
    ),
    (
        "row-reduction",
        Language::Cuda,
        include_str!("../../templates/generate/row-reduction/template.toml"),
        include_str!("../../templates/generate/row-reduction/kernel.cu.j2"),
    ),
    (
        "matmul",
        Language::Cuda,
        include_str!("../../templates/generate/matmul/template.toml"),
        include_str!("../../templates/generate/matmul/kernel.cu.j2"),
    ),
    (
        "elementwise",
        Language::Triton,
        include_str!("../../templates/generate/elementwise-triton/template.toml"),
        include_str!("../../templates/generate/elementwise-triton/kernel.py.j2"),
    ),
    (
        "row-reduction",
        Language::Triton,
        include_str!("../../templates/generate/row-reduction-triton/template.toml"),
        include_str!("../../templates/generate/row-reduction-triton/kernel.py.j2"),
    ),
    (
        "matmul",
        Language::Triton,
        include_str!("../../templates/generate/matmul-triton/template.toml"),
        include_str!("../../templates/generate/matmul-triton/kernel.py.j2"),
    ),
];

/// All names of templates in a language, in the order in which they are offered.
pub fn names(language: Language) -> Vec<&'static str> {
    ALL.iter().filter(|t| t.1 == language).map(|t| t.0).collect()
}

/// The template with that name in that language.
pub fn builtin(name: &str, language: Language) -> Option<TemplateText> {
    let (name, _, declaration, source) = ALL.iter().find(|t| t.0 == name && t.1 == language)?;
    Some(TemplateText { name: (*name).into(), declaration: (*declaration).into(), source: (*source).into() })
}
