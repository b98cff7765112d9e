//! The order of the two sides of a pair. Knows what each side runs; does not know who compares them, or why.
//!
//! Two kernels have one comparison, whoever asks for it: selection, attribution or `compare`. Otherwise separate measurements could contradict each other. So
//! which of them is A in the question follows from content, and whoever asks turns the observation to its own order.
//!
//! | decides | known to |
//! |---|---|
//! | the digests of what each side launches | everybody |
//! | if both launch the same: the digests of how each is compiled | a plan, where binaries do not exist yet |
//! | | `compare` has only binaries, and orders by their digests; it takes the other order if only that was ever observed |

use std::cmp::Ordering;

use serde::Serialize;

use kforge_foundation::base::Digest;
use kforge_types::record::params::VerifyParams;

/// The order of two values by the digests of their content.
pub(super) fn by_content<T: Serialize>(x: &T, y: &T) -> Ordering {
    // Parameters are structs of numbers, texts, lists and maps with text keys, which always serialize.
    let digest = |of: &T| Digest::of(&serde_json::to_vec(of).expect("BUG: parameters that do not serialise"));
    digest(x).cmp(&digest(y))
}

/// Whether `y` is A and `x` is B, by what they launch. `tie` orders sides that launch the same.
pub(super) fn is_turned(x: &VerifyParams, y: &VerifyParams, tie: impl FnOnce() -> Ordering) -> bool {
    by_content(x, y).then_with(tie) == Ordering::Greater
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{Problem, Reference};
    use kforge_types::record::testing::verification;

    #[test]
    fn who_asks_does_not_matter_and_equal_launches_leave_it_to_the_tie() {
        let x = verification("sm_90a", Problem::of(vec![], Reference::builtin("sum", &[])));
        let y = VerifyParams { entries: vec!["k<2>".into()], ..x.clone() };
        let never = || -> Ordering { panic!("they differ") };
        assert_ne!(is_turned(&x, &y, never), is_turned(&y, &x, never));
        assert!(is_turned(&x, &x, || Ordering::Greater));
        assert!(!is_turned(&x, &x, || Ordering::Less) && !is_turned(&x, &x, || Ordering::Equal));
    }
}
