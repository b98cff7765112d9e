//! The share of the device time of calls that a kernel in PyTorch spends in kernels of its own, and whether that is what its policy permits. Pure: what was
//! launched is an argument. Does not know how it was recorded.
//!
//! A kernel is known by its name, and a name proves little:
//!
//! | the name | whose |
//! |---|---|
//! | is that of a function which the kernel's own files define for a device, and is not as a library names its kernels | its own |
//! | is as a library names its kernels, and no file of the kernel defines it | the library's |
//! | is neither, or is both | unknown: the share has bounds, and whether a list of libraries is kept to is not known |
//! | copies and fills of memory | nobody's: they are a part of the time, and no policy forbids them |
//!
//! So a name that is in [`LIBRARIES`] can only cost whoever defines it again. One that is not, and that a file defines without launching it, counts as its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_types::model::{Library, Policy};
use kforge_types::record::kind::calls::documents::{LaunchedKernel, LaunchedKernels, base_name, qualified_name};
use kforge_types::record::params::Judgement;
use kforge_types::record::{FindingKind, Unknown, Verdict};

/// The most kernels that a text names.
const NAMED: usize = 3;

/// How a library names its kernels, by their names with namespaces and without arguments.
struct Names {
    library: Library,
    /// What names contain.
    within: &'static [&'static str],
    /// What names begin with, with or without their namespaces.
    begins: &'static [&'static str],
    /// Whole names without namespaces.
    is: &'static [&'static str],
}

/// How libraries name their kernels.
const LIBRARIES: [Names; 8] = [
    Names { library: Library::Nccl, within: &[], begins: &["ncclDev", "ncclKernel"], is: &[] },
    Names {
        library: Library::Cufft,
        within: &["cufft"],
        begins: &["regular_fft", "vector_fft", "multi_bluestein_fft"],
        is: &[],
    },
    Names { library: Library::Cusparse, within: &["cusparse"], begins: &["csrmm_", "csrmv_"], is: &[] },
    Names { library: Library::Cusolver, within: &["cusolver"], begins: &[], is: &[] },
    Names {
        library: Library::Cudnn,
        within: &["cudnn", "xmma_fprop", "xmma_dgrad", "xmma_wgrad"],
        begins: &["implicit_convolve", "implicit_gemm", "winograd", "fft2d_r2c", "fft2d_c2r"],
        is: &["nchwToNhwcKernel", "nhwcToNchwKernel"],
    },
    Names {
        library: Library::Cublas,
        within: &["cublas", "xmma_gemm", "gemvx::"],
        begins: &[
            "nvjet_",
            "splitKreduce",
            "gemvNSP",
            "gemv2T",
            "gemv2N",
            "gemmSN_",
            "magma_",
            "volta_",
            "turing_",
            "ampere_",
        ],
        is: &["gemmk1_kernel", "dot_kernel", "reduce_1Block_kernel"],
    },
    Names {
        library: Library::Torch,
        within: &[],
        begins: &[
            "at::",
            "at_cuda_detail",
            "c10::",
            "caffe2::",
            "torch::",
            "pytorch_flash",
            "PyTorchMemEffAttention",
            "fmha_cutlass",
            "CudaCodeGen::",
            "nvfuser",
        ],
        // Outside of its namespaces.
        is: &["softmax_warp_forward", "softmax_warp_backward", "elementwise_kernel_with_index"],
    },
    Names {
        library: Library::Inductor,
        within: &[],
        begins: &[
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
        is: &[],
    },
];

/// Template arguments of `cutlass::Kernel` that are kernels of cuBLAS.
const CUBLAS_IN_CUTLASS: [&str; 4] = ["<cutlass_70_", "<cutlass_75_", "<cutlass_80_", "<cutlass_90_"];

/// The library that names its kernels so.
fn library(name: &str) -> Option<Library> {
    let (qualified, base) = (qualified_name(name), base_name(name));
    if ["cutlass::", "cutlass_"].iter().any(|part| qualified.starts_with(part))
        && (CUBLAS_IN_CUTLASS.iter().any(|part| name.contains(part) || qualified.starts_with(&part[1..])))
    {
        return Some(Library::Cublas);
    }
    let is_of = |names: &&Names| {
        names.within.iter().any(|part| qualified.contains(part))
            || names.begins.iter().any(|part| qualified.starts_with(part) || base.starts_with(part))
            || names.is.contains(&base.as_str())
    };
    LIBRARIES.iter().find(is_of).map(|names| names.library)
}

/// Whose a kernel of a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
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
    match (library(&kernel.name), kernel.declared) {
        (Some(library), false) => Whose::Library(library),
        (None, true) => Whose::Own,
        (Some(_), true) | (None, false) => Whose::Unknown,
    }
}

