//! Errors that appear only when a variant is bound: launch limits, ranges of scalars, sizes of spaces.

use super::{file, package, read, under};
use crate::model::{Operator, Package, TypeChoice, Variant, parse};
use kforge_foundation::base::Diagnostic;

const EXAMPLE: &str = include_str!("example.toml");

fn variants(package: &Package) -> (&Operator, TypeChoice, Vec<Variant>) {
    let operator = &package.operators[0];
    let choice = operator.choices().remove(0);
    let variants = package.kernels[0].variants(&package.targets["h200"], &choice).unwrap();
    (operator, choice, variants)
}

/// The error of the last variant's launches. The first variant's launches have no error.
fn last(text: &str) -> Diagnostic {
    let package = package(text);
    let (operator, choice, variants) = variants(&package);
    let problem = operator.bind(&choice, operator.shape("llama").unwrap()).unwrap();
    assert!(package.kernels[0].launches(&variants[0], &choice, &problem).is_ok());
    package.kernels[0].launches(variants.last().unwrap(), &choice, &problem).unwrap_err()
}

#[test]
fn a_block_too_large_is_an_error_of_its_variant() {
    let text = EXAMPLE
        .replace("BLOCK = [128, 256, 512]", "BLOCK = [128, 2048]")
        .replace("block = [\"BLOCK\"]", "block = [\"BLOCK // 2\", 2]");
    let error = last(&text);
    assert_eq!((error.code, under(&error)), ("manifest.block-too-large", "\"BLOCK // 2\", 2"));
    assert_eq!(error.notes, ["for variant `BLOCK=2048,VEC=1`"]);
    assert_eq!(error.hints, ["exclude the variant with `where`"]);
}

#[test]
fn an_axis_too_long_is_an_error_of_its_variant() {
    let text = EXAMPLE.replace("block = [\"BLOCK\"]", "block = [1, 1, \"BLOCK // 4\"]");
    let error = last(&text);
    assert_eq!((error.code, under(&error)), ("manifest.launch-limit", "\"BLOCK // 4\""));
    assert_eq!(error.expected.as_deref(), Some("1 to 64 threads along z"));
}

#[test]
fn a_scalar_that_overflows_is_an_error_of_its_variant() {
    let text = EXAMPLE.replace("\"rows\", \"cols\", \"eps\"]", "\"rows * cols * BLOCK // 8\"]");
    let error = last(&text);
    assert_eq!((error.code, under(&error)), ("manifest.overflow", "rows * cols * BLOCK // 8"));
    assert!(error.message.ends_with("does not fit i32"), "{}", error.message);
}

#[test]
fn too_many_launches_are_an_error() {
    let text =
        EXAMPLE.replace("block = [\"BLOCK\"]", "block = [\"BLOCK\"]\nrepeat = \"1 if BLOCK < 512 else 1000000\"");
    assert_eq!(last(&text).code, "manifest.too-many-launches");
}

#[test]
fn a_space_beyond_a_million_variants_is_an_error() {
    let values: Vec<String> = (1..=101).map(|v| v.to_string()).collect();
    let tune = ["A", "B", "C"].map(|name| format!("{name} = [{}]\n", values.join(", "))).concat();
    let (_, _, found) = read(&EXAMPLE.replace("VEC = [1, 4]", &format!("VEC = [1, 4]\n{tune}")));
    assert_eq!(found[0].code, "manifest.too-many-variants");
}

#[test]
fn an_operator_without_shapes_is_a_warning() {
    let text = "[package]\nname = 'a'\n[operator.copy]\ninputs.x = { dtype = 'f32', shape = [] }\noutputs.y = { dtype = 'f32', shape = [] }\nreference = 'builtin:copy'\n";
    let (_, found) = parse(&file(text));
    assert_eq!(
        found.iter().map(|d| (d.code, d.severity)).collect::<Vec<_>>(),
        [("manifest.no-shapes", kforge_foundation::base::Severity::Warning)]
    );
}
