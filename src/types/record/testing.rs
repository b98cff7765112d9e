//! Values from which tests of several packages start. Does not know results of kernels or devices.

use std::collections::BTreeMap;

use super::params::{Compiler, VerifyParams};
use crate::model::Problem;

/// A verification without launches and trials.
pub fn verification(arch: &str, problem: Problem) -> VerifyParams {
    VerifyParams {
        arch: arch.into(),
        compiler: Compiler::Auto,
        problem,
        entries: vec![],
        launches: vec![],
        workspaces: vec![],
        constants: vec![],
        trials: vec![],
        compare: BTreeMap::new(),
        scaled: vec![],
        count_beyond: BTreeMap::new(),
        protocol: 1,
        host: None,
        holdout: false,
        torch: None,
        isolated: false,
        sanitize: vec![],
        samples: None,
        only: None,
        flops_min: None,
        bytes: None,
    }
}
