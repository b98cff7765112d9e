//! Checks that the key of each kind of step has not changed since the kind's version was set. An accidental change of a parameter, an input or the encoding
//! fails here. To change a key on purpose, raise the kind's version (if its meaning changes) or `KEY_CONTEXT` (if the encoding changes), and then update the
//! key here. The code that executes a step enters keys by content ([`super::implementation`]); here a fixed digest takes its place.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::spec::Input;
use super::{Spec, StepKind};
use kforge_foundation::base::Digest;

/// A step as it was once planned, and its key.
#[derive(Deserialize)]
struct Golden {
    params: Value,
    inputs: BTreeMap<String, Input>,
    key: Digest,
}

#[test]
fn the_key_of_each_kind_is_what_it_was() {
    let mut wrong = Vec::new();
    for kind in StepKind::ALL {
        let descriptor = kind.descriptor();
        let golden: Golden = serde_json::from_str(descriptor.golden).unwrap_or_else(|e| panic!("{kind}: {e}"));
        let params = (descriptor.parameters)(&golden.params).unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert_eq!(params, golden.params, "{kind}: its parameters are written another way");
        // The digest is fixed, because an edit of the code does not change how keys are formed.
        let implementation = Some(Digest::of(b"whatever does it"));
        let spec = Spec { kind, version: kind.version(), implementation, params, inputs: golden.inputs };
        if spec.key() != golden.key {
            wrong.push(format!("{kind}: {}", spec.key()));
        }
    }
    assert!(
        wrong.is_empty(),
        "raise their versions in `record/kind/`, and these keys in `record/golden/` with it: {wrong:#?}"
    );
}
