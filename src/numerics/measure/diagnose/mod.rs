//! Explains wrong values, if their pattern is plain: from an output's written and expected values to a [`Diagnosis`], or none. Knows values, extents and dims;
//! reads no tolerance. Whether a pattern explains every element that is wrong under a tolerance is judged later, from the [`Fit`]
//! ([`super::diagnosed::stated`]).
//!
//! A false explanation is worse than none. The table of decisions:
//!
//! | question | decision | because |
//! |---|---|---|
//! | which elements must a pattern explain? | every wrong one that it says something about | one element that does not fit shows that the cause is another |
//! | when is an element wrong? | when it is far off, or differs in an exact output, as in [`super::compare`] | an observation reads no tolerance |
//! | when does a value fit? | within a thousandth, or the distance of values of its type if that is larger; exactly in integers and in types with coarser values | what a pattern predicts is rounded as the kernel's own result was |
//! | how many elements are enough? | at least [`ENOUGH`], with [`ENOUGH`] expected values that are clearly apart | a constant output fits every pattern |
//! | how many elements may a pattern say nothing about? | at most a tenth of the wrong ones; the sentence counts them | a shift has an edge |
//! | which elements does a tolerance ask about? | all: each must be near its expected value or near the pattern's, as the fit shows | an element that is slightly wrong may have another cause |
//! | several patterns fit? | one of the whole output before one of its wrong elements, then the first in the order of [`FAMILIES`] | each is a true statement, and the more particular ones come first |
//! | elements that were not written? | the caller leaves them out: only [`element::written_part`] speaks of them | they hold poison |

mod constant;
pub mod element;
mod evidence;
mod moved;
mod scaled;
mod slices;

use std::collections::BTreeMap;

use evidence::Evidence;
use kforge_types::model::DType;
use kforge_types::record::{Diagnosis, Fit};

/// The fewest wrong elements, and the fewest expected values that are clearly apart, that make a pattern.
pub const ENOUGH: usize = 8;

/// An output with wrong elements, and what is expected.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, outermost first.
    pub shape: &'a [u64],
    /// The dims of the operator.
    pub dims: &'a BTreeMap<String, i64>,
    /// What was written. As many as the extents say.
    pub got: &'a [f64],
    /// What is expected, rounded to the type.
    pub want: &'a [f64],
    /// The scale of each element, if the tolerance uses one.
    pub scale: Option<&'a [f64]>,
}

/// A diagnosis, and how near the elements are to what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The diagnosis.
    pub diagnosis: Diagnosis,
    /// How near the elements are.
    pub fit: Fit,
}

/// Looks for patterns of one kind.
type Family = fn(&Evidence<'_>) -> Option<Explained>;

/// The kinds of patterns, in the order in which they are tried.
const FAMILIES: [Family; 9] = [
    constant::same,
    moved::transposed,
    moved::shifted,
    slices::moved,
    scaled::negated,
    scaled::factor,
    scaled::offset,
    scaled::function,
    scaled::rows,
];

/// What explains all wrong elements of an output; none if nothing is wrong, or if no pattern is plain.
pub fn diagnose(output: &Output<'_>) -> Option<Explained> {
    let evidence = Evidence::of(output)?;
    let mut found: Vec<Explained> = vec![];
    for family in FAMILIES {
        match family(&evidence) {
            Some(explained) if explained.diagnosis.whole => return Some(explained),
            other => found.extend(other),
        }
    }
    found.into_iter().next()
}

#[cfg(test)]
mod tests;
