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

/// The maker of the processor and further features, by which the libraries in PyTorch (MKL, oneDNN, FBGEMM) also choose code.
pub fn of_torch() -> Digest {
    let known = features().join(" ");
    // Where there is no such file, the features above must do.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Digest::of(format!("{known} {}", further(&text)).as_bytes())
}

/// The maker and features in the kernel's description of the first processor.
fn further(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    };
    let counts = |flag: &&str| flag.starts_with("avx") || flag.starts_with("amx") || matches!(*flag, "f16c" | "fma");
    let mut flags: Vec<&str> = value("flags").split_whitespace().filter(counts).collect();
    flags.sort_unstable();
    format!("{} {}", value("vendor_id"), flags.join(" "))
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
    fn the_maker_and_the_vector_features_count_for_torch() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu MHz\t: 2000\nflags\t\t: sse avx512f avx2 amx_bf16 msr\n\nprocessor\t: 1\n";
        assert_eq!(further(text), "GenuineIntel amx_bf16 avx2 avx512f");
        assert_eq!(further(&text.replace("2000", "3000")), further(text));
        assert_ne!(further(&text.replace("GenuineIntel", "AuthenticAMD")), further(text));
    }

    #[test]
    fn the_same_machine_is_the_same_processor() {
        assert_eq!(fingerprint(), fingerprint());
        assert_eq!(fingerprint().tools.keys().collect::<Vec<_>>(), ["processor"]);
    }
}
