//! Errors of the driver by name, and what they mean for a candidate. Pure: knows names of errors; calls no driver.

use std::fmt;

use serde::{Deserialize, Serialize};

use kforge_types::record::{Finding, FindingKind};

/// An error of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name} ({code}) {during}: {text}")]
pub struct Fault {
    /// The error code.
    pub code: u32,
    /// The name: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// The driver's message.
    pub text: String,
    /// The activity: `while the launches ran`.
    pub during: During,
}

/// The activity during which the driver reported an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct During {
    /// Whether the activity was launching.
    pub launching: bool,
    /// The activity as text: `while launching a graph`.
    pub words: String,
}

impl During {
    /// The activity of launching.
    pub(super) fn launching(words: impl Into<String>) -> Self {
        During { launching: true, words: words.into() }
    }
}

impl From<&str> for During {
    fn from(words: &str) -> Self {
        During { launching: false, words: words.into() }
    }
}

impl From<&String> for During {
    fn from(words: &String) -> Self {
        During::from(words.as_str())
    }
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// The cause of a fault.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// The candidate.
    Candidate(FindingKind),
    /// The machine lacks something: memory, a device, a recent enough driver.
    Lacking,
    /// Neither: the step could not be executed.
    Broken,
}

impl Fault {
    /// The cause of the fault. The names are those of `CUresult` in `cuda.h`. Only faults while a candidate's module is loaded or its launches run are caused
    /// by the candidate.
    pub fn meaning(&self) -> Meaning {
        use FindingKind as K;
        let kind = match self.name.as_str() {
            // The driver does not distinguish reads from writes; compute-sanitizer does.
            "CUDA_ERROR_ILLEGAL_ADDRESS" => K::OutOfBounds,
            "CUDA_ERROR_MISALIGNED_ADDRESS" => K::Misaligned,
            "CUDA_ERROR_ASSERT" => K::Assertion,
            "CUDA_ERROR_ILLEGAL_INSTRUCTION" => K::Trap,
            "CUDA_ERROR_LAUNCH_FAILED"
            | "CUDA_ERROR_HARDWARE_STACK_ERROR"
            | "CUDA_ERROR_INVALID_ADDRESS_SPACE"
            | "CUDA_ERROR_INVALID_PC"
            | "CUDA_ERROR_TENSOR_MEMORY_LEAK"
            | "CUDA_ERROR_CDP_NOT_SUPPORTED"
            | "CUDA_ERROR_CDP_VERSION_MISMATCH" => K::Crash,
            "CUDA_ERROR_LAUNCH_TIMEOUT" => K::NoProgress,
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
            | "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
            | "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"
            | "CUDA_ERROR_INVALID_CLUSTER_SIZE"
            | "CUDA_ERROR_INVALID_VALUE"
                if self.during.launching =>
            {
                K::LaunchRefused
            }
            "CUDA_ERROR_OUT_OF_MEMORY"
            | "CUDA_ERROR_NO_DEVICE"
            | "CUDA_ERROR_INVALID_DEVICE"
            | "CUDA_ERROR_DEVICE_UNAVAILABLE"
            | "CUDA_ERROR_DEVICE_NOT_LICENSED"
            | "CUDA_ERROR_NO_BINARY_FOR_GPU"
            | "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
            | "CUDA_ERROR_SYSTEM_NOT_READY"
            | "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
            | "CUDA_ERROR_INSUFFICIENT_DRIVER"
            | "CUDA_ERROR_MPS_CONNECTION_FAILED"
            | "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
            | "CUDA_ERROR_STUB_LIBRARY" => return Meaning::Lacking,
            _ => return Meaning::Broken,
        };
        Meaning::Candidate(kind)
    }

    /// The finding, if the candidate caused the fault.
    pub fn finding(&self) -> Option<Finding> {
        match self.meaning() {
            Meaning::Candidate(kind) => Some(Finding::new(kind, self.to_string())),
            _ => None,
        }
    }

    /// Whether a launch was refused: then no part of it ran, and the context is unchanged.
    pub fn is_refusal(&self) -> bool {
        matches!(self.meaning(), Meaning::Candidate(FindingKind::LaunchRefused))
    }

    /// Whether the fault is temporary: it may not happen again with the same candidate.
    pub fn passes(&self) -> bool {
        self.name == "CUDA_ERROR_LAUNCH_TIMEOUT"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(name: &str, during: &str) -> Fault {
        Fault {
            code: 1,
            name: name.into(),
            text: "x".into(),
            during: During { launching: during.starts_with("while launching"), words: during.into() },
        }
    }

    #[test]
    fn what_a_candidate_does_is_a_finding_by_name_and_what_the_machine_lacks_is_none() {
        let ran = "while the launches ran";
        for (name, kind) in [
            ("CUDA_ERROR_ILLEGAL_ADDRESS", FindingKind::OutOfBounds),
            ("CUDA_ERROR_MISALIGNED_ADDRESS", FindingKind::Misaligned),
            ("CUDA_ERROR_LAUNCH_FAILED", FindingKind::Crash),
            ("CUDA_ERROR_ASSERT", FindingKind::Assertion),
        ] {
            let found = fault(name, ran).finding().unwrap();
            assert_eq!(found.kind, kind);
            assert!(found.message.starts_with(name), "{}", found.message);
        }
        assert_eq!(fault("CUDA_ERROR_OUT_OF_MEMORY", ran).meaning(), Meaning::Lacking);
        assert_eq!(fault("CUDA_ERROR_ECC_UNCORRECTABLE", ran).finding(), None);
        assert_eq!(fault("CUDA_ERROR_UNKNOWN", ran).meaning(), Meaning::Broken);
    }

    #[test]
    fn a_wrong_value_is_the_candidates_only_at_its_launch() {
        let refused = Meaning::Candidate(FindingKind::LaunchRefused);
        assert_eq!(fault("CUDA_ERROR_INVALID_VALUE", "while launching `k`").meaning(), refused);
        assert_eq!(fault("CUDA_ERROR_INVALID_VALUE", "while copying").meaning(), Meaning::Broken);
        assert!(fault("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "while launching `k`").is_refusal());
        assert!(!fault("CUDA_ERROR_ILLEGAL_ADDRESS", "while launching `k`").is_refusal(), "of what ran before");
    }
}
