//! kforge's own code as an input. The code that executes a step enters its key by content, so that a kforge with different code executes the step again, and a
//! kforge with the same code does not. Knows digests; does not know files.
//!
//! # What is digested, and why
//!
//! The build script of each package (`build/package.rs`) digests the parts of the package's code that its `parts.rs` lists. The descriptor of a kind says which
//! parts execute its steps. A Rust file is digested as its tokens without comments, documentation and unit tests; any other file as its bytes. External
//! packages are digested as their versions and checksums in `Cargo.lock`, with all their dependencies.
//!
//! | left out | why |
//! |---|---|
//! | steps that observe a device | an observation costs device time and must outlive an upgrade |
//! | code that only transports results (`engine`, `process`), and code above the steps (`report`, `cli`) | it does not look into results |
//! | planning (`model`, `plan`) | all its decisions are in the parameters and inputs |
//! | the Rust compiler | the language defines the results of floating-point operations |
//!
//! The parameters of an observation contain a protocol, which is raised by hand. The record of an observation names the kforge that made it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::kind::Runs;
use super::{Platform, StepKind};
use kforge_foundation::base::Digest;
use kforge_foundation::base::encode::{FieldWriter, Hasher};

/// A part of kforge's code: its name, its digest, and how many bytes were hashed.
pub type Part = (&'static str, [u8; 32], u64);

/// The parts, by name, that execute the steps of a kind on a platform.
pub type Work = (StepKind, Platform, &'static [&'static str]);

/// The parts that execute each step, from the descriptors of all kinds.
pub fn work() -> Vec<Work> {
    let of = |kind: StepKind| match kind.descriptor().runs {
        Runs::Engine { parts, .. } => vec![(kind, Platform::Any, parts)],
        Runs::Worker { work, .. } => work.iter().filter_map(|w| Some((kind, w.on, w.parts?))).collect(),
    };
    StepKind::ALL.into_iter().flat_map(of).collect()
}

/// Separates these digests from every other use of blake3.
const CONTEXT: &str = "kforge 2026-11 implementation v2";

/// The code that executes each step.
#[derive(Debug, Clone, Default)]
pub struct Implementations(BTreeMap<(StepKind, Platform), Digest>);

impl Implementations {
    /// The code of `work`, digested from `parts`.
    ///
    /// # Panics
    /// `work` names a part that does not exist, which is a bug in the table.
    pub fn new(work: &[Work], parts: &[Part]) -> Self {
        let part = |name: &&str| {
            parts
                .iter()
                .find(|(known, ..)| known == name)
                .unwrap_or_else(|| panic!("BUG: no part `{name}` of the code"))
        };
        let of = |names: &[&str]| {
            let mut hasher = Hasher::new(CONTEXT);
            for (name, hash, size) in names.iter().map(part) {
                hasher.field(name, b'b', hash, &String::new);
                hasher.field(name, b'i', &size.to_le_bytes(), &String::new);
            }
            hasher.finish()
        };
        Implementations(work.iter().map(|(kind, platform, names)| ((*kind, *platform), of(names))).collect())
    }

    /// The code that executes a step of this kind with these parameters. None if a protocol in the parameters takes its place.
    pub fn of(&self, kind: StepKind, params: &Value) -> Option<Digest> {
        self.0.get(&(kind, Platform::of(params))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts_for_the_work_that_names_it_and_for_no_other() {
        let work: [Work; 3] = [
            (StepKind::Judge, Platform::Any, &["a"]),
            (StepKind::Compile, Platform::Cpu, &["a", "b"]),
            (StepKind::Compile, Platform::Device, &["b"]),
        ];
        let with = |a: u8, b: u64| Implementations::new(&work, &[("a", [a; 32], 1), ("b", [9; 32], b)]);
        let (plain, other_a, other_b) = (with(1, 1), with(2, 1), with(1, 2));
        let of = |all: &Implementations, kind, arch: &str| all.of(kind, &serde_json::json!({ "arch": arch }));
        let judge = |all: &Implementations| all.of(StepKind::Judge, &Value::Null);
        assert_ne!(judge(&plain), judge(&other_a));
        assert_eq!(judge(&plain), judge(&other_b));
        for (arch, by_a) in [("cpu", true), ("sm_90a", false)] {
            assert_eq!(of(&plain, StepKind::Compile, arch) != of(&other_a, StepKind::Compile, arch), by_a, "{arch}");
            assert_ne!(of(&plain, StepKind::Compile, arch), of(&other_b, StepKind::Compile, arch), "{arch}");
        }
        assert_eq!(of(&plain, StepKind::Verify, "sm_90a"), None);
    }
}
