//! The keys of a baseline.

use super::fields::{FUNCTION, NAME};
use super::spec::{Spec, Ty, opt};
use crate::model::baseline::{How, MODES};

/// The words of a baseline's `how`.
const HOWS: [&str; 4] = [How::ALL[0].name(), How::ALL[1].name(), How::ALL[2].name(), How::ALL[3].name()];

pub(super) static BASELINE: Spec = Spec {
    doc: "PyTorch in place of a kernel, timed beside champions. It is never champion.",
    fields: &[
        opt(
            "how",
            Ty::Words(&HOWS, &[]),
            "how it runs; default the table's name if it is one of these, otherwise eager",
        ),
        opt("mode", Ty::Words(&MODES, &[]), "the mode of `torch.compile`; default `default`"),
        opt("source", FUNCTION, "the function that is called; by default the operator's reference in PyTorch"),
        opt("operator", NAME, "its operator; by default every operator that it suits"),
        opt(
            "confirm_above",
            Ty::Number,
            "the speed-up over it above which a second device has to confirm it; default 3",
        ),
    ],
    rest: None,
};
