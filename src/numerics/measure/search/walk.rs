//! The sequence of a search, as one function from the previous state and the new results to the next state and the next requests. Knows the stages of a visit;
//! other modules of the search propose variants and judge their machine code.
//!
//! | a variant that | next |
//! |---|---|
//! | is proposed | is compiled and inspected |
//! | was inspected | is dropped by facts, or verified everywhere and timed with few samples |
//! | was sampled | is dropped if it is wrong, has no valid time, or is slower than `within` times the best of every class it serves; else timed in full |
//! | was timed in full | is dropped if it has no valid time; variants that were dropped for being slower than it are considered again |
//!
//! New variants are proposed once none is being compiled or sampled, so that they are compiled while the last ones are timed in full. A budget ends proposals,
//! but never visits that have begun. Without a device, a missing record also ends proposals, because the path is then unknown.

use std::collections::{BTreeMap, HashSet};

use super::facts;
use super::propose::{Proposal, Turn, VisitCost, shuffled};
use super::space::Geometry;
use crate::measure::stats;
use kforge_types::record::params::Judgement;
use kforge_types::record::search::{BestVisit, Over, SearchParams, SearchSpace, Searched, Stage, Tally, Trail, Visit};
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{Inspection, Unknown, Verdict};

/// The results of the previous step's requests; none for a request without a result. Keys are variants and positions of shapes.
#[derive(Debug, Clone, Default)]
pub struct WaveResults {
    /// Inspections.
    pub inspections: BTreeMap<u32, Option<Inspection>>,
    /// Judgements.
    pub judgements: BTreeMap<(u32, u32), Option<Judgement>>,
    /// Benches of few samples.
    pub few: BTreeMap<(u32, u32), Option<BenchObserved>>,
    /// Full benches.
    pub full: BTreeMap<(u32, u32), Option<BenchObserved>>,
}

/// Takes in the results and decides what is next.
pub fn walk(params: &SearchParams, space: &SearchSpace, trail: Trail, known: &WaveResults) -> (Trail, Searched) {
    let geometry = Geometry::new(space);
    let mut walk = Walk { params, geometry, trail, dropped: vec![] };
    if !params.timed {
        let visited = params.budget.variants.unwrap_or(kforge_types::model::search::DEFAULT_VARIANTS).min(walk.all());
        let tally = Tally { visited, over: Some(Over::Untimed), ..walk.tally(None) };
        let searched = Searched { compile: vec![], sample: vec![], time: vec![], dropped: vec![], tally };
        return (walk.trail, searched);
    }
    let sample = walk.inspected(known);
    walk.timed(known);
    let time = walk.sampled(known);
    let begun = walk.trail.visits.iter().any(|v| matches!(v.stage, Stage::Compiling | Stage::Sampling));
    let stop = walk.stop();
    let compile = if begun || stop.is_some() { vec![] } else { walk.propose() };
    let pending = |v: &Visit| matches!(v.stage, Stage::Compiling | Stage::Sampling | Stage::Timing);
    let over = (!walk.trail.visits.iter().any(pending)).then(|| stop.unwrap_or(Over::Exhausted));
    let searched =
        Searched { compile, sample, time, dropped: std::mem::take(&mut walk.dropped), tally: walk.tally(over) };
    (walk.trail, searched)
}

struct Walk<'a> {
    params: &'a SearchParams,
    geometry: Geometry<'a>,
    trail: Trail,
    dropped: Vec<(u32, String)>,
}

