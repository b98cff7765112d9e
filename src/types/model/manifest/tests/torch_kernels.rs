//! Kernels in PyTorch: what they call, with what, and which keys make no sense for them.

use super::{package, read, show};
use crate::model::{Arch, Language, Library};
use serde_json::json;

/// A manifest with these keys of the kernel.
fn with(kernel: &str) -> String {
    format!(
        "[package]\nname = \"t\"\n[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n\
         [operator.o]\ndims = [\"n\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
         inputs.w = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
         outputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\nparams.eps = {{ dtype = \"f32\", value = 0.5 }}\n\
         reference = {{ torch = \"task.py::Model\", init = [\"n\"], constants = {{ N = \"n\" }}, state = {{ \"scale.weight\" = \"w\" }}, mode = \"train\", casts = \"keep\" }}\n\
         shapes.s = {{ n = 100 }}\n\
         [kernel.k]\noperator = \"o\"\nlanguage = \"torch\"\n{kernel}\n"
    )
}

const PLAIN: &str = "targets = [\"cpu\"]\nsource = \"fast.py::ModelNew\"";

/// What is called at the shape, with the first variant.
fn launched(text: &str) -> crate::model::torch::TorchLaunch {
    let package = package(text);
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let target = package.targets.values().find(|target| target.arch == Arch::Cpu).unwrap();
    let choice = operator.choices().into_iter().next().unwrap();
    let variant = kernel.variants(target, &choice).unwrap().remove(0);
    let problem = operator.bind(&choice, &operator.shapes[0]).unwrap();
    assert_eq!(kernel.launches(&variant, &choice, &problem).unwrap(), []);
    kernel.torch_launch(&variant, &choice, &problem).unwrap().unwrap()
}

#[test]
fn a_kernel_in_pytorch_is_called_as_the_reference_is_unless_it_says_how() {
    let read = package(&with(PLAIN));
    let kernel = &read.kernels[0];
    assert_eq!((kernel.language, kernel.source.as_str()), (Language::Torch, "fast.py"));
    let launch = launched(&with(PLAIN));
    assert_eq!((launch.function.as_str(), &launch.call.init), ("ModelNew", &vec![json!(100)]));
    assert!(launch.call.train && !launch.call.keeps_casts);
    assert_eq!(launch.call.state["scale.weight"], Some("w".into()));
    // Those of the reference are only set where the kernel has them, too.
    assert_eq!((launch.call.constants.len(), &launch.of_reference["N"]), (0, &json!(100)));

    let own = "tune.BLOCK = [64, 32]\ntune.HOW = [\"fast\"]\ncall = { init = { width = \"n * 2\" }, constants = { N = \"n + BLOCK\" }, names = { input = \"x\" } }";
    let launch = launched(&with(&format!("{PLAIN}\n{own}")));
    assert_eq!((launch.call.keywords["width"].clone(), launch.call.train), (json!(200), false));
    assert_eq!(launch.call.names["input"], "x");
    let constants = json!({ "N": 164, "BLOCK": 64, "HOW": { "text": "fast" } });
    assert_eq!((json!(launch.call.constants), launch.of_reference.len()), (constants, 0));
}

#[test]
fn what_makes_no_sense_in_pytorch_is_refused_where_it_stands() {
    let kernel = |more: &str| with(&format!("{PLAIN}\n{more}"));
    for (text, code, at, says) in [
        (
            kernel("launch = [{ entry = \"f\", grid = [1], block = [32] }]"),
            "manifest.conflict",
            "launch",
            "file.py::Name",
        ),
        (kernel("workspace.s = { shape = [1] }"), "manifest.conflict", "workspace", "allocates for itself"),
        (kernel("compiler = \"nvcc\""), "manifest.conflict", "compiler", "nothing is compiled ahead"),
        (kernel("std = \"c++20\""), "manifest.conflict", "std", "C++"),
        (kernel("flags = [\"-O1\"]"), "manifest.conflict", "flags", "no `flags`"),
        (kernel("include = [\"i\"]"), "manifest.conflict", "include", "can be imported"),
        (kernel("defines = { A = 1 }"), "manifest.conflict", "defines", "call.constants"),
        (kernel("specialize = \"jit\""), "manifest.conflict", "specialize", "language = \"triton\""),
        (kernel("host = \"launch.cu::run\""), "manifest.conflict", "host", "file.py::Name"),
        (kernel("generate.agent = \"rules\""), "manifest.conflict", "generate", "your own `source`"),
        (kernel("verify.sanitize = [\"memcheck\"]"), "manifest.conflict", "sanitize", "does not launch"),
        (kernel("policy = { own_share = 1.5 }"), "manifest.policy", "1.5", "from 0 to 1"),
        (kernel("policy = { libraries = [\"cutlass\"] }"), "manifest.value", "cutlass", "cublas"),
        (kernel("call = { casts = \"keep\" }"), "manifest.unknown-key", "casts", "unknown key"),
        (kernel("call = { names = { a = \"z\" } }"), "manifest.unknown-tensor", "z", "`call` names `z`"),
        (kernel("call = { init = [\"m\"] }"), "manifest.unknown-name", "m", "unknown name"),
        (with("source = \"fast.py\"\ntargets = [\"cpu\"]"), "manifest.function", "fast.py", "does not name a function"),
        (
            with("source = \"task.py::Other\"\ntargets = [\"cpu\"]"),
            "manifest.torch",
            "task.py::Other",
            "file of the reference",
        ),
        (with("targets = [\"cpu\"]"), "manifest.missing-key", "k", "lacks `source`"),
    ] {
        let (_, _, found) = read(&text);
        let shown: Vec<String> = found.iter().map(show).collect();
        let error = found.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{says}: {shown:?}"));
        let labelled = text[error.labels[0].span.clone()].trim_matches('"');
        assert_eq!(labelled, at, "{says}: {shown:?}");
        assert!(shown.iter().any(|text| text.contains(says)), "{says}: {shown:?}");
    }
}

#[test]
fn a_kernel_in_pytorch_may_have_every_target() {
    let read = package(&with("source = \"fast.py::New\""));
    assert_eq!(read.kernels[0].targets, ["cpu", "h200"]);
    assert_eq!(package(&with("source = \"fast.py::New\"\ntargets = [\"h200\"]")).kernels[0].targets, ["h200"]);
}

#[test]
fn a_policy_says_what_a_kernel_may_call_and_what_it_leaves_out_has_defaults() {
    let policy = |text: &str| {
        let package = package(&with(&format!("{PLAIN}\n{text}")));
        package.kernels[0].torch.clone().unwrap().policy
    };
    assert_eq!(policy(""), None);
    let empty = policy("policy = {}").unwrap();
    assert_eq!((empty.libraries, empty.own_share), (None, 0.3));
    let stated = policy("policy = { libraries = [\"cublas\", \"torch\"], own_share = 0.5 }").unwrap();
    assert_eq!((stated.libraries, stated.own_share), (Some(vec![Library::Cublas, Library::Torch]), 0.5));
    let compiles = |text: &str| !launched(&with(&format!("{PLAIN}\n{text}"))).uncompiled;
    assert!(compiles("") && compiles("policy = {}") && compiles("policy = { libraries = [\"inductor\"] }"));
    assert!(!compiles("policy = { libraries = [\"torch\"] }"));
}

#[test]
fn how_a_kernel_is_called_is_stated_in_pytorch_only() {
    let text = with(PLAIN).replace("language = \"torch\"\n", "").replace("fast.py::ModelNew", "k.cu");
    let launch = "launch = [{ entry = \"f\", grid = [1], block = [32], args = [\"x\", \"y\"] }]\ncall = { init = [1] }";
    let (_, _, found) = read(&format!("{text}{launch}\n"));
    let codes: Vec<&str> = found.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["manifest.conflict"], "{:?}", found.iter().map(show).collect::<Vec<_>>());
}
