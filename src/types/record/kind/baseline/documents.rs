//! The parameters of the steps that time a baseline beside a champion and rate it, and the documents that they give.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Tolerance;
use crate::model::baseline::{How, Product};
use crate::model::torch::TorchCall;
use crate::record::VerifyObservation;
use crate::record::params::VerifyParams;
use crate::record::timing::PairsObserved;
use crate::record::{Unknown, Verdict};

/// baseline. Inputs: `binary`, `facts` and `inspection` of the champion; `expected:N` for each trial; `tree:reference`, `toolchain:python` and `toolchain:c++`
/// as for verify; `tree:baseline`, the files that the baseline can reach, absent for cuBLAS; `toolchain:python`, `toolchain:torch` and `toolchain:torch-cuda`.
/// Output `observation`: a [`BaselineObserved`]; `called`, what calls of a champion in PyTorch gave ([`super::super::calls::documents::CallsObserved`]);
/// `launched`, a [`VerifyObservation`] with what was found of another champion, absent if nothing was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineParams {
    /// The architecture for which the champion was built.
    pub arch: String,
    /// How the baseline runs.
    pub how: How,
    /// The mode of `torch.compile`, if stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What it calls.
    pub calls: Callee,
    /// Whether hot times are compared rather than cold ones.
    pub hot: bool,
    /// The champion's launches, with the problem, its trials, and what is read of outputs.
    pub champion: VerifyParams,
    /// Version of the protocol of baselines.
    pub protocol: u32,
    /// Whether the measurement confirms a speed-up on a second device. Its question is another one than the first's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
    /// Of a measurement that confirms: the device that made the first one, as [`BaselineObserved::device`] names it. None in a first measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_from: Option<String>,
}

impl BaselineParams {
    /// What runs, for people: `torch.compile (max-autotune) of fast.py::softmax`.
    pub fn runs(&self) -> String {
        let how = match (self.how, &self.mode) {
            (How::Eager, _) => "PyTorch".to_string(),
            (How::Compile, None) => "torch.compile".to_string(),
            (How::Compile, Some(mode)) => format!("torch.compile ({mode})"),
            (How::Cudagraph, _) => "PyTorch in a CUDA graph".to_string(),
            (How::Cublas, _) => "torch.matmul (cuBLAS)".to_string(),
        };
        match &self.calls {
            Callee::Function { file, function, .. } => format!("{how} of {file}::{function}"),
            Callee::Product(_) => how,
        }
    }
}

/// What a baseline calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Callee {
    /// A module or function of PyTorch.
    Function {
        /// The file, relative to the package.
        file: String,
        /// The class, module or function in it.
        function: String,
        /// How it is called.
        call: Box<TorchCall>,
    },
    /// `torch.matmul`.
    Product(Product),
}

/// What a baseline step saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BaselineObserved {
    /// What ran, as [`BaselineParams::runs`] says it.
    pub runs: String,
    /// The versions of PyTorch, CUDA, cuBLAS and Triton, as the process says them.
    pub versions: BTreeMap<String, String>,
    /// How the baseline's outputs compare with the expected values.
    pub compared: VerifyObservation,
    /// Outputs that the baseline gives in another type than the operator's, with that type. They were converted outside of the timed interval.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub converted: BTreeMap<String, String>,
    /// Blocks of device times: the logarithms of (time of the baseline / time of the champion). A is the baseline.
    pub pairs: PairsObserved,
    /// Nanoseconds of device time of the baseline, in the order of measurement.
    pub device_ns: Vec<f64>,
    /// Nanoseconds of device time of the champion, in the same blocks.
    pub champion_ns: Vec<f64>,
    /// Nanoseconds of host time of a call of the baseline, from before it until the device has done its work.
    pub call_ns: Vec<f64>,
    /// The samples of device time during which the device waited for the host, because the baseline itself waits for the device, or because its launches were
    /// not all queued in time. They include time of the host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited: u32,
    /// Whether the champion is in PyTorch: pairs, times of calls and the champion's times are then of calls, by the clock of a process that runs no code of either.
    /// Device times are those of the baseline in its own process, after the pairs; observations of older versions have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_calls: bool,
    /// The device, as [`crate::record::device::device_id`] names it; empty in observations of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// rate. Inputs: `observation`; `champion` and `launched`, the outputs `called` and `launched` of the same step; `calibration` as for judge; for a measurement on a second device also `first`, the [`Rating`] that it confirms. Output `rating`: a [`Rating`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateParams {
    /// The tolerance of each output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Why no expected values exist, if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Unknown>,
    /// The ratio above which a second device has to confirm it; none for a measurement that confirms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_above: Option<f64>,
}

