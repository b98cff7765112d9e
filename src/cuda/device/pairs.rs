//! The pairs step: times two binaries against each other on the same buffers. Knows runners and blocks; [`sampling`] decides the order of samples and the
//! result of a block.
//!
//! Each block allocates its buffers at new addresses. Which binary comes first in it is drawn, in half of the blocks each: that one is loaded, checked, warmed
//! up and timed first, in the runner's first slot; the samples are in ABBA order. The observation says for each block which it was. The draws follow from the
//! step's key, so that a repetition has the same ones. If the two orders disagree, more blocks are taken. Workspaces with the same name share one buffer, which has the larger size and is zero before each sample, regardless of its declaration: poison is for verify.

use std::sync::Arc;

use super::bench::{tell, timed_inputs};
use super::blocks::{self, CANARY, KnownOutputs, Laid, ROUNDS, WARMING};
use super::buffers::Image;
use super::client::Lost;
use super::inputs::{self, Inputs, Luck};
use super::monitor::{Monitor, State};
use super::read_back;
use super::rig::{Launchable, Rig, completed};
use super::wire::{BufferSum, SampleRequest};
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::count;
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_numerics::measure::sampling::{self, SHORT_NS, Side};
use kforge_numerics::measure::stats::median;
use kforge_types::model::bound::{Buffer, Fill};
use kforge_types::record::Verdict;
use kforge_types::record::params::{PairsParams, VerifyParams};
use kforge_types::record::timing::PairsObserved;

/// Executes a pairs step.
pub fn pairs(task: &Task) -> Response {
    paired(task).unwrap_or_else(|response| response)
}

fn paired(task: &Task) -> Result<Response, Response> {
    let mut params: PairsParams = task.params()?;
    params.a = completed(task, params.a, ":a")?;
    params.b = completed(task, params.b, ":b")?;
    let both = shared(&params.a, &params.b);
    let candidates = [Launchable::new(task, &params.a, ":a")?, Launchable::new(task, &params.b, ":b")?];
    let mut rig = Rig::new(task, &params.arch, true)?;
    rig.possible(&both)?;
    let inputs = timed_inputs(task, &params.a)?;
    rig.lock(true)?;
    rig.sets(&both, 1)?;
    let mut provenance = rig.provenance(params.protocol);
    let monitor = Monitor::new(&rig.client.facts.uuid);
    let mut pairs = Pairs {
        both: &both,
        cold: !params.hot,
        rig,
        monitor,
        first: KnownOutputs::default(),
        states: vec![],
        copies: None,
        luck: Luck::new(),
        seed: sampling::seed(task.spec.key().hash()),
        lead: Side::A,
    };
    let mut seen = PairsObserved::default();
    let verdict = match pairs.all(&candidates, &inputs, &mut seen) {
        Ok(wrong) => wrong.map(|wrong| (Verdict::Fail(wrong), false)),
        Err(lost) => Some(lost.verdict()?),
    };
    tell(&mut provenance, &pairs.states);
    pairs.rig.unlock();
    pairs.rig.leave(&mut provenance);
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    let summary = count(seen.blocks.len(), "block");
    let (verdict, forget) = verdict.map_or((None, false), |(verdict, forget)| (Some(verdict), forget));
    Ok(Response::Done { verdict, notes: vec![], summary, forget })
}

/// The problem with workspaces for both sides.
fn shared(a: &VerifyParams, b: &VerifyParams) -> VerifyParams {
    let mut workspaces: Vec<Buffer> = vec![];
    for one in a.workspaces.iter().chain(&b.workspaces) {
        let one = Buffer { fill: Fill::Zero, ..one.clone() };
        let bytes = |w: &Buffer| w.elements * w.dtype.bytes();
        match workspaces.iter_mut().find(|w| w.name == one.name) {
            Some(other) if bytes(other) < bytes(&one) => *other = one,
            Some(_) => {}
            None => workspaces.push(one),
        }
    }
    VerifyParams { workspaces, ..a.clone() }
}

struct Pairs<'a> {
    both: &'a VerifyParams,
    cold: bool,
    rig: Rig<'a>,
    monitor: Monitor,
    /// The first outputs of each side on each of the inputs.
    first: KnownOutputs<'a, (Side, usize)>,
    states: Vec<State>,
    /// The number of copies in a graph, for short hot launches, and the time for laying buffers once. Decided once.
    copies: Option<(u32, f64)>,
    /// Decides after which samples outputs are checked.
    luck: Luck,
    /// The seed of the orders of blocks.
    seed: u64,
    /// The binary that comes first in the current block.
    lead: Side,
}

