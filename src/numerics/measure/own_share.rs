//! The share of the device time of calls that a kernel in PyTorch spends in kernels of its own, and whether that is what its policy permits. Pure: what was
//! launched is an argument. Does not know how it was recorded.
//!
//! A kernel is told from others by its name, and a name proves little. So each way of naming can only cost:
//!
//! | the name | whose |
//! |---|---|
//! | is a function's in the kernel's own files, and is as no library names its kernels | its own |
//! | is as a library names its kernels, and in no file of the kernel | the library's |
//! | is neither, or is both | unknown: the share has bounds |
//! | copies and fills of memory | nobody's: they are a part of the time, and no policy forbids them |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_types::model::{Library, Policy};
use kforge_types::record::kind::calls::documents::{LaunchedKernel, LaunchedKernels};
use kforge_types::record::params::Judgement;
use kforge_types::record::{FindingKind, Unknown, Verdict};

/// The most kernels that a text names.
const NAMED: usize = 3;

/// How libraries name their kernels: parts of names.
const NAMES: [(Library, &[&str]); 8] = [
    (Library::Nccl, &["ncclDev", "ncclKernel"]),
    (Library::Cufft, &["regular_fft", "vector_fft", "multi_bluestein_fft", "cufft"]),
    (Library::Cusparse, &["cusparse", "csrmm_", "csrmv_"]),
    (Library::Cusolver, &["cusolver"]),
    (
        Library::Cudnn,
        &[
            "cudnn",
            "xmma_fprop",
            "xmma_dgrad",
            "xmma_wgrad",
            "implicit_convolve",
            "implicit_gemm",
            "winograd",
            "nchwToNhwcKernel",
            "nhwcToNchwKernel",
            "fft2d_r2c",
            "fft2d_c2r",
        ],
    ),
    (
        Library::Cublas,
        &[
            "cublas",
            "nvjet_",
            "xmma_gemm",
            "splitKreduce",
            "gemvNSP",
            "gemv2T",
            "gemv2N",
            "gemvx::",
            "gemmk1_kernel",
            "gemmSN_",
            "dot_kernel",
            "reduce_1Block_kernel",
            "magma_",
            "volta_",
            "turing_",
            "ampere_",
            "cutlass_70_",
            "cutlass_75_",
            "cutlass_80_",
            "cutlass_90_",
        ],
    ),
    (
        Library::Torch,
        &[
            "at::native",
            "at::cuda",
            "at_cuda_detail",
            "c10::",
            "at::",
            "torch::",
            "pytorch_flash",
            "PyTorchMemEffAttention",
            "fmha_cutlass",
        ],
    ),
    (
        Library::Inductor,
        &[
            "triton_poi_",
            "triton_red_",
            "triton_per_",
            "triton_tem_",
            "triton_for_",
            "triton_unk_",
            "triton_mm",
            "triton_bmm",
            "triton_flex_",
        ],
    ),
];

/// Whose a kernel of a device is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// The kernel's own.
    Own,
    /// A library's.
    Library(Library),
    /// Nobody's: a copy or a fill of memory.
    Memory,
    /// Nothing says whose it is.
    Unknown,
}

impl Whose {
    /// In words.
    fn said(self) -> &'static str {
        match self {
            Whose::Own => "its own",
            Whose::Library(library) => library.name(),
            Whose::Memory => "copies and fills",
            Whose::Unknown => "of unknown origin",
        }
    }
}

/// Where the device time of calls was spent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnShare {
    /// The share of kernels that are its own: if none of those of unknown origin is, and if all are.
    pub at_least: f64,
    /// See `at_least`.
    pub at_most: f64,
    /// The device time of a call in nanoseconds, of all kernels one after another.
    pub device_ns: f64,
    /// The kernels with their shares, the largest first.
    pub kernels: Vec<SharedTime>,
}

/// The share of a kernel of the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharedTime {
    /// Its name, without template arguments.
    pub name: String,
    /// Whose it is.
    pub whose: Whose,
    /// Its share of the device time.
    pub share: f64,
}

impl OwnShare {
    /// The share, if it is known.
    pub fn value(&self) -> Option<f64> {
        (self.at_least == self.at_most).then_some(self.at_least)
    }

    /// The share in words: `62.1 %`, or `between 12.0 % and 85.0 %`.
    pub fn said(&self) -> String {
        match self.value() {
            Some(share) => percent(share),
            None => format!("between {} and {}", percent(self.at_least), percent(self.at_most)),
        }
    }

