//! Kernels in Triton: what their launches become, and which keys make no sense for them.

use super::{launched, package, read, show};
use crate::model::bound::{Arg, Scalar};
use crate::model::triton::{TritonConst, TritonOptions};
use crate::model::{DType, Language, Launch};

/// A manifest with these keys of the kernel and of its launch.
fn with(kernel: &str, launch: &str) -> String {
    format!(
        "[package]\nname = \"t\"\n[targets.h200]\narch = \"sm_90a\"\n\
         [operator.o]\ndims = [\"n\"]\ntypes.T = [\"f16\"]\ninputs.x = {{ dtype = \"T\", shape = [\"n\"] }}\n\
         outputs.y = {{ dtype = \"T\", shape = [\"n\"] }}\nparams.eps = {{ dtype = \"f32\", value = 0.5 }}\n\
         reference = {{ builtin = \"elementwise\", y = \"2 * x\" }}\nshapes.s = {{ n = 100 }}\n\
         [kernel.k]\noperator = \"o\"\nlanguage = \"triton\"\nsource = \"k.py\"\n{kernel}\n\
         [[kernel.k.launch]]\nentry = \"f\"\ngrid = [1]\n{launch}\n"
    )
}

const ARGS: &str = "args = [\"x\", \"y\", \"n\", \"eps\"]";

#[test]
fn a_launch_in_triton_has_constants_and_options_in_place_of_a_block() {
    let text = with(
        "tune.W = [8, 4]\ntune.ACT = [\"relu\"]",
        &format!(
            "{ARGS}\nconstexprs = {{ BLOCK = {{ next_pow2 = \"n\" }}, D = {{ dtype = \"T\" }}, A = \"ACT\", E = true, F = 0.25 }}\n\
             options = {{ num_warps = \"W\", num_stages = 2, maxnreg = 64, enable_fp_fusion = false }}"
        ),
    );
    let package = package(&text);
    assert_eq!(package.kernels[0].language, Language::Triton);
    let (launches, _) = launched(&package, "s");
    let [Launch::Kernel(kernel)] = launches.as_slice() else { panic!("{launches:?}") };
    let call = kernel.triton.as_ref().unwrap();
    let of = |name: &str| call.constexprs[name].clone();
    assert_eq!(of("BLOCK"), TritonConst::Int(128));
    assert_eq!(of("D"), TritonConst::Dtype { dtype: "fp16".into() });
    assert_eq!((of("A"), of("E")), (TritonConst::Str("relu".into()), TritonConst::Bool(true)));
    assert_eq!(of("F"), TritonConst::Float { float: "0.25".into() });
    let options =
        TritonOptions { num_warps: 8, num_stages: 2, num_ctas: 1, maxnreg: Some(64), enable_fp_fusion: false };
    assert_eq!((call.options, &call.typed), (options, &vec![false, false, false, true]));
    assert_eq!(kernel.args[3], Arg::Scalar { dtype: DType::F32, value: Scalar::Float(0.5) });
}

#[test]
fn an_integer_that_needs_64_bits_is_an_i64() {
    let (launches, _) = launched(&package(&with("", "args = [\"n * 2 ** 30\"]")), "s");
    let [Launch::Kernel(kernel)] = launches.as_slice() else { panic!("{launches:?}") };
    assert_eq!(kernel.args, [Arg::Scalar { dtype: DType::I64, value: Scalar::Int(100 << 30) }]);
}

#[test]
fn a_descriptor_is_a_tensor_map_with_the_block_of_its_loads() {
    let text = with("tune.B = [64]", "args = [{ tensormap = \"x\", block_shape = [\"2 * B\"], oob = \"nan\" }, \"y\"]");
    let (launches, _) = launched(&package(&text), "s");
    let [Launch::Kernel(kernel)] = launches.as_slice() else { panic!("{launches:?}") };
    let Arg::TensorMap(map) = &kernel.args[0] else { panic!("{:?}", kernel.args) };
    assert_eq!((map.descriptor, map.nan, &map.extents, &map.tile), (true, true, &vec![100], &vec![128]));
    let of = |launch: &str| {
        let (_, _, found) = read(&with("", &format!("args = [{launch}, \"y\"]")));
        found.iter().map(show).collect::<Vec<_>>().join("\n")
    };
    for (launch, says) in [
        ("{ tensormap = \"x\" }", "block_shape"),
        ("{ tensormap = \"x\", box = [64] }", "a tensor map with a `box`"),
        ("{ tensormap = \"x\", block_shape = [64], swizzle = 64 }", "a descriptor has no `swizzle`"),
        ("{ tensormap = \"x\", block_shape = [64], box = [64] }", "a descriptor has no `box`"),
        ("{ tensormap = \"x\", block_shape = [48] }", "powers of two"),
        ("{ tensormap = \"x\", block_shape = [4] }", "a row of the block has 8 bytes"),
        ("{ tensormap = \"x\", block_shape = [8, 8] }", "a block of 2 axes for `x`, which has 1"),
        ("{ tensormap = \"z\", block_shape = [8] }", "no tensor or workspace is called `z`"),
    ] {
        assert!(of(launch).contains(says), "{launch}: {}", of(launch));
    }
    // Older architectures get the parts of a descriptor, and need no tensor maps.
    assert!(!of("{ tensormap = \"x\", block_shape = [64] }").contains("sm_90 or newer"));
    let old = text.replace("sm_90a", "sm_80");
    assert_eq!(read(&old).2.iter().map(show).collect::<Vec<_>>(), [""; 0]);
    let cuda = with("", "block = [32]\nargs = [{ tensormap = \"x\", block_shape = [64] }, \"y\"]");
    let (_, _, found) = read(&cuda.replace("language = \"triton\"\n", "").replace("k.py", "k.cu"));
    assert!(found.iter().map(show).any(|text| text.contains("only kernels in Triton")), "{found:?}");
}

