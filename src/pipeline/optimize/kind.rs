//! What kind of work an operator is: its pattern and its level. Knows contracts; does not know kernels or earlier candidates.
//!
//! The manifest takes precedence over what is derived here. A built-in reference has a known kind. For a package's own references the extents decide: an extent
//! that no output has was reduced, and if two inputs have it, they were multiplied. If every extent remains, the contract does not distinguish a map from a
//! normalization, and nothing is derived.
//!
//! Levels are those of Makora's curation (arXiv 2602.11000): 0 and 1 are elementwise, 2 reductions, 3 products and convolutions, 4 attention and normalization,
//! 5 fusions of several passes. The paper does not separate 0 from 1; here 0 moves or maps one value, and 1 has more than one input, or indices.

use std::collections::BTreeSet;

use kforge_types::model::bound::{Reference, Role};
use kforge_types::model::operator::TensorDecl;
use kforge_types::model::{Operator, Pattern};

/// What kind of work an operator is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kind {
    /// Its pattern; none if neither manifest nor contract determines it.
    pub pattern: Option<Pattern>,
    /// Its level, 0 to 5; none if neither manifest nor contract determines it.
    pub level: Option<u8>,
}

impl Kind {
    /// The kind of an operator. If the declared pattern differs from the derived one, it also decides the level, unless a level is declared.
    pub fn of(operator: &Operator) -> Self {
        let found = match &operator.reference {
            Reference::Builtin { name, .. } => builtin(name, operator),
            Reference::Python { .. } | Reference::Torch { .. } | Reference::Cpp { .. } => {
                contracted(operator).map(|p| (p, p.level()))
            }
        };
        let pattern = operator.pattern.or(found.map(|f| f.0));
        let level = found.filter(|f| Some(f.0) == pattern).map(|f| f.1).or(pattern.map(Pattern::level));
        Kind { pattern, level: operator.level.or(level) }
    }
}

fn builtin(name: &str, operator: &Operator) -> Option<(Pattern, u8)> {
    use Pattern::{Attention, Elementwise, MatrixProduct, MultiPass, Reduction};
    Some(match name {
        "elementwise" => (Elementwise, u8::from(read(operator).count() > 1)),
        "transpose" => (Elementwise, 0),
        "dropout" | "embedding" | "gather" => (Elementwise, 1),
        "argmax" | "argmin" | "max" | "max_pool2d" | "mean" | "min" | "sum" => (Reduction, 2),
        "conv2d" | "matmul" => (MatrixProduct, 3),
        "cross_entropy" | "layer_norm" | "log_softmax" | "rms_norm" | "softmax" => (Reduction, 4),
        "attention" => (Attention, 4),
        "batch_norm" => (MultiPass, 4),
        "cumsum" => (MultiPass, 5),
        _ => return None,
    })
}

fn read(operator: &Operator) -> impl Iterator<Item = &TensorDecl> {
    operator.tensors.iter().filter(|t| t.role != Role::Output)
}