/// Where the device time of calls was spent; none if nothing was recorded.
pub fn own_share(launched: &LaunchedKernels) -> Option<OwnShare> {
    let total: f64 = launched.kernels.iter().map(|kernel| kernel.ns).sum();
    if launched.absent.is_some() || !total.is_finite() || total <= 0.0 || launched.calls == 0 {
        return None;
    }
    let mut shares: BTreeMap<(String, Whose), f64> = BTreeMap::new();
    for kernel in &launched.kernels {
        let base = Some(base_name(&kernel.name)).filter(|base| !kernel.copies && !base.is_empty());
        let name = base.unwrap_or_else(|| kernel.name.clone());
        *shares.entry((name, whose(kernel))).or_default() += kernel.ns / total;
    }
    let of = |which: Whose| {
        shares
            .iter()
            .filter(|((_, whose), _)| *whose == which)
            .map(|(_, share)| share)
            .fold(0.0, |all, share| all + share)
    };
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
    let only = |which: &dyn Fn(&&SharedTime) -> bool| -> Option<String> {
        let kernels: Vec<SharedTime> = share.kernels.iter().filter(which).cloned().collect();
        (!kernels.is_empty()).then(|| OwnShare { kernels, ..share.clone() }.named(true))
    };
    let least = percent(policy.own_share);
    let found = if let Some(named) = only(&forbidden) {
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
    } else if policy.libraries.is_some()
        && let Some(named) = only(&|kernel| kernel.whose == Whose::Unknown)
    {
        judgement.verdict =
            missing(format!("kernels that its calls launch may be of a library that it does not list: {named}"));
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
            (
                "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)",
                false,
                Whose::Library(Library::Cublas),
            ),
            ("sm90_xmma_fprop_implicit_gemm_f32f32", false, Whose::Library(Library::Cudnn)),
            ("triton_poi_fused_add_relu_0", false, Whose::Library(Library::Inductor)),
            ("Memcpy DtoD (Device -> Device)", false, Whose::Memory),
            ("add_one", true, Whose::Own),
            (
                "void (anonymous namespace)::softmax_warp_forward<float, float, float, 5, false, false>(float*)",
                false,
                Whose::Library(Library::Torch),
            ),
            (
                "void (anonymous namespace)::softmax_warp_backward<float, float, float, 5, false, false>(float*)",
                true,
                Whose::Unknown,
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(float)",
                false,
                Whose::Library(Library::Cublas),
            ),
            (
                "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>>>(cublasDotParams)",
                false,
                Whose::Library(Library::Cublas),
            ),
            // Names of an extension whose arguments are PyTorch's, or that contain a library's.
            ("void fused<c10::Half>(c10::Half const*, at::GenericPackedTensorAccessor<float, 2ul>)", true, Whose::Own),
            ("mat::k(float*)", true, Whose::Own),
            ("my_dot_kernel(float*)", true, Whose::Own),
        ] {
            assert_eq!(whose(&kernel(name, 1.0, declared)), expected, "{name} {declared}");
        }
    }

    #[test]
    fn kernels_beyond_those_with_a_name_are_of_unknown_origin_and_keep_what_they_are_called() {
        let further = own_share(&launched(&[("f", 60.0, true), ("(further kernels)", 40.0, false)])).unwrap();
        assert_eq!((further.at_least, further.at_most), (0.6, 1.0));
        assert_eq!(further.named(true), "`(further kernels)` (of unknown origin) 40.0 %");
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
        assert_eq!(
            why,
            "its policy does not allow kernels that its calls launch: `nvjet_x` (cublas) 1.0 % of the device time"
        );
        assert_eq!(of(Some(&[Library::Cublas])), Verdict::Pass);
    }

    #[test]
    fn a_kernel_that_may_be_of_a_library_leaves_a_list_of_libraries_open_whatever_its_share() {
        for name in ["gemv2T_kernel_val", "f_of_nobody"] {
            let of =
                |libraries| judged(libraries, &[("f", 70.0, true), (name, 30.0, name.starts_with("gemv"))]).verdict;
            assert_eq!(of(None), Verdict::Pass, "{name}");
            let Verdict::Unknown(Unknown::Missing(why)) = of(Some(&[])) else { panic!("{name}: {:?}", of(Some(&[]))) };
            assert!(why.ends_with(&format!("does not list: `{name}` (of unknown origin) 30.0 %")), "{why}");
        }
        // Where no file defines it, its name says whose it is.
        let of = |libraries| judged(libraries, &[("f", 70.0, true), ("gemv2T_kernel_val", 30.0, false)]).verdict;
        assert!(matches!(of(Some(&[])), Verdict::Fail(_)), "{:?}", of(Some(&[])));
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
