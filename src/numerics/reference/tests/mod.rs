//! Tests of `reference`: conversions, generators, checks, null candidates. Operators are tested against other implementations in `tests/reference/main.rs`.

mod checks;
mod degenerate;
mod floats;
mod fresh;
mod inputs;
mod null;

use serde_json::Value;

use kforge_types::model::{DType, Param, Problem, Reference, Role, Scalar, Tensor};
use kforge_types::record::params::Trial;

/// An `f32` input.
fn read(name: &str, shape: &[u64]) -> Tensor {
    Tensor::dense(name, Role::Input, DType::F32, shape)
}

/// An `f32` output.
fn written(name: &str, shape: &[u64]) -> Tensor {
    Tensor::dense(name, Role::Output, DType::F32, shape)
}

/// A problem of a built-in.
fn problem(builtin: &str, tensors: Vec<Tensor>, attributes: &[(&str, Value)]) -> Problem {
    Problem::of(tensors, Reference::builtin(builtin, attributes))
}

/// The problem with one more param.
fn with_param(mut problem: Problem, name: &str, dtype: DType, value: Scalar) -> Problem {
    problem.params.push(Param { name: name.into(), dtype, value });
    problem
}

/// A trial of that distribution.
fn trial(seed: u64, distribution: &str) -> Trial {
    Trial { trial: 0, seed, distribution: distribution.into() }
}
