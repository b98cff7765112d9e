//! Whole searches over known surfaces: they find the best, keep their bounds, repeat exactly, and never visit a variant twice.

use std::collections::{BTreeMap, BTreeSet};

use super::{WaveResults, sample, walk};
use kforge_types::model::TuneValue;
use kforge_types::model::limits::limits;
use kforge_types::model::search::{Budget, Strategy};
use kforge_types::record::params::Judgement;
use kforge_types::record::search::{Block, Over, SearchParams, SearchSpace, Searched, Stage, Trail};
use kforge_types::record::timing::{BenchObserved, Series};
use kforge_types::record::{FunctionFacts, Inspection, Unknown, Verdict};

/// A device that answers from a table.
struct Machine {
    space: SearchSpace,
    /// Nanoseconds of (variant, shape); none if it is wrong.
    ns: Box<dyn Fn(u32, u32) -> Option<f64>>,
    /// What the machine code of a variant shows: registers, bytes of spills.
    facts: Box<dyn Fn(u32) -> (u32, u64)>,
    /// Whether a variant has any observation.
    recorded: Box<dyn Fn(u32) -> bool>,
    /// The variant that few samples time at one nanosecond, and whether that time counts; a full bench finds that it does not.
    cheat: Option<(u32, bool)>,
}

/// Everything that one search did.
#[derive(Debug, PartialEq)]
struct SearchRun {
    trail: Trail,
    compiled: Vec<u32>,
    sampled: Vec<u32>,
    timed: Vec<u32>,
    last: Searched,
    steps: usize,
}

fn params(strategy: Strategy, seed: u64, budget: Budget) -> SearchParams {
    SearchParams {
        strategy,
        seed,
        budget,
        batch: 8,
        within: 1.3,
        limits: limits(90),
        shapes: vec!["0".into()],
        bench: vec![0],
        most_classes: 1,
        hot: false,
        timed: true,
        hints: vec![],
        launches: BTreeMap::new(),
    }
}

fn variants(n: u32) -> Budget {
    Budget { variants: Some(n), seconds: None }
}

fn observed(ns: f64, took_s: f64) -> BenchObserved {
    let series = Series { samples_ns: vec![ns; 5], dropped: 0 };
    BenchObserved { cold: Some(series), verified: true, took_s: Some(took_s), ..BenchObserved::default() }
}

impl Machine {
    /// A machine whose tunables have `sizes` values, and on which every variant is correct and fast.
    fn new(sizes: &[u32]) -> Self {
        let mut points: Vec<Vec<u32>> = vec![vec![]];
        for size in sizes {
            points = points.iter().flat_map(|p| (0..*size).map(|v| [&p[..], &[v]].concat())).collect();
        }
        let tunables = sizes.iter().map(|n| (0..*n).map(|v| TuneValue::Int(1 << v)).collect()).collect();
        let serves = vec![0; points.len()];
        Machine {
            space: SearchSpace { tunables, points, domains: vec![vec![0]], serves },
            ns: Box::new(|_, _| Some(1000.0)),
            facts: Box::new(|_| (32, 0)),
            recorded: Box::new(|_| true),
            cheat: None,
        }
    }

    /// A timing that takes `took_s` seconds, of a variant whose time may be false.
    fn timing(&self, v: u32, ns: f64, took_s: f64, few: bool) -> BenchObserved {
        match self.cheat {
            Some((cheat, counts)) if cheat == v => BenchObserved { verified: few && counts, ..observed(1.0, took_s) },
            _ => observed(ns, took_s),
        }
    }

    /// The machine with the times of a surface over positions.
    fn surface(mut self, of: fn(&[u32]) -> Option<f64>) -> Self {
        let points = self.space.points.clone();
        self.ns = Box::new(move |v, _| of(&points[v as usize]));
        self
    }

    fn best(&self) -> f64 {
        (0..self.space.points.len() as u32).filter_map(|v| (self.ns)(v, 0)).fold(f64::INFINITY, f64::min)
    }

