//! Checks what timed launches left: outputs equal those of untimed launches, inputs and canaries are intact, and fresh inputs take no longer than others. Knows
//! sums and bytes of outputs, but not which values are correct.

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

/// How much a sample on fresh inputs may exceed the median before cached answers are suspected: a factor, and additional nanoseconds.
const FRESH: (f64, f64) = (1.25, 5000.0);
/// Number of untimed launches if timed launches left other outputs.
const REPEATS: usize = 6;

impl<'a> Bench<'a> {
    /// Checks that the first sets hold the outputs of their inputs, and that the inputs are unchanged. Returns the fault, if any.
    pub(super) fn look(&mut self, sets: u32) -> Result<Option<String>, Lost> {
        // Constants belong to the inputs of the first set.
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

    /// The outputs of untimed launches. `like` are sums and bytes of outputs that untimed launches may also give.
    fn usual(
        &mut self,
        set: u32,
        images: &[Image<'a>],
        like: Option<&(Vec<u64>, Outputs<'a>)>,
    ) -> Result<UntimedOutputs<'a>, Lost> {
        self.rig.usual(SLOT, self.candidate, (set, images, CANARY), REPEATS, like)
    }

    /// Takes a sample on inputs that were never on the device. The sample must not take longer than others, and must leave the outputs of untimed launches.
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
        // Taken before untimed launches see these inputs, because they may also cache answers.
        let again = self.rig.time(self.shots(true, 1))?[0];
        if let Some(output) = self.usual(0, &images, Some(&now))?.differing(&now.1) {
            return Ok(Some(Verdict::Fail(not_the_same(&output))));
        }
        let usual = median(&cold.samples_ns);
        if first > FRESH.0 * usual + FRESH.1 {
            // A kernel that takes as long on inputs that are no longer fresh is slow for another reason.
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
