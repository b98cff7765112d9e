//! Steps of a kernel whose space is searched instead of built completely: the search steps, the steps that they ask for, and the selection among the visited
//! variants. Knows how to turn the decisions of a search step into steps; decides nothing itself. Pure.
//!
//! | wave | holds |
//! |---|---|
//! | 0 | the first search step, which reads only the space |
//! | n | the steps that the search step of wave n - 1 asked for, and the search step that reads them |
//! | the last | selection among the visited variants |
//!
//! A search step remembers only its own result, so a search that was interrupted or is repeated takes the same path and finds every step done.
//!
//! If nothing is timed, a search has nothing to compare. On `cpu`, for operators without bench shapes, and for goals before timing, a seeded sample of the
//! budget's size is planned as if it were the whole space.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::{Planner, Scope, is_benched};
use super::input::Goal;
use super::kernels::{Field, Stage, classes, identity};
use super::node_builder::{MAIN, NodeBuilder};
use super::operators::Case;
use super::variants::{PlannedVariant, label_of};
use kforge_foundation::base::{Diagnostic, Digest};
use kforge_numerics::measure::search::sample;
use kforge_types::model::limits::limits;
use kforge_types::model::search::Strategy;
use kforge_types::model::target::capability;
use kforge_types::model::{Arch, Kernel, Launch, Metric, TypeChoice, Variant};
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::search::{Block, SearchParams, SearchSpace, Searched};

/// Variants that are compiled at once: enough to keep the processors of a workstation busy. A larger batch would be chosen by older times.
const BATCH: u32 = 8;

/// The same if no times decide what is visited next.
const LARGE_BATCH: u32 = 64;

/// Samples of a first, short timing: enough that a noise of ten percent moves the median by five, few enough to cost a tenth of a full timing.
pub(super) const FEW: u32 = 5;

/// How many times slower than the best a variant may be after few samples and still be timed in full. Five noisy samples and changing clocks cannot hide a
/// larger difference.
const WITHIN: f64 = 1.3;

/// A search in progress: what expands a search node.
#[derive(Clone)]
pub struct SearchProgress {
    /// Position of the package.
    pub package: usize,
    /// The kernel's name.
    pub kernel: String,
    /// The target's name.
    pub target: String,
    /// The choice of types.
    pub choice: TypeChoice,
    /// The display name of each class.
    pub classes: BTreeMap<String, String>,
    /// The variants of the space. A variant's number is its position here.
    pub space: Arc<Vec<Variant>>,
    cases: Arc<Vec<Case>>,
    /// For each variant the positions of the cases that it serves.
    serves: Arc<Vec<Vec<u32>>>,
    document: Digest,
    params: SearchParams,
    /// The wave of the node.
    wave: u32,
    /// Variants that were sent to verification.
    visited: BTreeSet<u32>,
    /// Judge steps by (variant, position of the case).
    judged: Vec<(u32, usize, String)>,
    /// Full benches, in the same form.
    benched: Vec<(u32, usize, String)>,
}

impl SearchProgress {
    /// The labels of the variants of the space with their types, in order of their numbers.
    pub fn labels(&self) -> Vec<String> {
        self.space.iter().map(|variant| label_of(&[&self.choice.label, &variant.label])).collect()
    }
}

