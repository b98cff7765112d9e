//! The step that times a current champion in pairs with an earlier one. Knows what a bench step reads of each; does not know where the earlier one came from.

use std::collections::BTreeMap;

use super::node_builder::PAIRING;
use super::timing_steps::PAIRS_PROTOCOL;
use super::variants::VERIFY_PROTOCOL;
use kforge_engine::{InputRef, Node, Rank, Source};
use kforge_types::record::params::{PairsParams, VerifyParams};
use kforge_types::record::{Form, Spec, StepKind};

/// Why two champions cannot be timed in pairs.
#[derive(Debug, thiserror::Error)]
pub enum NotPaired {
    /// The parameters of one timed step cannot be read.
    #[error("the parameters of the timed step cannot be read: {0}")]
    Read(serde_json::Error),
    /// They do not compute the same thing.
    #[error("the operator or the shape changed, so times say nothing about the kernel")]
    Problem,
    /// They are for different architectures.
    #[error("the target's architecture changed from `{before}` to `{now}`")]
    Arch {
        /// The architecture of A.
        now: String,
        /// The architecture of B.
        before: String,
    },
    /// An input of one of them is missing.
    #[error("the timed step has no {0}")]
    NoInput(&'static str),
    /// The step's parameters cannot be written: an error of kforge.
    #[error("BUG: parameters that do not serialise: {0}")]
    Write(serde_json::Error),
}

/// The pairs step of two champions on one problem: A is `head`, timed by `bench`, and B is `base`. `hot` says which times count.
///
/// # Errors
/// The champions do not compute the same problem for the same architecture, or an input of one is missing.
pub fn pairs(bench: &Node, head: &Spec, base: &Spec, hot: bool) -> Result<Node, NotPaired> {
    let read = |spec: &Spec| -> Result<VerifyParams, NotPaired> {
        let timed: VerifyParams = serde_json::from_value(spec.params.clone()).map_err(NotPaired::Read)?;
        // Clears the parameters that only a single timing has. The plan's own pairs steps lack them too, so such a step may already have an answer.
        Ok(VerifyParams {
            protocol: VERIFY_PROTOCOL,
            scaled: vec![],
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
            ..timed
        })
    };
    let (a, b) = (read(head)?, read(base)?);
    if a.problem != b.problem {
        return Err(NotPaired::Problem);
    }
    if a.arch != b.arch {
        return Err(NotPaired::Arch { now: a.arch, before: b.arch });
    }
    let mut inputs = BTreeMap::new();
    for (side, spec) in [("a", head), ("b", base)] {
        for name in ["binary", "facts", "inspection"] {
            let digest = spec.inputs.get(name).and_then(|input| input.digest);
            let digest = digest.ok_or(NotPaired::NoInput(name))?;
            inputs.insert(format!("{name}:{side}"), InputRef { source: Source::Blob(digest), form: Form::Blob });
        }
    }
    let params = PairsParams { arch: a.arch.clone(), hot, a, b, protocol: PAIRS_PROTOCOL };
    let params = serde_json::to_value(params).map_err(NotPaired::Write)?;
    let about = bench.id.strip_suffix("/bench").unwrap_or(&bench.id);
    Ok(Node {
        id: format!("{about}/against/base/{}", StepKind::Pairs),
        kind: StepKind::Pairs,
        rank: Rank { round: 0, phase: PAIRING, wave: 0, kind: StepKind::Pairs },
        params,
        inputs,
        after: vec![],
        expands: false,
        advisory: true,
        ..bench.clone()
    })
}

/// The spec of such a step, whose inputs are all known. With `swapped`, A and B are exchanged.
pub fn spec(node: &Node, swapped: bool) -> Spec {
    let mut params = node.params.clone();
    if swapped && let Some(fields) = params.as_object_mut() {
        let (a, b) = (fields.remove("a"), fields.remove("b"));
        fields.extend(a.map(|a| ("b".to_string(), a)));
        fields.extend(b.map(|b| ("a".to_string(), b)));
    }
    let name = |name: &str| match (swapped, name.rsplit_once(':')) {
        (true, Some((what, "a"))) => format!("{what}:b"),
        (true, Some((what, "b"))) => format!("{what}:a"),
        _ => name.to_string(),
    };
    let input = |input: &InputRef| kforge_types::record::Input {
        digest: match &input.source {
            Source::Blob(digest) => Some(*digest),
            Source::Output { .. } => None,
        },
        form: input.form,
    };
    let inputs = node.inputs.iter().map(|(n, i)| (name(n), input(i))).collect();
    // The step observes a device, so the protocol in its parameters replaces the code digest.
    Spec { kind: node.kind, version: node.kind.version(), implementation: None, params, inputs }
}
