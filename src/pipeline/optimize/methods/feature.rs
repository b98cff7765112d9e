//! What hardware a method may need, and which architectures have it. Knows names of architectures; does not know devices.
//!
//! The table was derived from the compiler: an architecture has an instruction if NVRTC 13.0 compiles it to machine code, and at full speed if the compiler
//! distinguishes speeds (multicast).

use serde::Deserialize;

/// A capability of hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Matrix products of a warp.
    TensorCore,
    /// Matrix loads from shared memory.
    Ldmatrix,
    /// An L2 partition for persistent accesses.
    CpAsync,
    /// A part of L2 that is set aside.
    L2Persistence,
    /// Matrix products of 8-bit floats.
    Fp8,
    /// Bulk and tensor copies.
    Tma,
    /// Barriers in shared memory that count bytes and can be waited for.
    Mbarrier,
    /// Clusters of blocks.
    Cluster,
    /// Shared memory of other blocks of a cluster.
    Dsmem,
    /// Copies to several blocks of a cluster at once.
    Multicast,
    /// Programmatic dependent launch.
    Pdl,
    /// Matrix products of a warpgroup.
    Wgmma,
    /// Transfer of registers between warpgroups.
    Setmaxnreg,
    /// Matrix products whose operands carry scales.
    BlockScaling,
    /// Cluster launch control.
    Clc,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 15] = [
        Feature::TensorCore,
        Feature::Ldmatrix,
        Feature::CpAsync,
        Feature::L2Persistence,
        Feature::Fp8,
        Feature::Tma,
        Feature::Mbarrier,
        Feature::Cluster,
        Feature::Dsmem,
        Feature::Multicast,
        Feature::Pdl,
        Feature::Wgmma,
        Feature::Setmaxnreg,
        Feature::BlockScaling,
        Feature::Clc,
    ];

    /// Its name as NVIDIA writes it.
    pub fn name(self) -> &'static str {
        match self {
            Feature::TensorCore => "tensor cores",
            Feature::Ldmatrix => "ldmatrix",
            Feature::CpAsync => "cp.async",
            Feature::L2Persistence => "L2 persistence",
            Feature::Fp8 => "8-bit floats",
            Feature::Tma => "TMA",
            Feature::Mbarrier => "mbarrier",
            Feature::Cluster => "clusters",
            Feature::Dsmem => "distributed shared memory",
            Feature::Multicast => "multicast",
            Feature::Pdl => "programmatic dependent launch",
            Feature::Wgmma => "wgmma",
            Feature::Setmaxnreg => "setmaxnreg",
            Feature::BlockScaling => "block scaling",
            Feature::Clc => "cluster launch control",
        }
    }

    /// Whether an architecture has it, given its capability (90) and suffix (`a`, `f` or none). Portable machine code lacks features that need a suffix.
    pub fn is_in(self, capability: u32, suffix: &str) -> bool {
        let own = !suffix.is_empty();
        match self {
            Feature::TensorCore | Feature::Ldmatrix => capability >= 75,
            Feature::CpAsync | Feature::L2Persistence => capability >= 80,
            Feature::Fp8 => capability >= 89,
            Feature::Tma | Feature::Mbarrier | Feature::Cluster | Feature::Dsmem | Feature::Pdl => capability >= 90,
            Feature::Multicast => matches!(capability, 90 | 100 | 103 | 110),
            Feature::Wgmma => capability == 90 && suffix == "a",
            Feature::Setmaxnreg => capability >= 90 && own,
            Feature::BlockScaling => capability >= 100 && own,
            Feature::Clc => capability >= 100,
        }
    }
}
