//! Targets, toolchains and dependencies as a package states them. Knows their spelling; does not resolve or look for anything.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Languages of kernels.
pub(crate) const LANGUAGES: [&str; 3] = ["cuda", "triton", "torch"];

/// The architecture of a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// The emulator.
    Cpu,
    /// Machine code of a GPU: `sm_90a`.
    Sm(String),
}

/// Compute capabilities for which CUDA 13.0 produces machine code.
pub const CAPABILITIES: [u32; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// A name that is not an architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an architecture: expected {}", self.expected())]
pub struct UnknownArch {
    /// The name.
    pub name: String,
    /// Whether `cpu` was also allowed.
    pub cpu: bool,
}

impl UnknownArch {
    /// The possible names.
    pub fn expected(&self) -> String {
        let names: Vec<String> = CAPABILITIES.iter().map(|c| format!("sm_{c}")).collect();
        let cpu = if self.cpu { "`cpu`, or " } else { "" };
        format!("{cpu}one of {}, with `a` from sm_90 and `f` from sm_100", names.join(", "))
    }
}

/// The capability and suffix of an architecture: 90 and `a` for `sm_90a`. The suffix is empty, `a` (instructions of this architecture; runs nowhere else) or
/// `f` (instructions of its family).
///
/// # Errors
/// The text is not such a name, or not an architecture that can be compiled for.
pub fn capability(name: &str) -> Result<(u32, &'static str), UnknownArch> {
    let known = || UnknownArch { name: name.into(), cpu: false };
    let rest = name.strip_prefix("sm_").ok_or_else(known)?;
    let digits = rest.trim_end_matches(['a', 'f']);
    let suffix = match &rest[digits.len()..] {
        "" => "",
        "a" => "a",
        "f" => "f",
        _ => return Err(known()),
    };
    let capability = CAPABILITIES.into_iter().find(|c| c.to_string() == digits).ok_or_else(known)?;
    let least = match suffix {
        "a" => 90,
        "f" => 100,
        _ => 0,
    };
    if capability < least { Err(known()) } else { Ok((capability, suffix)) }
}

impl Arch {
    /// Reads `cpu`, or an architecture that can be compiled for: `sm_NN`, with a suffix `a` (architecture-specific) or `f` (family-specific) where needed.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, UnknownArch> {
        if text == "cpu" {
            return Ok(Arch::Cpu);
        }
        capability(text).map(|_| Arch::Sm(text.into())).map_err(|unknown| UnknownArch { cpu: true, ..unknown })
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
    /// The product whose evidence counts, if declared.
    pub device: Option<String>,
    /// Whether artifacts also hold the PTX from which machine code is made.
    pub ptx: bool,
    /// Whether artifacts also hold a fatbin of the machine code, with the PTX if they hold that.
    pub fatbin: bool,
}

impl Target {
    /// The target of that name on which kernels are emulated.
    pub(crate) fn of_cpu(name: String) -> Self {
        Target { name, arch: Arch::Cpu, device: None, ptx: false, fatbin: false }
    }
}

/// Where the CUDA toolkit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CudaSpec {
    /// Wheels of this version: `13.0`.
    Version(String),
    /// A folder.
    Path(String),
    /// The installed toolkit.
    System,
}

/// Where the PyTorch of references and of kernels in PyTorch comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TorchSpec {
    /// The one that the Python of this machine imports.
    System,
    /// Wheels of a release.
    Release {
        /// The release: `2.9`, or `2.9.1`.
        release: String,
        /// Whether the libraries of CUDA and the Triton that it requires are installed, too. Otherwise, only what runs on the processor is.
        cuda: bool,
    },
}

impl TorchSpec {
    /// What a release is called in messages.
    pub fn described(release: &str, cuda: bool) -> String {
        if cuda { format!("{release} with CUDA") } else { release.to_string() }
    }

    /// Why nothing runs on a GPU where only the part of a release for processors is installed, and what to state.
    pub fn only_processors(release: &str) -> String {
        format!(
            "`toolchain.torch = \"{release}\"` installs only the part of PyTorch for processors: for a GPU, state \
             `toolchain.torch = {{ release = \"{release}\", cuda = true }}`, or `toolchain.torch = \"system\"` for the PyTorch of this machine"
        )
    }
}

/// The compilers a package asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainSpec {
    /// The CUDA toolkit.
    pub cuda: Option<CudaSpec>,
    /// The release of Triton: `3.9`.
    pub triton: Option<String>,
    /// The PyTorch of references and of kernels in PyTorch. By default that of the system.
    pub torch: Option<TorchSpec>,
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
            assert_eq!(Arch::parse(good), Ok(Arch::Sm(good.into())));
        }
        for bad in [
            "sm_91",
            "sm_80a",
            "sm_90f",
            "sm90",
            "sm_9",
            "sm_90b",
            "sm_0900",
            "compute_90",
            "sm_",
            "SM_90",
            "sm_90aa",
            "gpu",
        ] {
            assert!(Arch::parse(bad).is_err_and(|expected| expected.to_string().contains("sm_121")), "{bad}");
        }
        assert_eq!(Arch::parse("cpu"), Ok(Arch::Cpu));
        assert_eq!(capability("sm_80"), Ok((80, "")));
        assert_eq!(capability("sm_90a"), Ok((90, "a")));
        assert_eq!(capability("sm_100f"), Ok((100, "f")));
    }
}
