//! Device facts for tests of several packages. Only tests use this module.

use super::facts::DeviceFacts;

/// An H200 according to NVIDIA.
pub fn h200() -> DeviceFacts {
    DeviceFacts {
        product: "NVIDIA H200".into(),
        arch: "sm_90".into(),
        driver: "580.159.04".into(),
        mig: None,
        uuid: "GPU-0".into(),
        memory: 141 << 30,
        processors: 132,
        clock_mhz: 1980,
        memory_clock_mhz: 3201,
        bus_bits: 6144,
        l2: 60 << 20,
        reaches_host: false,
    }
}
