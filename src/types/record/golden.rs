//! A key of each kind of step as it has been since the kind's version: an accidental change of a parameter, an input or the encoding fails here. Keys change on
//! purpose by raising the kind's version (its meaning changes) or `KEY_CONTEXT` (the encoding does), and then here. The code that does a step stands for itself
//! ([`super::implementation`]): here it is a fixed digest.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::params::{
    AttributeParams, CalibrateParams, CompileParams, GenerateParams, InspectParams, JudgeParams, MatchParams,
    OracleParams, PairsParams, SelectParams, VerifyParams,
};
use super::peaks::PeaksParams;
use super::profile::{ProfileParams, RooflineParams};
use super::round::RoundParams;
use super::search::SearchParams;
use super::spec::Input;
use super::{Spec, StepKind};
use kforge_foundation::base::Digest;

/// A step as it was planned once, and its key.
#[derive(Deserialize)]
struct Golden {
    params: Value,
    inputs: BTreeMap<String, Input>,
    key: Digest,
}

/// The parameters as today's program writes them.
fn today<T: Serialize + DeserializeOwned>(params: &Value) -> Value {
    let typed: T = serde_json::from_value(params.clone()).unwrap();
    serde_json::to_value(typed).unwrap()
}

#[test]
fn the_key_of_each_kind_is_what_it_was() {
    let all: BTreeMap<String, Golden> = serde_json::from_str(include_str!("golden.json")).unwrap();
    let mut wrong = Vec::new();
    for kind in StepKind::ALL {
        let golden = &all[kind.name()];
        let params = match kind {
            StepKind::Generate => today::<GenerateParams>(&golden.params),
            StepKind::Compile => today::<CompileParams>(&golden.params),
            StepKind::Inspect => today::<InspectParams>(&golden.params),
            StepKind::Oracle => today::<OracleParams>(&golden.params),
            StepKind::Calibrate => today::<CalibrateParams>(&golden.params),
            StepKind::Verify | StepKind::Bench => today::<VerifyParams>(&golden.params),
            StepKind::Peaks => today::<PeaksParams>(&golden.params),
            StepKind::Judge => today::<JudgeParams>(&golden.params),
            StepKind::Match => today::<MatchParams>(&golden.params),
            StepKind::Search => today::<SearchParams>(&golden.params),
            StepKind::Select => today::<SelectParams>(&golden.params),
            StepKind::Attribute => today::<AttributeParams>(&golden.params),
            StepKind::Pairs => today::<PairsParams>(&golden.params),
            StepKind::Profile => today::<ProfileParams>(&golden.params),
            StepKind::Roofline => today::<RooflineParams>(&golden.params),
            StepKind::Round => today::<RoundParams>(&golden.params),
        };
        assert_eq!(params, golden.params, "{kind}: its parameters are written another way");
        // Fixed: an edit of the code is no edit of how keys are formed.
        let implementation = Some(Digest::of(b"whatever does it"));
        let spec = Spec { kind, version: kind.version(), implementation, params, inputs: golden.inputs.clone() };
        if spec.key() != golden.key {
            wrong.push(format!("{kind}: {}", spec.key()));
        }
    }
    assert!(wrong.is_empty(), "raise their versions in `StepKind::version`, and these keys with it: {wrong:#?}");
}
