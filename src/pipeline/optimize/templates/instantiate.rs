//! From operator, kernel and template to a complete kernel. A pure function: the same three inputs give the same kernel and the same text, byte for byte.

use std::sync::Arc;

use super::builtin::{builtin, names};
use super::context::Context;
use super::render::{Failure, Renderer};
use kforge_foundation::base::{Diagnostic, Severity, SourceFile};
use kforge_numerics::reference;
use kforge_project::workspace::generated::{DECLARATION, source_name};
use kforge_types::model::{GeneratedKernel, Kernel, Operator, TemplateText, parse_template};

/// Makes `kernel`, which names `template`, from its operator. Each error is reported at its place: in the manifest if the template does not serve the operator
/// or a declaration does not fit the template, or in the template's files if they are faulty.
pub fn make(operator: &Operator, kernel: &Kernel, template: &TemplateText) -> Result<Kernel, Vec<Diagnostic>> {
    fits_its_reference(operator)?;
    match attempt(operator, kernel, template) {
        Ok(made) => Ok(made),
        Err(Wrong::Found(found)) => Err(found),
        Err(Wrong::Refused(why)) => Err(vec![refused(operator, kernel, template, &why)]),
    }
}

/// Why there is no kernel.
enum Wrong {
    /// The template does not serve the operator, and why.
    Refused(String),
    /// The template or the manifest has errors.
    Found(Vec<Diagnostic>),
}

fn attempt(operator: &Operator, kernel: &Kernel, template: &TemplateText) -> Result<Kernel, Wrong> {
    let Some(generate) = &kernel.generate else { return Ok(kernel.clone()) };
    if operator.reference.accumulates() {
        return Err(Wrong::Refused("no template adds to what an output held before (`accumulate`)".into()));
    }
    let context = Context::of(operator, kernel, &template.name);
    let renderer = Renderer::new(&context);
    let declaration =
        renderer.render(&template.declaration).map_err(|f| at(template, DECLARATION, &template.declaration, f))?;
    let rendered = SourceFile {
        name: format!("{}/{DECLARATION}, as rendered for kernel `{}`", template.name, kernel.name),
        text: declaration.clone(),
    };
    let name = kforge_types::model::Text { value: kernel.name.clone(), place: generate.template.place.clone() };
    let (made, found) = parse_template(&Arc::new(rendered), &name, kernel.language);
    let Some(made) = made.filter(|_| !found.iter().any(|d| d.severity == Severity::Error)) else {
        return Err(Wrong::Found(found));
    };
    let file = source_name(kernel.language);
    let source = renderer.render(&template.source).map_err(|f| at(template, &file, &template.source, f))?;
    let texts = GeneratedKernel { source: source.into(), declaration: declaration.into() };
    kernel.generated(made, texts).map_err(Wrong::Found)
}

/// The error from rendering a file of a template.
fn at(template: &TemplateText, file: &str, text: &str, failure: Failure) -> Wrong {
    match failure {
        Failure::Refused(why) => Wrong::Refused(why),
        Failure::Wrong { message, span } => {
            let source = Arc::new(SourceFile { name: format!("{}/{file}", template.name), text: text.into() });
            let error = Diagnostic::error("template.render", message).at(&source, span, "");
            Wrong::Found(vec![error.hint("docs/templates.md describes what templates receive and what they can call")])
        }
    }
}

/// The error for an operator that a template does not serve, with the built-in templates that do serve it.
fn refused(operator: &Operator, kernel: &Kernel, template: &TemplateText, why: &str) -> Diagnostic {
    let place = kernel.generate.as_ref().map_or(&kernel.place, |g| &g.template.place);
    let message = format!("template `{}` cannot make operator `{}`: {why}", template.name, operator.name);
    let error = place.error("template.refused", message);
    // Tunables and methods in the manifest belong to the template that it names.
    let mut bare = kernel.clone();
    (bare.tune, bare.methods) = (vec![], vec![]);
    let others = names(kernel.language).into_iter().filter(|name| *name != template.name);
    let others = others.filter_map(|name| builtin(name, kernel.language));
    let good: Vec<String> = others
        .filter(|other| attempt(operator, &bare, other).is_ok())
        .map(|other| format!("`{}`", other.name))
        .collect();
    if good.is_empty() {
        error
            .expected("an operator that the template serves")
            .hint("no built-in template serves it: write a `source`, or a template of your own")
    } else {
        error.expected(format!("template {}, which serves it", good.join(" or ")))
    }
}

/// Checks that the operator fits its own built-in reference, before any template is used.
fn fits_its_reference(operator: &Operator) -> Result<(), Vec<Diagnostic>> {
    let choices = operator.choices();
    let (Some(shape), Some(choice)) = (operator.shapes.first(), choices.first()) else { return Ok(()) };
    // Shapes that do not bind are reported where operators are checked.
    let Ok(problem) = operator.bind(choice, shape) else { return Err(vec![]) };
    reference::check(&problem).map_err(|wrong| vec![operator.misfit(&shape.name, wrong.faults)])
}
