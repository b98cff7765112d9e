//! The values of `toolchain.torch`.

use super::spec::{Field, Spec, Ty, opt};

pub(super) const TORCH: Ty = Ty::Str("a version such as `2.9`, or `system`");
const TORCH_FIELDS: [Field; 2] = [
    opt("release", Ty::Str("a version such as `2.9`"), "the release"),
    opt(
        "cuda",
        Ty::Bool,
        "whether to install its libraries of CUDA and its Triton, too, as a GPU needs them; default false",
    ),
];
pub(super) static TORCH_RELEASE: Spec = Spec { doc: "A release of PyTorch.", fields: &TORCH_FIELDS, rest: None };
pub(super) static TORCH_RELEASE_OR_INHERITED: Spec = Spec {
    doc: "A release of PyTorch, or the workspace's.",
    fields: &{
        let [release, cuda] = TORCH_FIELDS;
        [release, cuda, opt("workspace", Ty::True, "inherit the value from the workspace")]
    },
    rest: None,
};
