//! Takes samples of a bench until they are enough: how the device is warmed up, how long a batch is, which samples count. Knows states and clocks;
//! [`super::looks`] checks that outputs are correct.

use super::super::client::Lost;
use super::super::wire::SampleRequest;
use super::best::is_hopeless;
use super::{Bench, SLOT};
use kforge_numerics::measure::sampling::{self, BENCH, SHORT_NS, Stopping};
use kforge_numerics::measure::stats::median;
use kforge_types::record::timing::Series;

/// Samples between two looks at the device's state, at most.
pub(super) const BATCH: usize = 10;
/// Batches after which a device that has not settled is measured all the same.
const WARMING: usize = 20;
/// One of this many batches is followed by a look at outputs, on average.
const LOOKS: u64 = 3;

impl Bench<'_> {
    pub(super) fn shots(&self, cold: bool, count: usize) -> Vec<SampleRequest> {
        let set = |i: usize| if cold { i as u32 % self.sets } else { 0 };
        // A hot sample finds in the caches what the one before left there, as that found what a run before it had left.
        let warm = |i: usize| !cold && (i > 0 || self.is_warm);
        (0..count)
            .map(|i| SampleRequest { slot: SLOT, set: set(i), cold, copies: 0, bare: false, warm: warm(i) })
            .collect()
    }

    /// Samples of launches that are not in graphs.
    fn take(&mut self, cold: bool, count: usize) -> Result<Vec<f64>, Lost> {
        let ns = self.rig.time(self.shots(cold, count))?;
        self.is_warm = !cold;
        Ok(ns)
    }

    /// Samples until the median is known well enough, the cap is reached, or half of the time is over; and what was wrong with outputs, if anything was.
    pub(super) fn series(&mut self, cold: bool) -> Result<(Series, Option<String>), Lost> {
        self.swap()?;
        let half = self.rig.left() / 2;
        let mut series = Series { samples_ns: vec![], dropped: 0 };
        let (about, stopping) = match self.params.samples.map(|few| few as usize) {
            None => (self.warmed(cold)?, BENCH),
            Some(few) => {
                let ([first, second], limited) = self.two(cold)?;
                // One slow launch without preparation says little; a second slow one is enough.
                if !limited && [first, second].iter().all(|ns| is_hopeless(cold, *ns, self.best)) {
                    series.samples_ns.push(second);
                    // Two cold samples were taken on two sets.
                    let wrong = self.look(if cold { self.sets.min(2) } else { 1 })?;
                    return Ok((series, wrong));
                }
                (second, Stopping { least: few, most: few, width: 0.0 })
            }
        };
        let copies = if !cold && about < SHORT_NS { sampling::copies(about) } else { 0 };
        let bare = self.bare(copies)?;
        let mut taken = 0;
        while !stopping.enough(&series.samples_ns) && taken < stopping.most && self.rig.left() > half {
            // Candidate code cannot predict how long a batch is.
            let batch =
                if stopping.most < BATCH { stopping.most } else { BATCH - self.chance(BATCH as u64 / 2) as usize };
            let count = batch.min(stopping.most - taken);
            taken += count;
            match self.batch(cold, (copies, bare), count)? {
                Ok(ns) => series.samples_ns.extend(ns),
                Err(dropped) => series.dropped += dropped,
            }
            let last = stopping.enough(&series.samples_ns) || taken >= stopping.most;
            // Few samples are looked at once, at their end.
            if last || (self.params.samples.is_none() && self.chance(LOOKS) == 0) {
                // A batch shorter than there are sets left some untouched.
                let sets = if cold { self.sets.min(count as u32) } else { 1 };
                if let Some(wrong) = self.look(sets)? {
                    return Ok((series, Some(wrong)));
                }
                if !last {
                    self.swap()?;
                }
            }
        }
        Ok((series, None))
    }

    /// How long a sample is once the device has settled, in nanoseconds.
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

    /// Two samples, where only the first prepares the second, and whether limits make them worthless.
    fn two(&mut self, cold: bool) -> Result<([f64; 2], bool), Lost> {
        self.is_warm = true;
        let (ns, limited) = self.watched(|bench| bench.take(cold, 2))?;
        let two = ns.try_into().map_err(|ns| Lost::Died(format!("gave `{ns:?}` for two samples")))?;
        Ok((two, limited))
    }

    /// What `take` gives, and whether the device was under limits meanwhile that make samples worthless.
    fn watched<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, Lost>) -> Result<(T, bool), Lost> {
        let before = self.monitor.state();
        let taken = take(self)?;
        let after = self.monitor.state();
        let reasons = before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0);
        self.states.extend([before, after]);
        Ok((taken, sampling::dropped(reasons)))
    }

    /// Nanoseconds that one laying of buffers takes in a graph of copies.
    fn bare(&mut self, copies: u32) -> Result<f64, Lost> {
        if copies == 0 {
            return Ok(0.0);
        }
        let shot = |copies| SampleRequest { slot: SLOT, set: 0, cold: false, copies, bare: true, warm: false };
        let ns = self.rig.time((0..BATCH).flat_map(|_| [shot(1), shot(copies)]).collect())?;
        let of = |pair: &[f64]| ((pair[1] - pair[0]) / f64::from(copies - 1)).max(0.0);
        Ok(median(&ns.chunks(2).map(of).collect::<Vec<_>>()))
    }

    /// Samples of one batch, or how many were taken under limits that make them worthless.
    fn batch(&mut self, cold: bool, (copies, bare): (u32, f64), count: usize) -> Result<Result<Vec<f64>, u32>, Lost> {
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