impl Planner<'_> {
    /// The variants of a kernel to plan now; none if a search plans them step by step. `all` is the whole space.
    pub(super) fn unsearched(
        &mut self,
        scope: Scope<'_>,
        all: Vec<Variant>,
    ) -> Result<Option<Vec<Variant>>, Diagnostic> {
        let search = scope.kernel.search;
        if search.strategy == Strategy::Exhaustive {
            return Ok(Some(all));
        }
        let timed = scope.target.arch != Arch::Cpu && self.shapes(scope.operator).into_iter().any(is_benched);
        if timed && self.input.goal >= Goal::Bench {
            self.begin(scope, all)?;
            return Ok(None);
        }
        let serves = self.served(scope, &all)?;
        let taken = {
            let (_, of_shapes) = self.classes_of_shapes(scope)?;
            let mut needed: Vec<Vec<u32>> = vec![];
            for class in of_shapes.iter().collect::<BTreeSet<_>>() {
                let shapes = || (0u32..).zip(&of_shapes).filter(|(_, c)| *c == class).map(|(at, _)| at);
                let whole = |s: &Vec<u32>| shapes().all(|at| s.contains(&at));
                needed.push((0u32..).zip(&serves).filter(|(_, s)| whole(s)).map(|(v, _)| v).collect());
            }
            needed.extend(self.pinned(scope, &all).into_iter().map(|v| vec![v]));
            sample(search.seed, all.len(), search.sample_of(all.len()), &needed)
        };
        if self.input.goal == Goal::Build {
            let searching = self.searching(scope, all.clone(), vec![], serves, false)?;
            let first = self.search_node(scope, &searching, None);
            self.searching.insert(first.id.clone(), Arc::new(searching));
            self.add(first);
        }
        Ok(Some(taken.into_iter().filter_map(|v| all.get(v as usize).cloned()).collect()))
    }

    /// For each variant the positions of the selected shapes that it serves.
    fn served(&self, scope: Scope<'_>, all: &[Variant]) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let shapes = self.shapes(scope.operator);
        let mut out = Vec::with_capacity(all.len());
        for variant in all {
            let mut served = vec![];
            for (at, shape) in (0u32..).zip(&shapes) {
                if scope.kernel.serves(variant, scope.operator, scope.choice, shape)? {
                    served.push(at);
                }
            }
            out.push(served);
        }
        Ok(out)
    }

    /// [`classes`] of the selected shapes.
    fn classes_of_shapes(&self, scope: Scope<'_>) -> Result<(BTreeMap<String, String>, Vec<String>), Diagnostic> {
        classes(scope, self.shapes(scope.operator).into_iter())
    }

    /// The variants that the lockfile pins for this kernel and target.
    pub(super) fn pinned(&self, scope: Scope<'_>, all: &[Variant]) -> Vec<u32> {
        let pins = &self.package_input(scope.package).pins;
        let of = |(kernel, types, target, _): &&(String, String, String, String)| {
            *kernel == scope.kernel.name
                && *target == scope.target.name
                && (types.is_empty() || *types == scope.choice.label)
        };
        let pinned: BTreeSet<&String> =
            pins.iter().filter(|(seat, _)| of(seat)).map(|(_, identity)| identity).collect();
        if pinned.is_empty() {
            return vec![];
        }
        (0u32..).zip(all).filter(|(_, v)| pinned.contains(&identity(&v.label))).map(|(at, _)| at).collect()
    }

    /// Plans the first search step of a space, and what later ones share.
    fn begin(&mut self, scope: Scope<'_>, all: Vec<Variant>) -> Result<(), Diagnostic> {
        let cases = self.cases(scope.package, scope.operator, scope.choice)?;
        self.calibrate(scope.package, scope.operator, scope.choice, &cases);
        // What every variant shares is planned now, in wave 0: otherwise two searches that share it would disagree about its wave.
        self.generate(scope, &scope.kernel.source, MAIN);
        for case in &cases {
            // Documents are collected before the build starts.
            self.own_functions(scope.package, &case.problem, &scope.operator.compare());
            self.input_functions(scope.package, &case.problem);
        }
        let serves = self.served(scope, &all)?;
        // A variant that accepts no shape cannot be selected.
        let (all, serves): (Vec<Variant>, Vec<Vec<u32>>) =
            all.into_iter().zip(serves).filter(|(_, s)| !s.is_empty()).unzip();
        let searching = self.searching(scope, all, cases, serves, true)?;
        let first = self.search_node(scope, &searching, None);
        self.searching.insert(first.id.clone(), Arc::new(searching));
        self.add(first);
        Ok(())
    }

    fn searching(
        &mut self,
        scope: Scope<'_>,
        all: Vec<Variant>,
        cases: Vec<Case>,
        serves: Vec<Vec<u32>>,
        timed: bool,
    ) -> Result<SearchProgress, Diagnostic> {
        let kernel = scope.kernel;
        let (classes, shapes) = self.classes_of_shapes(scope)?;
        let bench = (0u32..).zip(self.shapes(scope.operator)).filter(|(_, s)| is_benched(s)).map(|(at, _)| at);
        let arch_limits = match &scope.target.arch {
            Arch::Sm(name) => capability(name).ok().and_then(|(capability, _)| limits(capability)),
            Arch::Cpu => None,
        };
        let params = SearchParams {
            strategy: kernel.search.strategy,
            seed: kernel.search.seed,
            budget: kernel.search.budget,
            batch: if kernel.search.strategy == Strategy::Random { LARGE_BATCH } else { BATCH },
            within: WITHIN,
            limits: arch_limits,
            bench: bench.collect(),
            most_classes: kernel.select.classes,
            shapes,
            hot: kernel.select.metric == Metric::Hot,
            timed,
            hints: hinted(kernel, &all),
            launches: BTreeMap::new(),
        };
        let space = space(scope, &all, &serves);
        // A space of numbers, texts and lists always serializes.
        let bytes = serde_json::to_vec(&space).expect("BUG: a space that does not serialise");
        Ok(SearchProgress {
            package: scope.package,
            kernel: kernel.name.clone(),
            target: scope.target.name.clone(),
            choice: scope.choice.clone(),
            classes,
            space: Arc::new(all),
            cases: Arc::new(cases),
            serves: Arc::new(serves),
            document: self.document(bytes),
            params,
            wave: self.wave,
            visited: BTreeSet::new(),
            judged: vec![],
            benched: vec![],
        })
    }

    /// The search step of a wave, without its inputs from variants.
    fn search_node(&self, scope: Scope<'_>, searching: &SearchProgress, before: Option<&str>) -> kforge_engine::Node {
        let package = &self.package_input(scope.package).package.name;
        let labels = Labels {
            package: package.clone(),
            kernel: Some(scope.kernel.name.clone()),
            operator: Some(scope.operator.name.clone()),
            target: Some(scope.target.name.clone()),
            ..Labels::default()
        };
        let wave = format!("wave-{}", searching.wave);
        let parts = [package.as_str(), &scope.kernel.name, &scope.choice.label, &scope.target.name, &wave];
        let mut node =
            NodeBuilder::new(StepKind::Search, &parts, labels, &searching.params).blob("space", searching.document);
        if let Some(before) = before {
            node = node.output("trail", before, "trail");
        }
        if searching.params.timed { node.expands().done() } else { node.done() }
    }

    /// Plans what a search step asked for and the next search step; or, if the search is over, the selection.
    pub(super) fn searched(&mut self, searching: &SearchProgress, searched: &Searched) -> Result<(), Diagnostic> {
        let package = self.package_input(searching.package).package;
        let kernel = package.kernels.iter().find(|k| k.name == searching.kernel);
        let operator = kernel.and_then(|k| package.operators.iter().find(|o| o.name == k.operator));
        // All names were valid when the search began.
        let (Some(kernel), Some(operator), Some(target)) = (kernel, operator, package.targets.get(&searching.target))
        else {
            return Ok(());
        };
        let scope = Scope { package: searching.package, kernel, operator, choice: &searching.choice, target, round: 0 };
        self.wave = searching.wave + 1;
        let mut next = SearchProgress { wave: self.wave, ..searching.clone() };
        next.params.launches = BTreeMap::new();
        let planned = match searched.tally.over {
            Some(_) => self.select_visited(scope, next),
            None => self.next_wave(scope, next, searched),
        };
        self.wave = 0;
        planned
    }

    fn next_wave(&mut self, scope: Scope<'_>, mut next: SearchProgress, searched: &Searched) -> Result<(), Diagnostic> {
        let before = SearchProgress { wave: next.wave - 1, ..next.clone() };
        let before = self.search_node(scope, &before, None).id;
        let mut inputs: Vec<(String, String, &str)> = vec![];
        for variant in &searched.compile {
            let Some(build) = self.build_at(scope, &next, *variant) else { continue };
            let launches = self.blocks(scope, &next, &build, *variant)?;
            next.params.launches.insert(*variant, launches);
            let first = cases_of(&next, *variant).into_iter().next().map(|(_, case)| case.problem);
            let compiler = Self::compiler(scope, 0.0);
            let (_, inspect) = self.compile(scope, &build, compiler, MAIN, first.as_ref())?;
            inputs.push((format!("inspection:{variant}"), inspect, "inspection"));
        }
        for variant in &searched.sample {
            let Some(build) = self.build_at(scope, &next, *variant) else { continue };
            next.visited.insert(*variant);
            for (at, case) in cases_of(&next, *variant) {
                let judge = self.verify(scope, &build, &case, MAIN)?;
                inputs.push((format!("judgement:{variant}:{at}"), judge.clone(), "judgement"));
                next.judged.push((*variant, at, judge));
                let verified = self.verification(scope, &build, &case);
                if let Some(few) = self.timing(scope, &build, &case, Some(FEW), verified)? {
                    inputs.push((format!("few:{variant}:{at}"), few, "observation"));
                }
            }
        }
        for variant in &searched.time {
            let Some(build) = self.build_at(scope, &next, *variant) else { continue };
            for (at, case) in cases_of(&next, *variant) {
                if let Some(bench) = self.bench(scope, &build, &case)? {
                    inputs.push((format!("bench:{variant}:{at}"), bench.clone(), "observation"));
                    next.benched.push((*variant, at, bench));
                }
            }
        }
        let mut node = self.search_node(scope, &next, Some(&before));
        for (name, from, output) in inputs {
            let source = kforge_engine::Source::Output { node: from, name: output.into(), required: false };
            node.inputs.insert(name, kforge_engine::InputRef { source, form: kforge_types::record::Form::Blob });
        }
        self.searching.insert(node.id.clone(), Arc::new(next));
        self.add(node);
        Ok(())
    }

    /// Plans the selection among the variants that were visited and verified. Variants that the lockfile pins take part whether the search visited them or not,
    /// because a pin must not change the search's path.
    fn select_visited(&mut self, scope: Scope<'_>, mut next: SearchProgress) -> Result<(), Diagnostic> {
        if self.input.goal < Goal::Build {
            return Ok(());
        }
        for variant in self.pinned(scope, &next.space) {
            if !next.visited.insert(variant) {
                continue;
            }
            let Some(build) = self.build_at(scope, &next, variant) else { continue };
            for (at, case) in cases_of(&next, variant) {
                next.judged.push((variant, at, self.verify(scope, &build, &case, MAIN)?));
                if let Some(bench) = self.bench(scope, &build, &case)? {
                    next.benched.push((variant, at, bench));
                }
            }
        }
        // A contender's order in the selection is its position among the visited variants, in declared order.
        let place = |variant: u32| next.visited.range(..variant).count() as u32;
        let placed =
            |list: &[(u32, usize, String)]| list.iter().map(|(v, at, id)| (place(*v), *at, id.clone())).collect();
        let mut field = Field { judged: placed(&next.judged), benched: placed(&next.benched), ..Field::default() };
        for variant in &next.visited {
            let Some(mut build) = self.build_at(scope, &next, *variant) else { continue };
            build.variant.order = field.builds.len() as u32;
            field.builds.push(build);
            field.serves.push(next.serves[*variant as usize].clone());
        }
        let only = Stage { is_last: true, ..Stage::default() };
        self.select(scope, field, &next.cases, only).map(|_| ())
    }

    /// The blocks of a variant at all shapes that it serves, for the limits of the architecture.
    fn blocks(
        &self,
        scope: Scope<'_>,
        searching: &SearchProgress,
        of: &PlannedVariant,
        variant: u32,
    ) -> Result<Vec<Block>, Diagnostic> {
        let mut out = BTreeSet::new();
        for (_, case) in cases_of(searching, variant) {
            for launch in self.launched(scope, of, &case.problem)? {
                if let Launch::Kernel(launch) = launch {
                    let threads = launch.block.iter().map(|n| u64::from(*n)).product();
                    out.insert(Block { entry: launch.entry, threads, shared: launch.shared });
                }
            }
        }
        Ok(out.into_iter().collect())
    }

    fn build_at(&self, scope: Scope<'_>, searching: &SearchProgress, variant: u32) -> Option<PlannedVariant> {
        searching.space.get(variant as usize).map(|v| self.build_of(scope, v))
    }
}

