//! Tests of reading manifests: what each construct becomes, and what each error says.

mod agents;
mod baselines;
mod constructs;
mod errors;
mod example;
mod fuzz;
mod hosts;
mod inherit;
mod launches;
mod limits;
mod tensor_maps;
mod torch;
mod torch_kernels;
mod triton;

use std::sync::Arc;

use crate::model::{Buffer, Launch, Manifest, Package, inherit as resolve, parse};
use kforge_foundation::base::{Diagnostic, SourceFile};

fn file(text: &str) -> Arc<SourceFile> {
    Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() })
}

/// The manifest and every diagnostic of `text`.
fn read(text: &str) -> (Option<Manifest>, Option<Package>, Vec<Diagnostic>) {
    let (manifest, mut found) = parse(&file(text));
    let package = manifest.as_ref().and_then(|m| {
        let (package, more) = resolve(m, None);
        found.extend(more);
        package
    });
    (manifest, package, found)
}

/// The package of a manifest without any diagnostic.
fn package(text: &str) -> Package {
    let (_, package, found) = read(text);
    assert_eq!(found.iter().map(show).collect::<Vec<_>>(), [""; 0]);
    package.expect("a package")
}

/// The one error of a manifest.
fn error(text: &str) -> Diagnostic {
    let (_, _, mut found) = read(text);
    assert_eq!(found.len(), 1, "{:?}", found.iter().map(show).collect::<Vec<_>>());
    found.remove(0)
}

/// The launches of the first kernel on `h200` in its first variant at a shape, and its workspaces.
fn launched(package: &Package, shape: &str) -> (Vec<Launch>, Vec<Buffer>) {
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let choice = &operator.choices()[0];
    let variant = &kernel.variants(&package.targets["h200"], choice).unwrap()[0];
    let problem = operator.bind(choice, operator.shape(shape).unwrap()).unwrap();
    (kernel.launches(variant, choice, &problem).unwrap(), kernel.workspaces(variant, choice, &problem).unwrap())
}

/// The text at a diagnostic's place.
fn under(diagnostic: &Diagnostic) -> &str {
    diagnostic.labels.iter().find(|l| l.primary).map_or("", |l| &l.file.text[l.span.clone()])
}

fn show(diagnostic: &Diagnostic) -> String {
    format!(
        "{} | {} | {} | {} | {}",
        diagnostic.code,
        under(diagnostic),
        diagnostic.message,
        diagnostic.expected.as_deref().unwrap_or("-"),
        diagnostic.hints.join("; ")
    )
}