/// The pattern that the extents imply. Literal extents are ignored: two extents of 1 are not the same dim.
fn contracted(operator: &Operator) -> Option<Pattern> {
    let extents = |t: &TensorDecl| {
        let texts = t.shape.iter().map(|e| e.text().to_string());
        texts.filter(|text| text.parse::<i64>().is_err()).collect::<BTreeSet<_>>()
    };
    let outputs: BTreeSet<String> =
        operator.tensors.iter().filter(|t| t.role != Role::Input).flat_map(extents).collect();
    let inputs: Vec<BTreeSet<String>> = read(operator).map(extents).collect();
    let gone: BTreeSet<&String> = inputs.iter().flatten().filter(|e| !outputs.contains(*e)).collect();
    // Two inputs that share a reduced extent, while each also has an extent that the other lacks.
    let product = gone.iter().any(|extent| {
        let with: Vec<_> = inputs.iter().filter(|i| i.contains(*extent)).collect();
        with.iter().any(|a| with.iter().any(|b| a.difference(b).next().is_some() && b.difference(a).next().is_some()))
    });
    match (gone.is_empty(), product) {
        (true, _) => None,
        (false, true) => Some(Pattern::MatrixProduct),
        (false, false) => Some(Pattern::Reduction),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;

    fn operator(declaration: &str) -> Operator {
        let text = format!("[package]\nname = \"p\"\n[operator.o]\n{declaration}");
        let (manifest, wrong) = kforge_types::model::parse(&Arc::new(SourceFile { name: "kernel.toml".into(), text }));
        assert!(wrong.is_empty(), "{wrong:?}");
        manifest.unwrap().operators.remove(0)
    }

    fn declared(reference: &str, inputs: &[(&str, &str)], output: &str, rest: &str) -> Operator {
        let inputs: String = inputs
            .iter()
            .map(|(name, shape)| format!("inputs.{name} = {{ dtype = \"f32\", shape = [{shape}] }}\n"))
            .collect();
        operator(&format!(
            "dims = [\"m\", \"n\", \"k\"]\n{inputs}outputs.y = {{ dtype = \"f32\", shape = [{output}] }}\nreference = {reference}\n\
             tolerance = {{ atol = 1e-3 }}\n{rest}shapes.s = {{ m = 2, n = 3, k = 4 }}\n"
        ))
    }

    fn kind(reference: &str, inputs: &[(&str, &str)], output: &str) -> Kind {
        Kind::of(&declared(reference, inputs, output, ""))
    }

    fn is(kind: Kind, pattern: Pattern, level: u8) {
        assert_eq!(kind, Kind { pattern: Some(pattern), level: Some(level) });
    }

    #[test]
    fn built_in_references_say_what_they_are() {
        let map = "{ builtin = \"elementwise\", y = \"2 * x\" }";
        is(kind(map, &[("x", "'m', 'n'")], "'m', 'n'"), Pattern::Elementwise, 0);
        let fused = "{ builtin = \"elementwise\", y = \"x + z\" }";
        is(kind(fused, &[("x", "'m', 'n'"), ("z", "'n'")], "'m', 'n'"), Pattern::Elementwise, 1);
        is(kind("\"builtin:sum\"", &[("x", "'m', 'n'")], "'m'"), Pattern::Reduction, 2);
        is(kind("\"builtin:softmax\"", &[("x", "'m', 'n'")], "'m', 'n'"), Pattern::Reduction, 4);
        is(kind("\"builtin:matmul\"", &[("a", "'m', 'k'"), ("b", "'k', 'n'")], "'m', 'n'"), Pattern::MatrixProduct, 3);
    }

    #[test]
    fn every_built_in_reference_has_a_pattern_and_a_level() {
        let any = declared("\"builtin:softmax\"", &[("x", "'m', 'n'")], "'m', 'n'", "");
        for name in kforge_numerics::reference::names() {
            assert!(builtin(name, &any).is_some_and(|(_, level)| level <= 5), "{name}");
        }
    }

    #[test]
    fn of_other_references_the_extents_tell_what_they_can() {
        let own = "\"ref.py::f\"";
        is(kind(own, &[("a", "'m', 'k'"), ("b", "'n', 'k'")], "'m', 'n'"), Pattern::MatrixProduct, 3);
        is(kind(own, &[("x", "'m', 'k'")], "'m'"), Pattern::Reduction, 2);
        is(kind(own, &[("x", "'m', 'k'"), ("v", "'k'")], "'m'"), Pattern::Reduction, 2);
        assert_eq!(kind(own, &[("x", "'m', 'n'")], "'m', 'n'"), Kind::default(), "a map or a normalisation");
        assert_eq!(kind(own, &[("x", "'m', 'n'"), ("one", "1")], "'m', 'n'"), Kind::default(), "1 is no dim");
    }

    #[test]
    fn what_the_manifest_states_goes_before_what_is_found() {
        let of = |reference: &str, rest: &str| Kind::of(&declared(reference, &[("x", "'m', 'n'")], "'m', 'n'", rest));
        is(of("\"ref.py::f\"", "pattern = \"attention\"\n"), Pattern::Attention, 4);
        is(of("\"ref.py::f\"", "pattern = \"reduction\"\nlevel = 4\n"), Pattern::Reduction, 4);
        is(of("\"builtin:softmax\"", "pattern = \"multi-pass\"\n"), Pattern::MultiPass, 5);
        is(of("\"builtin:softmax\"", "pattern = \"reduction\"\n"), Pattern::Reduction, 4);
        assert_eq!(of("\"ref.py::f\"", "level = 0\n"), Kind { pattern: None, level: Some(0) });
    }
}
