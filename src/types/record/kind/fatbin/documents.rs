//! The parameters of a fatbin step.

use serde::{Deserialize, Serialize};

/// fatbin. Inputs: `binary`, a cubin; `ptx`, the PTX of the same compilation, if the fatbin holds it; `toolchain`. Output: `fatbin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatbinParams {
    /// The architecture of the machine code and of the PTX: `sm_90a`.
    pub arch: String,
}

/// The output of the step.
pub const FATBIN: &str = "fatbin";