/// The position of a binary among the candidates.
fn at(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::B => 1,
    }
}

impl<'a> Pairs<'a> {
    /// Takes the samples of all blocks. Returns the fault of the outputs, if any.
    fn all(
        &mut self,
        candidates: &[Launchable<'_>; 2],
        inputs: &[Arc<Inputs>],
        seen: &mut PairsObserved,
    ) -> Result<Option<String>, Lost> {
        let reserve = self.rig.left() / 10;
        for block in 0.. {
            if block >= sampling::most(seen) {
                break;
            }
            self.lead = sampling::first(self.seed, block);
            // The inputs change after every two blocks, so that each of the inputs is used with each order.
            let trial = block / 2 % inputs.len();
            let images = Rig::images(self.both, &inputs[trial], POISONS[0]);
            self.lay(candidates, block, &images)?;
            if let Some(wrong) = self.check(candidates, trial, &images)? {
                return Ok(Some(wrong));
            }
            match self.block(candidates, trial, &images)? {
                Ok(ratios) => {
                    seen.blocks.push(ratios);
                    seen.first.push(self.lead);
                }
                Err(wrong) => return Ok(Some(wrong)),
            }
            if let Some(wrong) = self.check(candidates, trial, &images)? {
                return Ok(Some(wrong));
            }
            if self.rig.left() < reserve || sampling::known(&seen.blocks) {
                break;
            }
        }
        Ok(None)
    }

    /// The binaries in the order of the current block.
    fn sides(&self) -> [Side; 2] {
        [self.lead, self.lead.other()]
    }

    /// The runner's slot of a binary in the current block.
    fn slot(&self, side: Side) -> u8 {
        u8::from(side != self.lead)
    }

    /// Allocates the buffers again at other addresses and loads both modules.
    fn lay(&mut self, candidates: &[Launchable<'_>; 2], block: usize, images: &[Image<'_>]) -> Result<(), Lost> {
        blocks::begin(&mut self.rig, block);
        self.rig.allocate(0, images);
        self.rig.lay(0, images, CANARY)?;
        for side in self.sides() {
            self.rig.load(self.slot(side), &candidates[at(side)])?;
            self.rig.constants(self.slot(side), &candidates[at(side)], 0);
        }
        Ok(())
    }

    /// Runs each side and checks that its outputs are the same as before.
    fn check(
        &mut self,
        candidates: &[Launchable<'_>; 2],
        trial: usize,
        images: &[Image<'a>],
    ) -> Result<Option<String>, Lost> {
        for side in self.sides() {
            self.rig.lay(0, images, CANARY)?;
            let shown = self.rig.run_and_show(self.slot(side), 0, images, CANARY)?;
            if let Some(wrong) = self.seen(candidates, (side, trial), images, &shown)? {
                return Ok(Some(wrong));
            }
        }
        Ok(None)
    }

    /// Checks that buffers hold the outputs that this side gave before on these inputs. Returns the fault, if any.
    fn look(
        &mut self,
        candidates: &[Launchable<'_>; 2],
        (side, trial): (Side, usize),
        images: &[Image<'a>],
    ) -> Result<Option<String>, Lost> {
        let shown = self.rig.show(0, images.iter(), CANARY, inputs::salt())?;
        self.seen(candidates, (side, trial), images, &shown)
    }

    /// The same check on sums that were computed on the device.
    fn seen(
        &mut self,
        candidates: &[Launchable<'_>; 2],
        (side, trial): (Side, usize),
        images: &[Image<'a>],
        shown: &[BufferSum],
    ) -> Result<Option<String>, Lost> {
        if let Some(damage) = read_back::damage(images, shown) {
            return Ok(Some(damage));
        }
        let laid = Laid { candidate: &candidates[at(side)], slot: self.slot(side), set: 0, images };
        let wrong = self.first.differing(&mut self.rig, (side, trial), laid, shown)?;
        let side = ["A", "B"][at(side)];
        Ok(wrong.map(|output| format!("`{output}` of {side} differs from its value before the timing")))
    }

    /// Takes a sample of each of these sides, in order.
    fn samples(&mut self, sides: &[Side]) -> Result<Vec<f64>, Lost> {
        let (cold, slots) = (self.cold, sides.iter().map(|side| self.slot(*side)));
        let shot = |slot, copies| SampleRequest { slot, set: 0, cold, copies, bare: false, warm: false };
        match self.copies.unwrap_or((0, 0.0)) {
            (0, _) => self.rig.time(slots.map(|slot| shot(slot, 0)).collect()),
            (many, bare) => {
                let ns = self.rig.time(slots.flat_map(|slot| [shot(slot, 1), shot(slot, many)]).collect())?;
                // A time that cannot be distinguished from zero is not a sample.
                let of = |pair: &[f64]| sampling::slope(pair[0], pair[1], many).map_or(0.0, |ns| (ns - bare).max(0.0));
                Ok(ns.chunks(2).map(of).collect())
            }
        }
    }

    /// The number of copies in a graph and the time for laying buffers once, from samples without graphs.
    fn copies(&mut self, warming: &[f64]) -> Result<(u32, f64), Lost> {
        let about = median(warming);
        if self.cold || about >= SHORT_NS {
            return Ok((0, 0.0));
        }
        let many = sampling::copies(about);
        let shot = |copies| SampleRequest { slot: 0, set: 0, cold: false, copies, bare: true, warm: false };
        let ns = self.rig.time((0..2 * WARMING).flat_map(|_| [shot(1), shot(many)]).collect())?;
        let of = |pair: &[f64]| ((pair[1] - pair[0]) / f64::from(many - 1)).max(0.0);
        Ok((many, median(&ns.chunks(2).map(of).collect::<Vec<_>>())))
    }

    /// The log-ratios of a block, without samples that were taken under limits or at different clocks, or the fault of a timed launch's outputs. Only this
    /// process knows after which samples outputs are checked.
    fn block(
        &mut self,
        candidates: &[Launchable<'_>; 2],
        trial: usize,
        images: &[Image<'a>],
    ) -> Result<Result<Vec<f64>, String>, Lost> {
        let mut warming = vec![];
        for side in self.sides() {
            let slot = self.slot(side);
            let shot = SampleRequest { slot, set: 0, cold: self.cold, copies: 0, bare: false, warm: false };
            let shots = (0..WARMING).map(|i| SampleRequest { warm: !self.cold && i > 0, ..shot });
            warming.extend(self.rig.time(shots.collect())?);
        }
        if self.copies.is_none() {
            self.copies = Some(self.copies(&warming)?);
        }
        let mut ratios = vec![];
        for _ in 0..ROUNDS {
            let order = sampling::order(self.lead);
            let before = self.monitor.state();
            // On average, outputs are checked in half of the rounds.
            let until = self.luck.below(2 * order.len() as u64) as usize;
            let mut ns = vec![];
            if until < order.len() {
                ns.extend(self.samples(&order[..=until])?);
                if let Some(wrong) = self.look(candidates, (order[until], trial), images)? {
                    return Ok(Err(wrong));
                }
            }
            ns.extend(self.samples(&order[ns.len()..])?);
            let after = self.monitor.state();
            self.states.extend([before, after]);
            if blocks::is_steady(&before, &after)
                && let Ok(ns) = ns.try_into()
            {
                ratios.extend(sampling::log_ratio(order, ns));
            }
        }
        Ok(Ok(ratios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Problem, Reference};
    use kforge_types::record::testing::verification;

    #[test]
    fn workspaces_of_one_name_are_as_large_as_the_larger_and_zero() {
        let of = |workspaces: &[(&str, u64, Fill)]| VerifyParams {
            workspaces: workspaces
                .iter()
                .map(|(name, elements, fill)| Buffer {
                    name: (*name).to_string(),
                    dtype: DType::F32,
                    elements: *elements,
                    fill: *fill,
                })
                .collect(),
            ..verification("sm_90a", Problem::of(vec![], Reference::builtin("sum", &[])))
        };
        let a = of(&[("w", 4, Fill::Poison), ("v", 9, Fill::ZeroOnce)]);
        let b = of(&[("w", 8, Fill::Zero), ("u", 1, Fill::Poison)]);
        let both = shared(&a, &b);
        let sizes: Vec<(&str, u64)> = both.workspaces.iter().map(|w| (w.name.as_str(), w.elements)).collect();
        assert_eq!(sizes, [("w", 8), ("v", 9), ("u", 1)]);
        assert!(both.workspaces.iter().all(|w| w.fill == Fill::Zero));
    }
}
