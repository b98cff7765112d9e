//! The operator's tensors as a baseline sees them: bytes in the operator's own types and layouts. Knows shapes and strides.

use serde::Serialize;

use kforge_types::model::{DType, Problem, Role, Tensor};

/// A tensor on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PlacedTensor {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    /// Elements between neighbours along each axis.
    strides: Vec<u64>,
    /// Bytes from the first to the last element.
    bytes: u64,
}

impl PlacedTensor {
    pub(super) fn of(tensor: &Tensor) -> Self {
        PlacedTensor {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            strides: tensor.strides.clone(),
            bytes: tensor.bytes(),
        }
    }
}

/// The names of the tensors that are read and written.
pub(super) fn inouts(problem: &Problem) -> Vec<&str> {
    let both = problem.tensors.iter().filter(|tensor| tensor.role == Role::Inout);
    both.map(|tensor| tensor.name.as_str()).collect()
}