/// The cases that a variant serves, with their positions.
fn cases_of(searching: &SearchProgress, variant: u32) -> Vec<(usize, Case)> {
    let served = searching.serves.get(variant as usize).map_or(&[][..], Vec::as_slice);
    served.iter().filter_map(|at| Some((*at as usize, searching.cases.get(*at as usize)?.clone()))).collect()
}

/// The variants that the hints of a kernel mean, in their order, each once.
fn hinted(kernel: &Kernel, all: &[Variant]) -> Vec<u32> {
    let mut out: Vec<u32> = vec![];
    for hint in &kernel.hints {
        let is_meant = |variant: &Variant| hint.iter().all(|(name, value)| variant.values.get(name) == Some(value));
        for (at, _) in (0u32..).zip(all).filter(|(_, variant)| is_meant(variant)) {
            if !out.contains(&at) {
                out.push(at);
            }
        }
    }
    out
}

/// The space by values and positions, without any name of a tunable or a shape.
fn space(scope: Scope<'_>, all: &[Variant], serves: &[Vec<u32>]) -> SearchSpace {
    let tunables = &scope.kernel.tune;
    let at = |variant: &Variant| -> Vec<u32> {
        let of = |(name, values): &(kforge_types::model::Text, Vec<kforge_types::model::TuneValue>)| {
            let value = variant.values.get(&name.value);
            values.iter().position(|v| Some(v) == value).unwrap_or(0) as u32
        };
        tunables.iter().map(of).collect()
    };
    let mut domains: Vec<Vec<u32>> = vec![];
    let numbers = serves.iter().map(|set| {
        domains.iter().position(|d| d == set).unwrap_or_else(|| {
            domains.push(set.clone());
            domains.len() - 1
        }) as u32
    });
    let numbers = numbers.collect();
    SearchSpace {
        tunables: tunables.iter().map(|(_, values)| values.clone()).collect(),
        points: all.iter().map(at).collect(),
        domains,
        serves: numbers,
    }
}
