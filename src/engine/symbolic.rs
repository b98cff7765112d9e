//! Symbolic keys: the key that a step of a plan would have if the contents of each output that it reads were named by the symbolic key of the step that makes
//! it. Knows how specs are bound; looks nothing up and runs nothing.
//!
//! Whether two plans have the same work is thus known without results: a step with the same symbolic key in both has the same kind, code, parameters and files,
//! and so have all the steps that it depends on. A different symbolic key says less: the outputs that differ in name may turn out to have equal contents.

use super::graph::STORED;
use super::{Graph, Index, Source};
use kforge_foundation::base::Digest;
use kforge_types::record::{Implementations, Input, Spec};

/// The symbolic key of every step, in the order of the graph.
pub fn symbolic_keys(graph: &Graph, implementations: &Implementations) -> Vec<Digest> {
    let mut keys: Vec<Option<Digest>> = vec![None; graph.len()];
    for first in 0..graph.len() as Index {
        // Dependencies come first. No recursion, because rounds and searches make long chains.
        let mut stack = vec![first];
        while let Some(&at) = stack.last() {
            if keys[at as usize].is_some() {
                stack.pop();
                continue;
            }
            let sources = graph.sources(at).iter().copied();
            let open: Vec<Index> = sources.filter(|i| *i != STORED && keys[*i as usize].is_none()).collect();
            if open.is_empty() {
                let spec = spec_of(graph, at, implementations, |i| keys[i as usize]);
                let product = graph.node(at).product.as_deref().unwrap_or_default();
                keys[at as usize] = Some(Digest::of(format!("{} {product}", spec.key()).as_bytes()));
                stack.pop();
            } else {
                stack.extend(open);
            }
        }
    }
    keys.into_iter().flatten().collect()
}

/// The spec whose key is a step's symbolic key, together with the product that it asks. `keys` are those of the graph.
pub fn symbolic_spec(graph: &Graph, at: Index, keys: &[Digest], implementations: &Implementations) -> Spec {
    spec_of(graph, at, implementations, |i| keys.get(i as usize).copied())
}

fn spec_of(graph: &Graph, at: Index, implementations: &Implementations, key: impl Fn(Index) -> Option<Digest>) -> Spec {
    let node = graph.node(at);
    let inputs = node.inputs.iter().zip(graph.sources(at)).map(|((name, input), source)| {
        let digest = match &input.source {
            Source::Blob(digest) => Some(*digest),
            Source::Output { name: output, .. } => key(*source).map(|k| Digest::of(format!("{k} {output}").as_bytes())),
        };
        (name.clone(), Input { digest, form: input.form })
    });
    Spec {
        kind: node.kind,
        version: node.kind.version(),
        implementation: implementations.of(node.kind, &node.params),
        params: node.params.clone(),
        inputs: inputs.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::testing::{blob, implementations, node, output};
    use kforge_types::record::StepKind;

    /// The symbolic keys of a judgement of a binary that is compiled from `source` with `flags`, and of an unrelated step.
    fn keys(source: &str, flags: &str) -> Vec<Digest> {
        let compile = Node { params: flags.into(), ..node("compile", StepKind::Compile, &[("source", blob(source))]) };
        let verify = node("verify", StepKind::Verify, &[("binary", output("compile", true))]);
        let judge = node("judge", StepKind::Judge, &[("observation", output("verify", false))]);
        let other = node("other", StepKind::Compile, &[("source", blob("other"))]);
        // Dependents may be listed before what they depend on.
        symbolic_keys(&Graph::new(vec![judge, verify, compile, other]).unwrap(), implementations())
    }

    #[test]
    fn a_change_reaches_what_depends_on_it_and_nothing_else() {
        let base = keys("a", "x");
        assert_eq!(keys("a", "x"), base);
        for changed in [keys("b", "x"), keys("a", "y")] {
            let differs: Vec<bool> = changed.iter().zip(&base).map(|(a, b)| a != b).collect();
            assert_eq!(differs, [true, true, true, false]);
        }
    }

    #[test]
    fn names_of_steps_are_in_no_symbolic_key_and_products_are() {
        let of = |node: Node| symbolic_keys(&Graph::new(vec![node]).unwrap(), implementations());
        let one = || node("one", StepKind::Compile, &[("source", blob("a"))]);
        assert_eq!(of(one()), of(node("two", StepKind::Compile, &[("source", blob("a"))])));
        assert_ne!(of(one()), of(Node { product: Some("X".into()), ..one() }));
    }
}
