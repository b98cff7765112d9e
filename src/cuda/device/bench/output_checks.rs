//! Checks what timed launches left: outputs equal those of untimed launches, inputs and canaries are intact, and fresh inputs take no longer than others. Knows
//! sums and bytes of outputs, but not which values are correct. [`kforge_numerics::measure::implausible`] decides about times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::buffers::Image;
use super::super::client::Lost;
use super::super::inputs::{self, Inputs};
use super::super::read_back::{self, Outputs, UntimedOutputs};
use super::super::rig::Rig;
use super::samples::{BATCH, WARMING};
use super::{Bench, CANARY, SLOT};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_numerics::measure::implausible::{Freshness, OnFresh, freshness, is_faster, is_slow};
use kforge_types::model::Tensor;
use kforge_types::record::Verdict;
use kforge_types::record::timing::Series;

/// Number of untimed launches if timed launches left other outputs.
const REPEATS: usize = 6;

/// Inputs that no other step has.
pub(super) struct FreshInputs<'a> {
    /// Drawn before the device was locked.
    first: Arc<Inputs>,
    /// How long drawing them took.
    drawn_in: Duration,
    /// Draws others.
    draw: &'a dyn Fn() -> Result<Arc<Inputs>, Response>,
}

impl<'a> FreshInputs<'a> {
    /// Draws the first inputs.
    pub(super) fn new(draw: &'a dyn Fn() -> Result<Arc<Inputs>, Response>) -> Result<Self, Response> {
        let began = Instant::now();
        Ok(FreshInputs { first: draw()?, drawn_in: began.elapsed(), draw })
    }
}

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
            // Of equal values, a kernel may name any in an output that is compared in a way of its own. The comparison with expected values knows which.
            let judged = |tensor: &Tensor| !self.is_stressed || !self.params.compare.contains_key(&tensor.name);
            if let Some(output) = usual.and_then(|usual| usual.differing_in(&now, &judged)) {
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

    /// Takes samples on inputs that were never on the device. They must not take longer than others, and must leave the outputs of untimed launches. Before a
    /// time is refused, they are taken on further inputs.
    pub(super) fn fresh(&mut self, fresh: &FreshInputs<'_>, cold: &Series) -> Result<Option<Verdict>, Lost> {
        let mut inputs = Arc::clone(&fresh.first);
        let mut took = fresh.drawn_in;
        let mut samples = vec![];
        loop {
            let began = Instant::now();
            match self.on_fresh(&inputs, &cold.samples_ns)? {
                Ok(sample) => samples.push(sample),
                Err(wrong) => return Ok(Some(Verdict::Fail(wrong))),
            }
            took += began.elapsed();
            match freshness(&cold.samples_ns, &samples) {
                Freshness::Believed => return Ok(None),
                Freshness::Refused(why) => return Ok(Some(Verdict::Unknown(why))),
                // A step that runs out of time would be a failure of the kernel.
                Freshness::Suspected(why) if self.rig.left() < 2 * took => return Ok(Some(Verdict::Unknown(why))),
                Freshness::Suspected(_) => {}
            }
            let began = Instant::now();
            inputs = (fresh.draw)().map_err(Lost::Unasked)?;
            // The module was loaded again and the device was idle; either slows a launch down.
            self.lay_all()?;
            self.rig.time(self.shots(true, BATCH))?;
            took = began.elapsed();
        }
    }

    /// Takes samples on inputs that were never on the device, or returns the fault of the outputs.
    fn on_fresh(&mut self, inputs: &Arc<Inputs>, cold_ns: &[f64]) -> Result<Result<OnFresh, String>, Lost> {
        let images = Rig::images(self.params, inputs, POISONS[1]);
        self.rig.lay(0, &images, CANARY)?;
        self.rig.constants(SLOT, self.candidate, 0);
        let first_ns = self.rig.time(self.shots(true, 1))?[0];
        let shown = self.rig.show(0, images.iter(), CANARY, inputs::salt())?;
        if let Some(damage) = read_back::damage(&images, &shown) {
            return Ok(Err(damage));
        }
        let now = (read_back::sums(&images, &shown), self.rig.outputs(0, &images)?);
        // Taken before untimed launches see these inputs, because they may also cache answers.
        let again_ns = self.again(first_ns, cold_ns)?;
        let differing = self.usual(0, &images, Some(&now))?.differing(&now.1);
        Ok(match differing {
            Some(output) => Err(not_the_same(&output)),
            None => Ok(OnFresh { first_ns, again_ns }),
        })
    }

    /// The fastest of the launches that follow the first one on fresh inputs. A kernel may use its answers only once it has met inputs several times, so if the
    /// second launch is as slow as the first, there are as many as a series has on each of its inputs, warming up included.
    fn again(&mut self, first_ns: f64, cold_ns: &[f64]) -> Result<f64, Lost> {
        let mut least = self.rig.time(self.shots(true, 1))?[0];
        let half = self.rig.left() / 2;
        let mut more = WARMING * BATCH + cold_ns.len();
        more /= self.ordinary;
        while more > 0 && is_slow(first_ns, cold_ns) && !is_faster(least, first_ns) && self.rig.left() > half {
            let count = more.min(BATCH);
            more -= count;
            let shots = (0..count).flat_map(|_| self.shots(true, 1)).collect();
            least = self.rig.time(shots)?.into_iter().fold(least, f64::min);
        }
        Ok(least)
    }
}

fn not_the_same(output: &str) -> String {
    format!("`{output}` of a timed launch differs from that of an untimed launch")
}
