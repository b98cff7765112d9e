//! What the steps have in common that time a champion in turn with something else, in blocks of samples in ABBA order: other addresses for each block, which
//! samples count, and whether timed launches leave the outputs of untimed ones. Knows neither what the other side is nor what a difference means.

use super::buffers::Image;
use super::client::Lost;
use super::monitor::State;
use super::read_back::{self, UntimedOutputs};
use super::rig::{Launchable, Rig};
use super::wire::{BufferSum, Set, Slot};
use kforge_numerics::measure::sampling;

/// ABBA rounds per block.
pub(super) const ROUNDS: usize = 4;
/// Samples of each side before the samples of a block count.
pub(super) const WARMING: usize = 5;
/// The byte around buffers.
pub(super) const CANARY: u8 = 0xc5;
/// The set whose only purpose is to shift the addresses of the others.
const PADDING: Set = 99;
/// Number of untimed launches if timed launches left other outputs.
const REPEATS: usize = 6;

/// Frees the buffers of the block before, and shifts later allocations by pages of two megabytes and parts of them.
pub(super) fn begin(rig: &mut Rig<'_>, block: usize) {
    rig.clear();
    rig.pad(PADDING, (block as u64 * 37 % 16) * (3 << 18) + 512);
}

/// Whether samples count that were taken between these states: without slowdown by hardware or heat, and at the same clocks.
pub(super) fn is_steady(before: &State, after: &State) -> bool {
    let limited = sampling::dropped(before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0));
    let alike = |(before, after): ((u32, u32), (u32, u32))| sampling::alike(before.0, after.0);
    !limited && before.clocks_mhz.zip(after.clocks_mhz).is_none_or(alike)
}

/// Where a candidate and its buffers are in the runner.
#[derive(Clone, Copy)]
pub(super) struct Laid<'l, 'a> {
    /// The candidate.
    pub(super) candidate: &'l Launchable<'l>,
    /// Its slot.
    pub(super) slot: Slot,
    /// The set of its buffers.
    pub(super) set: Set,
    /// The buffers.
    pub(super) images: &'l [Image<'a>],
}

/// The outputs that a launch of a candidate left first on each of the inputs: sums, and the outputs of several untimed launches if the sums were not sufficient.
struct FirstOutputs<'a, K> {
    of: K,
    sums: Vec<u64>,
    untimed: Option<UntimedOutputs<'a>>,
}

/// The first outputs by candidate and inputs, which `K` names.
pub(super) struct KnownOutputs<'a, K> {
    first: Vec<FirstOutputs<'a, K>>,
}

impl<K> Default for KnownOutputs<'_, K> {
    fn default() -> Self {
        KnownOutputs { first: vec![] }
    }
}

impl<'a, K: PartialEq> KnownOutputs<'a, K> {
    /// The first output in the buffers that differs from those of untimed launches, if any. `shown` are the sums of the buffers, which are undamaged. The
    /// first call for a candidate and inputs only records its sums.
    ///
    /// # Errors
    /// The runner is lost.
    pub(super) fn differing(
        &mut self,
        rig: &mut Rig<'_>,
        of: K,
        laid: Laid<'_, 'a>,
        shown: &[BufferSum],
    ) -> Result<Option<String>, Lost> {
        let Laid { candidate, slot, set, images } = laid;
        let sums = read_back::sums(images, shown);
        let Some(first) = self.first.iter_mut().find(|first| first.of == of) else {
            self.first.push(FirstOutputs { of, sums, untimed: None });
            return Ok(None);
        };
        if first.sums == sums {
            return Ok(None);
        }
        let now = rig.outputs(set, images)?;
        let untimed = match &mut first.untimed {
            Some(untimed) => untimed,
            none => none.insert(rig.usual(slot, candidate, (set, images, CANARY), REPEATS, None)?),
        };
        Ok(untimed.differing(&now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_without_slowdown_and_at_one_clock() {
        let state = |mhz, reasons| State {
            clocks_mhz: Some((mhz, 3201)),
            temperature_c: None,
            power_mw: None,
            reasons: Some(reasons),
        };
        assert!(is_steady(&state(1980, 1), &state(1980, 1)));
        assert!(is_steady(&state(1980, 1), &state(1980, 4)), "a power limit slows both sides");
        assert!(!is_steady(&state(1980, 1), &state(1980, 0x40)), "a thermal limit");
        assert!(!is_steady(&state(1980, 1), &state(1200, 1)), "another clock");
        assert!(is_steady(&State::default(), &State::default()), "nothing is stated");
    }
}
