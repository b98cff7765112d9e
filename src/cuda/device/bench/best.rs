//! The best that this process has seen of others at the same work, and who is hopeless beside it. Knows medians of few samples; takes none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kforge_foundation::base::Digest;
use kforge_harness::message::Response;
use kforge_harness::task::failed;
use kforge_numerics::measure::sampling::SHORT_NS;
use kforge_types::record::params::VerifyParams;

/// How many times slower than the best a variant is of which one sample is enough: beyond 1.3, within which a search times all in full, by what two launches in a row
/// may be slower than a median, which is half of a tenth.
const HOPELESS: f64 = 1.4;

/// Whether one of few samples may be enough: of a variant that is slower than another by so much that no luck makes up for it. Hot times below some length come from
/// graphs, of which the event's own time is no part, and the best may be one of them.
pub(super) fn is_hopeless(cold: bool, ns: f64, best: Option<f64>) -> bool {
    (cold || ns >= 2.0 * SHORT_NS) && best.is_some_and(|best| ns > HOPELESS * best)
}

/// The least medians of few samples that this process has seen, by what was to be done. Only what is plausible, of correct outputs, is among them.
static BEST: Mutex<BTreeMap<Digest, f64>> = Mutex::new(BTreeMap::new());
/// Works that are remembered at most.
const WORKS: usize = 1024;

/// The name of the work that a variant is timed at, on a device.
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
