//! Targets, toolchains and dependencies as a package states them. Knows their spelling; does not resolve or find anything.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Languages of kernels.
pub(crate) const LANGUAGES: [&str; 1] = ["cuda"];
/// Languages of later versions.
pub(crate) const LANGUAGES_LATER: [&str; 2] = ["triton", "torch"];

/// What a target runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// The emulator.
    Cpu,
    /// Machine code of a GPU: `sm_90a`.
    Sm(String),
}

impl Arch {
    /// Reads `cpu` or `sm_NN`, with `a` (architecture-specific) or `f` (family-specific) after it where needed; none if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "cpu" {
            return Some(Arch::Cpu);
        }
        let rest = text.strip_prefix("sm_")?;
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        let number = (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        (number && !digits.starts_with('0')).then(|| Arch::Sm(text.into()))
    }

    /// Its name: `cpu`, `sm_90a`.
    pub fn name(&self) -> &str {
        match self {
            Arch::Cpu => "cpu",
            Arch::Sm(name) => name,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a package compiles for and runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name in the manifest.
    pub name: String,
    /// The architecture.
    pub arch: Arch,
    /// The product whose evidence counts, where it is declared.
    pub device: Option<String>,
}

/// Where the CUDA toolkit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CudaSpec {
    /// Wheels of this version: `13.0`.
    Version(String),
    /// A folder.
    Path(String),
    /// The one that is installed.
    System,
}

/// The compilers a package asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainSpec {
    /// The CUDA toolkit.
    pub cuda: Option<CudaSpec>,
}

/// A header library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dependency {
    /// A wheel.
    Pypi {
        /// Name and pinned version: `nvidia-cutlass==4.2.0`.
        requirement: String,
        /// The include folder in it.
        include: String,
    },
    /// A folder.
    Path {
        /// The folder, relative to the manifest that names it.
        path: String,
        /// The include folder in it.
        include: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_spelt_as_the_compiler_spells_them() {
        for good in ["sm_75", "sm_90a", "sm_100f", "sm_120"] {
            assert_eq!(Arch::parse(good), Some(Arch::Sm(good.into())));
        }
        for bad in ["sm90", "sm_9", "sm_90b", "sm_0900", "compute_90", "sm_", "SM_90", "sm_90aa", "gpu"] {
            assert_eq!(Arch::parse(bad), None, "{bad}");
        }
        assert_eq!(Arch::parse("cpu"), Some(Arch::Cpu));
    }
}
