//! Inputs that are those of a trial but for one element of each tensor: for kernels that keep results between launches, and return them for inputs that they
//! take for the same. Knows values and how they are drawn; runs nothing.
//!
//! Inputs drawn anew differ everywhere, so a kernel that looks at a part of them sees that they are new: at the first element, at a window, at a sample. It does
//! not see that one element has changed unless it looks at all of them.

use kforge_harness::oracle::Named;
use kforge_numerics::reference::Values;
use kforge_types::model::{Init, Problem, Role, Tensor};

/// Places from which the one that changes most is taken: a change that drowns in rounding would show nothing.
const STRETCH: usize = 64;

/// The inputs of a trial with one element of each tensor replaced by that of another trial, at a place that `seed` decides. None if no element can be replaced
/// alone: integers may be indices that depend on each other, and so may inputs that a function of the package makes.
pub(super) fn near(problem: &Problem, inputs: &Named, other: &Named, seed: u64) -> Option<Named> {
    if problem.generate_inputs.is_some() {
        return None;
    }
    let mut near = inputs.clone();
    let mut changed = false;
    for tensor in problem.tensors.iter().filter(|tensor| each_alone(tensor)) {
        let (Some(Values::Float(to)), Some(Values::Float(from))) =
            (near.get_mut(&tensor.name), other.get(&tensor.name))
        else {
            continue;
        };
        if let Some(at) = place(to, from, start(seed, &tensor.name, to.len())) {
            to[at] = from[at];
            changed = true;
        }
    }
    changed.then_some(near)
}

/// Whether each element of a tensor is drawn by itself.
fn each_alone(tensor: &Tensor) -> bool {
    let alone = matches!(tensor.init, Init::Auto | Init::Uniform | Init::Normal | Init::Positive | Init::Range(..));
    tensor.role != Role::Output && tensor.dtype.is_float() && alone
}

/// The element that changes most among the first ones that change at all, from `start` on and around the end.
fn place(to: &[f64], from: &[f64], start: usize) -> Option<usize> {
    let apart = |at: &usize| (to[*at] - from[*at]).abs();
    let changing = (start..to.len()).chain(0..start).filter(|at| apart(at) > 0.0).take(STRETCH);
    changing.max_by(|a, b| apart(a).total_cmp(&apart(b)))
}

/// Where the search for an element begins. A kernel cannot compute it: it has the inputs, and not the seed.
fn start(seed: u64, name: &str, elements: usize) -> usize {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"near inputs").update(&seed.to_le_bytes()).update(name.as_bytes());
    let mut eight = [0; 8];
    hasher.finalize_xof().fill(&mut eight);
    (u64::from_le_bytes(eight) % elements.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Reference};

    fn problem(tensors: Vec<Tensor>) -> Problem {
        Problem::of(tensors, Reference::builtin("sum", &[]))
    }

    fn named(values: &[(&str, Values)]) -> Named {
        values.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect()
    }

    #[test]
    fn one_element_of_each_tensor_differs_and_its_place_depends_on_the_seed() {
        let problem = problem(vec![
            Tensor::dense("x", Role::Input, DType::F32, &[1000]),
            Tensor::dense("y", Role::Inout, DType::F32, &[1000]),
            Tensor::dense("z", Role::Output, DType::F32, &[1000]),
        ]);
        let drawn = |of: f64| Values::Float((0..1000).map(|i| (f64::from(i) * of).sin()).collect());
        let (a, b) = (named(&[("x", drawn(1.0)), ("y", drawn(2.0))]), named(&[("x", drawn(3.0)), ("y", drawn(4.0))]));
        let floats = |all: &Named, name: &str| match &all[name] {
            Values::Float(values) => values.clone(),
            other => panic!("{other:?}"),
        };
        let places = |seed: u64| -> Vec<usize> {
            let near = near(&problem, &a, &b, seed).unwrap();
            let differs = |name: &str| {
                let (was, is, other) = (floats(&a, name), floats(&near, name), floats(&b, name));
                let all: Vec<usize> = (0..1000).filter(|at| was[*at] != is[*at]).collect();
                assert_eq!(all.len(), 1, "{name}");
                assert_eq!(is[all[0]], other[all[0]]);
                all[0]
            };
            ["x", "y"].map(differs).into()
        };
        assert_eq!(places(1), places(1));
        assert!((2..12).any(|seed| places(seed) != places(1)));
    }

    #[test]
    fn the_largest_change_of_a_stretch_is_taken_and_equal_elements_are_passed() {
        let (mut to, from) = (vec![0.0; 300], vec![0.0; 300]);
        assert_eq!(place(&to, &from, 7), None);
        (to[3], to[290]) = (1.0, -2.0);
        assert_eq!(place(&to, &from, 295), Some(290), "around the end");
        to[290] = 0.5;
        assert_eq!(place(&to, &from, 100), Some(3));
    }

    #[test]
    fn what_may_depend_on_its_neighbours_is_left_alone() {
        let offsets = Tensor { init: Init::Offsets(9), ..Tensor::dense("o", Role::Input, DType::F32, &[4]) };
        let problem = problem(vec![offsets, Tensor::dense("i", Role::Input, DType::I32, &[4])]);
        let a = named(&[("o", Values::Float(vec![0.0, 1.0, 2.0, 9.0])), ("i", Values::Int(vec![0, 1, 2, 3]))]);
        let b = named(&[("o", Values::Float(vec![0.0, 4.0, 5.0, 9.0])), ("i", Values::Int(vec![3, 2, 1, 0]))]);
        assert_eq!(near(&problem, &a, &b, 1), None);
    }
}
