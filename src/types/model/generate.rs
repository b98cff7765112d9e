//! Kernels with a declaration and source that a template generates. Merges what the template declares with what the manifest states; does not know where
//! templates are or how they are rendered.

use std::sync::Arc;

use super::Text;
use super::expr::list;
use super::kernel::{Compiler, Kernel};
use super::search::Search;
use kforge_foundation::base::Diagnostic;

/// The folder for generated sources in a package's tree of sources. It holds no file of the package.
pub const GENERATED: &str = "kforge-generated";

/// What generates a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Generate {
    /// The template: a built-in one by name, or a folder of the package.
    pub template: Text,
    /// The generated kernel; none before the template is rendered.
    pub made: Option<GeneratedKernel>,
}

/// The two files that were generated for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedKernel {
    /// The source.
    pub source: Arc<str>,
    /// The declaration that belongs to it, in the format of a template's `template.toml`.
    pub declaration: Arc<str>,
}

/// The two files of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    /// The name in messages: the template's name or its folder.
    pub name: String,
    /// `template.toml`: what it declares.
    pub declaration: String,
    /// `kernel.cu.j2`, or in Triton `kernel.py.j2`: the source.
    pub source: String,
}

impl Kernel {
    /// Whether a template is to generate this kernel and has not done so yet.
    pub fn is_ungenerated(&self) -> bool {
        self.generate.as_ref().is_some_and(|generate| generate.made.is_none())
    }

    /// Whether an agent is to write this kernel from nothing: the kernel has no variant of its own.
    pub fn is_unstarted(&self) -> bool {
        self.rounds.is_some() && self.generate.is_none() && self.launches.is_empty()
    }

    /// The kernel that an agent wrote for this declaration. `made` is what the agent declared, and `texts` are the source and declaration as text. The source
    /// is at `source` in the package's tree. The operator, targets, compilers, headers and selection of the manifest stay.
    pub fn written(&self, made: Kernel, texts: GeneratedKernel, source: String) -> Kernel {
        let template = self.rounds.as_ref().map_or_else(
            || Text { value: source.clone(), place: self.place.clone() },
            |rounds| Text { value: source.clone(), place: rounds.agent.place.clone() },
        );
        Kernel {
            source_place: template.place.clone(),
            generate: Some(Generate { template, made: Some(texts) }),
            source,
            tune: made.tune,
            conditions: made.conditions,
            requires: made.requires,
            methods: made.methods,
            launches: made.launches,
            workspace: made.workspace,
            flags: made.flags,
            defines: made.defines,
            std: made.std.or_else(|| self.std.clone()),
            type_uses: made.type_uses,
            ..self.clone()
        }
    }

    /// The generated source and declaration, if there are any.
    pub fn made(&self) -> Option<&GeneratedKernel> {
        self.generate.as_ref()?.made.as_ref()
    }

    /// Merges this kernel with `made`, which a template declared, and its `texts`. The manifest takes precedence over the template for values of tunables, how
    /// they are searched, methods, the compiler, the standard and macros. Conditions and flags of both apply.
    ///
    /// Errors: tunables of the manifest that the template does not have, or that have values of another kind.
    pub fn generated(&self, made: Kernel, texts: GeneratedKernel) -> Result<Kernel, Vec<Diagnostic>> {
        let Some(generate) = &self.generate else { return Ok(self.clone()) };
        let mut found = vec![];
        for (name, values) in &self.tune {
            match made.tune.iter().find(|(known, _)| known.value == name.value) {
                None => {
                    let known: Vec<&str> = made.tune.iter().map(|t| t.0.as_str()).collect();
                    let message = format!("template `{}` has no tunable `{name}`", generate.template);
                    let error = name.place.error("manifest.unknown-tunable", message);
                    found.push(error.expected(format!("one of {}", list(&known))).suggest(&name.value, known));
                }
                Some((_, own)) if own.first().map(|v| v.kind()) != values.first().map(|v| v.kind()) => {
                    let kind = own.first().map_or("a value", |v| v.kind());
                    let message = format!("`{name}` of template `{}` is {kind}", generate.template);
                    found.push(name.place.error("manifest.kind", message).expected(format!("values that are {kind}")));
                }
                Some(_) => {}
            }
        }
        if !found.is_empty() {
            return Err(found);
        }
        let mut kernel = self.clone();
        kernel.source = format!("{GENERATED}/{}.{}", self.name, self.language.ending());
        kernel.source_place = generate.template.place.clone();
        kernel.generate = Some(Generate { template: generate.template.clone(), made: Some(texts) });
        let stated = |name: &Text| self.tune.iter().find(|(own, _)| own.value == name.value);
        kernel.tune =
            made.tune.into_iter().map(|(name, values)| stated(&name).cloned().unwrap_or((name, values))).collect();
        kernel.conditions = made.conditions.into_iter().chain(self.conditions.iter().cloned()).collect();
        kernel.requires = made.requires.into_iter().chain(self.requires.iter().cloned()).collect();
        let own = |id: &str| self.methods.iter().find(|m| m.id == id).cloned();
        let others = self.methods.iter().filter(|m| !made.methods.iter().any(|there| there.id == m.id)).cloned();
        kernel.methods = made.methods.iter().map(|m| own(&m.id).unwrap_or_else(|| m.clone())).chain(others).collect();
        if kernel.search == Search::default() {
            kernel.search = made.search;
        }
        if kernel.compiler == Compiler::Auto {
            kernel.compiler = made.compiler;
        }
        kernel.std = self.std.clone().or(made.std);
        kernel.flags = made.flags.into_iter().chain(self.flags.iter().cloned()).collect();
        let macros = made.defines.into_iter().filter(|(name, _)| !self.defines.iter().any(|(own, _)| own == name));
        kernel.defines = macros.chain(self.defines.iter().cloned()).collect();
        kernel.launches = made.launches;
        kernel.workspace = made.workspace;
        kernel.type_uses.extend(made.type_uses);
        kernel.partial |= made.partial;
        Ok(kernel)
    }
}
