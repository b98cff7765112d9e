//! Tests of the room: conversions, generators, checks, null candidates. Operators are tested against other implementations in `tests/reference.rs`.

mod checks;
mod degenerate;
mod floats;
mod inputs;
mod null;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::bound::contiguous;
use crate::model::{DType, Init, Param, Problem, Reference, Role, Scalar, Tensor};
use crate::record::params::Trial;

/// A contiguous tensor.
fn tensor(name: &str, role: Role, dtype: DType, shape: &[u64]) -> Tensor {
    Tensor {
        name: name.into(),
        role,
        dtype,
        shape: shape.into(),
        strides: contiguous(shape),
        align: 256,
        init: Init::Auto,
    }
}

/// An `f32` input.
fn read(name: &str, shape: &[u64]) -> Tensor {
    tensor(name, Role::Input, DType::F32, shape)
}

/// An `f32` output.
fn written(name: &str, shape: &[u64]) -> Tensor {
    tensor(name, Role::Output, DType::F32, shape)
}

/// A problem of a built-in.
fn problem(builtin: &str, tensors: Vec<Tensor>, attributes: &[(&str, Value)]) -> Problem {
    Problem {
        dims: BTreeMap::new(),
        tensors,
        params: Vec::new(),
        reference: Reference::Builtin {
            name: builtin.into(),
            attributes: attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            names: BTreeMap::new(),
        },
        generate_inputs: None,
    }
}

/// The same with a param more.
fn with_param(mut problem: Problem, name: &str, dtype: DType, value: Scalar) -> Problem {
    problem.params.push(Param { name: name.into(), dtype, value });
    problem
}

/// A trial of that distribution.
fn trial(seed: u64, distribution: &str) -> Trial {
    Trial { trial: 0, seed, distribution: distribution.into() }
}
