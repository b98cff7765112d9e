//! The features of this machine's processor that decide which code numeric libraries choose, and therefore how results are rounded. Knows the names of
//! features; measures nothing.
//!
//! The C library chooses its `expf`, and matrixmultiply and numpy choose their kernels, by the features of the processor. Code with fused multiply-add rounds
//! differently. So the keys of steps that compute values on this machine hold these features, not the processor's name.

use std::collections::BTreeMap;

use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// The features by which glibc, matrixmultiply and OpenBLAS choose their code.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let all = [
        ("sse4.1", std::arch::is_x86_feature_detected!("sse4.1")),
        ("avx", std::arch::is_x86_feature_detected!("avx")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ("avx512dq", std::arch::is_x86_feature_detected!("avx512dq")),
        ("avx512bw", std::arch::is_x86_feature_detected!("avx512bw")),
        ("avx512vl", std::arch::is_x86_feature_detected!("avx512vl")),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    vec![std::env::consts::ARCH]
}

/// The fingerprint of the processor, with the entry `processor`, for keys.
pub fn fingerprint() -> Toolchain {
    let entry = ("processor".to_string(), Digest::of(features().join(" ").as_bytes()));
    Toolchain { tools: BTreeMap::from([entry]), ..Toolchain::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_machine_is_the_same_processor() {
        assert_eq!(fingerprint(), fingerprint());
        assert_eq!(fingerprint().tools.keys().collect::<Vec<_>>(), ["processor"]);
    }
}
