//! Binds inputs: from a node and the results that it reads to the spec of its step. Knows where each input comes from; does not know how results are obtained.

use std::collections::BTreeMap;

use super::{Node, Source};
use kforge_foundation::base::Digest;
use kforge_types::record::{Implementations, Input, Spec};

/// The state of another node's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputState<'a> {
    /// Its contents.
    Contents(Digest),
    /// Permanently absent: the step failed, was unavailable or skipped, or its result has no such output. The text names the first such step.
    Nothing(&'a str),
    /// Not known yet.
    Unknown,
    /// Will not be known in this build, which was stopped or interrupted first.
    Stopped,
}

/// A node with its inputs bound, or why they are not bound.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound<T> {
    /// All inputs are bound.
    Ready(T),
    /// An input is not known yet.
    NotYet,
    /// A required input is absent; the text names the step that caused it.
    Skipped(String),
    /// One of its inputs will not be known in this build.
    Stopped,
}

/// The inputs of a node. `given` returns the state of each output that the node reads, by the input's position in the order of names and the output's name.
///
/// An optional input is bound as absent if its node gave nothing. It is never bound as absent because a build was stopped; otherwise the same step would get
/// another key.
pub fn bind_inputs<'a>(
    node: &Node,
    mut given: impl FnMut(usize, &str) -> OutputState<'a>,
) -> Bound<BTreeMap<String, Input>> {
    let mut inputs = BTreeMap::new();
    let (mut unknown, mut stopped) = (false, false);
    for (position, (name, input)) in node.inputs.iter().enumerate() {
        let digest = match &input.source {
            Source::Blob(digest) => Some(*digest),
            Source::Output { name: output, required, .. } => match given(position, output) {
                OutputState::Contents(digest) => Some(digest),
                OutputState::Nothing(root) if *required => return Bound::Skipped(root.to_string()),
                OutputState::Nothing(_) => None,
                OutputState::Unknown => {
                    unknown = true;
                    None
                }
                OutputState::Stopped => {
                    stopped = true;
                    None
                }
            },
        };
        inputs.insert(name.clone(), Input { digest, form: input.form });
    }
    match (stopped, unknown) {
        (true, _) => Bound::Stopped,
        (_, true) => Bound::NotYet,
        _ => Bound::Ready(inputs),
    }
}

/// The spec of a node, or why there is none yet: see [`bind_inputs`].
pub fn bind<'a>(
    node: &Node,
    implementations: &Implementations,
    given: impl FnMut(usize, &str) -> OutputState<'a>,
) -> Bound<Spec> {
    match bind_inputs(node, given) {
        Bound::Ready(inputs) => {
            let implementation = implementations.of(node.kind, &node.params);
            let version = node.kind.version();
            Bound::Ready(Spec { kind: node.kind, version, implementation, params: node.params.clone(), inputs })
        }
        Bound::NotYet => Bound::NotYet,
        Bound::Skipped(root) => Bound::Skipped(root),
        Bound::Stopped => Bound::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{blob, implementations, node, output};
    use kforge_types::record::StepKind;

    fn reader(required: bool) -> Node {
        node("reader", StepKind::Judge, &[("a", blob("a")), ("b", output("maker", required))])
    }

    #[test]
    fn contents_are_bound_by_digest() {
        let Bound::Ready(spec) = bind(&reader(true), implementations(), |position, name| {
            assert_eq!((position, name), (1, "out"));
            OutputState::Contents(Digest::of(b"b"))
        }) else {
            panic!("not bound");
        };
        assert_eq!(spec.inputs["a"].digest, Some(Digest::of(b"a")));
        assert_eq!(spec.inputs["b"].digest, Some(Digest::of(b"b")));
    }

    #[test]
    fn an_input_that_is_not_required_is_bound_as_absent_and_a_required_one_skips() {
        let nothing = |_: usize, _: &str| OutputState::Nothing("root");
        let Bound::Ready(spec) = bind(&reader(false), implementations(), nothing) else { panic!("not bound") };
        assert_eq!(spec.inputs["b"].digest, None);
        assert_eq!(bind(&reader(true), implementations(), nothing), Bound::Skipped("root".into()));
    }

    #[test]
    fn a_stopped_build_never_binds_as_absent() {
        assert_eq!(bind(&reader(false), implementations(), |_, _| OutputState::Stopped), Bound::Stopped);
        assert_eq!(bind(&reader(false), implementations(), |_, _| OutputState::Unknown), Bound::NotYet);
    }
}
