//! kforge's own code as an input: what does a step enters its key by content, so that another kforge that would do it otherwise does it again, and one that
//! would not, does not. Knows digests that the build script made; does not know files.
//!
//! # What is digested, and why
//!
//! [`table`] says which files do which steps. A file of Rust counts by its tokens without comments, documentation and unit tests; any other file by its bytes.
//! Packages count by version and checksum, with all that they need, as `Cargo.lock` has them.
//!
//! | left out | why |
//! |---|---|
//! | steps that observe a device | an observation costs a device and has to outlive an upgrade: the protocol in its parameters is raised by hand, and its record names the kforge that made it |
//! | rooms that only carry (`engine`, `process`), and those above the steps (`report`, `cli`) | they look into no result |
//! | planning (`model`, `plan`) | all that it decides is in the parameters and inputs |
//! | the Rust compiler | the language fixes what floating-point operations give |

pub mod table;

use serde_json::Value;

use super::StepKind;
use crate::base::Digest;

include!(concat!(env!("OUT_DIR"), "/implementation.rs"));

/// The code that does a step of that kind with these parameters; none where a protocol in the parameters stands for it.
pub fn of(kind: StepKind, params: &Value) -> Option<Digest> {
    let on = match params.get("arch").and_then(Value::as_str) {
        None => "any",
        Some("cpu") => "cpu",
        Some(_) => "device",
    };
    let (_, _, hash, size) = DIGESTS.iter().find(|(k, o, _, _)| *k == kind.name() && *o == on)?;
    Some(Digest::from_parts(*hash, *size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_here_has_an_implementation_and_what_a_device_observes_has_a_protocol() {
        let of = |kind, arch: Option<&str>| of(kind, &arch.map_or(Value::Null, |a| serde_json::json!({ "arch": a })));
        for kind in StepKind::ALL {
            let arch = |a| match kind {
                StepKind::Compile | StepKind::Inspect | StepKind::Verify => Some(a),
                _ => None,
            };
            assert_eq!(of(kind, arch("cpu")).is_some(), !kind.observes_device() || arch("cpu").is_some(), "{kind}");
            if kind.observes_device() {
                assert_eq!(of(kind, Some("sm_90a")), None, "{kind}");
            }
        }
        assert_ne!(of(StepKind::Compile, Some("cpu")), of(StepKind::Compile, Some("sm_90a")));
        assert_eq!(of(StepKind::Compile, Some("sm_80")), of(StepKind::Compile, Some("sm_90a")));
    }
}