    /// Searches to the end.
    fn search(&self, params: &SearchParams) -> SearchRun {
        let (mut trail, mut known) = (Trail::default(), WaveResults::default());
        let (mut compiled, mut sampled, mut timed) = (vec![], vec![], vec![]);
        let mut params = params.clone();
        for steps in 1..10_000 {
            let (next, searched) = walk(&params, &self.space, trail.clone(), &known);
            assert_eq!((next.clone(), searched.clone()), walk(&params, &self.space, trail, &known), "pure");
            // State that is kept between steps survives the round trip through its document.
            trail = serde_json::from_slice(&serde_json::to_vec(&next).unwrap()).unwrap();
            assert_eq!(trail, next);
            compiled.extend(&searched.compile);
            sampled.extend(&searched.sample);
            timed.extend(&searched.time);
            if searched.tally.over.is_some() {
                return SearchRun { trail, compiled, sampled, timed, last: searched, steps };
            }
            known = self.answers(&searched);
            params.launches = searched.compile.iter().map(|v| (*v, blocks())).collect();
        }
        panic!("it never ends");
    }

    fn answers(&self, asked: &Searched) -> WaveResults {
        let mut known = WaveResults::default();
        for v in &asked.compile {
            let (registers, spills) = (self.facts)(*v);
            let function = FunctionFacts {
                entry: "k".into(),
                registers: Some(registers),
                spill_stores: Some(0),
                spill_loads: Some(spills),
                ..FunctionFacts::default()
            };
            let inspection = Inspection { functions: vec![function], ..Inspection::default() };
            known.inspections.insert(*v, Some(inspection));
        }
        let shapes = |v: u32| self.space.domains[self.space.serves[v as usize] as usize].clone();
        for (v, s) in asked.sample.iter().flat_map(|v| shapes(*v).into_iter().map(|s| (*v, s))) {
            let verdict = match ((self.recorded)(v), (self.ns)(v, s)) {
                (false, _) => Verdict::Unknown(Unknown::NoDevice("x".into())),
                (true, Some(_)) => Verdict::Pass,
                (true, None) => Verdict::Fail("x".into()),
            };
            known.judgements.insert((v, s), Some(Judgement::bare(verdict)));
            let seen = (self.recorded)(v).then(|| self.timing(v, (self.ns)(v, s).unwrap_or(1.0), 0.1, true));
            known.few.insert((v, s), seen);
        }
        for (v, s) in asked.time.iter().flat_map(|v| shapes(*v).into_iter().map(|s| (*v, s))) {
            known.full.insert((v, s), (self.ns)(v, s).map(|ns| self.timing(v, ns, 1.0, false)));
        }
        known
    }

    /// How much slower the found variant is than the best.
    fn behind(&self, went: &SearchRun) -> f64 {
        let found = went.last.tally.best.first().and_then(|b| (self.ns)(b.variant, 0)).unwrap_or(f64::INFINITY);
        found / self.best()
    }
}

fn blocks() -> Vec<Block> {
    vec![Block { entry: "k".into(), threads: 512, shared: 0 }]
}

/// A valley across five tunables, with two that interact: as block size and vector width do.
fn valley(p: &[u32]) -> Option<f64> {
    let f = |i: usize, at: f64, width: f64| ((f64::from(p[i]) - at) / width).powi(2);
    let both = (f64::from(p[0]) + f64::from(p[1]) - 4.0).abs() * 0.08;
    Some(1000.0 * (1.0 + f(0, 3.0, 4.0) + f(1, 1.0, 3.0) + f(2, 4.0, 6.0) + f(3, 0.0, 5.0) + f(4, 2.0, 4.0) + both))
}

/// Two basins, the deeper one narrow, and a region that does not work.
fn basins(p: &[u32]) -> Option<f64> {
    let d = |c: [f64; 4]| (0..4).map(|i| (f64::from(p[i]) - c[i]).powi(2)).sum::<f64>();
    let near = |c, depth: f64, width: f64| depth * (-d(c) / width).exp();
    (p[0] + p[1] != 0).then(|| 1500.0 - near([1.0, 4.0, 1.0, 0.0], 700.0, 9.0) - near([5.0, 1.0, 4.0, 3.0], 900.0, 5.0))
}

