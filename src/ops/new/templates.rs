//! The templates of packages, from `templates/`. Knows their files; `{{name}}` in a file stands for the package's name.

use super::Template;

/// A file of a template.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    /// Its path in the package.
    pub(super) name: &'static str,
    /// Its text.
    pub(super) text: &'static str,
}

impl File {
    /// Whether an existing file of the same name can replace this one.
    pub(super) fn is_optional(&self) -> bool {
        matches!(self.name, "README.md" | ".gitignore")
    }
}

/// The files of a template, from its folder in `templates/`.
macro_rules! files {
    ($folder:literal: $($name:literal),+) => {
        &[$(File { name: $name, text: include_str!(concat!("../templates/new/", $folder, "/", $name)) }),+]
    };
}

const ELEMENTWISE: &[File] = files!("elementwise": "kernel.toml", "bias_gelu.cu", "README.md", ".gitignore");
const ROW_REDUCTION: &[File] = files!("row-reduction": "kernel.toml", "row_sum.cu", "README.md", ".gitignore");
const MATMUL: &[File] = files!("matmul": "kernel.toml", "matmul.cu", "README.md", ".gitignore");

/// The files of a template.
pub(super) fn of(template: Template) -> &'static [File] {
    match template {
        Template::Elementwise => ELEMENTWISE,
        Template::RowReduction => ROW_REDUCTION,
        Template::Matmul => MATMUL,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model;

    #[test]
    fn every_template_is_a_package_whose_sources_are_there() {
        for template in [Template::Elementwise, Template::RowReduction, Template::Matmul] {
            let manifest =
                of(template).iter().find(|f| f.name == "kernel.toml").map(|f| f.text.replace("{{name}}", "made"));
            let file = SourceFile { name: "kernel.toml".into(), text: manifest.unwrap_or_default() };
            let (manifest, found) = model::parse(&Arc::new(file));
            assert!(found.is_empty(), "{}: {found:?}", template.word());
            let (package, found) = model::inherit(&manifest.unwrap(), None);
            assert!(found.is_empty(), "{}: {found:?}", template.word());
            for kernel in package.unwrap().kernels {
                assert!(
                    of(template).iter().any(|f| f.name == kernel.source),
                    "{} lacks {}",
                    template.word(),
                    kernel.source
                );
            }
        }
    }
}
