//! `oracle`: the expected outputs of an operator at a shape.

use super::descriptor::{Descriptor, Lane, Runs, Work, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::OracleParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "oracle",
    // 2: null candidates are compared as kernels are, and judged output by output. 3: functions of the package also compare them; NaN is the most extreme value
    // of a row; references changed for values that are not finite.
    version: 3,
    verb: "Computing",
    color: "#7b5cc0",
    usual_ms: 300,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Reference,
        work: &[Work {
            on: Platform::Any,
            code: WorkerCode::Oracle,
            parts: Some(&[
                "foundation/documents",
                "types/documents",
                "types/problems",
                "numerics/references",
                "types/expressions",
                "numerics/comparison",
                "project/c++",
                "project/paths",
                "project/python",
                "harness/tasks",
                "harness/confinement",
                "harness/system",
                "harness/python",
                "harness/references",
                "harness/comparison",
            ]),
        }],
    },
    observes: None,
    parameters: rewritten::<OracleParams>,
    #[cfg(test)]
    golden: include_str!("../golden/oracle.json"),
};
