//! The built-in templates. Knows their names and texts.

use kforge_types::model::TemplateText;

/// Name, declaration and source of each.
const ALL: [(&str, &str, &str); 3] = [
    (
        "elementwise",
        include_str!("../../templates/generate/elementwise/template.toml"),
        include_str!("../../templates/generate/elementwise/kernel.cu.j2"),
    ),
    (
        "row-reduction",
        include_str!("../../templates/generate/row-reduction/template.toml"),
        include_str!("../../templates/generate/row-reduction/kernel.cu.j2"),
    ),
    (
        "matmul",
        include_str!("../../templates/generate/matmul/template.toml"),
        include_str!("../../templates/generate/matmul/kernel.cu.j2"),
    ),
];

/// All names, in the order in which they are offered.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|t| t.0).collect()
}

/// The template with that name.
pub fn builtin(name: &str) -> Option<TemplateText> {
    let (name, declaration, source) = ALL.iter().find(|t| t.0 == name)?;
    Some(TemplateText { name: (*name).into(), declaration: (*declaration).into(), source: (*source).into() })
}