/// A baseline beside a champion at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rating {
    /// Whether the baseline's outputs are correct.
    pub verdict: Verdict,
    /// For a wrong baseline: the full explanation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// What ran; empty if nothing did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runs: String,
    /// The versions of PyTorch, CUDA, cuBLAS and Triton.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// The median host time of a call until the device has done its work, in nanoseconds. It compares with no device time.
    pub call_ns: Option<f64>,
    /// The median device time of the baseline, in nanoseconds.
    pub device_ns: Option<f64>,
    /// The median device time of the champion in the same blocks, in nanoseconds.
    pub champion_ns: Option<f64>,
    /// The baseline's device time over the champion's, from pairs; none if the baseline is wrong, or if pairs do not suffice.
    pub ratio: Option<Ratio>,
    /// Whether device times include time of the host, because the baseline waits for the device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited: bool,
    /// Whether the ratio is of call times, because the champion is in PyTorch. Its time is then that of a call also, and the baseline's device time is in no ratio.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_calls: bool,
    /// Outputs that the baseline gives in another type, with that type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub converted: BTreeMap<String, String>,
    /// The device, as in [`BaselineObserved::device`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Whether the ratio is so large that a second device has to confirm it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unusual: bool,
    /// For a measurement on a second device: whether it confirms the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Why the champion is wrong beside the baseline, if it is. A judgement of its own fails it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub champion_wrong: Option<String>,
}

/// What a second device of the class says of a speed-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It measures the same.
    Confirmed {
        /// The ratio that it measures.
        ratio: Ratio,
    },
    /// It measures another speed-up, or nothing.
    Unconfirmed {
        /// Why, in words.
        why: String,
        /// The ratio that it measures, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ratio: Option<Ratio>,
    },
}

/// A ratio of two device times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// The baseline's time over the champion's: the median over blocks.
    pub median: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether the two orders in which the two were timed disagree about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disputed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Problem, Reference};
    use crate::record::testing::verification;

    #[test]
    fn what_runs_is_named_with_its_mode_and_function() {
        let of = |how: How, mode: Option<&str>| BaselineParams {
            arch: "sm_90a".into(),
            how,
            mode: mode.map(str::to_string),
            calls: Callee::Function { file: "f.py".into(), function: "g".into(), call: Box::default() },
            hot: false,
            champion: verification("sm_90a", Problem::of(vec![], Reference::builtin("sum", &[]))),
            protocol: 1,
            confirms: false,
            apart_from: None,
        };
        assert_eq!(of(How::Eager, None).runs(), "PyTorch of f.py::g");
        assert_eq!(of(How::Compile, None).runs(), "torch.compile of f.py::g");
        assert_eq!(of(How::Compile, Some("max-autotune")).runs(), "torch.compile (max-autotune) of f.py::g");
        assert_eq!(of(How::Cudagraph, None).runs(), "PyTorch in a CUDA graph of f.py::g");
        let product = Callee::Product(Product { operands: [].into(), transposed: vec![] });
        assert_eq!(BaselineParams { calls: product, ..of(How::Cublas, None) }.runs(), "torch.matmul (cuBLAS)");
    }
}