/// Name, machine, budget, and how far behind the best annealing and the model may be on average.
fn surfaces() -> Vec<(&'static str, Machine, u32, [f64; 2])> {
    vec![
        ("valley", Machine::new(&[6, 4, 6, 3, 4]).surface(valley), 80, [1.02, 1.005]),
        ("basins", Machine::new(&[7, 6, 6, 4]).surface(basins), 80, [1.15, 1.15]),
    ]
}

const SEEDS: u64 = 8;

fn mean(of: impl Fn(u64) -> f64) -> f64 {
    (0..SEEDS).map(of).sum::<f64>() / SEEDS as f64
}

#[test]
#[ignore = "second tier: many whole searches"]
fn annealing_and_the_model_find_more_than_chance_within_a_budget() {
    for (name, machine, budget, within) in surfaces() {
        let went = |strategy, seed| machine.behind(&machine.search(&params(strategy, seed, variants(budget))));
        let chance = mean(|seed| went(Strategy::Random, seed));
        for (strategy, within) in [Strategy::Annealing, Strategy::Model].into_iter().zip(within) {
            let found = mean(|seed| went(strategy, seed));
            assert!(found < chance && found < within, "{name} {strategy:?}: {found:.4}, by chance {chance:.4}");
        }
    }
}

const ALL: [Strategy; 3] = [Strategy::Random, Strategy::Annealing, Strategy::Model];

#[test]
fn hinted_variants_are_visited_first_and_decide_nothing() {
    let machine = Machine::new(&[5, 4, 3]).surface(|p| Some(1000.0 + 100.0 * f64::from(p[0] + p[2])));
    for strategy in ALL {
        let hints = vec![59, 17, 59, 3];
        let went = machine.search(&SearchParams { hints, ..params(strategy, 3, variants(40)) });
        assert_eq!(went.compiled[..3], [59, 17, 3], "{strategy:?}");
        assert_eq!(
            (went.compiled.len(), went.compiled.iter().collect::<BTreeSet<_>>().len()),
            (40, 40),
            "{strategy:?}"
        );
        // The hinted ones are timed like others, and a better one wins.
        let best = went.last.tally.best.first().map(|best| (machine.ns)(best.variant, 0).unwrap());
        assert!(best < (machine.ns)(17, 0), "{strategy:?}");
    }
}

#[test]
fn no_variant_is_visited_twice_and_no_more_than_the_budget() {
    let machine = Machine::new(&[5, 4, 3]).surface(|p| (p[0] != 4).then(|| 1000.0 + 100.0 * f64::from(p[0] + p[2])));
    for (strategy, most) in ALL.into_iter().flat_map(|s| [1, 7, 20, 60, 500].map(|n| (s, n))) {
        let went = machine.search(&params(strategy, 3, variants(most)));
        let different: BTreeSet<u32> = went.compiled.iter().copied().collect();
        assert_eq!(different.len(), went.compiled.len(), "{strategy:?} {most}");
        assert_eq!(went.compiled.len(), most.min(60) as usize, "{strategy:?} {most}");
        assert_eq!(went.last.tally.visited, most.min(60));
        let over = if most < 60 { Over::Variants } else { Over::Exhausted };
        assert_eq!(went.last.tally.over, Some(over), "{strategy:?} {most}");
    }
}

#[test]
fn who_was_fast_by_cheating_keeps_nobody_else_out() {
    let honest = |p: &[u32]| Some(1000.0 + 100.0 * f64::from(p[0] + p[1]));
    for (cheat, counts) in [(5, false), (5, true), (15, true)] {
        let machine = Machine { cheat: Some((cheat, counts)), ..Machine::new(&[4, 4]).surface(honest) };
        for strategy in ALL {
            let went = machine.search(&params(strategy, 3, variants(16)));
            let found = &went.last.tally.best[0];
            assert_eq!(found.variant, 0, "{strategy:?} {cheat} {counts}");
            assert!(went.timed.contains(&0), "{strategy:?} {cheat} {counts}: {:?}", went.timed);
            let timed: BTreeSet<u32> = went.timed.iter().copied().collect();
            assert_eq!((timed.len(), timed.contains(&cheat)), (went.timed.len(), counts), "{strategy:?} {cheat}");
        }
    }
}

