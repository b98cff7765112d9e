//! The digests of this program's code, for keys. The descriptors of kinds ([`kforge_types::record::kind`]) name the parts of the code that execute each kind of
//! step.

use kforge_foundation::base::Digest;
use kforge_pipeline::plan::bound::{PEAKS_PROTOCOL, PROFILE_PROTOCOL};
use kforge_pipeline::plan::timing_steps::{BENCH_PROTOCOL, PAIRS_PROTOCOL};
use kforge_pipeline::plan::variants::{HOST_PROTOCOL, SANITIZE_PROTOCOL, VERIFY_PROTOCOL};
use kforge_types::record::FORMAT_VERSION;
use kforge_types::record::implementation::{Implementations, Part, work};

/// The parts of all packages.
pub fn parts() -> Vec<Part> {
    let packages = [
        kforge_foundation::IMPLEMENTATION,
        kforge_types::IMPLEMENTATION,
        kforge_numerics::IMPLEMENTATION,
        kforge_project::IMPLEMENTATION,
        kforge_harness::IMPLEMENTATION,
        kforge_emulator::IMPLEMENTATION,
        kforge_cuda::IMPLEMENTATION,
        kforge_worker::IMPLEMENTATION,
        kforge_pipeline::IMPLEMENTATION,
    ];
    packages.concat()
}

/// The digests of the code that executes each kind of step.
pub fn implementations() -> Implementations {
    Implementations::new(&work(), &parts())
}

/// This program's description of its code, in one line: the version, and a digest of all code that executes steps and of the protocol numbers for devices. Two
/// programs with the same description execute every step in the same way.
pub fn combined() -> String {
    let protocols = [
        HOST_PROTOCOL,
        SANITIZE_PROTOCOL,
        VERIFY_PROTOCOL,
        BENCH_PROTOCOL,
        PAIRS_PROTOCOL,
        PROFILE_PROTOCOL,
        PEAKS_PROTOCOL,
        FORMAT_VERSION,
    ];
    let mut bytes: Vec<u8> = protocols.iter().flat_map(|number| number.to_le_bytes()).collect();
    for (name, hash, size) in parts() {
        bytes.extend(name.as_bytes());
        bytes.extend(hash);
        bytes.extend(size.to_le_bytes());
    }
    format!("kforge {} {}", env!("CARGO_PKG_VERSION"), Digest::of(&bytes).hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::StepKind as Kind;
    use serde_json::Value;

    #[test]
    fn what_is_done_here_has_an_implementation_and_what_a_device_observes_has_a_protocol() {
        let all = implementations();
        let of =
            |kind, arch: Option<&str>| all.of(kind, &arch.map_or(Value::Null, |a| serde_json::json!({ "arch": a })));
        for kind in Kind::ALL {
            let arch = |a| match kind {
                Kind::Compile | Kind::Inspect | Kind::Verify => Some(a),
                // Only machine code is packed.
                Kind::Fatbin => Some("sm_90a"),
                _ => None,
            };
            assert_eq!(of(kind, arch("cpu")).is_some(), !kind.observes_device() || arch("cpu").is_some(), "{kind}");
            if kind.observes_device() {
                assert_eq!(of(kind, Some("sm_90a")), None, "{kind}");
            }
        }
        assert_ne!(of(Kind::Compile, Some("cpu")), of(Kind::Compile, Some("sm_90a")));
        assert_eq!(of(Kind::Compile, Some("sm_80")), of(Kind::Compile, Some("sm_90a")));
    }
}
