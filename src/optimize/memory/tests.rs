//! What kind of work operators are, and which earlier candidates come first.

use std::sync::Arc;

use super::*;
use crate::base::SourceFile;

fn kind(declaration: &str) -> Kind {
    let text = format!("[package]\nname = \"p\"\n[operator.o]\n{declaration}");
    let (manifest, wrong) = crate::model::parse(&Arc::new(SourceFile { name: "kernel.toml".into(), text }));
    assert!(wrong.is_empty(), "{wrong:?}");
    Kind::of(&manifest.unwrap().operators[0])
}

fn named(reference: &str, inputs: &[(&str, &str)], output: &str) -> Kind {
    let inputs: String = inputs
        .iter()
        .map(|(name, shape)| format!("inputs.{name} = {{ dtype = \"f32\", shape = [{shape}] }}\n"))
        .collect();
    kind(&format!(
        "dims = [\"m\", \"n\", \"k\"]\n{inputs}outputs.y = {{ dtype = \"f32\", shape = [{output}] }}\nreference = {reference}\n\
         tolerance = {{ atol = 1e-3 }}\nshapes.s = {{ m = 2, n = 3, k = 4 }}\n"
    ))
}

fn is(kind: Kind, pattern: Pattern, level: u8) {
    assert_eq!(kind, Kind { pattern: Some(pattern), level: Some(level) });
}

#[test]
fn built_in_references_say_what_they_are() {
    let map = "{ builtin = \"elementwise\", y = \"2 * x\" }";
    is(named(map, &[("x", "'m', 'n'")], "'m', 'n'"), Pattern::Elementwise, 0);
    let fused = "{ builtin = \"elementwise\", y = \"x + z\" }";
    is(named(fused, &[("x", "'m', 'n'"), ("z", "'n'")], "'m', 'n'"), Pattern::Elementwise, 1);
    is(named("\"builtin:sum\"", &[("x", "'m', 'n'")], "'m'"), Pattern::Reduction, 2);
    is(named("\"builtin:softmax\"", &[("x", "'m', 'n'")], "'m', 'n'"), Pattern::Reduction, 4);
    is(named("\"builtin:matmul\"", &[("a", "'m', 'k'"), ("b", "'k', 'n'")], "'m', 'n'"), Pattern::MatrixProduct, 3);
}

#[test]
fn every_built_in_reference_has_a_pattern_and_a_level() {
    let operator = {
        let text = "[package]\nname = \"p\"\n[operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
            outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = \"builtin:cumsum\"\nshapes.s = { n = 3 }\n";
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
        crate::model::parse(&file).0.unwrap().operators.remove(0)
    };
    for name in crate::reference::names() {
        assert!(builtin(name, &operator).is_some_and(|(_, level)| level <= 5), "{name}");
    }
}

#[test]
fn of_other_references_the_extents_tell_what_they_can() {
    let own = "\"ref.py::f\"";
    is(named(own, &[("a", "'m', 'k'"), ("b", "'n', 'k'")], "'m', 'n'"), Pattern::MatrixProduct, 3);
    is(named(own, &[("x", "'m', 'k'")], "'m'"), Pattern::Reduction, 2);
    is(named(own, &[("x", "'m', 'k'"), ("v", "'k'")], "'m'"), Pattern::Reduction, 2);
    assert_eq!(named(own, &[("x", "'m', 'n'")], "'m', 'n'"), Kind::default(), "a map or a normalisation");
}

fn candidate(operator: &str, pattern: Pattern, level: u8, target: &str, score: f64) -> Candidate {
    Candidate {
        operator: operator.into(),
        kind: Kind { pattern: Some(pattern), level: Some(level) },
        target: target.into(),
        score,
        source: format!("{operator} {pattern:?} {level} {target} {score}"),
        declaration: None,
        note: String::new(),
    }
}

#[test]
fn the_same_operator_comes_first_then_pattern_target_level_and_score() {
    use Pattern::{Elementwise, MatrixProduct, Reduction};
    let in_order = [
        candidate("softmax", Reduction, 4, "sm_90a", 2.0),
        candidate("softmax", Reduction, 4, "sm_80", 9.0),
        candidate("norm", Reduction, 4, "sm_90a", 1.5),
        candidate("norm", Reduction, 4, "sm_90a", 1.2),
        candidate("sum", Reduction, 2, "sm_90a", 5.0),
        candidate("sum", Reduction, 2, "sm_80", 5.0),
        candidate("matmul", MatrixProduct, 3, "sm_90a", 1.0),
        candidate("add", Elementwise, 1, "sm_80", 3.0),
    ];
    let wanted = Wanted {
        operator: "softmax".into(),
        kind: Kind { pattern: Some(Reduction), level: Some(4) },
        target: "sm_90a".into(),
    };
    let mut shuffled = in_order.to_vec();
    shuffled.reverse();
    shuffled.push(candidate("softmax", Reduction, 4, "sm_90a", 0.0));
    shuffled.push(candidate("softmax", Reduction, 4, "sm_90a", f64::NAN));
    let twin = Candidate { target: "sm_70".into(), score: 99.0, ..in_order[2].clone() };
    shuffled.push(twin);
    let found = alike(&shuffled, &wanted, 20);
    assert_eq!(found.len(), in_order.len());
    for (found, expected) in found.iter().zip(&in_order) {
        assert_eq!(*found, expected);
    }
    assert_eq!(alike(&shuffled, &wanted, 3).len(), 3);
}

#[test]
fn an_unknown_kind_is_like_nothing() {
    let unknown = Candidate { kind: Kind::default(), ..candidate("a", Pattern::Reduction, 2, "sm_90a", 9.0) };
    let known = candidate("b", Pattern::Reduction, 2, "sm_80", 1.0);
    let wanted = Wanted { operator: "c".into(), kind: known.kind, target: "sm_90a".into() };
    let all = [unknown, known];
    assert_eq!(alike(&all, &wanted, 1)[0].operator, "b");
    let wanted = Wanted { kind: Kind::default(), ..wanted };
    assert_eq!(alike(&all, &wanted, 1)[0].operator, "a", "it is for the same architecture at least");
}
