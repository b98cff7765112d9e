//! The keys of the policy of a kernel in PyTorch.

use super::spec::{Spec, Ty, opt};
use crate::model::Library;

/// The words of `policy.libraries`.
const LIBRARIES: [&str; Library::ALL.len()] = {
    let mut names = [""; Library::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Library::ALL[at].name();
        at += 1;
    }
    names
};

pub(super) static POLICY: Spec = Spec {
    doc: "What a kernel in PyTorch may call.",
    fields: &[
        opt(
            "libraries",
            Ty::List(&Ty::Words(&LIBRARIES, &[])),
            "the libraries whose kernels it may launch; default all. `inductor` is what `torch.compile` makes",
        ),
        opt(
            "own_share",
            Ty::Number,
            "the least share of the device time of its calls in kernels of its own; default 0.3",
        ),
    ],
    rest: None,
};
