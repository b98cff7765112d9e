//! The policy of a kernel in PyTorch: which libraries it may call, and how much of its device time has to be spent in kernels of its own. Knows names of
//! libraries; does not know which kernels they launch.

use serde::{Deserialize, Serialize};

/// The least share of device time in kernels of its own, where a policy states none.
pub const OWN_SHARE: f64 = 0.3;

/// What a kernel in PyTorch may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Policy {
    /// The libraries whose kernels it may launch; none if it may launch those of every library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libraries: Option<Vec<Library>>,
    /// The least share of the device time of its calls that kernels of its own take.
    pub own_share: f64,
}

impl Policy {
    /// Whether it may launch kernels of a library.
    pub fn allows(&self, library: Library) -> bool {
        self.libraries.as_ref().is_none_or(|allowed| allowed.contains(&library))
    }
}

/// Who wrote kernels that a kernel in PyTorch did not bring along.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// PyTorch's own kernels.
    Torch,
    /// What `torch.compile` makes.
    Inductor,
    /// cuBLAS and cuBLASLt.
    Cublas,
    /// cuDNN.
    Cudnn,
    /// cuSPARSE.
    Cusparse,
    /// cuSOLVER.
    Cusolver,
    /// cuFFT.
    Cufft,
    /// NCCL.
    Nccl,
}

impl Library {
    /// All of them.
    pub const ALL: [Library; 8] = [
        Library::Torch,
        Library::Inductor,
        Library::Cublas,
        Library::Cudnn,
        Library::Cusparse,
        Library::Cusolver,
        Library::Cufft,
        Library::Nccl,
    ];

    /// Its name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Library::Torch => "torch",
            Library::Inductor => "inductor",
            Library::Cublas => "cublas",
            Library::Cudnn => "cudnn",
            Library::Cusparse => "cusparse",
            Library::Cusolver => "cusolver",
            Library::Cufft => "cufft",
            Library::Nccl => "nccl",
        }
    }

    /// The library of that name.
    pub fn of(name: &str) -> Option<Library> {
        Library::ALL.into_iter().find(|library| library.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_go_by_their_names() {
        for library in Library::ALL {
            assert_eq!(Library::of(library.name()), Some(library));
            assert_eq!(serde_json::to_value(library).unwrap(), library.name());
        }
        assert_eq!(Library::of("cublaslt"), None);
    }

    #[test]
    fn a_policy_without_libraries_allows_every_one_and_an_empty_list_none() {
        let of = |libraries| Policy { libraries, own_share: OWN_SHARE };
        assert!(of(None).allows(Library::Torch) && !of(Some(vec![])).allows(Library::Torch));
        assert!(of(Some(vec![Library::Cublas])).allows(Library::Cublas));
    }
}