#[test]
fn what_makes_no_sense_in_triton_is_refused_where_it_stands() {
    let launch = |more: &str| with("", &format!("{ARGS}\n{more}"));
    let kernel = |more: &str| with(more, ARGS);
    for (text, code, at, says) in [
        (launch("block = [32]"), "manifest.conflict", "block", "num_warps"),
        (launch("shared = 1024"), "manifest.conflict", "shared", "no `shared`"),
        (launch("cluster = [2]"), "manifest.conflict", "cluster", "num_ctas"),
        (launch("options = { num_warps = 3 }"), "manifest.launch-limit", "3", "a power of two"),
        (launch("options = { num_warp = 4 }"), "manifest.unknown-key", "num_warp", "num_warps"),
        (launch("constexprs = { B = \"m\" }"), "manifest.unknown-name", "m", "unknown name"),
        (launch("constexprs = { B = {} }"), "manifest.value", "{}", "next_pow2"),
        (kernel("flags = [\"-O1\"]"), "manifest.conflict", "flags", "`options`"),
        (kernel("defines = { A = 1 }"), "manifest.conflict", "defines", "`constexprs`"),
        (kernel("compiler = \"nvcc\""), "manifest.conflict", "compiler", "Triton is the compiler"),
        (kernel("verify.sanitize = [\"memcheck\"]"), "manifest.conflict", "sanitize", "line tables"),
        (kernel("specialize = { n = 8 }"), "manifest.value", "8", "16"),
        (kernel("specialize = { m = 16 }"), "manifest.unknown-name", "m", "names no dim"),
        (with("", "args = [{ pointers = [\"x\"] }]"), "manifest.arg", "{ pointers = [\"x\"] }", "array of pointers"),
        (with("", ARGS).replace("\"f\"", "\"f<4>\""), "manifest.triton", "\"f<4>\"", "not a function of Python"),
        (with("", ARGS).replace("k.py", "k.cu"), "manifest.triton", "\"k.cu\"", "`.py`"),
        (with("targets = [\"h200\"]", ARGS).replace("sm_90a", "sm_90"), "manifest.triton", "\"h200\"", "sm_90a"),
        (
            with("targets = [\"h200\"]", ARGS).replace("sm_90a", "sm_75"),
            "manifest.triton",
            "\"h200\"",
            "sm_80 or newer",
        ),
        (
            with("", ARGS).replace("[targets.h200]", "toolchain.triton = \"3.4\"\n[targets.h200]").replace(
                "[package]\nname = \"t\"\ntoolchain.triton = \"3.4\"\n",
                "toolchain.triton = \"3.4\"\n[package]\nname = \"t\"\n",
            ),
            "manifest.version",
            "\"3.4\"",
            "3.5, 3.6, 3.7, 3.8, 3.9",
        ),
    ] {
        let (_, _, found) = read(&text);
        let shown: Vec<String> = found.iter().map(show).collect();
        let error = found.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{says}: {shown:?}"));
        let labelled = text[error.labels[0].span.clone()].trim_matches('"');
        assert_eq!(labelled, at.trim_matches('"'), "{says}: {shown:?}");
        assert!(shown.iter().any(|text| text.contains(says)), "{says}: {shown:?}");
    }
}

#[test]
fn keys_of_triton_are_refused_in_other_languages() {
    let text = with("specialize = \"jit\"", &format!("block = [32]\n{ARGS}\noptions = {{ num_warps = 4 }}"));
    let (_, _, found) = read(&text.replace("language = \"triton\"\n", "").replace("k.py", "k.cu"));
    let codes: Vec<&str> = found.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["manifest.conflict", "manifest.conflict"], "{:?}", found.iter().map(show).collect::<Vec<_>>());
}

#[test]
fn dims_that_are_specialised_restrict_what_the_kernel_serves() {
    let text = with("specialize = { n = 16 }", ARGS);
    let (_, _, found) = read(&text);
    assert!(
        found.iter().any(|d| d.code == "manifest.unserved-shape"),
        "{:?}",
        found.iter().map(show).collect::<Vec<_>>()
    );
    let package = package(&text.replace("n = 100", "n = 112"));
    assert_eq!(package.kernels[0].requires.len(), 1);
}