#[test]
fn the_way_follows_from_the_seed() {
    let machine = Machine::new(&[6, 4, 6, 3, 4]).surface(valley);
    for strategy in ALL {
        let went = |seed| machine.search(&params(strategy, seed, variants(40)));
        assert_eq!(went(1), went(1), "{strategy:?}");
        assert_ne!(went(1).compiled, went(2).compiled, "{strategy:?}");
    }
}

#[test]
fn a_sample_is_what_the_random_strategy_visits_and_serves_every_class() {
    let machine = Machine::new(&[6, 4]);
    let mut visited = machine.search(&params(Strategy::Random, 5, variants(9))).compiled;
    visited.sort_unstable();
    assert_eq!(sample(5, 24, 9, &[]), visited);
    assert_eq!(sample(5, 24, 100, &[]), (0..24).collect::<Vec<_>>(), "all, in declared order");
    let missed = (0..24).find(|v| !visited.contains(v)).unwrap();
    let more = sample(5, 24, 9, &[vec![missed], visited.clone(), vec![]]);
    assert_eq!((more.len(), more.contains(&missed)), (10, true));
}

#[test]
fn what_machine_code_says_against_a_variant_is_enough_to_drop_it() {
    let mut machine = Machine::new(&[4, 4]);
    // The first row takes more registers than there are, the second spills, the others spill as little as the best.
    machine.facts = Box::new(|v| match v / 4 {
        0 => (255, 0),
        1 => (64, 2000),
        _ => (64, 100),
    });
    let mut params = params(Strategy::Random, 0, variants(16));
    params.batch = 4;
    let went = machine.search(&params);
    let fate = |v: u32| went.trail.visits.iter().find(|visit| visit.variant == v).unwrap().stage.clone();
    for v in 0..4 {
        assert!(matches!(fate(v), Stage::Discarded(why) if why.contains("needs 131072 registers")), "{v}");
        assert!(!went.sampled.contains(&v), "{v}");
    }
    // Before anything was timed, there is no best to compare spills with.
    let first: Vec<u32> = went.compiled.iter().take(4).copied().collect();
    for v in 4..8 {
        let dropped = matches!(fate(v), Stage::Discarded(why) if why.contains("spills 2000 bytes, but the best so far spills 100"));
        assert_eq!(dropped, !first.contains(&v), "{v}");
    }
    assert!((8..16).all(|v| fate(v) == Stage::Timed));
    assert_eq!(went.last.tally.on_facts as usize, (0..8).filter(|v| !went.sampled.contains(v)).count());
}

#[test]
fn only_those_near_the_best_after_few_samples_are_timed_in_full() {
    let machine = Machine::new(&[8]).surface(|p| match p[0] {
        7 => None,
        n => Some(1000.0 * (1.0 + 0.1 * f64::from(n))),
    });
    let went = machine.search(&params(Strategy::Random, 0, variants(8)));
    let mut timed = went.timed.clone();
    timed.sort_unstable();
    assert_eq!(timed, [0, 1, 2], "ten and twenty per cent slower are near; thirty is not, nor is what is wrong");
    assert_eq!((went.last.tally.on_samples, went.last.tally.on_facts), (5, 0));
    let wrong = went.trail.visits.iter().find(|v| v.variant == 7).unwrap();
    assert_eq!(wrong.stage, Stage::Wrong);
}

