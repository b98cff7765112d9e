//! Checks what timed launches left: outputs equal those of untimed launches, inputs and canaries are intact, and fresh inputs take no longer than others. Knows
//! sums and bytes of outputs; does not know what is correct.

use std::sync::Arc;

use super::super::buffers::Image;
use super::super::client::Lost;
use super::super::inputs::{self, Inputs};
use super::super::read_back::{self, Outputs, UntimedOutputs};
use super::super::rig::Rig;
use super::{Bench, CANARY, SLOT};
use kforge_harness::layout::POISONS;
use kforge_numerics::measure::stats::median;
use kforge_types::record::timing::Series;
use kforge_types::record::{Unknown, Verdict};

/// By how much a sample on fresh inputs may exceed the median, as a factor and by nanoseconds beyond, before answers are taken for kept ones.
const FRESH: (f64, f64) = (1.25, 5000.0);
/// Untimed launches, where timed ones left something else.
const REPEATS: usize = 6;

impl<'a> Bench<'a> {
    /// Whether the first sets hold the outputs of their inputs, and the inputs themselves; else what is wrong.
    pub(super) fn look(&mut self, sets: u32) -> Result<Option<String>, Lost> {
        // Constants are those of the first set's inputs.
        let sets = if self.params.constants.is_empty() { sets } else { 1 };
        for set in 0..sets {
            let trial = self.trial(set);
            let images = Rig::images(self.params, &self.inputs[trial], POISONS[self.turn as usize % 2]);
            self.is_warm = false;
            let shown = self.rig.show(set, images.iter(), CANARY, inputs::salt())?;
            if let Some(damage) = read_back::damage(&images, &shown) {
                return Ok(Some(damage));
            }
            let sums = read_back::sums(&images, &shown);
            if sums == self.untimed[trial].sums
                || self.params.samples.is_some() && read_back::all_known(&images, &shown)
            {
                continue;
            }
            let now = self.rig.outputs(set, &images)?;
            if self.untimed[trial].sums.is_empty() {
                self.reload()?;
                self.untimed[trial].sums = self.launch_untimed(&self.inputs[trial], set)?;
                self.lay(set)?;
                self.rig.constants(SLOT, self.candidate, 0);
                if self.untimed[trial].sums == sums {
                    continue;
                }
            }
            if self.untimed[trial].usual.is_none() {
                let images = Rig::images(self.params, &self.inputs[trial], POISONS[0]);
                self.untimed[trial].usual = Some(self.usual(set, &images, None)?);
                self.lay(set)?;
                self.rig.constants(SLOT, self.candidate, 0);
            }
            let usual = self.untimed[trial].usual.as_ref();
            if let Some(output) = usual.and_then(|usual| usual.differing(&now)) {
                return Ok(Some(not_the_same(&output)));
            }
        }
        Ok(None)
    }

    /// What untimed launches leave; `like` are the sums and bytes of outputs that may be theirs too.
    fn usual(
        &mut self,
        set: u32,
        images: &[Image<'a>],
        like: Option<&(Vec<u64>, Outputs<'a>)>,
    ) -> Result<UntimedOutputs<'a>, Lost> {
        self.rig.usual(SLOT, self.candidate, (set, images, CANARY), REPEATS, like)
    }

    /// A sample on inputs that were never on the device: it must take no longer than others, and leave what untimed launches leave.
    pub(super) fn fresh(&mut self, inputs: &Arc<Inputs>, cold: &Series) -> Result<Option<Verdict>, Lost> {
        let images = Rig::images(self.params, inputs, POISONS[1]);
        self.rig.lay(0, &images, CANARY)?;
        self.rig.constants(SLOT, self.candidate, 0);
        let first = self.rig.time(self.shots(true, 1))?[0];
        let shown = self.rig.show(0, images.iter(), CANARY, inputs::salt())?;
        if let Some(damage) = read_back::damage(&images, &shown) {
            return Ok(Some(Verdict::Fail(damage)));
        }
        let now = (read_back::sums(&images, &shown), self.rig.outputs(0, &images)?);
        // Before untimed launches see these inputs: those that see them again.
        let again = self.rig.time(self.shots(true, 1))?[0];
        if let Some(output) = self.usual(0, &images, Some(&now))?.differing(&now.1) {
            return Ok(Some(Verdict::Fail(not_the_same(&output))));
        }
        let usual = median(&cold.samples_ns);
        if first > FRESH.0 * usual + FRESH.1 {
            // What takes as long on inputs that are no longer fresh is slow for another reason.
            if again < first / FRESH.0 {
                let message = format!("{first:.0} ns on fresh inputs, {usual:.0} ns on inputs that it had seen");
                return Ok(Some(Verdict::Unknown(Unknown::Implausible(message))));
            }
        }
        Ok(None)
    }
}

fn not_the_same(output: &str) -> String {
    format!("`{output}` of a timed launch differs from that of an untimed launch")
}
