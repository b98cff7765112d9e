//! The best times that this process has seen of other variants of the same work, and which variants are hopeless in comparison. Knows medians of few samples;
//! takes none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kforge_foundation::base::Digest;
use kforge_harness::message::Response;
use kforge_harness::task::failed;
use kforge_numerics::measure::sampling::SHORT_NS;
use kforge_types::record::params::VerifyParams;

/// A variant that is slower than the best by more than this factor needs only one sample. The factor exceeds 1.3, within which a search times all variants in
/// full, by more than the 5% by which two launches in a row may be slower than a median.
const HOPELESS: f64 = 1.4;

/// Whether one of few samples may be enough, because the variant is slower than the best by more than chance explains. Hot times below a certain length are
/// measured in graphs, which exclude the time of the event itself, and the best time may be one of these.
pub(super) fn is_hopeless(cold: bool, ns: f64, best: Option<f64>) -> bool {
    (cold || ns >= 2.0 * SHORT_NS) && best.is_some_and(|best| ns > HOPELESS * best)
}

/// The lowest medians of few samples that this process has seen, by work. Only plausible times of correct outputs are included.
static BEST: Mutex<BTreeMap<Digest, f64>> = Mutex::new(BTreeMap::new());
/// The most works that are remembered.
const WORKS: usize = 1024;

/// The identifier of the work of a variant: everything that is timed except the variant, on one device.
pub(super) fn work(params: &VerifyParams, device: &str) -> Result<Digest, Response> {
    let all = (&params.problem, &params.arch, device, params.only);
    Ok(Digest::of(&serde_json::to_vec(&all).map_err(|e| failed(e.to_string()))?))
}

pub(super) fn best(work: &Digest) -> Option<f64> {
    BEST.lock().unwrap_or_else(PoisonError::into_inner).get(work).copied()
}

pub(super) fn remember(work: Digest, ns: f64) {
    let mut all = BEST.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= WORKS {
        all.clear();
    }
    let best = all.entry(work).or_insert(ns);
    *best = best.min(ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hopeless_variant_one_sample_may_be_enough() {
        let of = |about, best| is_hopeless(true, about, best);
        assert_eq!([of(100.0, None), of(139.0, Some(100.0)), of(141.0, Some(100.0))], [false, false, true]);
        let hot = |about, best| is_hopeless(false, about, Some(best));
        assert_eq!(
            [hot(141.0, 100.0), hot(2.0 * SHORT_NS, SHORT_NS), hot(2.0 * SHORT_NS, 1.9 * SHORT_NS)],
            [false, true, false]
        );
        let work = Digest::of(b"a work of this test");
        assert_eq!(best(&work), None);
        [3.0, 2.0, 4.0].iter().for_each(|ns| remember(work, *ns));
        assert_eq!(best(&work), Some(2.0));
    }
}
