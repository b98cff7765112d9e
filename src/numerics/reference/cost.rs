//! What an operator costs: arithmetic, compulsory bytes, the length of its longest sum. Knows shapes, not values.

use super::bind::Bound;
use super::builtin::Work;
use super::check::check;
use super::ops::matmul::handed_over as handed_over_by_matmul;
use kforge_types::model::{Problem, Role};

/// Work of an operator at a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Arithmetic operations; a multiply-add counts as two, an elementary function as one. 0 if the reference is a function of the package.
    pub flops: f64,
    /// Bytes if every input is read once and every output written once, in their dtypes. Gaps between strides are not counted.
    pub bytes: f64,
}

/// The cost that the built-in states.
pub fn cost(problem: &Problem) -> Cost {
    let bytes = problem
        .tensors
        .iter()
        .map(|tensor| {
            let passes = if tensor.role == Role::Inout { 2.0 } else { 1.0 };
            passes * (tensor.elements() * tensor.dtype.bytes()) as f64
        })
        .sum();
    Cost { flops: work_of(problem).map_or(0.0, |work| work.flops), bytes }
}

/// The length of the longest sum in an output element, at least 1: rounding errors grow with it. For a reference of the package, whose sums are unknown, the
/// longest axis of any tensor that is read.
pub fn reduction_length(problem: &Problem) -> u64 {
    match work_of(problem) {
        Some(work) => work.reduction.max(1),
        None => problem.read().flat_map(|tensor| tensor.shape.iter().copied()).max().unwrap_or(1).max(1),
    }
}

/// An estimate of the scalar operations that a kernel executes: its arithmetic, or one load or store for every element of every tensor, whichever is more.
pub fn work(problem: &Problem) -> f64 {
    let elements: u64 = problem.tensors.iter().map(kforge_types::model::Tensor::elements).sum();
    cost(problem).flops.max(elements as f64)
}

/// Bytes of the largest float64 matrix of a product that is computed on a device if there is one; 0 if the reference has no product that is large enough.
pub fn handed_over(problem: &Problem) -> u64 {
    let largest = || {
        let bound = Bound::new(problem).ok()?;
        check(problem).ok()?;
        handed_over_by_matmul(&bound)
    };
    let is_float = problem.tensors.iter().any(|tensor| tensor.dtype.is_float());
    largest().filter(|_| is_float).map_or(0, |elements| 8 * elements as u64)
}

/// An upper bound of the arithmetic operations: those of the built-in, or, for a function of the package, two for each element of an output and each element of
/// the largest tensor that is read. It is exceeded only by what reads an element more than once for each element of its output.
pub fn at_most(problem: &Problem) -> f64 {
    let known = work_of(problem).map(|work| work.flops);
    known.unwrap_or_else(|| {
        let written: u64 = problem.written().map(kforge_types::model::Tensor::elements).sum();
        let read = problem.read().map(kforge_types::model::Tensor::elements).max().unwrap_or(1);
        2.0 * written as f64 * read as f64
    })
}

/// The work of a problem; none if there is no built-in, or if the problem does not fit it.
fn work_of(problem: &Problem) -> Option<Work> {
    let bound = Bound::new(problem).ok()?;
    check(problem).ok()?;
    let work = (bound.builtin.work)(&bound);
    if !problem.reference.accumulates() {
        return Some(work);
    }
    // What an output held before is one more term of its sum.
    let added: u64 = problem.written().map(kforge_types::model::Tensor::elements).sum();
    Some(Work { flops: work.flops + added as f64, reduction: work.reduction + 1 })
}
