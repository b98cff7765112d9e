//! The values that an output of indices refers to. Knows `argmax` and `argmin`; does not compare.

use super::bind::Bound;
use super::error::{Error, NotExtreme};
use kforge_types::model::Problem;

/// Extreme values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extreme {
    /// The axis, counted from the first.
    pub axis: usize,
    /// Whether they are the largest values, not the least.
    pub largest: bool,
}

/// The axis along which `output` points into `input`, and whether at the largest or least values. Errors, naming the output: the reference is not `argmax` or
/// `argmin` of that input, so that these are not defined.
pub fn extreme(problem: &Problem, output: &str, input: &str) -> Result<Extreme, Error> {
    let refused =
        |why: NotExtreme| Error::NotExtreme { output: output.to_owned(), input: input.to_owned(), why: Box::new(why) };
    let bound = Bound::new(problem).map_err(|_| refused(NotExtreme::NotBuiltin))?;
    let largest = match bound.builtin.name {
        "argmax" => true,
        "argmin" => false,
        other => return Err(refused(NotExtreme::Another(other))),
    };
    let own = bound.own_name("x");
    if own != input {
        return Err(refused(NotExtreme::Into(own.to_owned())));
    }
    match bound.axes(bound.dims("x").len()).map_err(|error| refused(NotExtreme::Axis(error)))?[..] {
        [axis] => Ok(Extreme { axis, largest }),
        _ => Err(refused(NotExtreme::Axes)),
    }
}
