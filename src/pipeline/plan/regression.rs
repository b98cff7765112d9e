//! The step that times a current champion in pairs with an earlier one. Knows what a bench step reads of each; does not know where the earlier one came from.

use std::collections::BTreeMap;

use super::node_builder::PAIRING;
use super::pair_order::is_turned;
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
        /// The architecture of the current champion.
        now: String,
        /// The architecture of the earlier one.
        before: String,
    },
    /// An input of one of them is missing.
    #[error("the timed step has no {0}")]
    NoInput(&'static str),
    /// The step's parameters cannot be written: an error of kforge.
    #[error("BUG: parameters that do not serialise: {0}")]
    Write(serde_json::Error),
}

/// The question how two champions compare.
#[derive(Debug, Clone)]
pub struct ChampionPair {
    /// The pairs step.
    pub node: Node,
    /// Whether A is the earlier champion rather than the current one.
    pub turned: bool,
}

impl ChampionPair {
    /// The same question with A and B exchanged.
    #[must_use]
    pub fn exchanged(&self) -> Self {
        let mut node = self.node.clone();
        if let Some(fields) = node.params.as_object_mut() {
            let (a, b) = (fields.remove("a"), fields.remove("b"));
            fields.extend(a.map(|a| ("b".to_string(), a)));
            fields.extend(b.map(|b| ("a".to_string(), b)));
        }
        let name = |name: String| match name.rsplit_once(':') {
            Some((what, "a")) => format!("{what}:b"),
            Some((what, "b")) => format!("{what}:a"),
            _ => name,
        };
        node.inputs = node.inputs.into_iter().map(|(n, input)| (name(n), input)).collect();
        ChampionPair { node, turned: !self.turned }
    }

    /// The spec of the step, whose inputs are all known.
    pub fn spec(&self) -> Spec {
        let input = |input: &InputRef| kforge_types::record::Input {
            digest: match &input.source {
                Source::Blob(digest) => Some(*digest),
                Source::Output { .. } => None,
            },
            form: input.form,
        };
        let inputs = self.node.inputs.iter().map(|(name, i)| (name.clone(), input(i))).collect();
        let (kind, params) = (self.node.kind, self.node.params.clone());
        // The step observes a device, so the protocol in its parameters replaces the code digest.
        Spec { kind, version: kind.version(), implementation: None, params, inputs }
    }
}

/// The pairs step of two champions on one problem: `head`, timed by `bench`, and `base`. `hot` says which times count. Which of them is A follows from content,
/// as in every pairs step ([`super::pair_order`]).
///
/// # Errors
/// The champions do not compute the same problem for the same architecture, or an input of one is missing.
pub fn pairs(bench: &Node, head: &Spec, base: &Spec, hot: bool) -> Result<ChampionPair, NotPaired> {
    let read = |spec: &Spec| -> Result<VerifyParams, NotPaired> {
        let timed: VerifyParams = serde_json::from_value(spec.params.clone()).map_err(NotPaired::Read)?;
        // Clears the parameters that only a single timing has. The plan's own pairs steps lack them too, so such a step may already have an answer.
        Ok(VerifyParams { protocol: VERIFY_PROTOCOL, samples: None, only: None, flops_min: None, bytes: None, ..timed })
    };
    let (of_head, of_base) = (read(head)?, read(base)?);
    if of_head.problem != of_base.problem {
        return Err(NotPaired::Problem);
    }
    if of_head.arch != of_base.arch {
        return Err(NotPaired::Arch { now: of_head.arch, before: of_base.arch });
    }
    let input = |spec: &Spec, name: &'static str| -> Result<_, NotPaired> {
        spec.inputs.get(name).and_then(|input| input.digest).ok_or(NotPaired::NoInput(name))
    };
    let tie = input(head, "binary")?.cmp(&input(base, "binary")?);
    let turned = is_turned(&of_head, &of_base, || tie);
    let (a, b, sides) = match turned {
        false => (of_head, of_base, [("a", head), ("b", base)]),
        true => (of_base, of_head, [("a", base), ("b", head)]),
    };
    let mut inputs = BTreeMap::new();
    for (side, spec) in sides {
        for name in ["binary", "facts", "inspection"] {
            let source = Source::Blob(input(spec, name)?);
            inputs.insert(format!("{name}:{side}"), InputRef { source, form: Form::Blob });
        }
    }
    let params = PairsParams { arch: a.arch.clone(), hot, a, b, protocol: PAIRS_PROTOCOL };
    let params = serde_json::to_value(params).map_err(NotPaired::Write)?;
    let about = bench.id.strip_suffix("/bench").unwrap_or(&bench.id);
    let node = Node {
        id: format!("{about}/against/base/{}", StepKind::Pairs),
        kind: StepKind::Pairs,
        rank: Rank { round: 0, phase: PAIRING, wave: 0, kind: StepKind::Pairs },
        params,
        inputs,
        after: vec![],
        expands: false,
        advisory: true,
        ..bench.clone()
    };
    Ok(ChampionPair { node, turned })
}