/// A class of shapes.
struct Class<'a> {
    name: &'a str,
    shapes: Vec<u32>,
    /// The shapes of the class that are timed.
    bench: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn all(&self) -> u32 {
        self.geometry.len() as u32
    }

    /// The classes in the order of their first shapes.
    fn classes(&self) -> Vec<Class<'a>> {
        let mut classes: Vec<Class<'a>> = vec![];
        for (at, name) in (0u32..).zip(&self.params.shapes) {
            let bench = self.params.bench.contains(&at);
            let known = classes.iter().position(|c| c.name == name).unwrap_or_else(|| {
                classes.push(Class { name, shapes: vec![], bench: vec![] });
                classes.len() - 1
            });
            classes[known].shapes.push(at);
            classes[known].bench.extend(bench.then_some(at));
        }
        classes
    }

    /// The single bench shapes at which classes may split: variants near the best there are timed in full, too.
    fn shapes(&self) -> Vec<Class<'a>> {
        let classes = self.classes();
        let may_split = |class: &&Class<'a>| class.bench.len() > 1 && classes.len() < self.params.most_classes as usize;
        let single = |class: &Class<'a>| -> Vec<Class<'a>> {
            class.bench.iter().map(|at| Class { name: class.name, shapes: vec![*at], bench: vec![*at] }).collect()
        };
        classes.iter().filter(may_split).flat_map(single).collect()
    }

    /// The logarithm of a visit's time over the bench shapes of a class: from full benches if there are any, else from few samples. None if the variant does
    /// not serve the class, was not timed on all of it, or does not work.
    fn cost(&self, visit: &Visit, class: &Class<'_>) -> Option<f64> {
        if !matches!(visit.stage, Stage::Timed | Stage::Slow | Stage::Timing)
            || !self.geometry.serves(visit.variant, &class.shapes)
        {
            return None;
        }
        let of = |times: &BTreeMap<u32, f64>| -> Option<f64> {
            let logs: Option<Vec<f64>> = class.bench.iter().map(|s| times.get(s).map(|t| t.ln())).collect();
            logs.filter(|l| !l.is_empty()).map(|l| l.iter().sum::<f64>() / l.len() as f64)
        };
        of(&visit.full).or_else(|| of(&visit.few))
    }

    /// The best visit of a class: the time and the position in the trail.
    fn best(&self, class: &Class<'_>) -> Option<(f64, usize)> {
        let costs = self.trail.visits.iter().enumerate().filter_map(|(i, v)| Some((self.cost(v, class)?, i)));
        costs.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn drop(&mut self, at: usize, stage: Stage, why: String) {
        self.dropped.push((self.trail.visits[at].variant, why));
        self.trail.visits[at].stage = stage;
    }

    /// Handles variants whose inspections have arrived: they are dropped, or sampled next.
    fn inspected(&mut self, known: &WaveResults) -> Vec<u32> {
        let classes = self.classes();
        let best = classes.iter().find_map(|c| self.best(c)).and_then(|(_, at)| self.trail.visits[at].spills);
        let mut sample = vec![];
        for at in 0..self.trail.visits.len() {
            let variant = self.trail.visits[at].variant;
            if self.trail.visits[at].stage != Stage::Compiling {
                continue;
            }
            match known.inspections.get(&variant) {
                None | Some(None) => self.drop(at, Stage::Unbuilt, "it gave no binary".into()),
                Some(Some(inspection)) => {
                    self.trail.visits[at].spills = facts::spills(inspection);
                    let launches = self.params.launches.get(&variant).map_or(&[][..], Vec::as_slice);
                    match facts::against(inspection, launches, self.params.limits.as_ref(), best) {
                        Some(why) => self.drop(at, Stage::Discarded(why.clone()), why),
                        None => {
                            self.trail.visits[at].stage = Stage::Sampling;
                            sample.push(variant);
                        }
                    }
                }
            }
        }
        sample
    }

    /// Median and duration in seconds of an observation; no median if no sample is left.
    fn median(&self, seen: &BenchObserved) -> (Option<f64>, f64) {
        let series = if self.params.hot { &seen.hot } else { &seen.cold };
        let all = [&seen.cold, &seen.hot].into_iter().flatten().flat_map(|s| &s.samples_ns);
        // If the duration was not recorded, the duration of the samples: less than the true one, and always the same.
        let took = seen.took_s.unwrap_or_else(|| all.sum::<f64>() * 1e-9);
        let median = series.as_ref().filter(|s| !s.samples_ns.is_empty()).map(|s| stats::median(&s.samples_ns));
        (median.filter(|m| *m > 0.0), took)
    }

    /// The shapes at which a variant is timed.
    fn benched(&self, variant: u32) -> Vec<u32> {
        self.geometry.domain(variant).iter().copied().filter(|s| self.params.bench.contains(s)).collect()
    }

    /// Handles variants whose full benches have arrived.
    fn timed(&mut self, known: &WaveResults) {
        for at in 0..self.trail.visits.len() {
            let variant = self.trail.visits[at].variant;
            if self.trail.visits[at].stage != Stage::Timing {
                continue;
            }
            let mut stage = Stage::Timed;
            for shape in self.benched(variant) {
                match known.full.get(&(variant, shape)) {
                    None | Some(None) => stage = Stage::Unrecorded,
                    Some(Some(seen)) => {
                        let (median, took) = self.median(seen);
                        self.trail.visits[at].took_s += took;
                        match median {
                            // A variant that was fast because it did not do its work has no time, and does not displace others.
                            _ if !seen.verified => stage = Stage::Failed,
                            Some(median) => drop(self.trail.visits[at].full.insert(shape, median)),
                            None if stage == Stage::Timed => stage = Stage::Failed,
                            None => {}
                        }
                    }
                }
            }
            match stage {
                Stage::Failed => self.drop(at, Stage::Failed, "its full bench gave no valid time".into()),
                stage => self.trail.visits[at].stage = stage,
            }
        }
    }

    /// Handles variants whose few samples have arrived: they are dropped, or timed in full next.
    fn sampled(&mut self, known: &WaveResults) -> Vec<u32> {
        let mut right = vec![];
        for at in 0..self.trail.visits.len() {
            let variant = self.trail.visits[at].variant;
            let shapes = self.geometry.domain(variant);
            // Variants that were just sent to be sampled have no results yet.
            let asked = shapes.iter().any(|s| known.judgements.contains_key(&(variant, *s)));
            if self.trail.visits[at].stage != Stage::Sampling || !asked {
                continue;
            }
            if let Some((stage, why)) = self.sample(at, shapes, known) {
                match why {
                    Some(why) => self.drop(at, stage, why),
                    None => self.trail.visits[at].stage = stage,
                }
            } else {
                // Treated as timed in full until it is compared with all the others.
                self.trail.visits[at].stage = Stage::Timing;
                right.push(at);
            }
        }
        let classes: Vec<Class<'a>> = self.classes().into_iter().chain(self.shapes()).collect();
        let few = |visit: &Visit, class: &Class<'_>| {
            let plain = Visit { full: BTreeMap::new(), ..visit.clone() };
            self.cost(&plain, class)
        };
        let best: Vec<Option<f64>> =
            classes.iter().map(|c| self.trail.visits.iter().filter_map(|v| few(v, c)).min_by(f64::total_cmp)).collect();
        let mut near = vec![];
        let mut slow = vec![];
        // A variant that was slower than one that has since failed is considered again; the others are as far behind as before.
        let dropped = |at: &usize| self.trail.visits[*at].stage == Stage::Slow;
        right.extend((0..self.trail.visits.len()).filter(dropped).collect::<Vec<_>>());
        for at in right {
            let visit = &self.trail.visits[at];
            let behind = |(class, best): (&Class<'_>, &Option<f64>)| Some(few(visit, class)? - (*best)?);
            let least = classes.iter().zip(&best).filter_map(behind).min_by(f64::total_cmp);
            match least {
                Some(least) if least > self.params.within.ln() => slow.push((at, least)),
                // Without a bench shape, the variant is done.
                _ if self.benched(visit.variant).is_empty() => slow.push((at, f64::NAN)),
                _ => near.push(at),
            }
        }
        for (at, behind) in slow {
            if behind.is_nan() {
                self.trail.visits[at].stage = Stage::Timed;
            } else if self.trail.visits[at].stage != Stage::Slow {
                self.drop(at, Stage::Slow, format!("{:.2} times the best after few samples", behind.exp()));
            }
        }
        near.iter().for_each(|at| self.trail.visits[*at].stage = Stage::Timing);
        near.into_iter().map(|at| self.trail.visits[at].variant).collect()
    }

    /// The stage and reason of a sampled variant that goes no further; none if it is correct and has times.
    fn sample(&mut self, at: usize, shapes: &[u32], known: &WaveResults) -> Option<(Stage, Option<String>)> {
        let variant = self.trail.visits[at].variant;
        let verdict = |s: &u32| known.judgements.get(&(variant, *s)).and_then(Option::as_ref).map(|j| &j.verdict);
        let benched = self.benched(variant);
        let mut absent =
            shapes.iter().any(|s| matches!(verdict(s), None | Some(Verdict::Unknown(Unknown::NoDevice(_)))));
        let mut timeless = false;
        for shape in benched {
            match known.few.get(&(variant, shape)).and_then(Option::as_ref) {
                None => absent = true,
                Some(seen) => {
                    let (median, took) = self.median(seen);
                    self.trail.visits[at].took_s += took;
                    match median.filter(|_| seen.verified) {
                        Some(median) => drop(self.trail.visits[at].few.insert(shape, median)),
                        None => timeless = true,
                    }
                }
            }
        }
        let wrong = shapes.iter().find_map(|s| match verdict(s) {
            Some(Verdict::Fail(why)) => Some(why.clone()),
            _ => None,
        });
        let unknown = shapes.iter().find_map(|s| match verdict(s) {
            Some(Verdict::Unknown(why)) => Some(why.to_string()),
            _ => None,
        });
        match (wrong, absent, timeless, unknown) {
            (Some(why), ..) => Some((Stage::Wrong, Some(format!("it is wrong: {why}")))),
            (None, true, ..) => Some((Stage::Unrecorded, None)),
            (None, false, true, _) => Some((Stage::Failed, Some("it gave no time".into()))),
            (None, false, false, Some(why)) => Some((Stage::Failed, Some(why))),
            (None, false, false, None) => None,
        }
    }

    fn took_s(&self) -> f64 {
        self.trail.visits.iter().map(|v| v.took_s).sum()
    }

    /// Why no more variants are to be proposed.
    fn stop(&self) -> Option<Over> {
        let (visits, budget) = (&self.trail.visits, &self.params.budget);
        if visits.iter().any(|v| v.stage == Stage::Unrecorded) {
            return Some(Over::Unrecorded);
        }
        if visits.len() >= self.geometry.len() {
            return Some(Over::Exhausted);
        }
        if budget.variants.is_some_and(|most| visits.len() as u32 >= most) {
            return Some(Over::Variants);
        }
        budget.seconds.is_some_and(|most| self.took_s() >= most as f64).then_some(Over::Seconds)
    }

    /// The spent share of the budget: the larger of the shares of its parts.
    fn spent(&self, visits: usize) -> f64 {
        let budget = &self.params.budget;
        let variants = budget.variants.map_or(0.0, |most| visits as f64 / f64::from(most));
        let seconds = budget.seconds.map_or(0.0, |most| self.took_s() / most as f64);
        variants.max(seconds).max(visits as f64 / self.geometry.len() as f64).min(1.0)
    }

    /// The next variants to compile.
    fn propose(&mut self) -> Vec<u32> {
        let left = self.params.budget.variants.map_or(u32::MAX, |most| most - self.trail.visits.len() as u32);
        let batch = self.params.batch.min(left) as usize;
        let order = shuffled(self.params.seed, self.geometry.len());
        let classes = self.classes();
        let mut next: Vec<Proposal> = vec![];
        // A class at which nothing is timed needs just one correct variant.
        for class in classes.iter().filter(|c| c.bench.is_empty()) {
            let serves = |v: u32| self.geometry.serves(v, &class.shapes);
            let right = |v: &&Visit| matches!(v.stage, Stage::Timed | Stage::Slow | Stage::Timing) && serves(v.variant);
            if self.trail.visits.iter().find(right).is_none() && next.len() < batch {
                let taken = self.taken(&next);
                let found = order.iter().copied().find(|v| !taken.contains(v) && serves(*v));
                next.extend(found.map(|variant| Proposal { variant, chain: 0 }));
            }
        }
        let timed: Vec<&Class<'_>> = classes.iter().filter(|c| !c.bench.is_empty()).collect();
        for nth in 0..timed.len() {
            // If all variants that serve one class were visited, the next class has its turn.
            let class = timed[(self.trail.turns as usize + nth) % timed.len()];
            let taken = self.taken(&next);
            let seen =
                |v: &Visit| VisitCost { variant: v.variant, chain: v.chain, spent: v.spent, cost: self.cost(v, class) };
            let of_class = |v: &&Visit| self.geometry.serves(v.variant, &class.shapes);
            let visits: Vec<VisitCost> = self.trail.visits.iter().filter(of_class).map(seen).collect();
            let turn = Turn {
                geometry: &self.geometry,
                seed: self.params.seed,
                chains: self.params.batch as usize,
                visits: &visits,
                visited: self.trail.visits.len(),
                taken: &taken,
                shapes: &class.shapes,
                order: &order,
                hints: &self.params.hints,
            };
            next.extend(turn.propose(self.params.strategy, batch - next.len()));
            if next.len() == batch {
                break;
            }
        }
        self.trail.turns += 1;
        // Variants that serve no class as a whole come last, if the budget covers all.
        let taken = self.taken(&next);
        next.extend(
            (order.iter().copied().filter(|v| !taken.contains(v)).take(batch - next.len()))
                .map(|variant| Proposal { variant, chain: 0 }),
        );
        let visited = self.trail.visits.len();
        let visits: Vec<Visit> = next
            .iter()
            .enumerate()
            .map(|(nth, proposal)| Visit {
                variant: proposal.variant,
                chain: proposal.chain,
                spent: self.spent(visited + nth),
                stage: Stage::Compiling,
                spills: None,
                few: BTreeMap::new(),
                full: BTreeMap::new(),
                took_s: 0.0,
            })
            .collect();
        self.trail.visits.extend(visits);
        next.iter().map(|p| p.variant).collect()
    }

    fn taken(&self, next: &[Proposal]) -> HashSet<u32> {
        self.trail.visits.iter().map(|v| v.variant).chain(next.iter().map(|p| p.variant)).collect()
    }

    fn tally(&self, over: Option<Over>) -> Tally {
        let count = |is: &dyn Fn(&Stage) -> bool| self.trail.visits.iter().filter(|v| is(&v.stage)).count() as u32;
        let found = |class: &Class<'_>| {
            let (_, at) = self.best(class)?;
            Some(BestVisit { class: class.name.into(), variant: self.trail.visits[at].variant, visit: at as u32 + 1 })
        };
        Tally {
            strategy: self.params.strategy,
            visited: self.trail.visits.len() as u32,
            of: self.all(),
            on_facts: count(&|s| matches!(s, Stage::Unbuilt | Stage::Discarded(_))),
            on_samples: count(&|s| matches!(s, Stage::Slow | Stage::Wrong | Stage::Failed)),
            took_s: self.took_s(),
            best: self.classes().iter().filter_map(found).collect(),
            over,
        }
    }
}