    /// The kernels that took most of the time, of those that are not its own or of all: `nvjet_tst (cublas) 92.0 %`.
    pub fn named(&self, others: bool) -> String {
        let of = self.kernels.iter().filter(|kernel| !others || kernel.whose != Whose::Own);
        let named = of.take(NAMED).map(|kernel| match kernel.whose {
            Whose::Memory => format!("{} {}", kernel.whose.said(), percent(kernel.share)),
            whose => format!("`{}` ({}) {}", kernel.name, whose.said(), percent(kernel.share)),
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Whose a kernel is.
pub fn whose(kernel: &LaunchedKernel) -> Whose {
    if kernel.copies {
        return Whose::Memory;
    }
    let by = NAMES.iter().find(|(_, parts)| parts.iter().any(|part| kernel.name.contains(part)));
    match (by, kernel.declared) {
        (Some((library, _)), false) => Whose::Library(*library),
        (None, true) => Whose::Own,
        (Some(_), true) | (None, false) => Whose::Unknown,
    }
}

/// The name of a kernel without its type, namespaces, template arguments and parameters.
pub fn base_name(name: &str) -> &str {
    let name = name.rsplit_once("(anonymous namespace)::").map_or(name, |(_, rest)| rest);
    let end = name.find(['<', '(']).unwrap_or(name.len());
    let plain = name[..end].trim();
    plain.rsplit([' ', ':', '&', '*']).next().unwrap_or(plain)
}

/// Where the device time of calls was spent; none if nothing was recorded.
pub fn own_share(launched: &LaunchedKernels) -> Option<OwnShare> {
    let total: f64 = launched.kernels.iter().map(|kernel| kernel.ns).sum();
    if launched.absent.is_some() || !total.is_finite() || total <= 0.0 || launched.calls == 0 {
        return None;
    }
    let mut shares: BTreeMap<(String, Whose), f64> = BTreeMap::new();
    for kernel in &launched.kernels {
        let name = if kernel.copies { kernel.name.as_str() } else { base_name(&kernel.name) };
        *shares.entry((name.to_string(), whose(kernel))).or_default() += kernel.ns / total;
    }
    let of = |which: Whose| shares.iter().filter(|((_, whose), _)| *whose == which).map(|(_, share)| share).sum::<f64>();
    let (own, unknown) = (of(Whose::Own), of(Whose::Unknown));
    let mut kernels: Vec<SharedTime> =
        shares.into_iter().map(|((name, whose), share)| SharedTime { name, whose, share }).collect();
    kernels.sort_by(|a, b| b.share.total_cmp(&a.share));
    let at_most = if unknown > 0.0 { (own + unknown).min(1.0) } else { own };
    Some(OwnShare { at_least: own, at_most, device_ns: total / f64::from(launched.calls), kernels })
}

/// The judgement of timed calls under the kernel's policy. What is wrong stays so.
pub fn under(policy: &Policy, launched: Option<&LaunchedKernels>, mut judgement: Judgement) -> Judgement {
    if judgement.verdict != Verdict::Pass {
        return judgement;
    }
    let missing = |why: String| Verdict::Unknown(Unknown::Missing(format!("whether it keeps to its policy: {why}")));
    let Some(share) = launched.and_then(own_share) else {
        let why = launched.and_then(|launched| launched.absent.clone());
        judgement.verdict = missing(why.unwrap_or_else(|| "its calls launched nothing that was recorded".into()));
        return judgement;
    };
    let forbidden = |kernel: &&SharedTime| matches!(kernel.whose, Whose::Library(library) if !policy.allows(library));
    let of_forbidden: Vec<SharedTime> = share.kernels.iter().filter(forbidden).cloned().collect();
    let least = percent(policy.own_share);
    let found = if !of_forbidden.is_empty() {
        let named = OwnShare { kernels: of_forbidden, ..share.clone() }.named(true);
        Some(format!("its policy does not allow kernels that its calls launch: {named} of the device time"))
    } else if share.at_most < policy.own_share {
        Some(format!(
            "its own kernels take {} of the device time of its calls, less than the {least} of its policy: {}",
            share.said(),
            share.named(true)
        ))
    } else {
        None
    };
    if let Some(why) = found {
        judgement.explanation = format!("{why}\n");
        judgement.finding = Some(FindingKind::Policy);
        judgement.verdict = Verdict::Fail(why);
        judgement.no_fresh = None;
    } else if share.at_least < policy.own_share {
        judgement.verdict = missing(format!(
            "its own kernels take {} of the device time of its calls, and {least} is the least: {}",
            share.said(),
            share.named(true)
        ));
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, ns: f64, declared: bool) -> LaunchedKernel {
        LaunchedKernel { name: name.into(), launches: 2, ns, copies: name.starts_with("Mem"), declared }
    }

    fn launched(kernels: &[(&str, f64, bool)]) -> LaunchedKernels {
        let kernels = kernels.iter().map(|(name, ns, declared)| kernel(name, *ns, *declared)).collect();
        LaunchedKernels { calls: 2, kernels, absent: None }
    }

    const OWN: &str = "void (anonymous namespace)::fused<float, 4>(float const*, float*, int)";
    const EAGER: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";

    #[test]
    fn a_kernel_goes_by_its_name_and_a_name_that_is_both_proves_nothing() {
        for (name, declared, expected) in [
            (OWN, true, Whose::Own),
            (OWN, false, Whose::Unknown),
            (EAGER, false, Whose::Library(Library::Torch)),
            (EAGER, true, Whose::Unknown),
            ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", false, Whose::Library(Library::Cublas)),
            ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n", false, Whose::Library(Library::Cublas)),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)", false, Whose::Library(Library::Cublas)),
            ("sm90_xmma_fprop_implicit_gemm_f32f32", false, Whose::Library(Library::Cudnn)),
            ("triton_poi_fused_add_relu_0", false, Whose::Library(Library::Inductor)),
            ("Memcpy DtoD (Device -> Device)", false, Whose::Memory),
            ("add_one", true, Whose::Own),
        ] {
            assert_eq!(whose(&kernel(name, 1.0, declared)), expected, "{name} {declared}");
        }
        assert_eq!(base_name(OWN), "fused");
        assert_eq!(base_name(EAGER), "vectorized_elementwise_kernel");
        assert_eq!((base_name("add_one"), base_name("a::b(int)")), ("add_one", "b"));
    }

    #[test]
    fn a_share_has_bounds_where_a_name_says_nothing_and_copies_are_a_part_of_the_time() {
        let known = own_share(&launched(&[(OWN, 60.0, true), (EAGER, 30.0, false), ("Memset (Device)", 10.0, false)]));
        let known = known.unwrap();
        assert_eq!((known.value(), known.device_ns), (Some(0.6), 50.0));
        assert_eq!(known.named(true), "`vectorized_elementwise_kernel` (torch) 30.0 %, copies and fills 10.0 %");
        let bounds = own_share(&launched(&[("f", 20.0, true), ("g", 30.0, false), (EAGER, 50.0, false)])).unwrap();
        assert_eq!((bounds.at_least, bounds.at_most, bounds.value()), (0.2, 0.5, None));
        assert_eq!(bounds.said(), "between 20.0 % and 50.0 %");
        assert_eq!(own_share(&launched(&[])), None);
        assert_eq!(own_share(&LaunchedKernels { absent: Some("none".into()), ..launched(&[("f", 1.0, true)]) }), None);
    }

    fn policy(libraries: Option<&[Library]>) -> Policy {
        Policy { libraries: libraries.map(<[Library]>::to_vec), own_share: 0.3 }
    }

    fn judged(libraries: Option<&[Library]>, kernels: &[(&str, f64, bool)]) -> Judgement {
        under(&policy(libraries), Some(&launched(kernels)), Judgement::bare(Verdict::Pass))
    }

    #[test]
    fn a_share_below_the_least_fails_and_names_what_took_the_time() {
        let slight = judged(None, &[("f", 1.0, true), ("nvjet_x", 90.0, false), (EAGER, 9.0, false)]);
        let why = "its own kernels take 1.0 % of the device time of its calls, less than the 30.0 % of its policy: `nvjet_x` (cublas) 90.0 %, `vectorized_elementwise_kernel` (torch) 9.0 %";
        assert_eq!((slight.verdict, slight.finding), (Verdict::Fail(why.into()), Some(FindingKind::Policy)));
        let enough = judged(None, &[("f", 3.0, true), ("nvjet_x", 7.0, false)]);
        assert_eq!((enough.verdict, enough.finding), (Verdict::Pass, None));
    }

    #[test]
    fn a_library_that_is_not_listed_fails_however_little_it_takes() {
        let of = |libraries| judged(libraries, &[("f", 99.0, true), ("nvjet_x", 1.0, false)]).verdict;
        let Verdict::Fail(why) = of(Some(&[Library::Torch])) else { panic!("{:?}", of(Some(&[Library::Torch]))) };
        assert_eq!(why, "its policy does not allow kernels that its calls launch: `nvjet_x` (cublas) 1.0 % of the device time");
        assert_eq!(of(Some(&[Library::Cublas])), Verdict::Pass);
    }

    #[test]
    fn what_is_not_known_is_unknown_and_what_is_wrong_stays_so() {
        let is_missing = |judgement: Judgement, part: &str| match judgement.verdict {
            Verdict::Unknown(Unknown::Missing(why)) => assert!(why.contains(part), "{why}"),
            other => panic!("{other:?}"),
        };
        is_missing(judged(None, &[("f", 1.0, true), ("g", 9.0, false)]), "between 10.0 % and 100.0 %");
        let absent = LaunchedKernels { absent: Some("no records".into()), ..LaunchedKernels::default() };
        is_missing(under(&policy(None), Some(&absent), Judgement::bare(Verdict::Pass)), "no records");
        is_missing(under(&policy(None), None, Judgement::bare(Verdict::Pass)), "launched nothing");
        let wrong = Judgement::bare(Verdict::Fail("wrong".into()));
        assert_eq!(under(&policy(None), None, wrong.clone()), wrong);
    }
}
