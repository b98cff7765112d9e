//! Takes samples of a bench until there are enough: how the device is warmed up, how long a batch is, which samples count. Knows states and clocks;
//! [`super::output_checks`] checks that outputs are correct.

use super::super::client::Lost;
use super::super::wire::SampleRequest;
use super::{Bench, SLOT};
use kforge_numerics::measure::sampling::{self, BENCH, SHORT_NS, Stopping};
use kforge_numerics::measure::stats::median;
use kforge_types::record::timing::Series;

/// The most samples between two readings of the device's state.
pub(super) const BATCH: usize = 10;
/// The number of batches after which a device that has not settled is measured anyway.
pub(super) const WARMING: usize = 20;
/// On average, outputs are checked after one of this many batches.
const LOOKS: u64 = 3;
/// The nanoseconds from which a launch is long. A bench with few samples takes one sample of long launches: two launches in a row are slower than a median by
/// at most 5 %, and all variants within 7 % of the best are timed in full. Below 0.2 ms, five more launches take about a millisecond, with what is between them.
const LONG_NS: f64 = 200_000.0;

impl Bench<'_> {
    pub(super) fn shots(&self, cold: bool, count: usize) -> Vec<SampleRequest> {
        let set = |i: usize| if cold { i as u32 % self.sets } else { 0 };
        // A hot sample finds in the caches what the previous launch left there.
        let warm = |i: usize| !cold && (i > 0 || self.is_warm);
        (0..count)
            .map(|i| SampleRequest { slot: SLOT, set: set(i), cold, copies: 0, bare: false, warm: warm(i) })
            .collect()
    }

    /// Takes samples of launches that are not in graphs.
    fn take(&mut self, cold: bool, count: usize) -> Result<Vec<f64>, Lost> {
        let ns = self.rig.time(self.shots(cold, count))?;
        self.is_warm = !cold;
        Ok(ns)
    }

    /// Takes samples until the median is known well enough, the cap is reached, or half of the time has passed. Also returns the fault of the outputs, if any.
    pub(super) fn series(&mut self, cold: bool) -> Result<(Series, Option<String>), Lost> {
        self.swap()?;
        let half = self.rig.left() / 2;
        let mut series = Series { samples_ns: vec![], dropped: 0 };
        let (about, stopping) = match self.params.samples.map(|few| few as usize) {
            None => (self.warmed(cold)?, BENCH),
            Some(few) => {
                let ([first, second], limited) = self.two(cold)?;
                // The first launch was not prepared, and may have been long for that reason.
                if !limited && first.min(second) >= LONG_NS {
                    series.samples_ns.push(second);
                    // The two cold samples used two sets.
                    let wrong = self.look(if cold { self.sets.min(2) } else { 1 })?;
                    return Ok((series, wrong));
                }
                (second, Stopping { least: few, most: few, width: 0.0 })
            }
        };
        let copies = if !cold && about < SHORT_NS { sampling::copies(about) } else { 0 };
        let bare = self.bare(copies)?;
        let mut taken = 0;
        let mut stresses = self.stresses();
        while !stopping.enough(&series.samples_ns) && taken < stopping.most && self.rig.left() > half {
            if stresses > 0 && self.luck.below(LOOKS) == 0 {
                stresses -= 1;
                if let Some(wrong) = self.stressed(cold, (copies, bare))? {
                    return Ok((series, Some(wrong)));
                }
            }
            // The length of a batch is random, so that candidate code cannot predict it.
            let batch =
                if stopping.most < BATCH { stopping.most } else { BATCH - self.luck.below(BATCH as u64 / 2) as usize };
            let count = batch.min(stopping.most - taken);
            taken += count;
            match self.batch(cold, (copies, bare), count)? {
                Ok(ns) => series.samples_ns.extend(ns),
                Err(dropped) => series.dropped += dropped,
            }
            let last = stopping.enough(&series.samples_ns) || taken >= stopping.most;
            // The outputs of few samples are checked once, at the end.
            if last || (self.params.samples.is_none() && self.luck.below(LOOKS) == 0) {
                // A batch that is shorter than the number of sets does not use all sets.
                let sets = if cold { self.sets.min(count as u32) } else { 1 };
                if let Some(wrong) = self.look(sets)? {
                    return Ok((series, Some(wrong)));
                }
                if !last {
                    self.swap()?;
                }
            }
        }
        // Only this process knows that the series is complete.
        for _ in 0..stresses {
            // A time-out would be a failure of the kernel.
            if self.rig.left() <= half {
                break;
            }
            if let Some(wrong) = self.stressed(cold, (copies, bare))? {
                return Ok((series, Some(wrong)));
            }
        }
        Ok((series, None))
    }

    /// The length of a sample after the device has settled, in nanoseconds.
    fn warmed(&mut self, cold: bool) -> Result<f64, Lost> {
        let mut warming = vec![];
        for _ in 0..WARMING {
            warming.extend(self.take(cold, BATCH)?);
            if sampling::settled(&warming) {
                break;
            }
        }
        Ok(median(&warming[warming.len().saturating_sub(BATCH)..]))
    }

    /// Takes two samples; only the first prepares the second. Also returns whether limits of the device invalidate them.
    fn two(&mut self, cold: bool) -> Result<([f64; 2], bool), Lost> {
        self.is_warm = true;
        let (ns, limited) = self.watched(|bench| bench.take(cold, 2))?;
        let two = ns.try_into().map_err(|ns| Lost::Died(format!("gave `{ns:?}` for two samples")))?;
        Ok((two, limited))
    }

    /// The result of `take`, and whether limits of the device invalidate samples that were taken in the meantime.
    fn watched<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, Lost>) -> Result<(T, bool), Lost> {
        let before = self.monitor.state();
        let taken = take(self)?;
        let after = self.monitor.state();
        let reasons = before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0);
        self.states.extend([before, after]);
        Ok((taken, sampling::dropped(reasons)))
    }

    /// Nanoseconds for laying the buffers once in a graph of copies.
    fn bare(&mut self, copies: u32) -> Result<f64, Lost> {
        if copies == 0 {
            return Ok(0.0);
        }
        let shot = |copies| SampleRequest { slot: SLOT, set: 0, cold: false, copies, bare: true, warm: false };
        let ns = self.rig.time((0..BATCH).flat_map(|_| [shot(1), shot(copies)]).collect())?;
        let of = |pair: &[f64]| ((pair[1] - pair[0]) / f64::from(copies - 1)).max(0.0);
        Ok(median(&ns.chunks(2).map(of).collect::<Vec<_>>()))
    }

    /// The samples of one batch, or the number of samples that limits of the device invalidated.
    pub(super) fn batch(
        &mut self,
        cold: bool,
        (copies, bare): (u32, f64),
        count: usize,
    ) -> Result<Result<Vec<f64>, u32>, Lost> {
        let (ns, limited) = self.watched(|bench| match copies {
            0 => bench.take(cold, count),
            many => {
                let shot = |copies| SampleRequest { slot: SLOT, set: 0, cold: false, copies, bare: false, warm: false };
                let shots = (0..count).flat_map(|_| [shot(1), shot(many)]).collect();
                let both = bench.rig.time(shots)?;
                let slopes = both.chunks(2).filter_map(|pair| sampling::slope(pair[0], pair[1], many));
                Ok(slopes.map(|ns| ns - bare).filter(|ns| *ns > 0.0).collect::<Vec<_>>())
            }
        })?;
        Ok(if limited { Err(ns.len() as u32) } else { Ok(ns) })
    }
}