#[test]
fn a_budget_in_seconds_counts_what_timings_took_when_they_were_taken() {
    let machine = Machine::new(&[8, 8, 8]);
    let budget = Budget { variants: None, seconds: Some(30) };
    let went = machine.search(&params(Strategy::Random, 0, budget));
    // Eight at a time, each a tenth of a second with few samples and a second in full.
    assert_eq!(went.last.tally.over, Some(Over::Seconds));
    // After four batches, 27.2 seconds are known to be spent: the fourth is still being timed. Visits that have begun are finished.
    assert_eq!(went.compiled.len(), 40);
    assert!((went.last.tally.took_s - 40.0 * 1.1).abs() < 1e-9, "{}", went.last.tally.took_s);
    let both = Budget { variants: Some(16), seconds: Some(30) };
    assert_eq!(machine.search(&params(Strategy::Random, 0, both)).last.tally.over, Some(Over::Variants));
}

#[test]
fn what_is_not_recorded_ends_the_search_and_is_held_against_nobody() {
    let mut machine = Machine::new(&[6, 4, 6, 3, 4]).surface(valley);
    let whole = machine.search(&params(Strategy::Model, 0, variants(64)));
    let known: BTreeSet<u32> = whole.compiled.iter().copied().collect();
    // Another seed leaves the recorded path; the same seed does not.
    machine.recorded = Box::new(move |v| known.contains(&v));
    assert_eq!(machine.search(&params(Strategy::Model, 0, variants(64))), whole);
    let other = machine.search(&params(Strategy::Model, 1, variants(64)));
    assert_eq!((other.last.tally.over, other.last.tally.on_samples), (Some(Over::Unrecorded), 0));
    assert!(other.compiled.len() < 64);
}

#[test]
fn classes_take_turns_and_one_at_which_nothing_is_timed_needs_one_right_variant() {
    let mut machine = Machine::new(&[40]);
    // Even variants serve shape 0, odd ones shape 1; some of both serve shape 2, at which nothing is timed.
    machine.space.domains = vec![vec![0], vec![1], vec![0, 2]];
    machine.space.serves = (0..40).map(|v| if v % 10 == 0 { 2 } else { v % 2 }).collect();
    machine.ns = Box::new(|v, _| Some(1000.0 + f64::from(v.abs_diff(25))));
    let mut params = params(Strategy::Random, 0, variants(32));
    params.shapes = ["0", "1", "2"].map(String::from).to_vec();
    params.bench = vec![0, 1];
    let went = machine.search(&params);
    let of_class = |class: &str| went.last.tally.best.iter().find(|b| b.class == class).map(|b| b.variant % 2);
    assert_eq!((of_class("0"), of_class("1"), of_class("2")), (Some(0), Some(1), None));
    let odd = went.compiled.iter().filter(|v| **v % 2 == 1).count();
    assert!((12..=20).contains(&odd), "{odd} of 32");
    assert!(went.compiled[..8].iter().any(|v| v % 10 == 0), "{:?}", went.compiled);
}

#[test]
fn who_is_near_the_best_at_one_shape_is_timed_in_full_if_classes_may_split() {
    let mut machine = Machine::new(&[9]);
    machine.space.domains = vec![vec![0, 1]];
    // Variant 7 is fast at shape 1, and slow at both together.
    machine.ns = Box::new(|v, s| Some(if v == 7 { [3000.0, 900.0][s as usize] } else { 1000.0 }));
    let mut params = params(Strategy::Random, 0, variants(9));
    params.shapes = vec!["0".into(); 2];
    params.bench = vec![0, 1];
    assert!(!machine.search(&params).timed.contains(&7));
    params.most_classes = 2;
    assert!(machine.search(&params).timed.contains(&7));
}

#[test]
fn where_nothing_is_timed_the_first_step_is_the_last() {
    let machine = Machine::new(&[6, 4]);
    let untimed = SearchParams { timed: false, ..params(Strategy::Model, 0, variants(9)) };
    let went = machine.search(&untimed);
    assert_eq!((went.steps, went.compiled.len()), (1, 0));
    assert_eq!((went.last.tally.visited, went.last.tally.over), (9, Some(Over::Untimed)));
}
