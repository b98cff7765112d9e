//! What an output of indices points to. Knows `argmax` and `argmin`; does not compare.

use super::bind::Bound;
use kforge_types::model::Problem;

/// Extreme values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extreme {
    /// The axis, counted from the first.
    pub axis: usize,
    /// Whether they are the largest rather than the least.
    pub largest: bool,
}

/// Along which axis, and at what, `output` points into `input`. Errors, naming the output: the reference is not `argmax` or `argmin` of that input, so that it
/// does not say.
pub fn extreme(problem: &Problem, output: &str, input: &str) -> Result<Extreme, String> {
    let refused = |why: String| {
        format!(
            "`{output}` cannot be compared by `argmax_of = \"{input}\"`: {why}; write `compare = \"file.py::function\"` to say which indices will do"
        )
    };
    let bound = Bound::new(problem)
        .map_err(|_| refused("only the built-ins `argmax` and `argmin` say along which axis".into()))?;
    let largest = match bound.builtin.name {
        "argmax" => true,
        "argmin" => false,
        other => return Err(refused(format!("the reference is `{other}`, not `argmax` or `argmin`"))),
    };
    let own = bound.own_name("x");
    if own != input {
        return Err(refused(format!("the reference points into `{own}`")));
    }
    match bound.axes(bound.dims("x").len()).map_err(refused)?[..] {
        [axis] => Ok(Extreme { axis, largest }),
        _ => Err(refused("the reference has more than one axis".into())),
    }
}
